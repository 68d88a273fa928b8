//! Prompts of an exact number of tokens, as a part of a plan: who counts, and what the counting found.
//!
//! Owns the types and their form in a file. What is found is part of the plan, so that a stored run sends the same
//! again without its tokenizer, and without asking the server; finding it is `workload::measure`'s business.

use serde::{Deserialize, Serialize};

use super::{Error, Lengths, Plan};
use crate::api::Dialect;

/// The lengths of prompts are tokens, counted by the vocabulary of the server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Tokens {
    /// The tokenizer that counts: a `tokenizer.json`, a folder of one, or the name of a model in the local cache of
    /// Hugging Face. Absent: the server counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokenizer: Option<String>,
    /// Prompts are sent as lists of token ids.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub ids: bool,
    /// What was found. Absent: it is found before the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found: Option<Found>,
}

/// How words become tokens, as it was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Found {
    /// How a prompt begins, whose words are then one token each. Absent: no words of one token each could be found, and
    /// prompts are made of as many words as have the tokens asked for on average.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begins: Option<Begins>,
    /// Tokens of a word on average; 1 where each has one.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub tokens_per_word: f64,
    /// Tokens that the server puts before a prompt (a mark of its beginning): they count as part of the length asked
    /// for.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub added: u32,
    /// Tokens of the server's chat template: they come on top of the length asked for. Absent: there is none, or it is
    /// not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<u32>,
    /// Words of the list that are not one token.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// Words of the vocabulary that stand in their place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub further: Vec<String>,
    /// The ids of the words, where prompts are sent as such: of the word that begins what warms up, and then of each
    /// word that prompts are made of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ids: Vec<u32>,
}

/// How the first word of a prompt is written for it to be the token that it is within a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Begins {
    /// As it is.
    Bare,
    /// After a blank.
    Spaced,
}

impl Found {
    /// Found nothing but that the words of the list have so many tokens on average.
    #[must_use]
    pub fn on_average(tokens_per_word: f64) -> Found {
        Found {
            begins: None,
            tokens_per_word,
            added: 0,
            template: None,
            left_out: Vec::new(),
            further: Vec::new(),
            ids: Vec::new(),
        }
    }

    /// The words that have about `tokens`, of which the server adds some itself.
    #[must_use]
    pub fn words_of(&self, tokens: u32) -> u32 {
        let own = tokens.saturating_sub(self.added);
        if self.begins.is_some() {
            return own;
        }
        // `as` saturates.
        (f64::from(own) / self.tokens_per_word).round() as u32
    }
}

impl Plan {
    /// Token counts that can be had, and found ones that are some.
    pub(super) fn check_tokens(&self) -> Result<(), Error> {
        let Some(tokens) = &self.workload.tokens else { return Ok(()) };
        if tokens.tokenizer.as_deref().is_some_and(|name| name.trim().is_empty()) {
            let remedy = "give a tokenizer.json, a folder of one, or ORG/NAME of the local cache";
            return Err(Error::new("--tokenizer", "names nothing", remedy));
        }
        if tokens.ids {
            if !self.target.dialect.takes_ids() {
                let wrong = format!("the API {} takes no token ids", self.target.dialect.name());
                let remedy = "give --backend openai, llama.cpp or sglang";
                return Err(Error::new("--tokenize-prompt", wrong, remedy));
            }
            if self.workload.conversation.is_some() {
                let wrong = "is for single prompts: answers that later turns repeat come as text";
                return Err(Error::new("--tokenize-prompt", wrong, "leave it out"));
            }
            if self.workload.is_recorded() {
                let wrong = "is for synthetic prompts, and these are those of a file";
                return Err(Error::new("--tokenize-prompt", wrong, "leave it out"));
            }
        }
        tokens.found.as_ref().map_or(Ok(()), |found| check_found(found, tokens.ids))
    }

    /// Whether the lengths of prompts are tokens that were counted.
    #[must_use]
    pub fn counts_tokens(&self) -> bool {
        self.workload.tokens.as_ref().is_some_and(|tokens| tokens.found.is_some())
    }

    /// What is asked for in each prompt, as the server should report it, if all have as many tokens: with those of its
    /// chat template.
    #[must_use]
    pub fn prompt_tokens(&self) -> Option<u32> {
        let found = self.workload.tokens.as_ref()?.found.as_ref()?;
        Some(self.workload.prompt_words()?.saturating_add(found.template.unwrap_or(0)))
    }
}

fn check_found(found: &Found, ids: bool) -> Result<(), Error> {
    let wrong = |wrong: String| {
        let remedy = "leave out the table workload.tokens.found: it is found anew";
        Err(Error::new("workload.tokens.found", wrong, remedy))
    };
    let per_word = found.tokens_per_word;
    if !(per_word.is_finite() && (PER_WORD_MIN..=PER_WORD_MAX).contains(&per_word)) {
        return wrong(format!("a word of {per_word} tokens is none"));
    }
    if found.begins.is_some() && per_word != 1.0 {
        return wrong(format!("words of one token have {per_word} each"));
    }
    if found.added > Lengths::MAX || found.template.is_some_and(|tokens| tokens > Lengths::MAX) {
        return wrong(format!("more than {} tokens come with a prompt", Lengths::MAX));
    }
    let is_word = |word: &String| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase());
    if let Some(word) = found.left_out.iter().chain(&found.further).find(|word| !is_word(word)) {
        return wrong(format!("'{word}' is no word of small letters"));
    }
    if ids && found.begins.is_some() && found.ids.is_empty() {
        return wrong("has no ids, and prompts are sent as such".to_owned());
    }
    if ids && found.begins.is_none() {
        return wrong("has no words of one token, of which prompts of ids are made".to_owned());
    }
    Ok(())
}

impl Dialect {
    /// Whether a prompt may be a list of token ids.
    #[must_use]
    pub fn takes_ids(self) -> bool {
        matches!(self, Dialect::Openai | Dialect::LlamaCpp | Dialect::Sglang)
    }

    /// Whether the server puts a prompt into a template of chats.
    #[must_use]
    pub fn has_template(self) -> bool {
        matches!(
            self,
            Dialect::OpenaiChat
                | Dialect::Messages
                | Dialect::Responses
                | Dialect::OllamaChat
                | Dialect::OllamaGenerate
        )
    }
}

const PER_WORD_MIN: f64 = 0.01;
const PER_WORD_MAX: f64 = 100.0;

fn one() -> f64 {
    1.0
}

fn is_one(value: &f64) -> bool {
    *value == 1.0
}

fn is_zero(value: &u32) -> bool {
    *value == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(change: impl FnOnce(&mut Tokens)) -> String {
        let mut plan = Plan::new(1);
        plan.target.dialect = Dialect::Openai;
        let mut tokens = Tokens { found: Some(Found::on_average(1.0)), ..Tokens::default() };
        change(&mut tokens);
        plan.workload.tokens = Some(tokens);
        plan.check_tokens().map_or_else(|error| error.to_string(), |()| String::new())
    }

    #[test]
    fn what_was_found_is_read_as_it_is_written_and_short_where_nothing_was() {
        let found = Found {
            begins: Some(Begins::Spaced),
            added: 1,
            template: Some(12),
            left_out: vec!["able".to_owned()],
            further: vec!["zebra".to_owned()],
            ids: vec![3, 4],
            ..Found::on_average(1.0)
        };
        let tokens = Tokens { tokenizer: Some("x".to_owned()), ids: true, found: Some(found) };
        let text = serde_json::to_string(&tokens).unwrap();
        assert_eq!(serde_json::from_str::<Tokens>(&text).unwrap(), tokens);
        assert_eq!(serde_json::to_string(&Tokens::default()).unwrap(), "{}");
        assert_eq!(serde_json::to_string(&Found::on_average(1.0)).unwrap(), "{}");
    }

    #[test]
    fn lengths_are_those_of_the_server_as_well_as_they_are_known() {
        let exact = Found { begins: Some(Begins::Bare), added: 1, ..Found::on_average(1.0) };
        assert_eq!([0, 1, 2, 512].map(|tokens| exact.words_of(tokens)), [0, 0, 1, 511]);
        let rough = Found { added: 2, ..Found::on_average(1.25) };
        assert_eq!([2, 12, 102].map(|tokens| rough.words_of(tokens)), [0, 8, 80]);
    }

    #[test]
    fn what_cannot_be_is_refused_with_what_to_do() {
        assert_eq!(refusal(|_| {}), "");
        assert!(refusal(|tokens| tokens.tokenizer = Some(" ".to_owned())).contains("--tokenizer"));
        let found = |change: fn(&mut Found)| refusal(|tokens| change(tokens.found.as_mut().unwrap()));
        for text in [
            found(|found| found.tokens_per_word = 0.0),
            found(|found| found.tokens_per_word = f64::NAN),
            found(|found| (found.begins, found.tokens_per_word) = (Some(Begins::Bare), 2.0)),
            found(|found| found.template = Some(u32::MAX)),
            found(|found| found.left_out = vec!["Caps".to_owned()]),
            found(|found| found.further = vec![String::new()]),
            refusal(|tokens| tokens.ids = true),
        ] {
            assert!(text.contains("workload.tokens.found") && text.contains("found anew"), "{text}");
        }
    }

    #[test]
    fn ids_are_for_synthetic_prompts_of_apis_that_take_them() {
        let mut plan = Plan::new(1);
        plan.workload.tokens = Some(Tokens { ids: true, ..Tokens::default() });
        assert!(plan.check_tokens().unwrap_err().to_string().contains("openai-chat"));
        plan.target.dialect = Dialect::Openai;
        assert_eq!(plan.check_tokens(), Ok(()));
        plan.workload.data = Some(crate::plan::DataSet::of("f"));
        assert!(plan.check_tokens().unwrap_err().to_string().contains("synthetic"));
    }
}
