//! The knee of a sweep in one sentence, with the numbers that it rests on.

use super::Note;
use crate::plan::{Axis, Grade, Rule, in_label};
use crate::report::format;
use crate::run_file::RunFile;
use crate::run_file::schema::{KneeBlock, LevelBlock, LoadPoint, Served};

/// Where throughput stops growing, or that it does not; `None` where there is no sweep.
pub(super) fn note(run: &RunFile) -> Option<Note> {
    let knee = run.knee.as_ref()?;
    let Some(at) = knee.at else { return Some(Note { warning: false, text: none(knee)? }) };
    if !knee.waits {
        let text = format!(
            "{} do not grow from {} on ({} there, {} with {}), but neither does mean E2E ({} to {} ms): what holds them back \
             is not a full server; look for too few requests, pauses of the users or a limit before the server",
            served(knee),
            load(knee, at.load),
            format::rate(at.per_s),
            format::rate(knee.last.per_s),
            short(knee, knee.last.load),
            format::ms(at.e2e_ns),
            format::ms(knee.last.e2e_ns)
        );
        return Some(Note { warning: true, text });
    }
    let doubt = doubt(run, knee, at);
    Some(Note { warning: doubt.is_some(), text: found(knee, at) + &doubt.unwrap_or_default() })
}

/// `knee at 16 users: output tokens/s grow up to there (637.5 with 12 users, 737.5 with 16) and no further ...`
fn found(knee: &KneeBlock, at: LoadPoint) -> String {
    let (what, there, last) = (served(knee), format::rate(at.per_s), format::rate(knee.last.per_s));
    let grew = match knee.below {
        Some(below) => format!(
            "{what} grow up to there ({} with {}, {there} with {}) and no further ({last} with {})",
            format::rate(below.per_s),
            load(knee, below.load),
            short(knee, at.load),
            short(knee, knee.last.load)
        ),
        None => {
            format!(
                "{what} do not grow from there on ({there} there, {last} with {})",
                load(knee, knee.last.load)
            )
        }
    };
    format!(
        "knee {}: {grew}, while mean E2E goes from {} to {} ms",
        place(knee, at),
        format::ms(at.e2e_ns),
        format::ms(knee.last.e2e_ns)
    )
}

/// Users come in whole numbers and one at a time; what arrives beyond capacity was too much already.
fn place(knee: &KneeBlock, at: LoadPoint) -> String {
    match (knee.vary, knee.below) {
        (Axis::Concurrency, None) if at.load > 1.0 => format!("at {} or fewer", load(knee, at.load)),
        (Axis::Concurrency, _) => format!("at {}", load(knee, at.load)),
        (_, None) => format!("at {} or below", load(knee, at.load)),
        (_, Some(below)) => format!("between {} and {}", short(knee, below.load), load(knee, at.load)),
    }
}

/// That throughput still grows, or that it could not be seen whether it does.
fn none(knee: &KneeBlock) -> Option<String> {
    let (below, last) = (knee.below?, knee.last);
    let grew = format!(
        "{} with {}, {} with {}",
        format::rate(below.per_s),
        load(knee, below.load),
        format::rate(last.per_s),
        short(knee, last.load)
    );
    let until = load(knee, last.load);
    let what = served(knee);
    Some(if last.per_s > below.per_s * (1.0 + crate::stats::knee::GROWTH_MAX) {
        format!("no knee up to {until}: {what} still grow ({grew})")
    } else {
        format!(
            "no knee is shown up to {until}: {what} hardly grow at the end ({grew}), but it takes a load some {} times that \
             of a knee to show one",
            crate::stats::knee::REACH_MIN
        )
    })
}

/// Whether something beside the server may have made the knee.
pub(in crate::report) fn doubts(run: &RunFile) -> bool {
    let found = run.knee.as_ref().and_then(|knee| doubt(run, knee, knee.at?));
    found.is_some()
}

/// What beside the server may have made the knee: the client, or the cap of an open loop.
fn doubt(run: &RunFile, knee: &KneeBlock, at: LoadPoint) -> Option<String> {
    let is_there = |level: &&LevelBlock| level.amount(knee.vary).is_some_and(|amount| amount >= at.load);
    let found = |rules: &[Rule]| {
        let findings = run.levels.iter().filter(is_there).flat_map(|level| level.findings.iter().flatten());
        let graver = findings.filter(|finding| finding.grade != Grade::Info);
        graver.map(|finding| &finding.rule).find(|rule| rules.iter().any(|one| one.name() == *rule)).cloned()
    };
    let of_client = found(&[Rule::ClientCpu, Rule::LateClient, Rule::LoopLag, Rule::PortsShort]);
    match of_client {
        Some(rule) => Some(format!("; it may be the client's own ({rule})")),
        None => {
            found(&[Rule::CapReached]).map(|_| "; it may be that of the cap, which was reached".to_owned())
        }
    }
}

fn served(knee: &KneeBlock) -> &'static str {
    match knee.throughput {
        Served::OutputTokens => "output tokens/s",
        Served::Requests => "requests/s that end",
    }
}

/// `16 users`, `12 requests/s`, `the trace x2`
fn load(knee: &KneeBlock, load: f64) -> String {
    match knee.vary {
        Axis::Concurrency if load == 1.0 => "1 user".to_owned(),
        Axis::Concurrency => format!("{load} users"),
        Axis::InputLen | Axis::OutputLen => knee.vary.in_words(load),
        Axis::Rate => format!("{} requests/s", in_label(load)),
        Axis::Speedup => format!("the trace x{}", in_label(load)),
    }
}

/// The same behind one that says the unit.
fn short(knee: &KneeBlock, load: f64) -> String {
    match knee.vary {
        Axis::Concurrency | Axis::InputLen | Axis::OutputLen | Axis::Rate => in_label(load),
        Axis::Speedup => format!("x{}", in_label(load)),
    }
}
