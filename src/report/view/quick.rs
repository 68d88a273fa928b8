//! The answer of a quick look: what one user has, how many are served well, what all get together, and what limits it.
//!
//! The words are for somebody who has never measured a server; the numbers are those of the tables below them.

use super::capacity::{passed, range, share, why};
use super::{notes, places};
use crate::metrics::Metric;
use crate::plan::{Plan, Search};
use crate::report::format;
use crate::run_file::RunFile;
use crate::run_file::schema::{EnvironmentBlock, LevelBlock};
use crate::stats::Quantile;
use crate::strategy::{Binding, Cause, Ending, Found, Trial, budget};

/// The lines, the most important one first.
pub(super) fn headline(run: &RunFile, found: &Found, search: &Search) -> Vec<String> {
    let Ok(plan) = run.plan.read() else { return Vec::new() };
    let mut lines = vec![first(found, search, &plan)];
    lines.extend(alone(run, found));
    lines.extend(together(run, found));
    lines.extend(reason(run, found));
    lines.extend(setting(run, &plan));
    lines.extend(caveats(run, search, found));
    lines
}

/// `up to 5 users at once are served well (99 % sure): ...`
fn first(found: &Found, search: &Search, plan: &Plan) -> String {
    let Found { answer, binding, .. } = found;
    let limits = notes::slo(&plan.slo).replace(", ", " and ");
    let kept = format!("at least {} % of requests keep {limits}", share(search.target));
    let beyond = |high: f64| match binding {
        Some(Binding { limit: None, .. }) => "requests fail".to_owned(),
        Some(Binding { limit: Some(limit), .. }) => passed(limit, search),
        None => "that is not seen to hold".to_owned(),
    } + if high == 1.0 { "" } else { " there" };
    match (answer.low, answer.high) {
        (Some(low), high) => {
            let sure = share(answer.confidence);
            let end = match high {
                Some(high) if !answer.decided => format!("; whether {high} users are too many stayed open"),
                Some(high) => {
                    format!("; {high} users are too many: {}", beyond(high).trim_end_matches(" there"))
                }
                None => "; no load was tried that is too much".to_owned(),
            };
            let who = users(search, low, high.filter(|_| answer.decided), high.is_some());
            format!("{who} served well ({sure} % sure): {kept}{end}")
        }
        (None, Some(high)) if answer.ending == Ending::NothingHolds => {
            let who = if high == 1.0 {
                "one user alone is".to_owned()
            } else {
                format!("{high} users at once are")
            };
            format!("not even {who} served well, which is that {kept}: {}", beyond(high))
        }
        (None, Some(high)) if answer.ending == Ending::TooFew => format!(
            "how many users are served well is not known: {} requests of {high} users at once were all good, which is too \
             few to show that {kept}",
            answer.requests
        ),
        (None, _) => {
            let alone = found.trials.first().and_then(|trial| trial.judged).filter(|judged| judged.n > 0);
            let seen =
                alone.map(|judged| format!("; of {} requests of one user {} did", judged.n, judged.good));
            let seen = seen.unwrap_or_default();
            format!("how many users are served well is not known; that would be that {kept}{seen}")
        }
    }
}

/// `up to 5 users at once are`; `high` is too many, and `is_open` says that there is a load of which that is not known.
fn users(search: &Search, low: f64, high: Option<f64>, is_open: bool) -> String {
    match high {
        None if is_open && low == 1.0 => "one user, and perhaps more, is".to_owned(),
        None if is_open => format!("at least {low} users at once are"),
        None => format!("{low} users at once and probably more are"),
        Some(high) if high - 1.0 <= low && low == 1.0 => "one user at a time is".to_owned(),
        Some(high) if high - 1.0 <= low => format!("up to {low} users at once are"),
        Some(high) => {
            let range = range(search.vary, low, high);
            format!("up to {} are", range.replace("requests at once", "users at once"))
        }
    }
}

/// What one user has who is alone: `one user alone: the first token comes after 21.3 ms, then 117 tokens a second`.
fn alone(run: &RunFile, found: &Found) -> Option<String> {
    let Tried { level, .. } = tried(run, found).find(|tried| tried.users == 1)?;
    let median = |metric| level.distributions.get(&metric)?.quantile(Quantile::P50);
    let ttft = median(Metric::Ttft)?;
    let mut text = format!("one user alone: the first token comes after {} ms", format::ms(ttft));
    if let Some(tpot) = median(Metric::Tpot).filter(|tpot| *tpot > 0.0) {
        text +=
            &format!(", then {} tokens a second (TPOT {} ms)", format::rate(1e9 / tpot), format::ms(tpot));
    }
    Some(text)
}

/// What all get together, at the highest load that holds, and where it was most.
fn together(run: &RunFile, found: &Found) -> Option<String> {
    let best = tried(run, found).max_by(|a, b| a.tok_s().total_cmp(&b.tok_s()))?;
    if best.tok_s() <= 0.0 {
        return None;
    }
    let at_capacity = tried(run, found).filter(|tried| {
        tried.trial.is_some_and(|trial| trial.holds() && Some(trial.load) == found.answer.low)
    });
    Some(match at_capacity.last() {
        Some(held) if held.users == best.users => {
            format!("all together: {}, the most that was seen", held.speed())
        }
        Some(held) => format!("all together: {}; the most seen was {}", held.speed(), best.speed()),
        None => format!("all together: {} at the most", best.speed()),
    })
}

/// Why there are not more, in words, with what to do.
fn reason(run: &RunFile, found: &Found) -> Vec<String> {
    let kind = run.target.kind.as_deref();
    let Some(binding) = &found.binding else {
        return places::sentence(found, kind).into_iter().collect();
    };
    let numbers = why(Some(binding));
    match (binding.cause, places::sentence(found, kind)) {
        (Cause::ContextLimit | Cause::Failures, places) => {
            let failed = "why: requests fail, see the failures below".to_owned();
            std::iter::once(failed).chain(places).collect()
        }
        // Tokens get slower with every user that is served together, whoever waits beside them.
        (Cause::SlowerTokens, places) => {
            let shared = numbers
                .map(|numbers| format!("why: {numbers}; a smaller model, or more hardware, is faster"));
            shared.into_iter().chain(places).collect()
        }
        (_, Some(places)) => vec![format!("why: {places}")],
        (Cause::LongerAnswers | Cause::Prefill | Cause::Queueing, None) => {
            numbers.into_iter().map(|numbers| format!("why: {numbers}")).collect()
        }
        (Cause::Unknown, None) => Vec::new(),
    }
}

/// What was asked, and of which machine.
fn setting(run: &RunFile, plan: &Plan) -> Option<String> {
    let (prompt, answer) = (plan.workload.input_words.fixed()?, plan.workload.output_tokens.fixed()?);
    let asked = format!("asked: prompts of {prompt} words, answers of {answer} tokens");
    let here = run.target.on_client_host.unwrap_or(false).then(|| machine(&run.environment)).flatten();
    Some(match here {
        Some(machine) => format!("{asked}; server and client share {machine}"),
        None => asked,
    })
}

/// A machine in words: `Some CPU, 4 of 8 cores, 16.0 GiB of memory`; `None` where nothing is known of it.
#[must_use]
pub fn machine(environment: &EnvironmentBlock) -> Option<String> {
    let EnvironmentBlock { cpu_model, cores_machine, cores_usable, memory_bytes, .. } = environment;
    let cores = match (cores_usable, cores_machine) {
        (Some(usable), Some(all)) if usable < all => Some(format!("{usable} of {all} cores")),
        (Some(cores), _) | (None, Some(cores)) => Some(format!("{cores} cores")),
        (None, None) => None,
    };
    let memory =
        memory_bytes.map(|bytes| format!("{:.1} GiB of memory", bytes as f64 / f64::from(1u32 << 30)));
    let parts: Vec<String> = cpu_model.clone().into_iter().chain(cores).chain(memory).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// What the answer has to be read with: fewer words than for a search that takes its time, and none on what is usual here.
fn caveats(run: &RunFile, search: &Search, found: &Found) -> Vec<String> {
    let answer = &found.answer;
    let mut lines = Vec::new();
    let is_unconfirmed = answer.confidence < 0.99 && answer.low.is_some();
    match answer.ending {
        Ending::BrokenOff => {
            let why = match short_by(run, search, found) {
                _ if run.interrupted => "it was interrupted".to_owned(),
                Some(look_s) => format!(
                    "there was no time for more than one user: a load of {} takes a look of {look_s} s at these answers, \
                     and this one had {:.0} s (--max-time)",
                    search.start,
                    search.within_s.unwrap_or_default()
                ),
                None => "there was no time for more".to_owned(),
            };
            let go_on = run.resume_command().map(|resume| format!("; {resume} goes on with it"));
            lines.push(why + &go_on.unwrap_or_default());
        }
        Ending::AllHold => lines.push(format!("{} users are the most that a quick look tries", search.max)),
        Ending::Found if is_unconfirmed => lines.push(
            "a second, longer look at that load left it open: tokload find-capacity takes the time to decide"
                .to_owned(),
        ),
        Ending::Found | Ending::NotTried | Ending::NothingHolds | Ending::TooFew => {}
    }
    let is_open = !answer.decided && answer.low.is_none() && answer.ending != Ending::TooFew;
    if let (true, Some(high)) = (is_open, answer.high) {
        lines.push(format!("{high} users stayed undecided and count as too many"));
    }
    lines
}

/// How long a look would have to be to try more than one user, s, whole; `None` where more was tried, or nothing is known of
/// the one.
fn short_by(run: &RunFile, search: &Search, found: &Found) -> Option<u64> {
    let [alone] = &found.trials[..] else { return None };
    let needed_s = budget::look_s(search, alone.medians.e2e_ms? / 1e3).ceil();
    let is_short = found.answer.ending == Ending::BrokenOff && !run.interrupted;
    // `as` saturates.
    (is_short && needed_s > search.within_s?).then_some(needed_s as u64)
}

/// A level of this run.
struct Tried<'a> {
    users: u32,
    level: &'a LevelBlock,
    /// What it was tried for; `None` where it was interrupted.
    trial: Option<&'a Trial>,
}

impl Tried<'_> {
    fn tok_s(&self) -> f64 {
        self.level.rates.window.out_tok_s
    }

    /// `362.3 tokens a second with 4 users`
    fn speed(&self) -> String {
        let noun = if self.users == 1 { "user" } else { "users" };
        format!("{} tokens a second with {} {noun}", format::rate(self.tok_s()), self.users)
    }
}

fn tried<'a>(run: &'a RunFile, found: &'a Found) -> impl Iterator<Item = Tried<'a>> {
    run.levels.iter().enumerate().filter_map(|(place, level)| {
        let users = level.setting.read().ok()?.load.users?;
        Some(Tried { users, level, trial: found.trials.get(found.earlier + place) })
    })
}
