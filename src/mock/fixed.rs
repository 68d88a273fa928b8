//! The fixed-timing model: when each token of each job is due. Pure: time is an argument.
//!
//! A job's first tokens are due `ttft` after it was submitted, every further chunk one `itl` after the one before it
//! was *due*: a late caller does not stretch the schedule. Jobs do not influence each other. The shape (submit, next
//! wake-up, advance) is that of a serving model with batching, which may stand here instead.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use super::keyed::{Key, Keyed};
use crate::rng::{self, Purpose};
use crate::time::Stamp;

/// The times of the model.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timing {
    /// From the submission to the first tokens.
    pub(super) ttft: Duration,
    /// Between chunks.
    pub(super) itl: Duration,
    /// Each `ttft` is drawn evenly from `ttft` plus or minus this, cut off at zero.
    pub(super) ttft_jitter: Duration,
    /// Each gap is drawn evenly from `itl` plus or minus this, cut off at zero.
    pub(super) itl_jitter: Duration,
    /// Tokens that come out together; at least 1.
    pub(super) tokens_per_chunk: u32,
    /// Seed of the jitter.
    pub(super) seed: u64,
}

/// One sequence of tokens to generate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Job {
    /// Handed back with each emission: whose tokens they are.
    pub(super) owner: Key,
    /// Handed back with each emission: which of the owner's sequences.
    pub(super) choice: u32,
    /// Number of its stream of random numbers: the same number gives the same jitter.
    pub(super) draw: u64,
    /// Tokens to generate; at least 1.
    pub(super) tokens: u32,
}

/// How busy a model is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Gauges {
    /// Sequences being generated.
    pub(super) running: u64,
    /// Sequences that wait for a place.
    pub(super) waiting: u64,
    /// Share of the cache in use, 0 to 1.
    pub(super) cache_usage: f64,
    /// Prompt tokens looked up in the prefix cache so far.
    pub(super) prefix_queries: u64,
    /// Those of them that were there.
    pub(super) prefix_hits: u64,
}

/// Tokens that have come out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Emission {
    /// As in the job.
    pub(super) owner: Key,
    /// As in the job.
    pub(super) choice: u32,
    /// Which job, as [`Fixed::submit`] named it.
    pub(super) job: Key,
    /// When they were due.
    pub(super) due: Stamp,
    /// How many.
    pub(super) tokens: u32,
    /// Nothing more comes of this job.
    pub(super) last: bool,
}

/// The model.
#[derive(Debug)]
pub(super) struct Fixed {
    timing: Timing,
    jobs: Keyed<Running>,
    /// One entry per running job, and entries of cancelled ones until they are due. The middle number keeps jobs that
    /// are due at one moment in the order in which they became so.
    queue: BinaryHeap<Reverse<(Stamp, u64, Key)>>,
    queued: u64,
}

#[derive(Debug)]
struct Running {
    job: Job,
    /// Tokens still to come.
    left: u32,
    /// Source of the jitter; absent where there is none.
    draws: Option<Box<rng::Stream>>,
}

/// Most emissions of one call: a late server must still let requests in.
const BATCH: usize = 64;

impl Fixed {
    pub(super) fn new(timing: Timing) -> Fixed {
        Fixed { timing, jobs: Keyed::new(), queue: BinaryHeap::new(), queued: 0 }
    }

    /// Takes a job whose request was complete at `now`.
    pub(super) fn submit(&mut self, now: Stamp, job: Job) -> Key {
        let Timing { ttft, ttft_jitter, itl_jitter, seed, .. } = self.timing;
        let jittery = !ttft_jitter.is_zero() || !itl_jitter.is_zero();
        let mut draws = jittery.then(|| Box::new(rng::stream(seed, Purpose::MockJitter, job.draw)));
        let due = now + jittered(ttft, ttft_jitter, draws.as_deref_mut());
        let key = self.jobs.insert(Running { job, left: job.tokens.max(1), draws });
        self.enqueue(due, key);
        key
    }

    /// Forgets a job. A job that has ended already is passed over.
    pub(super) fn cancel(&mut self, key: Key) {
        self.jobs.remove(key);
    }

    /// How busy it is. There is no queue and no cache in it.
    pub(super) fn gauges(&self) -> Gauges {
        Gauges { running: self.jobs.len() as u64, ..Gauges::default() }
    }

    /// The prompt tokens of a job that came out of a cache; `None`, for there is none.
    #[expect(clippy::unused_self, reason = "a model with a cache looks the job up")]
    pub(super) fn cached_tokens(&self, _job: Key) -> Option<u32> {
        None
    }

    /// When [`Fixed::advance`] has something to do next; `Stamp::MAX` if never. May be early by a cancelled job.
    #[inline]
    pub(super) fn next_wakeup(&self) -> Stamp {
        self.queue.peek().map_or(Stamp::MAX, |Reverse((due, ..))| *due)
    }

    /// Appends what is due at `now`, in order, to `emissions`: at most 64 at once, so look at
    /// [`Fixed::next_wakeup`] again.
    pub(super) fn advance(&mut self, now: Stamp, emissions: &mut Vec<Emission>) {
        let room = emissions.len() + BATCH;
        while emissions.len() < room && self.next_wakeup() <= now {
            let Some(Reverse((due, _, key))) = self.queue.pop() else { return };
            let Some(running) = self.jobs.get_mut(key) else { continue };
            let tokens = running.left.min(self.timing.tokens_per_chunk.max(1));
            running.left -= tokens;
            let last = running.left == 0;
            let Job { owner, choice, .. } = running.job;
            emissions.push(Emission { owner, choice, job: key, due, tokens, last });
            if last {
                self.jobs.remove(key);
            } else {
                let Timing { itl, itl_jitter, .. } = self.timing;
                let next = due + jittered(itl, itl_jitter, running.draws.as_deref_mut());
                self.enqueue(next, key);
            }
        }
    }

    fn enqueue(&mut self, due: Stamp, key: Key) {
        self.queue.push(Reverse((due, self.queued, key)));
        self.queued += 1;
    }
}

/// `span` plus or minus an even draw of at most `jitter`, not below zero.
fn jittered(span: Duration, jitter: Duration, draws: Option<&mut rng::Stream>) -> Duration {
    let Some(draws) = draws else { return span };
    // Drawn even for a jitter of zero: one chunk takes one draw, whatever the settings.
    let at = rng::unit(draws) * 2.0;
    (span + jitter.mul_f64(at)).saturating_sub(jitter)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMING: Timing = Timing {
        ttft: Duration::from_millis(200),
        itl: Duration::from_millis(20),
        ttft_jitter: Duration::ZERO,
        itl_jitter: Duration::ZERO,
        tokens_per_chunk: 1,
        seed: 1,
    };

    fn job(owner: u64, tokens: u32) -> Job {
        Job { owner: Key::from_token(owner), choice: 0, draw: owner, tokens }
    }

    fn at(ms: u64) -> Stamp {
        Stamp::from_millis(ms)
    }

    /// (owner, due in ms, tokens, last) of everything that comes out until the model rests.
    fn run(model: &mut Fixed) -> Vec<(u64, f64, u32, bool)> {
        let mut all = Vec::new();
        while model.next_wakeup() != Stamp::MAX {
            model.advance(model.next_wakeup(), &mut all);
        }
        all.iter().map(|e| (e.owner.token(), e.due.as_secs_f64() * 1e3, e.tokens, e.last)).collect()
    }

    #[test]
    fn each_job_keeps_its_own_phase() {
        let mut model = Fixed::new(TIMING);
        model.submit(at(1000), job(1, 3));
        model.submit(at(1007), job(2, 2));
        assert_eq!(
            run(&mut model),
            [
                (1, 1200.0, 1, false),
                (2, 1207.0, 1, false),
                (1, 1220.0, 1, false),
                (2, 1227.0, 1, true),
                (1, 1240.0, 1, true)
            ]
        );
    }

    #[test]
    fn lateness_does_not_add_up() {
        let mut model = Fixed::new(TIMING);
        model.submit(at(0), job(1, 3));
        let mut all = Vec::new();
        model.advance(at(219), &mut all);
        assert_eq!(all.len(), 1);
        assert_eq!(model.next_wakeup(), at(220));
        model.advance(at(900), &mut all);
        assert_eq!(all.iter().map(|e| e.due).collect::<Vec<_>>(), [at(200), at(220), at(240)]);
        assert_eq!(model.next_wakeup(), Stamp::MAX);
    }

    #[test]
    fn chunks_hold_the_set_number_of_tokens_and_the_last_the_rest() {
        let mut model = Fixed::new(Timing { tokens_per_chunk: 4, ..TIMING });
        model.submit(at(0), job(1, 10));
        assert_eq!(run(&mut model), [(1, 200.0, 4, false), (1, 220.0, 4, false), (1, 240.0, 2, true)]);
    }

    #[test]
    fn a_cancelled_job_gives_nothing_more() {
        let mut model = Fixed::new(TIMING);
        let first = model.submit(at(0), job(1, 5));
        model.submit(at(1), job(2, 1));
        model.advance(at(200), &mut Vec::new());
        assert_eq!(model.gauges().running, 2);
        model.cancel(first);
        assert_eq!(model.gauges().running, 1);
        assert_eq!(run(&mut model), [(2, 201.0, 1, true)]);
    }

    #[test]
    fn jitter_stays_in_its_bounds_repeats_and_differs_by_job() {
        let timing =
            Timing { ttft_jitter: Duration::from_millis(50), itl_jitter: Duration::from_millis(5), ..TIMING };
        let series = |owner| {
            let mut model = Fixed::new(timing);
            model.submit(at(0), job(owner, 500));
            run(&mut model).into_iter().map(|e| e.1).collect::<Vec<_>>()
        };
        let one = series(1);
        assert_eq!(one, series(1));
        assert_ne!(one, series(2));
        assert!((150.0..=250.0).contains(&one[0]));
        let gaps: Vec<f64> = one.windows(2).map(|w| w[1] - w[0]).collect();
        assert!(gaps.iter().all(|gap| (14.9999..=25.0001).contains(gap)));
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        // Five standard errors of an even draw of +-5 ms.
        assert!((mean - 20.0).abs() < 5.0 * (5.0 / 3f64.sqrt()) / (gaps.len() as f64).sqrt(), "{mean}");
    }

    #[test]
    fn jitter_larger_than_the_span_is_cut_off_at_zero() {
        let timing = Timing { itl: Duration::ZERO, itl_jitter: Duration::from_millis(5), ..TIMING };
        let mut model = Fixed::new(timing);
        model.submit(at(0), job(1, 200));
        let all = run(&mut model);
        assert_eq!(all.len(), 200);
        assert!(all.windows(2).all(|w| w[0].1 <= w[1].1));
    }

    #[test]
    fn without_delays_jobs_take_turns_in_batches() {
        let timing = Timing { ttft: Duration::ZERO, itl: Duration::ZERO, ..TIMING };
        let mut model = Fixed::new(timing);
        model.submit(at(5), job(1, 100));
        model.submit(at(5), job(2, 100));
        let mut batch = Vec::new();
        model.advance(at(5), &mut batch);
        assert_eq!(batch.len(), BATCH);
        assert!(batch.chunks(2).all(|pair| pair[0].owner != pair[1].owner));
        assert_eq!(model.next_wakeup(), at(5));
    }
}
