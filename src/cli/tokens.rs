//! How many tokens the words of prompts are: found before the run, by the user's tokenizer or by asking the server.
//!
//! Owns who is asked, and what the user is told. The search itself is `workload::measure`'s; what it finds becomes a part
//! of the plan, by which the same prompts can be sent again.

mod file;

use crate::api::Dialect;
use crate::cli::failure::Failure;
use crate::load::tokenize::{self, TokenizeError};
use crate::load::{Route, probe};
use crate::plan::{Found, Plan};
use crate::rng::Purpose;
use crate::run_file::schema::WordsBlock;
use crate::workload::measure::{Unfit, Wish, measure};
use crate::workload::{Counted, prompts};

/// Whom to ask of a server.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    pub(super) route: &'a Route,
    /// What stands before the paths of the server.
    pub(super) prefix: &'a str,
    pub(super) model: &'a str,
    /// It is of a kind that has `/tokenize`: a question costs little, and nobody wonders about it.
    pub(super) tells_tokens: bool,
}

impl Asked<'_> {
    fn tokens(&self, text: &str) -> Result<Vec<u32>, TokenizeError> {
        tokenize::tokens(self.route, self.prefix, self.model, text)
    }

    /// The tokens of a prompt as the server counts them when it answers.
    fn usage(&self, plan: &Plan, prompt: &str) -> Option<u32> {
        probe::prompt_tokens(self.route, plan, self.model, prompt)
    }
}

/// Finds the words of a plan that names a tokenizer, if that was not done before; says what is worth knowing.
///
/// `asks_server`: where this build has no tokenizers the server can be asked instead.
pub(super) fn by_tokenizer(plan: &mut Plan, asks_server: bool) -> Result<Option<String>, Failure> {
    let wish = wish(plan, 0);
    let Some(tokens) = plan.workload.tokens.as_mut().filter(|tokens| tokens.found.is_none()) else {
        return Ok(None);
    };
    let Some(name) = &tokens.tokenizer else {
        let shown = "the server is asked how it counts, and here nobody is: each word is taken for a token";
        // Prompts of ids are nothing without them, which is said where they are written.
        return Ok((!asks_server && !tokens.ids).then(|| shown.to_owned()));
    };
    if !file::IS_BUILT {
        let missing = "this build has no tokenizers (cargo install --path . --features tokenizer gives one)";
        return match asks_server {
            true => Ok(Some(format!("{missing}: the server is asked instead"))),
            false => Err(Failure::bad(format!("--tokenizer {name}: {missing}"))),
        };
    }
    let found = file::measured(name, &wish).map_err(Failure::bad)?;
    tokens.found = Some(found);
    Ok(None)
}

/// What is looked for in a plan, with at most about so many questions, of which 0 is no limit.
fn wish(plan: &Plan, questions: usize) -> Wish<'static> {
    Wish {
        further: &[],
        in_template: plan.target.dialect.has_template(),
        ids: plan.workload.tokens.as_ref().is_some_and(|tokens| tokens.ids),
        questions: if questions == 0 { usize::MAX } else { questions },
    }
}

/// What the server was asked about its tokens.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// What the user should know, one line each.
    pub(super) notes: Vec<String>,
    /// What is stored with the run, where prompts are words.
    pub(super) words: Option<WordsBlock>,
}

/// Asks the server. `hello`: a prompt that it was sent just now, and the tokens that it counted. `was_found`: what the
/// plan holds is that of an earlier run, and is kept.
pub(super) fn by_server(
    plan: &mut Plan,
    asked: Asked<'_>,
    hello: (&str, Option<u32>),
    was_found: bool,
) -> Result<Told, Failure> {
    match plan.workload.tokens.as_ref().map(|tokens| tokens.found.is_some()) {
        None => Ok(of_words(plan, asked, hello)),
        Some(_) if was_found => Ok(Told::default()),
        Some(has_found) => {
            let mut told = Told::default();
            if !has_found {
                let found = found_by_server(plan, asked, &mut told.notes)?;
                if let Some(tokens) = &mut plan.workload.tokens {
                    tokens.found = Some(found);
                }
            }
            told.notes.extend(with_what_is_added(plan, asked));
            Ok(told)
        }
    }
}

/// The words that are one token each to the server; as many as have the tokens asked for, where it cannot tell.
fn found_by_server(plan: &Plan, asked: Asked<'_>, notes: &mut Vec<String>) -> Result<Found, Failure> {
    let wish = wish(plan, QUESTIONS);
    let mut absent = false;
    let mut ask = |text: &str| {
        asked.tokens(text).map_err(|error| match error {
            TokenizeError::Absent => {
                absent = true;
                "the server has no /tokenize".to_owned()
            }
            TokenizeError::Failed(why) => why,
        })
    };
    let unfit = match measure(&mut ask, &wish) {
        Ok(found) => return Ok(found),
        Err(Unfit::Unanswered(why)) if !absent => {
            return Err(Failure::unreachable(format!(
                "--calibrate: {why}; leave it out, or give --tokenizer"
            )));
        }
        Err(unfit) => unfit,
    };
    let rough = || if absent { by_usage(plan, asked) } else { per_word(asked).map(Found::on_average) };
    let found = (!wish.ids).then(rough).flatten().ok_or_else(|| {
        Failure::bad(format!("--calibrate: {unfit}; give --tokenizer with the model's tokenizer.json"))
    })?;
    notes.push(format!(
        "{unfit}: prompts have as many words as have the tokens asked for on average, {:.3} each",
        found.tokens_per_word
    ));
    Ok(found)
}

/// Tokens of a word on average over the list.
fn per_word(asked: Asked<'_>) -> Option<f64> {
    let of = |words: u32| asked.tokens(&sample(words)).ok().map(|tokens| tokens.len() as f64);
    slope(of(SAMPLE_WORDS)?, of(SAMPLE_WORDS_SHORT)?)
}

/// From the tokens of the two samples to those of a word, without what all texts have at their beginning.
fn slope(long: f64, short: f64) -> Option<f64> {
    let per_word = (long - short) / f64::from(SAMPLE_WORDS - SAMPLE_WORDS_SHORT);
    (per_word > 0.0).then_some(per_word)
}

/// The same by what the server counts of two requests, which share all that it adds.
fn by_usage(plan: &Plan, asked: Asked<'_>) -> Option<Found> {
    let of = |words: u32| asked.usage(plan, &sample(words)).map(f64::from);
    slope(of(SAMPLE_WORDS)?, of(SAMPLE_WORDS_SHORT)?).map(Found::on_average)
}

/// Words as those of prompts, which share no beginning with one.
fn sample(words: u32) -> String {
    let mut text = String::new();
    prompts::write_prompt(&mut text, 0, Purpose::WarmupPrompt, 0, words);
    text
}

/// Finds what the server adds to prompts by what it counts of two short ones, and says what the outcome is.
fn with_what_is_added(plan: &mut Plan, asked: Asked<'_>) -> Option<String> {
    let found = plan.workload.tokens.as_ref()?.found.clone()?;
    let bare = Found { added: 0, template: None, ..found.clone() };
    let counted = Counted::new(&bare);
    // On average, the mark of a warm-up prompt would pass for what the server adds: a measured prompt of a seed that no plan
    // can have stands for those of this one, with none of which it shares more than chance has it.
    let like =
        if bare.begins.is_some() { (0, Purpose::WarmupPrompt, 0) } else { (u64::MAX, Purpose::Prompt, 0) };
    let extra = |tokens: u32| {
        let mut text = String::new();
        counted.write_prompt(&mut text, like, bare.words_of(tokens), true);
        Some(i64::from(asked.usage(plan, &text)?) - i64::from(tokens))
    };
    let extras = [PROBE_TOKENS_SHORT, PROBE_TOKENS].map(extra);
    let exact = bare.begins.is_some();
    let [Some(short), Some(long)] = extras else {
        return Some(
            "the server counts no tokens of prompts in its usage: what it adds to them is not known"
                .to_owned(),
        );
    };
    let Ok(more) = u32::try_from(long) else {
        return Some(format!(
            "the server counts {} tokens fewer than prompts have: these are not its words",
            -long
        ));
    };
    let is_steady = short == long || !exact;
    let has_template = plan.target.dialect.has_template();
    let found = plan.workload.tokens.as_mut()?.found.as_mut()?;
    (found.added, found.template) = if has_template { (0, Some(more)) } else { (more, None) };
    let how = match (exact, is_steady) {
        (true, true) => "exactly",
        (true, false) => "about",
        (false, _) => "on average",
    };
    let adds = match (has_template, more) {
        (true, more) => format!(", and {more} of the server's chat template on top"),
        (false, 0) => String::new(),
        (false, more) => format!(", {more} of them put before it by the server"),
    };
    Some(format!("prompts have {how} the tokens asked for{adds}"))
}

/// What words are to the server, where that costs no more than a question about a text.
fn of_words(plan: &Plan, asked: Asked<'_>, (hello, counted): (&str, Option<u32>)) -> Told {
    if !asked.tells_tokens || plan.workload.is_recorded() || plan.target.dialect == Dialect::Raw {
        return Told::default();
    }
    let Some(per_word) = per_word(asked) else { return Told::default() };
    let own = asked.tokens(hello).ok().and_then(|tokens| u32::try_from(tokens.len()).ok());
    let added = counted.zip(own).map(|(counted, own)| counted.saturating_sub(own));
    let words = WordsBlock { tokens_per_word: per_word, added };
    let notes = plan.workload.prompt_words().filter(|words| *words > 0).and_then(|asked| {
        let expected = f64::from(asked) * per_word + f64::from(added.unwrap_or(0));
        let is_off = (expected / f64::from(asked) - 1.0).abs() > OFF_NOTED;
        is_off.then(|| {
            let added = match added {
                Some(more @ 1..) => format!(" and adds {more}"),
                _ => String::new(),
            };
            format!(
                "this server counts {per_word:.3} tokens a word{added}: prompts of {asked} words are {expected:.0} tokens; \
                 --calibrate makes prompts by tokens"
            )
        })
    });
    Told { notes: notes.into_iter().collect(), words: Some(words) }
}

/// Most questions to a server for the words that are one token each, about.
const QUESTIONS: usize = 400;
/// Words of a text by which the length of a word is known, and of one that is compared with it.
const SAMPLE_WORDS: u32 = 256;
const SAMPLE_WORDS_SHORT: u32 = 16;
/// Tokens of the requests that show what is added.
const PROBE_TOKENS: u32 = 24;
const PROBE_TOKENS_SHORT: u32 = 8;
/// Deviation that is worth a line before the run, as in the finding behind it.
const OFF_NOTED: f64 = 0.02;
