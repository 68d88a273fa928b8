//! `--dry-run`: what would be sent, in words, without sending it.

use super::failure::Failure;
use crate::metrics::Phase;
use crate::plan::Plan;
use crate::workload::preview::LaterTurn;
use crate::workload::reuse::Sent;
use crate::workload::{Abort, Conduct, Content, Item, Mix, Preview, Reuse, Routing, Script};

/// Requests of each level that `--dry-run` shows.
const SHOWN: usize = 5;
/// Pieces of a rate over time that it shows.
const PIECES_SHOWN: usize = 12;
/// Most requests of a level of which is worked out what a cache would find.
const COUNTED_MAX: u64 = 1_000_000;
/// The same of a trace, whose times nobody can work out.
const SHOWN_OF_TRACE: usize = 10;

/// The resolved plan and the first requests of each level, with their planned times.
pub(super) fn text(plan: &Plan, script: Option<&Script>) -> Result<String, Failure> {
    let mut text = plan.to_toml();
    if plan.runs > 1 {
        let runs = plan.runs;
        text.push_str(&format!(
            "\n# {runs} rounds over all levels, with other requests in each; the first:\n"
        ));
    }
    let (conduct, mix) = (Conduct::new(&plan.workload), Mix::new(&plan.target));
    let unit = if plan.counts_tokens() { "tokens" } else { "words" };
    if let Some(share) = plan.share {
        let place = share.index.saturating_sub(1);
        let what = "requests (users of a closed loop) whose number is";
        text.push_str(&format!(
            "\n# share {share}: this process sends the {what} {place} modulo {}\n",
            share.of
        ));
    }
    if let Some(slice_s) = plan.slice_s {
        text.push_str(&format!("\n# each level is looked at in slices of {slice_s} s\n"));
    }
    let stressed = stress_in_words(plan, &mut text);
    let plan = stressed.as_ref().unwrap_or(plan);
    for (ordinal, level) in plan.levels.iter().enumerate() {
        text.push_str(&format!("\n# level {}: {}\n", ordinal + 1, level.label()));
        for line in level.load.course_in_words(PIECES_SHOWN) {
            text.push_str(&format!("# {line}\n"));
        }
        let requests = match script {
            Some(Script::Data(deck)) => Preview::of_data(plan, ordinal, deck, SHOWN).map_err(Failure::bad)?,
            Some(Script::Trace(recording)) => {
                Preview::of_trace(plan, ordinal, recording, SHOWN_OF_TRACE).map_err(Failure::bad)?
            }
            None => Preview::of_level(plan, ordinal, SHOWN),
        };
        if let Some(line) = found_in_cache(plan, ordinal, script)? {
            text.push_str(&line);
        }
        for request in requests {
            let at = match request.offset_ns {
                Some(ns) => format!("at {:.6} s", ns as f64 / 1e9),
                None => "after its user's answer".to_owned(),
            };
            text.push_str(&format!(
                "# request {} {at}, {} {unit}, max_tokens {}{}: {}\n",
                request.index,
                request.words,
                request.max_tokens,
                particulars(plan, (&conduct, &mix), item(plan, &request)),
                request.prompt
            ));
            for (turn, later) in (2..).zip(&request.later) {
                let more = if later.whole { "" } else { " more" };
                text.push_str(&format!(
                    "#   turn {turn} {}, {} {unit}{more}, max_tokens {}: {}\n",
                    when(later),
                    later.words,
                    later.max_tokens,
                    later.prompt
                ));
            }
            if request.more > 0 {
                text.push_str(&format!("#   and {} more turns\n", request.more));
            }
        }
    }
    Ok(text)
}

/// Says what a stress test does; its plan with the level that is looked at in the place of the normal one, where that is
/// known beforehand.
fn stress_in_words(plan: &Plan, text: &mut String) -> Option<Plan> {
    let (stress, like) = (plan.stress.as_ref()?, plan.levels.first()?);
    for line in stress.in_words(like) {
        text.push_str(&format!("\n# {line}\n"));
    }
    let level = stress.level(like, stress.to_rate?)?;
    Some(Plan { levels: vec![level], ..plan.clone() })
}

/// When a later turn goes.
fn when(turn: &LaterTurn) -> String {
    let after = match turn.after.as_deref() {
        None => "after the answer".to_owned(),
        Some([]) => "with its session".to_owned(),
        Some([one]) => format!("after the answer to turn {}", u32::from(*one) + 1),
        Some(several) => {
            let numbers: Vec<String> =
                several.iter().map(|number| (u32::from(*number) + 1).to_string()).collect();
            format!("after the answers to turns {}", numbers.join(", "))
        }
    };
    match (turn.pause, turn.offset_ns) {
        (_, Some(ns)) if turn.after.as_ref().is_some_and(Vec::is_empty) => {
            format!("at {:.6} s", ns as f64 / 1e9)
        }
        (_, Some(ns)) => format!("at {:.6} s, or {after}", ns as f64 / 1e9),
        (Some(pause), None) if !pause.is_zero() => format!("{pause:?} {after}"),
        (_, None) => format!("at once {after}"),
    }
}

fn item(plan: &Plan, request: &Preview) -> Item {
    Item { seed: plan.level_seed(request.ordinal), phase: Phase::Measured, index: request.index }
}

/// What not all requests have in common: the model, where there are several, and how the user behaves.
fn particulars(plan: &Plan, (conduct, mix): (&Conduct, &Mix), item: Item) -> String {
    let mut said = String::new();
    if plan.target.models.len() > 1 {
        let model = mix.model(item.seed, Routing::new(&plan.target).turn_of(item));
        said += &format!(", to {}", plan.target.models[model]);
    }
    if let Some(rate) = conduct.read_rate(item) {
        said += &format!(", read at {rate} bytes/s");
    }
    if let Some(Abort { after, after_tokens }) = conduct.abort(item, 0) {
        let time = after.map(|after| format!("{} s after it is sent", after.as_secs_f64()));
        let token = after_tokens.map(|token| format!("with token {token}"));
        let when: Vec<String> = time.into_iter().chain(token).collect();
        said += &format!(", given up {}", when.join(" or "));
    }
    said
}

/// What an unlimited prefix cache would find of the prompts of a level, where they have something in common.
fn found_in_cache(plan: &Plan, ordinal: usize, script: Option<&Script>) -> Result<Option<String>, Failure> {
    let Some(level) = plan.levels.get(ordinal) else { return Ok(None) };
    // Later turns repeat what the server said before, of which nobody knows how many tokens it is.
    let of_agents = |script: &Script| match script {
        Script::Data(deck) => deck.agents().is_some(),
        Script::Trace(recording) => recording.agents().is_some(),
    };
    // Of agents it is said with the file.
    if plan.workload.conversation.is_some() || script.is_some_and(of_agents) {
        return Ok(None);
    }
    let all = match script {
        Some(Script::Trace(recording)) => Some(recording.overview().requests),
        _ => None,
    };
    let requests = [level.requests_expected(), all].into_iter().flatten().min();
    let Some(requests) = requests.filter(|requests| (1..=COUNTED_MAX).contains(requests)) else {
        return Ok(None);
    };
    let content = Content::new(plan).with_script(script.cloned());
    let sent: Vec<Sent> = (0..requests).map(|index| Sent { index, counts: true }).collect();
    let reuse = Reuse::of(&content, plan.level_seed(ordinal), &sent).map_err(Failure::bad)?;
    Ok(reuse.filter(|reuse| reuse.found_tokens > 0).map(|reuse| {
        let (share, tokens) = (100.0 * reuse.share(), reuse.prompt_tokens);
        format!("# an unlimited prefix cache finds {share:.1} % of the {tokens} prompt tokens of {requests} requests\n")
    }))
}
