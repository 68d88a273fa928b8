//! Which loads are tried, at which times of the server, and how long that takes. Pure.
//!
//! Up to 1000 streams the server sends an event of each every 20 ms, as a quick model does. Beyond that it would be asked
//! for more than it can keep: gaps grow so that the sum over all streams stays at [`EVENTS_S_PER_WORKER`] for each of its
//! threads.

use serde::{Deserialize, Serialize};

use super::shares::Cores;

/// A load that is tried: a closed loop of that many streams, all of them open all the time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Step {
    /// Streams at once.
    pub(crate) streams: u32,
    /// From a request to its first event, ms.
    pub(crate) ttft_ms: f64,
    /// Between the events of a stream, ms.
    pub(crate) itl_ms: f64,
    /// Events of an answer.
    pub(crate) tokens: u32,
    /// Answers that are measured of each stream, after one that is not.
    pub(crate) waves: u32,
}

/// How much time there is, and what it is spent on. All in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Effort {
    /// For everything.
    pub(super) all_s: f64,
    /// Longest answer that is asked for, unless [`TOKENS_MIN`] take longer.
    pub(super) answer_s: f64,
    /// Time of a step's measured answers, unless one takes longer.
    pub(super) step_s: f64,
    /// Time of the sends at a constant rate.
    pub(super) sends_s: f64,
}

/// The loads of every selftest.
const LADDER: [u32; 5] = [1, 10, 100, 1_000, 10_000];
/// What a thread of the mock can keep beside all else, on a core that is some years old, events per second.
pub(super) const EVENTS_S_PER_WORKER: f64 = 50_000.0;
/// The server's gap where that many events are not reached, ms; TTFT is at least five of them.
const ITL_MS: f64 = 20.0;
const TTFT_MS: f64 = 100.0;
/// Events of an answer: enough gaps for a percentile, and little enough for several answers in a step.
const TOKENS_MIN: u32 = 4;
const TOKENS_MAX: u32 = 32;
/// Most requests of a step: their accounts are fetched in one answer.
const REQUESTS_MAX: u32 = 30_000;
/// Gap between the first sends of a shard's users, us: a connection takes some 30.
const SPREAD_US: f64 = 50.0;
/// Starting a server and the engine, and asking for the truth at the end, s.
const AROUND_S: f64 = 0.3;

impl Effort {
    /// The usual minute.
    pub(super) const FULL: Effort = Effort { all_s: 60.0, answer_s: 3.5, step_s: 4.0, sends_s: 3.0 };
    /// Ten seconds.
    pub(super) const QUICK: Effort = Effort { all_s: 10.0, answer_s: 0.35, step_s: 0.35, sends_s: 0.6 };

    /// As much as goes into `all_s`.
    pub(super) fn within(all_s: f64) -> Effort {
        let effort = if all_s < 40.0 { Effort::QUICK } else { Effort::FULL };
        Effort { all_s, ..effort }
    }
}

/// The loads to begin with, the smallest first: those of which both processes can hold the streams, and in the place of
/// the first that they cannot hold the most that they can.
pub(super) fn ladder(effort: &Effort, cores: &Cores, streams_max: u32) -> Vec<Step> {
    let mut all: Vec<u32> = LADDER.into_iter().filter(|streams| *streams <= streams_max).collect();
    if all.len() < LADDER.len() && streams_max > all.last().copied().unwrap_or(0) {
        all.push(streams_max);
    }
    all.into_iter().map(|streams| Step::of(streams, effort, cores)).collect()
}

/// The largest load of every selftest.
pub(super) fn wished_max() -> u32 {
    LADDER[LADDER.len() - 1]
}

impl Step {
    /// The step of `streams`.
    pub(super) fn of(streams: u32, effort: &Effort, cores: &Cores) -> Step {
        let kept = EVENTS_S_PER_WORKER * f64::from(cores.workers());
        let itl_ms = ITL_MS.max(f64::from(streams) * 1e3 / kept);
        let ttft_ms = TTFT_MS.max(2.5 * itl_ms);
        let gaps = ((effort.answer_s * 1e3 - ttft_ms) / itl_ms).max(0.0) as u32;
        let step =
            Step { streams, ttft_ms, itl_ms, tokens: (gaps + 1).clamp(TOKENS_MIN, TOKENS_MAX), waves: 1 };
        // One or ten streams give few values: they get two answers each, however little time there is.
        let least = if streams <= 10 { 2 } else { 1 };
        let waves = (effort.step_s / step.answer_s()).floor() as u32;
        Step { waves: waves.clamp(least, (REQUESTS_MAX / streams.max(1)).max(least)), ..step }
    }

    /// Requests that are measured.
    pub(super) fn requests(&self) -> u64 {
        u64::from(self.streams) * u64::from(self.waves)
    }

    /// Gap between the first sends of a shard's users, us: so that the events of all streams are spread over a gap.
    pub(super) fn spread_us(&self, cores: &Cores) -> f64 {
        SPREAD_US.max(self.itl_ms * 1e3 / f64::from(self.streams.div_ceil(cores.shards())))
    }

    /// How long it takes, s.
    pub(super) fn length_s(&self, cores: &Cores) -> f64 {
        let users = f64::from(self.streams.div_ceil(cores.shards()) - 1);
        let spread_s = self.spread_us(cores) * users / 1e6;
        // Both legs, the one that is not measured and the other, end with the user who began last.
        AROUND_S + f64::from(self.waves + 1) * self.answer_s() + 2.0 * spread_s
    }

    fn answer_s(&self) -> f64 {
        (self.ttft_ms + f64::from(self.tokens - 1) * self.itl_ms) / 1e3
    }
}

/// How long the sends at a constant rate take, s.
pub(super) fn sends_length_s(effort: &Effort) -> f64 {
    AROUND_S + effort.sends_s
}

/// Where the largest load lies at which the error stays small enough, from those that were tried.
///
/// The error is taken to grow with the load: what held vouches for everything below it, so that a failure below a larger
/// load that held was something else on the machine. For the same reason the first load that fails gets a second turn
/// before anything is sought below it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Search {
    /// Streams, and whether the error stayed small enough.
    tried: Vec<(u32, bool)>,
}

impl Search {
    pub(super) fn on_tried(&mut self, streams: u32, held: bool) {
        self.tried.push((streams, held));
    }

    /// The largest load that held.
    pub(super) fn holds(&self) -> Option<u32> {
        self.tried.iter().filter(|(_, held)| *held).map(|(streams, _)| *streams).max()
    }

    /// The smallest above it that did not.
    pub(super) fn fails(&self) -> Option<u32> {
        let holds = self.holds().unwrap_or(0);
        let failed = self.tried.iter().filter(|(streams, held)| !held && *streams > holds);
        failed.map(|(streams, _)| *streams).min()
    }

    /// What to try next: once what failed, then the geometric middle, until the two are a quarter apart; `None` when there
    /// is nothing between them worth a try, or nothing that held or failed.
    pub(super) fn next(&self) -> Option<u32> {
        let fails = self.fails()?;
        let mut places = self.tried.iter().enumerate();
        if !places.any(|(place, (streams, _))| self.tried[..place].iter().any(|(other, _)| other == streams))
        {
            return Some(fails);
        }
        let (holds, fails) = (f64::from(self.holds()?), f64::from(fails));
        let middle = (holds * fails).sqrt().round();
        (fails / holds > 1.25 && middle > holds && middle < fails).then_some(middle as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cores(workers: usize) -> Cores {
        Cores { client: vec![0; workers], server: vec![0; workers], shared: false }
    }

    fn streams(ladder: &[Step]) -> Vec<u32> {
        ladder.iter().map(|step| step.streams).collect()
    }

    #[test]
    fn gaps_grow_where_the_server_could_not_keep_them() {
        let step = |streams, workers| {
            let step = Step::of(streams, &Effort::FULL, &cores(workers));
            (step.ttft_ms, step.itl_ms, step.tokens, step.waves)
        };
        assert_eq!(step(1, 1), (100.0, 20.0, 32, 5));
        assert_eq!(step(1_000, 1), (100.0, 20.0, 32, 5));
        assert_eq!(step(10_000, 1), (500.0, 200.0, 16, 1));
        // With more cores the server keeps more, until requests are too many.
        assert_eq!(step(10_000, 8), (100.0, 25.0, 32, 3));
        let quick = Step::of(10_000, &Effort::QUICK, &cores(1));
        assert_eq!((quick.tokens, quick.waves), (4, 1));
        assert_eq!(Step::of(10, &Effort::QUICK, &cores(1)).waves, 2);
    }

    #[test]
    fn events_of_all_streams_are_spread_over_a_gap() {
        let spread =
            |streams, workers| Step::of(streams, &Effort::FULL, &cores(workers)).spread_us(&cores(workers));
        assert_eq!((spread(1, 1), spread(10, 1), spread(10, 2)), (20_000.0, 2_000.0, 4_000.0));
        assert_eq!((spread(1_000, 1), spread(10_000, 1)), (50.0, 50.0));
    }

    #[test]
    fn the_ladder_goes_into_its_time_and_leaves_some_for_the_search() {
        for workers in [1, 2, 16] {
            let cores = cores(workers);
            let all = |effort: &Effort| {
                let steps = ladder(effort, &cores, u32::MAX);
                assert_eq!(streams(&steps), LADDER);
                steps.iter().map(|step| step.length_s(&cores)).sum::<f64>() + sends_length_s(effort)
            };
            assert!(all(&Effort::FULL) < 42.0, "{}", all(&Effort::FULL));
            assert!(all(&Effort::QUICK) < 9.5, "{}", all(&Effort::QUICK));
        }
    }

    #[test]
    fn the_ladder_ends_with_what_both_processes_can_hold() {
        let of = |streams_max| streams(&ladder(&Effort::FULL, &cores(1), streams_max));
        assert_eq!(of(19_744), LADDER);
        assert_eq!(of(10_000), LADDER);
        assert_eq!(of(768), [1, 10, 100, 768]);
        assert_eq!(of(100), [1, 10, 100]);
        assert_eq!(of(0), [0; 0]);
    }

    /// Tries loads until there is nothing left to try; the error holds up to `truth`.
    fn found(first: &[u32], truth: u32) -> (Option<u32>, Option<u32>, usize) {
        let mut search = Search::default();
        first.iter().for_each(|streams| search.on_tried(*streams, *streams <= truth));
        let mut more = 0;
        while let Some(streams) = search.next() {
            search.on_tried(streams, streams <= truth);
            more += 1;
            assert!(more < 20, "{search:?}");
        }
        (search.holds(), search.fails(), more)
    }

    #[test]
    fn the_search_brackets_the_largest_load_within_a_quarter() {
        for truth in 1..9_999 {
            let (holds, fails, more) = found(&LADDER, truth);
            let (holds, fails) = (holds.unwrap(), fails.unwrap());
            assert!(holds <= truth && truth < fails, "{truth}: {holds}..{fails}");
            // Below five the numbers are too far apart for a quarter.
            assert!(
                f64::from(fails) / f64::from(holds) <= 1.25 || fails == holds + 1,
                "{truth}: {holds}..{fails}"
            );
            assert!(more <= 5, "{truth}: {more}");
        }
    }

    #[test]
    fn there_is_nothing_to_search_where_all_held_or_none() {
        assert_eq!(found(&LADDER, 10_000), (Some(10_000), None, 0));
        assert_eq!(found(&LADDER, 0), (None, Some(1), 1));
    }

    #[test]
    fn a_failure_below_a_load_that_held_is_of_the_machine() {
        let mut search = Search::default();
        for (streams, held) in [(1, true), (10, false), (100, true), (1_000, false)] {
            search.on_tried(streams, held);
        }
        assert_eq!((search.holds(), search.fails()), (Some(100), Some(1_000)));
    }

    #[test]
    fn what_fails_first_gets_a_second_turn() {
        let of = |turns: &[(u32, bool)]| {
            let mut search = Search::default();
            turns.iter().for_each(|(streams, held)| search.on_tried(*streams, *held));
            (search.holds(), search.fails(), search.next())
        };
        let (ten, hundred) = ((10, true), (100, false));
        assert_eq!(of(&[ten, hundred]), (Some(10), Some(100), Some(100)));
        assert_eq!(of(&[ten, hundred, hundred]), (Some(10), Some(100), Some(32)));
        assert_eq!(of(&[ten, hundred, (100, true)]), (Some(100), None, None));
        // Only once: there is not the time for two turns of every load.
        assert_eq!(of(&[ten, hundred, hundred, (32, false)]), (Some(10), Some(32), Some(18)));
    }

    #[test]
    fn what_little_time_there_is_is_spent_as_in_a_quick_test() {
        assert_eq!(Effort::within(60.0), Effort::FULL);
        assert_eq!(Effort::within(2.0), Effort { all_s: 2.0, ..Effort::QUICK });
    }
}
