//! Failures by outcome, with an example of each.

use super::Failure;
use crate::metrics::{Kind, Outcome};
use crate::report::format;
use crate::run_file::RunFile;
use crate::stats::sort;

/// The failures of all levels, the most frequent first; equally frequent ones in the order of the outcomes.
pub(super) fn of(run: &RunFile) -> Vec<Failure> {
    let mut outcomes: Vec<Outcome> = run
        .levels
        .iter()
        .flat_map(|level| &level.counts.outcomes)
        .filter(|seen| seen.outcome.is_failure() && seen.count > 0)
        .map(|seen| seen.outcome)
        .collect();
    outcomes.sort_unstable();
    outcomes.dedup();
    let mut failures: Vec<Failure> = outcomes.into_iter().map(|outcome| failure(run, outcome)).collect();
    sort::few_by_key(&mut failures, |failure| std::cmp::Reverse(failure.count));
    failures
}

fn failure(run: &RunFile, outcome: Outcome) -> Failure {
    let mut failure = Failure { label: label(outcome), count: 0, levels: Vec::new(), message: String::new() };
    for level in &run.levels {
        let count: u64 =
            level.counts.outcomes.iter().filter(|seen| seen.outcome == outcome).map(|seen| seen.count).sum();
        if count > 0 {
            failure.count += count;
            failure.levels.push(level.label.clone());
        }
    }
    if run.levels.len() == 1 {
        failure.levels.clear();
    }
    let examples = run.levels.iter().flat_map(|level| &level.examples);
    let said = examples.filter(|e| e.outcome == outcome && !e.message.is_empty()).map(|e| &e.message).next();
    failure.message = said.map_or_else(String::new, |message| format::one_line(message, MESSAGE_CHARS_MAX));
    failure
}

/// The class; the kind behind it where it says more, the status where the class does not hold it.
fn label(outcome: Outcome) -> String {
    let class = outcome.label();
    let kind = outcome.kind.name();
    match outcome.kind {
        Kind::None | Kind::HttpStatus | Kind::InBandError | Kind::Timeout => class,
        _ if kind == class => class,
        _ => format!("{class} ({kind})"),
    }
}

const MESSAGE_CHARS_MAX: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::{Class, TimeoutPhase};

    #[test]
    fn a_kind_is_named_where_it_says_more_than_its_class() {
        let label = |class, kind, status| label(Outcome::new(class, kind, status));
        assert_eq!(label(Class::Http, Kind::HttpStatus, 429), "http_429");
        assert_eq!(label(Class::Reset, Kind::NoResponse, 0), "reset (no_response)");
        assert_eq!(label(Class::Truncated, Kind::Truncated, 200), "truncated");
        assert_eq!(label(Class::Truncated, Kind::Incomplete, 200), "truncated (incomplete)");
        assert_eq!(super::label(Outcome::timeout(TimeoutPhase::Gap, 200)), "timeout_gap");
    }
}
