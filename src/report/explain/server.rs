//! What a modelled server adds to the explanation: the step behind the numbers.

use super::facts::{Facts, ms, number, plain};
use crate::model::{Batching, Serving, Settings};

/// The batching server of a model, where its steps are plain enough to calculate with.
pub(super) fn batching(model: Option<&Settings>) -> Option<&Batching> {
    match &model?.serving {
        Serving::Batching(batching) => Some(batching),
        Serving::Fixed(_) => None,
    }
}

/// What a server of set times says about all levels at once.
pub(super) fn of_fixed_times(model: Option<&Settings>) -> Option<String> {
    let Serving::Fixed(fixed) = &model?.serving else { return None };
    let (ttft, itl, each) = (plain(fixed.ttft_ms), plain(fixed.itl_ms), plain(fixed.ttft_per_in_flight_ms));
    Some(if fixed.ttft_per_in_flight_ms > 0.0 {
        format!(
            "The server has no slots: the first token comes after {ttft} ms and {each} ms more for each request in \
             flight, the others every {itl} ms. Only TTFT grows with load."
        )
    } else {
        format!(
            "The server has no slots: every request has its first token after {ttft} ms and the others every {itl} ms, \
             however many there are. Nothing bends."
        )
    })
}

/// The most requests per second that can end when answers and prompts are those of `level`, with its formula.
///
/// A step of full slots costs base + sequence * slots and gives each a token; nothing is faster than that.
pub(super) fn most(model: Option<&Settings>, level: &Facts<'_>) -> Option<(f64, String)> {
    let batching = batching(model)?;
    let prompt = level.prompt_tokens?;
    // With a cap, or steps that are cut, the slots are not what is full.
    if level.output_tokens < 1.0 || level.capped || batching.step_tokens_max.is_some() {
        return None;
    }
    // Each answer of a request is a sequence with the prompt to itself. Which of them a cache saved is not known.
    if level.choices > 1.0 && batching.prefix_cache.is_some() {
        return None;
    }
    let prompt = prompt * level.choices;
    let steps = level.output_tokens / f64::from(model?.tokens_per_step);
    let cost = &batching.cost;
    let (shared_ms, shared) = match batching.slots {
        // As many as it takes: the base is shared by any number.
        u32::MAX => (0.0, String::new()),
        slots => (cost.base_ms / f64::from(slots), format!("{} / {slots} + ", plain(cost.base_ms))),
    };
    let per_request_ms = steps * (shared_ms + cost.per_sequence_ms) + prompt * cost.per_prefill_token_ms;
    let servers = match batching.speeds.is_empty() {
        true => f64::from(batching.replicas),
        false => batching.speeds.iter().sum(),
    };
    let of_all = if servers == 1.0 { String::new() } else { format!("{} * ", plain(servers)) };
    let formula = format!(
        "{of_all}1000 / ({} steps * ({shared}{}) + {} prompt tokens * {}) ms",
        number(steps),
        plain(cost.per_sequence_ms),
        number(prompt),
        plain(cost.per_prefill_token_ms)
    );
    (per_request_ms > 0.0).then(|| (servers * 1e3 / per_request_ms, formula))
}

/// Where the users of a full server are.
pub(super) fn slots(model: Option<&Settings>, level: &Facts<'_>) -> Option<String> {
    let Batching { slots, replicas, .. } = batching(model)?;
    let all = f64::from(*slots) * f64::from(*replicas);
    let of = if *replicas == 1 { String::new() } else { format!("{replicas} times {slots}, ") };
    let users = level.users?;
    let sequences = users * level.choices;
    let without = number(sequences - all);
    let asked = match level.choices > 1.0 {
        true => format!(
            "{} users with {} answers to a request ask for {} sequences, of which at least {without} have none",
            number(users),
            number(level.choices),
            number(sequences)
        ),
        false => format!("of {} users at least {without} have none", number(users)),
    };
    (sequences > all).then(|| format!("The server has {of}{all} slots: {asked}."))
}

/// What a token costs alone and in the batch of `level`.
pub(super) fn batch(model: Option<&Settings>, level: &Facts<'_>) -> Option<String> {
    let (batching, sequences) = alone(model, level)?;
    let cost = &batching.cost;
    let (one, full) = (cost.step_ms(1, 0), cost.step_ms(sequences, 0));
    (sequences > 1).then(|| {
        format!(
            "A step of b sequences costs {} + {} b ms: {} ms for one, {} ms for {sequences}. The server spends {} ms on \
             a token alone and {} ms in a batch of {sequences}; the user waits for the whole step.",
            plain(cost.base_ms),
            plain(cost.per_sequence_ms),
            ms(one),
            ms(full),
            ms(one),
            ms(full / sequences as f64)
        )
    })
}

/// How much the prompts of others take from a token, at `level`.
pub(super) fn prefill(model: Option<&Settings>, level: &Facts<'_>) -> Option<String> {
    let (batching, sequences) = alone(model, level)?;
    let (prompt, tpot_ms) = (level.prompt_tokens?, level.tpot_ms?);
    let (cost, step_ms) = (batching.cost.per_prefill_token_ms, batching.cost.step_ms(sequences, 0));
    if cost == 0.0 || prompt == 0.0 || tpot_ms <= step_ms * (1.0 + DIFFERENT) {
        return None;
    }
    let (rate, per_second) = (number(level.req_s), ms(level.req_s * prompt * cost));
    Some(format!(
        "Prompts go in between: {}: {rate}/s * {} tokens * {} ms = {per_second} ms of each second. Whoever receives \
         tokens waits for them too: TPOT is {} ms, a step of {sequences} without prompts takes {} ms.",
        level.label,
        number(prompt),
        plain(cost),
        ms(tpot_ms),
        ms(step_ms)
    ))
}

/// A single server whose steps give one token at set costs, and the most sequences that a step of `level` has.
fn alone<'m>(model: Option<&'m Settings>, level: &Facts<'_>) -> Option<(&'m Batching, usize)> {
    let batching = batching(model)?;
    let plain = batching.replicas == 1 && batching.speeds.is_empty() && model?.tokens_per_step == 1;
    // A user has one request in flight, so that a step never has more sequences than users times their answers.
    let sequences = (level.users? * level.choices).min(f64::from(batching.slots));
    plain.then_some((batching, sequences as usize))
}

/// A difference that is more than rounding.
const DIFFERENT: f64 = 0.01;
