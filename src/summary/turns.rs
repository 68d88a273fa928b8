//! The turns of sessions apart: how latencies change as conversations grow.
//!
//! Owns which requests are one row; what is measured of them is the level's own.

use crate::metrics::Record;
use crate::metrics::metric::Metric;
use crate::stats::sort;
use crate::summary::{Counts, Distribution, Tokens, columns};

/// The requests of one turn of all sessions, planned in the window.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnSummary {
    /// Which turn, from 1.
    pub turn: u32,
    /// Those of all later turns, too: the last row.
    pub and_later: bool,
    /// How they ended.
    pub counts: Counts,
    /// TTFT, TPOT and E2E of those that ended well, in an open loop from the plan as well.
    pub distributions: Vec<Distribution>,
    /// Their tokens.
    pub tokens: Tokens,
}

/// One row for each turn up to [`ROWS_MAX`]; none where no session has a second one.
pub(super) fn of(population: &[&Record], from_plan: bool) -> Vec<TurnSummary> {
    let row_of = |record: &Record| usize::from(record.turn).min(ROWS_MAX - 1);
    let longest = population.iter().map(|record| usize::from(record.turn)).max().unwrap_or(0);
    let last = longest.min(ROWS_MAX - 1);
    if last == 0 {
        return Vec::new();
    }
    (0..=last)
        .map(|row| {
            let requests: Vec<&Record> =
                population.iter().copied().filter(|record| row_of(record) == row).collect();
            TurnSummary {
                and_later: row == ROWS_MAX - 1 && longest > row,
                ..summary(row, &requests, from_plan)
            }
        })
        .collect()
}

fn summary(row: usize, requests: &[&Record], from_plan: bool) -> TurnSummary {
    let (mut counts, mut tokens) = (Counts::default(), Tokens::default());
    for record in requests {
        counts.add(record);
        if record.outcome.is_ok() {
            tokens.add(record);
        }
    }
    let metrics = METRICS.into_iter().filter(|(_, is_of_plan)| from_plan || !is_of_plan);
    let ok = requests.iter().copied().filter(|record| record.outcome.is_ok());
    let columns = columns::of(metrics.map(|(metric, _)| metric), ok).into_iter();
    let distributions = columns.filter_map(|(metric, mut values)| {
        sort::values(&mut values);
        Distribution::of_sorted(metric, &values, counts.failed)
    });
    TurnSummary {
        turn: row as u32 + 1,
        and_later: false,
        distributions: distributions.collect(),
        counts,
        tokens,
    }
}

/// What is told of each turn, and whether it needs a plan.
const METRICS: [(Metric, bool); 5] = [
    (Metric::Ttft, false),
    (Metric::Tpot, false),
    (Metric::E2e, false),
    (Metric::TtftPlan, true),
    (Metric::E2ePlan, true),
];

/// Rows at most: a table of hundreds of turns is read by nobody, and the records have them all.
const ROWS_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Outcome;
    use crate::metrics::outcome::{Class, Kind};
    use crate::time::Stamp;

    fn record(session: u64, turn: u16, ttft_ms: u64, is_ok: bool) -> Record {
        let at = Stamp::from_millis;
        let outcome = if is_ok { Outcome::ok(200) } else { Outcome::new(Class::Http, Kind::HttpStatus, 500) };
        Record {
            turn,
            outcome,
            start: at(100),
            first: Some(at(100 + ttft_ms)),
            last: Some(at(200 + ttft_ms)),
            prompt_tokens: Some(10 * (u32::from(turn) + 1)),
            cached_tokens: (10 * u32::from(turn)).into(),
            ..Record::planned(session, at(100))
        }
    }

    #[test]
    fn each_turn_has_a_row_of_its_own_numbers() {
        let records = [
            record(0, 0, 10, true),
            record(1, 0, 30, true),
            record(0, 1, 50, true),
            record(1, 1, 7, false),
            record(0, 2, 90, true),
        ];
        let rows = of(&records.iter().collect::<Vec<_>>(), false);
        let shown: Vec<_> = rows.iter().map(|row| (row.turn, row.counts.ok, row.counts.failed)).collect();
        assert_eq!(shown, [(1, 2, 0), (2, 1, 1), (3, 1, 0)]);
        let ttft = &rows[0].distributions[0];
        assert_eq!((ttft.metric, ttft.n, ttft.min, ttft.max), (Metric::Ttft, 2, 10e6, 30e6));
        assert_eq!((rows[2].tokens.prompt, rows[2].tokens.cached), (30, Some(20)));
        assert!(rows.iter().all(|row| !row.and_later));
        assert_eq!(
            of(&records.iter().collect::<Vec<_>>(), true)[0].distributions.len(),
            4,
            "no TPOT of one token"
        );
    }

    #[test]
    fn single_turns_have_no_rows_and_very_late_ones_share_the_last() {
        let records = [record(0, 0, 10, true), record(1, 0, 30, true)];
        assert_eq!(of(&records.iter().collect::<Vec<_>>(), false), []);
        let many: Vec<Record> = (0..40).map(|turn| record(0, turn, 10, true)).collect();
        let rows = of(&many.iter().collect::<Vec<_>>(), false);
        assert_eq!((rows.len(), rows[15].counts.ok, rows[15].and_later), (16, 25, true));
        let just: Vec<Record> = many[..16].to_vec();
        assert!(!of(&just.iter().collect::<Vec<_>>(), false)[15].and_later);
    }
}
