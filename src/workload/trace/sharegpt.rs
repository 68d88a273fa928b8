//! ShareGPT: conversations of people with a chat service, as an array of objects or as lines.

use super::entry::{Entry, Prompt, Session};
use super::error::{Fault, Reason};
use super::json::{Found, Object};
use super::parser::Batch;

/// Which turns of a conversation are taken: of ShareGPT, and of lists of messages, which are cut for `All` alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Turns {
    /// The first one of a person that a model's answer follows, and that answer.
    #[default]
    First,
    /// Each one of a person with the answer after it, as the turns of one session.
    All,
    /// The first two, whoever said them: what vLLM does. It also drops pairs by their lengths, which a tokenizer has
    /// to count ([`vllm_sharegpt_keeps`](super::vllm_sharegpt_keeps)).
    Vllm,
}

/// A conversation without a question and its answer gives nothing, and is counted.
pub(super) fn read(object: &Object<'_>, turns: Turns, batch: &mut Batch) -> Result<(), Fault> {
    let said = object.needed("conversations")?.items()?;
    let said = said.into_iter().map(Said::read).collect::<Result<Vec<_>, _>>()?;
    let pairs = said.windows(2).filter(|pair| {
        turns == Turns::Vllm || (pair[0].by == Speaker::Person && pair[1].by == Speaker::Model)
    });
    let pairs_max = if turns == Turns::All { usize::MAX } else { 1 };
    let session = match object.get("id").filter(|_| turns == Turns::All) {
        Some(id) => Some(Session::Named(id.name()?)),
        None if turns == Turns::All => Some(Session::Named(batch.session_name())),
        None => None,
    };
    let mut found = 0;
    for pair in pairs.take(pairs_max) {
        batch.push(Entry {
            session: session.clone(),
            turn: session.is_some().then_some(found),
            answer: Some(pair[1].text.text()?),
            ..Entry::new(Prompt::Text(pair[0].text.text()?))
        });
        found += 1;
    }
    if found == 0 {
        batch.unanswered += 1;
    }
    Ok(())
}

struct Said<'t> {
    by: Speaker,
    text: Found<'t>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Speaker {
    Person,
    Model,
    Other,
}

impl<'t> Said<'t> {
    fn read(turn: Found<'t>) -> Result<Said<'t>, Fault> {
        let turn = turn.object()?;
        let by = match &*turn.text(&["from", "role"])?.ok_or(Fault::of_field("from", Reason::Missing))? {
            "human" | "user" => Speaker::Person,
            "gpt" | "assistant" | "chatgpt" | "bing" | "bard" | "model" => Speaker::Model,
            _ => Speaker::Other,
        };
        let text = turn.alias(&["value", "content"])?.ok_or(Fault::of_field("value", Reason::Missing))?;
        Ok(Said { by, text })
    }
}
