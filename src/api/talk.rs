//! What was said before, as each dialect repeats it: messages, input items, or one text that goes on.
//!
//! Owns the shape of a user's message, of an answer and of the calls in it. What is said, and when, is `workload`'s.
//!
//! - Chat, Anthropic messages and Ollama's chat repeat a list of messages, OpenAI's responses one of input items.
//! - The APIs of plain text repeat a transcript: each answer directly behind what it answers, as the server has both in its
//!   cache, and what comes next on a line of its own.
//! - Reasoning is not repeated: the templates of reasoning models leave it out of earlier turns, and servers drop it.

use serde_json::{Value, json};

use super::request::{Template, Texts, write_string};
use super::{Channel, Dialect, Filling};
use crate::wire::json::Value as Read;

/// A part of a call that an answer makes. Empty where an event does not tell it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fragment<'a> {
    /// Which of the calls of the answer it belongs to, by whatever number the dialect gives it; [`ALONE`] for one that comes
    /// whole and without a number.
    pub place: u32,
    /// What the result of the call refers to.
    pub id: &'a str,
    /// The tool.
    pub name: &'a str,
    /// More of the arguments, which are JSON when they are whole.
    pub arguments: &'a str,
}

/// An answer as it is gathered, to be repeated in the next turn. Its memory is used again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// What was said, refusals included, reasoning left out.
    pub text: String,
    /// The calls that were made, in the order in which they began.
    pub calls: Vec<Call>,
}

/// A call of a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Call {
    /// The number that the dialect gave it.
    pub place: u32,
    /// What its result refers to.
    pub id: String,
    /// The tool.
    pub name: String,
    /// Its arguments, JSON.
    pub arguments: String,
}

/// What was said so far in a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct History {
    dialect: Dialect,
    /// JSON objects with commas between them, or the text of a transcript.
    said: Vec<u8>,
}

impl Reply {
    /// Forgets the answer.
    pub fn clear(&mut self) {
        self.text.clear();
        self.calls.clear();
    }

    /// Takes a piece of text.
    #[inline]
    pub fn piece(&mut self, channel: Channel, text: &str) {
        if matches!(channel, Channel::Content | Channel::Refusal) {
            self.text.push_str(text);
        }
    }

    /// Takes a part of a call.
    pub fn call(&mut self, fragment: &Fragment<'_>) {
        let is_known = |call: &Call| call.place == fragment.place && fragment.place != ALONE;
        let known = self.calls.iter().position(is_known);
        let at = known.unwrap_or_else(|| {
            self.calls.push(Call { place: fragment.place, ..Call::default() });
            self.calls.len() - 1
        });
        let call = &mut self.calls[at];
        if call.id.is_empty() {
            call.id.push_str(fragment.id);
        }
        if call.name.is_empty() {
            call.name.push_str(fragment.name);
        }
        call.arguments.push_str(fragment.arguments);
    }
}

impl History {
    /// Nothing said yet, to be repeated in `dialect`. Of those that have no answers it is never sent.
    #[must_use]
    pub fn new(dialect: Dialect) -> History {
        History { dialect, said: Vec::new() }
    }

    /// Whether it is a list of messages or items rather than one text.
    #[must_use]
    pub fn is_list(dialect: Dialect) -> bool {
        matches!(dialect, Dialect::OpenaiChat | Dialect::Messages | Dialect::Responses | Dialect::OllamaChat)
    }

    /// All of it: a JSON array of messages or items, or a transcript.
    #[must_use]
    pub fn text(&self) -> String {
        let said = String::from_utf8_lossy(&self.said);
        if History::is_list(self.dialect) { format!("[{said}]") } else { said.into_owned() }
    }

    /// The user has said this.
    pub fn user(&mut self, text: &str) {
        self.message("user", text);
    }

    /// The user has said these things in one message.
    pub fn user_parts(&mut self, parts: &[Box<str>]) {
        if !History::is_list(self.dialect) || self.dialect == Dialect::OllamaChat {
            return self.user(&parts.join("\n"));
        }
        let kind = if self.dialect == Dialect::Responses { "input_text" } else { "text" };
        let part = |text: &str| json!({ "type": kind, "text": text });
        let content: Vec<Value> = parts.iter().map(|text| part(text)).collect();
        self.object(json!({ "role": "user", "content": content }).to_string().as_bytes());
    }

    /// Takes over messages as a file has them: the inside of a JSON array. `false` where the dialect has no messages, and
    /// where they are none.
    pub fn messages(&mut self, array: &str) -> bool {
        let inside = array.trim().strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        match inside.map(str::trim) {
            Some(inside) if History::is_list(self.dialect) && !inside.is_empty() => {
                self.object(inside.as_bytes());
                true
            }
            _ => false,
        }
    }

    /// The model has answered with this message, as a file has it. `false` where the dialect has no messages.
    pub fn message_of_file(&mut self, message: &str) -> bool {
        let is_list = History::is_list(self.dialect);
        if is_list {
            self.object(message.trim().as_bytes());
        }
        is_list
    }

    /// The model has answered. Of its calls the first `calls` are repeated, whose results must follow: servers refuse
    /// calls without them.
    pub fn answer(&mut self, reply: &Reply, calls: usize) {
        let calls = &reply.calls[..calls.min(reply.calls.len())];
        if calls.is_empty() || !History::is_list(self.dialect) {
            return self.message("assistant", &reply.text);
        }
        match self.dialect {
            Dialect::Messages => {
                let text = json!({ "type": "text", "text": reply.text });
                let said = (!reply.text.is_empty()).then_some(text).into_iter();
                let uses = calls.iter().enumerate().map(|(place, call)| {
                    let (id, input) = (call.id_at(place), arguments_of(call));
                    json!({ "type": "tool_use", "id": id, "name": call.name, "input": input })
                });
                let content: Vec<Value> = said.chain(uses).collect();
                self.object(json!({ "role": "assistant", "content": content }).to_string().as_bytes());
            }
            Dialect::Responses => {
                if !reply.text.is_empty() {
                    self.message("assistant", &reply.text);
                }
                for (place, call) in calls.iter().enumerate() {
                    let (id, arguments) = (call.id_at(place), call.arguments_text());
                    let item = json!({ "type": "function_call", "call_id": id, "name": call.name, "arguments": arguments });
                    self.object(item.to_string().as_bytes());
                }
            }
            _ => {
                let is_ollama = self.dialect == Dialect::OllamaChat;
                let made = calls.iter().enumerate().map(|(place, call)| match is_ollama {
                    true => json!({ "function": { "name": call.name, "arguments": arguments_of(call) } }),
                    false => json!({
                        "id": call.id_at(place), "type": "function",
                        "function": { "name": call.name, "arguments": call.arguments_text() },
                    }),
                });
                let made: Vec<Value> = made.collect();
                let message = json!({ "role": "assistant", "content": reply.text, "tool_calls": made });
                self.object(message.to_string().as_bytes());
            }
        }
    }

    /// Writes the body of the next request into `out`; `list` is the template of lists where there is one. `system` is the
    /// message of the system, where one is asked for, and `of` what placeholders are filled by.
    pub fn write(
        &self,
        out: &mut Vec<u8>,
        (template, list): (&Template, Option<&Template>),
        max_tokens: u32,
        (system, of): (&str, &Filling),
    ) {
        match list {
            Some(list) => list.write_list(out, &self.said, max_tokens, (system, of)),
            None => {
                let said = String::from_utf8_lossy(&self.said);
                template.write(out, Texts { system, prompt: &said }, max_tokens, of);
            }
        }
    }

    fn message(&mut self, role: &str, text: &str) {
        if !History::is_list(self.dialect) {
            if !self.said.is_empty() && role == "user" {
                self.said.push(b'\n');
            }
            return self.said.extend_from_slice(text.as_bytes());
        }
        if !self.said.is_empty() {
            self.said.push(b',');
        }
        // An answer among the items of `/v1/responses` is a message without its type too, but llama.cpp wants to be told.
        let is_item = self.dialect == Dialect::Responses && role == "assistant";
        self.said.extend_from_slice(if is_item {
            br#"{"type":"message","role":""#.as_slice()
        } else {
            br#"{"role":""#
        });
        self.said.extend_from_slice(role.as_bytes());
        self.said.extend_from_slice(br#"","content":"#);
        write_string(&mut self.said, text);
        self.said.push(b'}');
    }

    fn object(&mut self, json: &[u8]) {
        if !self.said.is_empty() {
            self.said.push(b',');
        }
        self.said.extend_from_slice(json);
    }
}

impl Call {
    /// Its id, or one made of its place where the server gave none (Ollama's has none).
    #[must_use]
    pub fn id_at(&self, place: usize) -> String {
        if self.id.is_empty() { format!("call_{place}") } else { self.id.clone() }
    }

    /// Its arguments; an empty object where the server told none.
    fn arguments_text(&self) -> &str {
        if self.arguments.is_empty() { "{}" } else { &self.arguments }
    }
}

/// The place of a call of which this is all.
pub const ALONE: u32 = u32::MAX;

/// A value as JSON text, for arguments that come as objects.
pub(super) fn json_of(value: Read<'_>) -> String {
    fn of(value: Read<'_>) -> Value {
        if value.is_object() {
            return Value::Object(value.fields().map(|(name, value)| (name.to_owned(), of(value))).collect());
        }
        if value.is_array() {
            return Value::Array(value.items().map(of).collect());
        }
        let number = || match value.as_u32() {
            Some(count) => Some(Value::from(count)),
            None => value.as_f64().map(Value::from),
        };
        let text = value.as_str().map(Value::from).or_else(|| value.as_bool().map(Value::from));
        text.or_else(number).unwrap_or(Value::Null)
    }
    of(value).to_string()
}

/// Arguments as an object; what is none (an answer may end within it) is put into one.
fn arguments_of(call: &Call) -> Value {
    match serde_json::from_str(call.arguments_text()) {
        Ok(Value::Object(arguments)) => Value::Object(arguments),
        _ => json!({ "arguments": call.arguments }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::request::BodyOptions;

    fn body(dialect: Dialect, options: &BodyOptions, say: impl FnOnce(&mut History)) -> Value {
        let template = Template::new(dialect, "m", true, options);
        let list = template.of_list().filter(|_| History::is_list(dialect));
        let mut history = History::new(dialect);
        say(&mut history);
        let mut out = Vec::new();
        history.write(&mut out, (&template, list.as_ref()), 9, ("", &Filling::default()));
        serde_json::from_slice(&out)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&out)))
    }

    fn reply(text: &str) -> Reply {
        Reply { text: text.to_owned(), calls: Vec::new() }
    }

    fn three(history: &mut History) {
        history.user("one \"1\"\n");
        history.answer(&reply("two\u{1F600}"), 0);
        history.user("three");
    }

    #[test]
    fn a_list_stands_in_the_place_of_the_one_message() {
        let said = json!([
            { "role": "user", "content": "one \"1\"\n" },
            { "role": "assistant", "content": "two\u{1F600}" },
            { "role": "user", "content": "three" },
        ]);
        for (dialect, field) in [
            (Dialect::OpenaiChat, "messages"),
            (Dialect::Messages, "messages"),
            (Dialect::OllamaChat, "messages"),
            (Dialect::Responses, "input"),
        ] {
            let mut said = said.clone();
            if dialect == Dialect::Responses {
                said[1]["type"] = "message".into();
            }
            let options = BodyOptions::default();
            let found = body(dialect, &options, three);
            assert_eq!(found[field], said, "{dialect:?}");
            let mut usual = Vec::new();
            Template::new(dialect, "m", true, &options).write(&mut usual, "x", 9, &Filling::default());
            let mut usual: Value = serde_json::from_slice(&usual).unwrap();
            usual[field] = said.clone();
            assert_eq!(found, usual, "{dialect:?}: nothing else differs");
        }
    }

    #[test]
    fn one_message_is_the_body_of_a_single_turn() {
        for dialect in [Dialect::OpenaiChat, Dialect::Messages, Dialect::OllamaChat] {
            let mut usual = Vec::new();
            Template::new(dialect, "m", true, &BodyOptions::default()).write(
                &mut usual,
                "hi",
                9,
                &Filling::default(),
            );
            let usual: Value = serde_json::from_slice(&usual).unwrap();
            assert_eq!(body(dialect, &BodyOptions::default(), |history| history.user("hi")), usual);
        }
    }

    #[test]
    fn plain_text_goes_on_where_the_answer_ended() {
        for (dialect, field) in [
            (Dialect::Openai, "prompt"),
            (Dialect::OllamaGenerate, "prompt"),
            (Dialect::LlamaCpp, "prompt"),
            (Dialect::Sglang, "text"),
        ] {
            assert_eq!(
                body(dialect, &BodyOptions::default(), three)[field],
                "one \"1\"\ntwo\u{1F600}\nthree"
            );
        }
    }

    #[test]
    fn a_field_of_the_user_that_replaces_the_list_stays() {
        let extra_body = json!({ "messages": ["mine"] }).as_object().unwrap().clone();
        let options = BodyOptions { extra_body, ..BodyOptions::default() };
        assert_eq!(Template::new(Dialect::OpenaiChat, "m", true, &options).of_list(), None);
        assert_eq!(body(Dialect::OpenaiChat, &options, three)["messages"], json!(["mine"]));
    }

    fn called() -> Reply {
        let mut reply = reply("let me see");
        for fragment in [
            Fragment { place: 1, id: "a", name: "look", ..Fragment::default() },
            Fragment { place: 1, arguments: "{\"at\":", ..Fragment::default() },
            Fragment { place: 2, name: "stop", ..Fragment::default() },
            Fragment { place: 1, arguments: "3}", ..Fragment::default() },
        ] {
            reply.call(&fragment);
        }
        reply
    }

    #[test]
    fn calls_are_repeated_in_the_shape_of_each_dialect_where_results_follow() {
        let said = |dialect, calls| {
            let found = body(dialect, &BodyOptions::default(), |history| history.answer(&called(), calls));
            found[if dialect == Dialect::Responses { "input" } else { "messages" }].clone()
        };
        let chat = json!([{ "role": "assistant", "content": "let me see", "tool_calls": [
            { "id": "a", "type": "function", "function": { "name": "look", "arguments": "{\"at\":3}" } },
            { "id": "call_1", "type": "function", "function": { "name": "stop", "arguments": "{}" } },
        ]}]);
        assert_eq!(said(Dialect::OpenaiChat, 2), chat);
        let messages = json!([{ "role": "assistant", "content": [
            { "type": "text", "text": "let me see" },
            { "type": "tool_use", "id": "a", "name": "look", "input": { "at": 3 } },
        ]}]);
        assert_eq!(said(Dialect::Messages, 1), messages);
        let items = json!([
            { "type": "message", "role": "assistant", "content": "let me see" },
            { "type": "function_call", "call_id": "a", "name": "look", "arguments": "{\"at\":3}" },
        ]);
        assert_eq!(said(Dialect::Responses, 1), items);
        assert_eq!(
            said(Dialect::OllamaChat, 2)[0]["tool_calls"][0]["function"]["arguments"],
            json!({ "at": 3 })
        );
        assert_eq!(said(Dialect::OpenaiChat, 0), json!([{ "role": "assistant", "content": "let me see" }]));
    }

    #[test]
    fn messages_of_a_file_are_taken_as_they_stand() {
        let mut history = History::new(Dialect::OpenaiChat);
        assert!(
            history
                .messages(r#" [{"role":"system","content":"s"} , {"role":"user","content":"u","x":1.50}] "#)
        );
        assert!(!history.messages("[]") && !history.messages("{}"));
        history.user("more");
        let text = r#"{"role":"system","content":"s"} , {"role":"user","content":"u","x":1.50},{"role":"user","content":"more"}"#;
        assert_eq!(history.said, text.as_bytes());
        assert!(!History::new(Dialect::Openai).messages(r#"[{"role":"user","content":"u"}]"#));
    }
}
