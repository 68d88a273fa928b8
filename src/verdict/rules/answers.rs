//! What answers hold: tokens, how they are counted, and how they are packed.

use super::words::{count, percent};
use crate::plan::{Finding, Grade, Plan, Rule};
use crate::verdict::Facts;

/// Share of answers of another length than asked that no mean notices.
const LENGTH_OFF_MAX: f64 = 0.01;
/// Deviation of prompt tokens from the words asked for that is worth a line.
const PROMPT_OFF_NOTED: f64 = 0.02;
/// Beyond it, no chat template explains it for prompts of usual length: another load was measured.
const PROMPT_OFF_MAX: f64 = 0.2;
const CACHED_SHARE_MAX: f64 = 0.01;
/// Difference between the cached share and that of an unlimited cache that is worth a line.
const CACHE_SHARE_NOTED: f64 = 0.02;
/// Beyond it, another load was measured than was meant.
const CACHE_SHARE_OFF_MAX: f64 = 0.1;
/// Tokens of a prompt that a cache may lose to the size of its blocks, or find of what a template adds: two blocks of the
/// largest usual size.
const CACHE_TOKENS_OFF: f64 = 64.0;
/// Tokens per content event above which the gap between events is no gap between tokens.
const BUNDLE_MAX: f64 = 1.5;
/// Share of answers in a single event above which TPOT speaks for the others only.
const SINGLE_MAX: f64 = 0.01;

pub(super) fn look(plan: &Plan, facts: &Facts, found: &mut Vec<Finding>) {
    if facts.counts.ok == 0 {
        return;
    }
    found.extend(early_stop(facts));
    found.extend(prompt_tokens(plan, facts));
    found.extend(cache_hits(plan, facts));
    found.extend(cache_share(plan, facts));
    found.extend(token_source(facts));
    found.extend(bundled(plan, facts));
    found.extend(hidden_reasoning(facts));
}

fn early_stop(facts: &Facts) -> Option<Finding> {
    let (off, ok) = (facts.tokens.length_off, facts.counts.ok);
    let [usage, tokenizer, ..] = facts.tokens.sources;
    // Where events stand for tokens, their number says nothing of lengths.
    if off == 0 || usage + tokenizer < ok {
        return None;
    }
    let grade = if off as f64 > LENGTH_OFF_MAX * ok as f64 { Grade::Warn } else { Grade::Info };
    let share = percent(off as f64, ok as f64);
    let evidence = format!("{off} of {} are of another length than asked ({share})", count(ok, "answer"));
    Some(Finding::new(Rule::EarlyStop, grade, evidence, "compare by TPOT and token rates, not by E2E"))
}

fn prompt_tokens(plan: &Plan, facts: &Facts) -> Option<Finding> {
    let tokens = &facts.tokens;
    let counted = plan.prompt_tokens();
    let asked = f64::from(counted.or_else(|| plan.workload.prompt_words()).filter(|words| *words > 0)?);
    if tokens.prompt_known == 0 {
        return None;
    }
    let reported = tokens.prompt as f64 / tokens.prompt_known as f64;
    let off = reported / asked - 1.0;
    // Where tokens were counted beforehand, a single one that is off says that they are not those of the server.
    let noted = if counted.is_some() { 0.0 } else { PROMPT_OFF_NOTED };
    if off.abs() <= noted {
        return None;
    }
    let most = if counted.is_some() { PROMPT_OFF_NOTED } else { PROMPT_OFF_MAX };
    let grade = if off.abs() > most { Grade::Warn } else { Grade::Info };
    let side = if off > 0.0 { "more" } else { "fewer" };
    let evidence = format!(
        "prompts have {reported:.1} tokens, {} {side} than the {asked} asked for",
        percent(off.abs(), 1.0)
    );
    let remedy = match counted {
        Some(_) => "give the tokenizer of the server's model, or --calibrate against the server".to_owned(),
        None => format!("correct --random-input-len by {:+.0}", (asked - reported).round()),
    };
    Some(Finding::new(Rule::PromptTokensOff, grade, evidence, remedy))
}

fn cache_hits(plan: &Plan, facts: &Facts) -> Option<Finding> {
    let tokens = &facts.tokens;
    let cached = tokens.cached?;
    if !plan.prompts_are_unique(&facts.level) || cached as f64 <= CACHED_SHARE_MAX * tokens.prompt as f64 {
        return None;
    }
    let share = percent(cached as f64, tokens.prompt as f64);
    if cached as f64 <= beyond_words(plan, facts) {
        // All prompts begin with the template's own tokens, whatever the seed.
        let evidence = format!(
            "{share} of the prompt tokens came from the cache, no more than the server's template adds to the words"
        );
        let remedy = "make prompts longer, so that the template weighs less";
        return Some(Finding::new(Rule::CacheHitsUnwanted, Grade::Info, evidence, remedy));
    }
    let evidence =
        format!("{share} of the prompt tokens came from the cache, though no two prompts begin alike");
    let remedy = "clear the server's cache, and give a --seed that it has not seen";
    Some(Finding::new(Rule::CacheHitsUnwanted, Grade::Warn, evidence, remedy))
}

/// What the prompts have in common was found, and no more.
fn cache_share(plan: &Plan, facts: &Facts) -> Option<Finding> {
    let tokens = &facts.tokens;
    let (planned, cached) = (facts.cache_share_planned?, tokens.cached? as f64);
    // Where nothing is shared, another rule looks for what was found all the same.
    if planned <= 0.0 || tokens.prompt == 0 {
        return None;
    }
    let found = cached / tokens.prompt as f64;
    let coarse = CACHE_TOKENS_OFF * tokens.prompt_known as f64 / tokens.prompt as f64;
    let of_template = beyond_words(plan, facts) / tokens.prompt as f64;
    let off = found - planned;
    if (-CACHE_SHARE_NOTED - coarse..=CACHE_SHARE_NOTED + coarse + of_template).contains(&off) {
        return None;
    }
    let grade = if off.abs() > CACHE_SHARE_OFF_MAX + coarse { Grade::Warn } else { Grade::Info };
    let evidence = format!(
        "{} of the prompt tokens came from the cache, where an unlimited one finds {}",
        percent(found, 1.0),
        percent(planned, 1.0)
    );
    let remedy = if off < 0.0 {
        "give the server a larger cache, send what begins alike to one server, or send more requests than meet it cold"
    } else {
        "clear the server's cache, and give a --seed that it has not seen"
    };
    Some(Finding::new(Rule::CacheShareOff, grade, evidence, remedy))
}

/// Prompt tokens beyond the words asked for, in all; 0 where prompts have no one length.
fn beyond_words(plan: &Plan, facts: &Facts) -> f64 {
    let words = plan.workload.prompt_words().map_or(f64::INFINITY, f64::from);
    (facts.tokens.prompt as f64 - words * facts.tokens.prompt_known as f64).max(0.0)
}

fn token_source(facts: &Facts) -> Option<Finding> {
    let [usage, tokenizer, events, unknown] = facts.tokens.sources;
    let remedy = "let the server report usage (stream_options.include_usage)";
    if facts.tokens.mixed_sources {
        let evidence = format!(
            "output tokens of {usage} requests are from usage, of {tokenizer} from the tokenizer, of {events} counted \
             as events, of {unknown} unknown"
        );
        return Some(Finding::new(Rule::MixedTokenSource, Grade::Warn, evidence, remedy));
    }
    (events > 0).then(|| {
        let evidence = "the server reported no usage, so content events are counted as tokens: too few where an \
                        event carries several";
        Finding::new(Rule::TokensCountedAsChunks, Grade::Warn, evidence, remedy)
    })
}

fn bundled(plan: &Plan, facts: &Facts) -> Option<Finding> {
    let (tokens, ok) = (&facts.tokens, facts.counts.ok);
    let [usage, tokenizer, ..] = tokens.sources;
    if !plan.target.stream || usage + tokenizer < ok || tokens.events == 0 {
        return None;
    }
    let per_event = tokens.output as f64 / tokens.events as f64;
    let single = tokens.single_chunk as f64 > SINGLE_MAX * ok as f64;
    if per_event <= BUNDLE_MAX && !single {
        return None;
    }
    let mut evidence =
        format!("{per_event:.2} tokens to an event: ITL is the gap between events, not tokens");
    if single {
        evidence = format!(
            "{} of {} came as one event of several tokens and have no TPOT; {per_event:.2} tokens to an event",
            tokens.single_chunk,
            count(ok, "answer")
        );
    }
    let grade = if single { Grade::Warn } else { Grade::Info };
    Some(Finding::new(Rule::Bundled, grade, evidence, "judge by TPOT, and let the server send each token"))
}

fn hidden_reasoning(facts: &Facts) -> Option<Finding> {
    let (hidden, ok) = (facts.tokens.hidden_reasoning, facts.counts.ok);
    (hidden > 0).then(|| {
        let evidence = format!(
            "{hidden} of {} hold reasoning that is counted but not streamed; TPOT leaves it out",
            count(ok, "answer")
        );
        let remedy = "let the server stream its reasoning";
        Finding::new(Rule::HiddenReasoning, Grade::Info, evidence, remedy)
    })
}
