//! What a search for capacity has found, in words and as a table of what was tried.

use super::{Cell, Column, Row, Table, places, quick};
use crate::plan::{Axis, Search, in_label};
use crate::report::format;
use crate::run::{Judged, Judgement, Why};
use crate::run_file::RunFile;
use crate::strategy::{Answer, Binding, Cause, Ending, Found, LimitHeld, Medians, Stage, Trial};

/// The answer, the most important line first; empty where nothing was searched for.
pub(super) fn headline(run: &RunFile) -> Vec<String> {
    let (Some(block), Some(search)) = (&run.capacity, search(run)) else { return Vec::new() };
    let Found { answer, binding, judged_again, .. } = block;
    if search.within_s.is_some() && !judged_again {
        return quick::headline(run, block, &search);
    }
    let load = run.plan.read().ok().filter(|_| search.vary.is_length());
    let load = load.and_then(|plan| Some(format!(" at a load of {}", plan.levels.first()?.label())));
    let mut lines = vec![first(&search, answer, binding.as_ref(), &load.unwrap_or_default())];
    lines.extend(why(binding.as_ref()));
    lines.extend(places::sentence(block, run.target.kind.as_deref()));
    lines.extend(judged_again.then(|| unmeasured(&search, block)).into_iter().flatten());
    lines.extend(caveats(&search, answer, *judged_again, run.resume_command()));
    lines
}

/// What was tried, in that order.
pub(super) fn table(run: &RunFile) -> Table {
    let rows = match (&run.capacity, search(run)) {
        (Some(block), Some(search)) => block.trials.iter().map(|trial| row(trial, &search)).collect(),
        _ => Vec::new(),
    };
    Table::of("tried", COLUMNS.to_vec(), rows)
}

fn search(run: &RunFile) -> Option<Search> {
    run.plan.read().ok()?.search
}

/// `capacity: 14 to 15 requests at once (99 % sure): at 16 TTFT p90 is 655 ms, over its 500 ms, ...`
///
/// `at_load` is the load at which a length was searched for; empty where the load was searched for.
fn first(search: &Search, answer: &Answer, binding: Option<&Binding>, at_load: &str) -> String {
    let vary = search.vary;
    let wish = format!("{} % of the requests good", share(search.target));
    let limit = |high: f64| match binding {
        Some(Binding { cause: Cause::ContextLimit, .. }) => {
            format!("at {high} the server refuses requests as too long for its context (context limit)")
        }
        Some(Binding { limit: None, .. }) => format!("at {high} requests fail"),
        Some(Binding { limit: Some(limit), .. }) => format!("at {high} {}", passed(limit, search)),
        None => format!("at {high} it is not seen to hold"),
    };
    match (answer.low, answer.high) {
        (None, Some(high)) if answer.ending == Ending::NothingHolds => {
            format!(
                "capacity: none, not even {}{at_load} leaves {wish}: {}",
                vary.in_words(high),
                limit(high)
            )
        }
        (None, Some(high)) if answer.ending == Ending::TooFew => format!(
            "capacity: not known: {}{at_load} had {} requests, all good, which are too few to show {wish}",
            vary.in_words(high),
            answer.requests
        ),
        (None, high) if answer.ending == Ending::NotTried => match high {
            Some(high) => {
                format!("capacity: below {}{at_load} with {wish}: {}", vary.in_words(high), limit(high))
            }
            None => {
                format!("capacity: not known with {wish}: no load that was tried is decided at these limits")
            }
        },
        (None, _) => "capacity: the search was broken off before anything was known".to_owned(),
        (Some(low), high) => {
            let sure = format!("{} % sure", share(answer.confidence));
            let range = match high {
                None => format!("at least {}", vary.in_words(low)),
                Some(high) => range(vary, low, high),
            };
            let tail = high.map_or_else(String::new, |high| format!(": {}", limit(high)));
            format!("capacity: {range}{at_load} with {wish} ({sure}){tail}")
        }
    }
}

/// `14 to 15 requests at once`: the highest load that may hold is the one below that which does not.
pub(super) fn range(vary: Axis, low: f64, high: f64) -> String {
    vary.span_in_words(low, if vary.is_whole() { high - 1.0 } else { high })
}

/// `TTFT p90 is 655 ms, over its 500 ms`
pub(super) fn passed(limit: &LimitHeld, search: &Search) -> String {
    let name = limit_name(&limit.name);
    let percentile = share(search.target);
    let allowed = format::typed(limit.limit_ms);
    match limit.kept_ms {
        Some(ms) if ms > limit.limit_ms => {
            let rounded = format::ms(ms * 1e6);
            // A hair over is over, and must look so.
            let shown = if rounded.parse() == Ok(limit.limit_ms) { format!("{ms:.6}") } else { rounded };
            format!("{name} p{percentile} is {shown} ms, over its {allowed} ms")
        }
        Some(_) => format!("too many requests may pass {allowed} ms of {name}"),
        None => format!("{name} p{percentile} falls on requests that failed"),
    }
}

/// A share in percent as it was typed: `90`, `99.9`.
pub(super) fn share(share: f64) -> String {
    format::typed((share * 1e5).round() / 1e3)
}

fn limit_name(name: &str) -> String {
    match name {
        "itl_max" => "the largest gap".to_owned(),
        name => name.to_uppercase(),
    }
}

/// The cause in words, with the medians that it rests on.
pub(super) fn why(binding: Option<&Binding>) -> Option<String> {
    let Binding { cause, below, above, .. } = binding?;
    let (ttft, tpot) =
        (both(below.as_ref(), above, |m| m.ttft_ms), both(below.as_ref(), above, |m| m.tpot_ms));
    match cause {
        Cause::Failures | Cause::ContextLimit => None,
        Cause::Prefill => Some(format!(
            "prefill takes that long: median TTFT goes {}, while TPOT goes {}",
            ttft?,
            tpot.unwrap_or_else(|| "nowhere: there is none".to_owned())
        )),
        Cause::LongerAnswers => {
            let e2e = both(below.as_ref(), above, |m| m.e2e_ms)?;
            Some(format!("longer answers take longer: median E2E goes {e2e}, while TPOT goes {}", tpot?))
        }
        Cause::Queueing => {
            Some(format!("requests queue: median TTFT goes {}, while TPOT goes {}", ttft?, tpot?))
        }
        Cause::SlowerTokens => Some(format!(
            "more requests are served together and each token takes longer: median TPOT goes {}, TTFT {}",
            tpot?, ttft?
        )),
        Cause::Unknown => None,
    }
}

/// `from 120.0 to 655.1 ms`
fn both(below: Option<&Medians>, above: &Medians, of: fn(&Medians) -> Option<f64>) -> Option<String> {
    Some(format!("from {} to {} ms", format::ms(of(below?)? * 1e6), format::ms(of(above)? * 1e6)))
}

/// What the answer has to be read with.
fn caveats(search: &Search, answer: &Answer, judged_again: bool, resume: Option<&str>) -> Vec<String> {
    let mut lines = Vec::new();
    match answer.ending {
        Ending::BrokenOff => {
            let go_on = resume.map_or_else(String::new, |resume| format!("; go on with {resume}"));
            lines.push(format!("the search was broken off: what is said holds so far{go_on}"));
        }
        Ending::AllHold => {
            lines.push(format!("{} is the highest load that was to be tried (--max)", search.max));
        }
        Ending::Found | Ending::NotTried | Ending::NothingHolds | Ending::TooFew => {}
    }
    if !answer.undecided.is_empty() {
        let loads: Vec<String> = answer.undecided.iter().map(ToString::to_string).collect();
        let loads = loads.join(", ");
        lines.push(match judged_again {
            true => format!("{loads}: not decided at these limits, by too few requests or as stopped early"),
            false => format!(
                "between them {loads}: undecided at the greatest length, too near to capacity to tell"
            ),
        });
    }
    if let (false, Some(high)) = (answer.decided || answer.ending == Ending::TooFew, answer.high) {
        lines.push(format!(
            "{high} stayed undecided at its greatest length and counts as not holding: capacity may be higher"
        ));
    }
    if !answer.non_monotone.is_empty() {
        let pairs: Vec<String> =
            answer.non_monotone.iter().map(|[failed, held]| format!("{failed} and {held}")).collect();
        lines.push(format!(
            "not in order: of {} the first was not seen to hold and the second was; the server may have changed \
             meanwhile",
            pairs.join(", ")
        ));
    }
    match answer.recovered {
        Some(true) => lines.push("behind an overload the same load held again".to_owned()),
        Some(false) => {
            lines.push(
                "behind an overload the same load did not hold any more: the server has not recovered"
                    .to_owned(),
            );
        }
        None => {}
    }
    lines
}

/// What a search that had other limits has not tried, and how to find out.
fn unmeasured(search: &Search, found: &Found) -> Vec<String> {
    let Answer { low, high, .. } = found.answer;
    let mut lines = Vec::new();
    if found.earlier > 0 {
        lines.push(
            "loads of the earlier run that this one went on from are left out: their records are there"
                .to_owned(),
        );
    }
    let tried = || found.trials.iter().filter(|trial| trial.judged.is_some()).map(|trial| trial.load);
    let (least, most) = (tried().fold(f64::INFINITY, f64::min), tried().fold(0.0, f64::max));
    let region = match (low, high) {
        (Some(low), Some(high)) if search.is_near(low, high) => return lines,
        (Some(low), Some(high)) => {
            format!("between {low} and {high}, where no load is decided: --start {low} --max {high}")
        }
        (Some(low), None) => format!("above {low} (up to {most} was tried): --start {low}"),
        (None, Some(high)) => format!("below {high} (down to {least} was tried): --max {high}"),
        (None, None) => format!("anywhere from {least} to {most}"),
    };
    lines.push(format!(
        "the search had other limits and does not tell {region}; search again with these limits to know"
    ));
    lines
}

fn row(trial: &Trial, search: &Search) -> Row {
    let stage = match trial.stage {
        Stage::Alone => " alone",
        Stage::Bracket => "",
        Stage::Bisect => " between",
        Stage::Confirm => " confirm",
        Stage::Settle => " above",
        Stage::Overload => " overload",
        Stage::Recovery => " recovery",
    };
    let number = |text: String| Cell::Number(text);
    let mut cells = match trial.judged {
        Some(judged) => vec![
            number(judged.n.to_string()),
            number(format::percent(judged.good as f64 / judged.n.max(1) as f64)),
            number(format::percent(judged.lower)),
            number(format::percent(judged.upper)),
            outcome(&judged),
        ],
        None => vec![Cell::Blank; 5],
    };
    cells.push(worst(trial).map_or(Cell::Blank, |text| Cell::Number(format!("{text} "))));
    Row { label: format!("{}{stage}", short(search.vary, trial.load)), cells, second: false }
}

fn short(vary: Axis, load: f64) -> String {
    match vary {
        Axis::Concurrency | Axis::InputLen | Axis::OutputLen => load.to_string(),
        Axis::Rate => format!("{}/s", in_label(load)),
        Axis::Speedup => format!("x{}", in_label(load)),
    }
}

fn outcome(judged: &Judged) -> Cell {
    match (judged.outcome, judged.why) {
        (Judgement::Pass, _) => Cell::Number("holds".to_owned()),
        (Judgement::Undecided, _) => Cell::Suspect("undecided".to_owned()),
        (Judgement::Fail, Why::Failures) => Cell::Failures("fails".to_owned()),
        (Judgement::Fail, _) => Cell::Failures("does not".to_owned()),
    }
}

/// The limit that was missed most often, with how often.
fn worst(trial: &Trial) -> Option<String> {
    let worst = trial.limits.iter().max_by_key(|limit| limit.missed).filter(|limit| limit.missed > 0)?;
    Some(format!("{} {}", worst.name, worst.missed))
}

const COLUMNS: [Column; 6] = [
    Column { group: "", name: "requests" },
    Column { group: "good %", name: "seen" },
    Column { group: "good %", name: "above" },
    Column { group: "good %", name: "below" },
    Column { group: "", name: "outcome" },
    Column { group: "", name: "missed" },
];
