//! A recorded conversation told again: what its turns add to the history, and what stands for the answers.
//!
//! - The answer that is repeated is the live one, or the recorded one where the plan wishes it and the file has it.
//! - Calls of tools are repeated where the file's next messages are their results; these then bear the ids of the calls
//!   that were made. Where fewer calls were made than there are results, the recorded answer stands: results of calls that
//!   nobody made are refused by servers. Calls without results are left out for the same reason.

use serde_json::{Map, Value};

use super::counted::Counted;
use super::trace::{Entry, Prompt, blocks};
use crate::api::talk::{History, Reply};
use crate::plan::Replies;

/// Adds what `entry` says to `history`, and leaves its text in `scratch`; `place` is the seed and the place of a prompt of
/// which only the length is known, in tokens where these are counted.
pub fn say(
    history: &mut History,
    entry: &Entry,
    (place, counted): ((u64, u64), Option<&Counted>),
    scratch: &mut String,
) {
    scratch.clear();
    match &entry.prompt {
        Prompt::Text(text) => {
            scratch.push_str(text);
            history.user(scratch);
        }
        Prompt::Parts(parts) => {
            scratch.push_str(&parts.join("\n"));
            history.user_parts(parts);
        }
        Prompt::Messages { messages, .. } => {
            scratch.push_str(messages);
            history.messages(messages);
        }
        Prompt::Tokens { count, blocks } => {
            blocks::write_prompt(scratch, place, ((*count).max(1), blocks.as_ref()), counted);
            history.user(scratch);
        }
        // It is sent as it stands, and nothing goes on from it.
        Prompt::Body { body, .. } => scratch.push_str(body),
    }
}

/// Adds the answer to `before`, and returns the turn that follows it, with the ids of the calls that were made.
pub fn answer(
    history: &mut History,
    (before, live): (&Entry, &Reply),
    next: Entry,
    replies: Replies,
) -> Entry {
    let results = results(&next);
    let wishes_recorded = replies == Replies::Recorded && (before.said.is_some() || before.answer.is_some());
    if wishes_recorded || live.calls.len() < results {
        let message = before.said.as_deref();
        if !message.is_some_and(|message| history.message_of_file(message)) {
            let text = before.answer.as_deref().unwrap_or(&live.text);
            history.answer(&Reply { text: text.to_owned(), calls: Vec::new() }, 0);
        }
        return next;
    }
    history.answer(live, results);
    if results == 0 { next } else { with_ids(next, live, results) }
}

/// The tools of a turn, where it brings any.
#[must_use]
pub fn tools(entry: &Entry) -> Option<Box<str>> {
    match &entry.prompt {
        Prompt::Messages { tools, .. } => tools.clone(),
        _ => None,
    }
}

/// How many results of tools a turn begins with.
fn results(entry: &Entry) -> usize {
    let Prompt::Messages { messages, .. } = &entry.prompt else { return 0 };
    // Most turns have none, and need not be taken apart.
    if !messages.contains("\"tool\"") {
        return 0;
    }
    messages_of(messages).iter().take_while(|message| is_result(message)).count()
}

fn with_ids(entry: Entry, live: &Reply, results: usize) -> Entry {
    let Prompt::Messages { messages, tools } = &entry.prompt else { return entry };
    let mut list = messages_of(messages);
    for (place, (message, call)) in list.iter_mut().zip(&live.calls).take(results).enumerate() {
        message.insert(ID.to_owned(), call.id_at(place).into());
    }
    let messages = Value::Array(list.into_iter().map(Value::Object).collect()).to_string().into();
    Entry { prompt: Prompt::Messages { messages, tools: tools.clone() }, ..entry }
}

fn messages_of(text: &str) -> Vec<Map<String, Value>> {
    serde_json::from_str(text).unwrap_or_default()
}

fn is_result(message: &Map<String, Value>) -> bool {
    message.get("role").and_then(Value::as_str) == Some("tool")
}

/// Which call a result is of.
const ID: &str = "tool_call_id";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::Dialect;
    use crate::api::talk::Call;

    fn turn(messages: &str) -> Entry {
        Entry {
            turn: Some(1),
            ..Entry::new(Prompt::Messages { messages: messages.into(), tools: Some("[{}]".into()) })
        }
    }

    fn reply(text: &str, calls: &[&str]) -> Reply {
        let call = |id: &&str| Call { id: (*id).to_owned(), name: "look".to_owned(), ..Call::default() };
        Reply { text: text.to_owned(), calls: calls.iter().map(call).collect() }
    }

    fn asked() -> Entry {
        let said = r#"{"role":"assistant","content":null,"tool_calls":[{"id":"rec","type":"function","function":{"name":"look","arguments":"{}"}}]}"#;
        Entry { said: Some(said.into()), ..turn(r#"[{"role":"user","content":"where?"}]"#) }
    }

    const RESULT: &str =
        r#"[{"role":"tool","tool_call_id":"rec","content":"here"},{"role":"user","content":"so?"}]"#;

    /// The history after a first turn, the answer to it, and the next one.
    fn told(live: &Reply, replies: Replies, next: &str) -> Value {
        let (mut history, mut scratch) = (History::new(Dialect::OpenaiChat), String::new());
        say(&mut history, &asked(), ((1, 0), None), &mut scratch);
        let next = answer(&mut history, (&asked(), live), turn(next), replies);
        say(&mut history, &next, ((1, 0), None), &mut scratch);
        assert_eq!(tools(&next).as_deref(), Some("[{}]"));
        serde_json::from_str(&history.text()).unwrap()
    }

    #[test]
    fn results_follow_the_calls_that_were_made() {
        let told = told(&reply("", &["live", "other"]), Replies::Live, RESULT);
        assert_eq!(told[1]["tool_calls"].as_array().unwrap().len(), 1, "as many as there are results");
        assert_eq!(told[1]["tool_calls"][0]["id"], "live");
        assert_eq!((&told[2]["tool_call_id"], &told[2]["content"]), (&"live".into(), &"here".into()));
        assert_eq!(told[3]["content"], "so?");
    }

    #[test]
    fn where_no_call_was_made_the_recorded_one_stands() {
        let told = told(&reply("I would rather talk", &[]), Replies::Live, RESULT);
        assert_eq!(told[1]["tool_calls"][0]["id"], "rec");
        assert_eq!(told[2]["tool_call_id"], "rec");
    }

    #[test]
    fn calls_without_results_are_not_repeated() {
        let told =
            told(&reply("hm", &["live"]), Replies::Live, r#"[{"role":"user","content":"never mind"}]"#);
        assert_eq!(told[1], serde_json::json!({ "role": "assistant", "content": "hm" }));
    }

    #[test]
    fn recorded_answers_stand_on_wish() {
        let told = told(&reply("hm", &["live"]), Replies::Recorded, RESULT);
        assert_eq!(told[1]["tool_calls"][0]["id"], "rec");
        let text = |replies, answer: Option<&str>| {
            let before = Entry { answer: answer.map(Into::into), ..Entry::new(Prompt::Text("q".into())) };
            let mut history = History::new(Dialect::Openai);
            history.user("q");
            answer_of(&mut history, &before, replies);
            history.text()
        };
        fn answer_of(history: &mut History, before: &Entry, replies: Replies) {
            let next = Entry::new(Prompt::Text("n".into()));
            let next = answer(history, (before, &reply("live", &[])), next, replies);
            say(history, &next, ((1, 0), None), &mut String::new());
        }
        assert_eq!(text(Replies::Live, Some("recorded")), "qlive\nn");
        assert_eq!(text(Replies::Recorded, Some("recorded")), "qrecorded\nn");
        assert_eq!(text(Replies::Recorded, None), "qlive\nn");
    }
}
