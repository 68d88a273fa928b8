//! Fixed timing: when each token of each job is due, whatever else goes on.
//!
//! A job's first tokens are due its TTFT after it was submitted, every further chunk one gap after the one before it
//! was *due*: a late caller does not stretch the schedule. Jobs do not influence each other, but for a TTFT that
//! grows with the number in flight where that is set.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::freezes::Freezes;
use super::job::{Emission, Job, Key};
use super::keyed::{self, Keyed};
use super::settings::{Fixed, Settings, nanos};
use crate::rng::{self, Purpose};
use crate::time::Stamp;

/// The jobs of a server of fixed timing.
#[derive(Debug)]
pub(super) struct Timetable {
    times: Times,
    freezes: Freezes,
    jobs: Keyed<Running>,
    /// One entry per running job, and entries of cancelled ones until they are due. The middle number keeps jobs that
    /// are due at one moment in the order in which they became so.
    queue: BinaryHeap<Reverse<(Stamp, u64, keyed::Key)>>,
    queued: u64,
}

/// The settings in whole nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Times {
    ttft: u64,
    ttft_per_in_flight: u64,
    itl: u64,
    ttft_jitter: u64,
    itl_jitter: u64,
    tokens_per_step: u32,
    seed: u64,
}

#[derive(Debug)]
struct Running {
    owner: u64,
    choice: u32,
    /// Tokens still to come.
    left: u32,
    /// No token has come out yet.
    fresh: bool,
    /// Source of the jitter; absent where there is none.
    draws: Option<Box<rng::Stream>>,
}

impl Timetable {
    /// A server of valid settings.
    pub(super) fn new(settings: &Settings, fixed: &Fixed, freezes: Freezes) -> Timetable {
        let times = Times {
            ttft: nanos(fixed.ttft_ms),
            ttft_per_in_flight: nanos(fixed.ttft_per_in_flight_ms),
            itl: nanos(fixed.itl_ms),
            ttft_jitter: nanos(fixed.ttft_jitter_ms),
            itl_jitter: nanos(fixed.itl_jitter_ms),
            tokens_per_step: settings.tokens_per_step,
            seed: settings.seed,
        };
        Timetable { times, freezes, jobs: Keyed::new(), queue: BinaryHeap::new(), queued: 0 }
    }

    /// Whether the times of a job depend on which others are in flight when it comes.
    pub(super) fn counts_jobs(&self) -> bool {
        self.times.ttft_per_in_flight > 0
    }

    /// When the next tokens are due; `Stamp::MAX` if none are. May be early by a cancelled job.
    #[inline]
    pub(super) fn next_due(&self) -> Stamp {
        self.queue.peek().map_or(Stamp::MAX, |Reverse((due, ..))| *due)
    }

    /// Appends what is due by `now`, in order, until `out` has `enough` emissions.
    pub(super) fn run(&mut self, now: Stamp, enough: usize, out: &mut Vec<Emission>) {
        while out.len() < enough && self.next_due() <= now {
            let Some(Reverse((due, _, key))) = self.queue.pop() else { return };
            let Some(running) = self.jobs.get_mut(key) else { continue };
            let emission = running.emit(key, due, self.times.tokens_per_step);
            out.push(emission);
            if emission.last {
                self.jobs.remove(key);
            } else {
                let gap = jittered(self.times.itl, self.times.itl_jitter, running.draws.as_deref_mut());
                self.enqueue(due, gap, key);
            }
        }
    }

    /// Takes a job whose request was complete at `now`.
    pub(super) fn submit(&mut self, now: Stamp, job: &Job) -> Key {
        let Times { ttft, ttft_per_in_flight, ttft_jitter, itl_jitter, seed, .. } = self.times;
        let jittery = ttft_jitter > 0 || itl_jitter > 0;
        let mut draws = jittery.then(|| Box::new(rng::stream(seed, Purpose::MockJitter, job.draw)));
        let in_flight = self.jobs.len() as u64 + 1;
        let ttft = ttft.saturating_add(ttft_per_in_flight.saturating_mul(in_flight));
        let span = jittered(ttft, ttft_jitter, draws.as_deref_mut());
        let left = job.output_tokens.max(1);
        let Job { owner, choice, .. } = *job;
        let key = self.jobs.insert(Running { owner, choice, left, fresh: true, draws });
        self.enqueue(now, span, key);
        key.into()
    }

    /// Forgets a job; false if it has ended.
    pub(super) fn cancel(&mut self, key: Key) -> bool {
        self.jobs.remove(key.into()).is_some()
    }

    /// Jobs that were neither finished nor cancelled.
    pub(super) fn in_flight(&self) -> u64 {
        self.jobs.len() as u64
    }

    fn enqueue(&mut self, from: Stamp, span: u64, key: keyed::Key) {
        let due = self.freezes.end(self.freezes.begin(from), span);
        self.queue.push(Reverse((due, self.queued, key)));
        self.queued += 1;
    }
}

impl Running {
    fn emit(&mut self, key: keyed::Key, due: Stamp, tokens_per_step: u32) -> Emission {
        let tokens = self.left.min(tokens_per_step);
        self.left -= tokens;
        Emission {
            key: key.into(),
            owner: self.owner,
            due,
            choice: self.choice,
            tokens,
            cached_tokens: 0,
            first: std::mem::replace(&mut self.fresh, false),
            last: self.left == 0,
        }
    }
}

/// `span` plus or minus an even draw of at most `jitter`, not below zero.
fn jittered(span: u64, jitter: u64, draws: Option<&mut rng::Stream>) -> u64 {
    let Some(draws) = draws else { return span };
    // Drawn even for a jitter of zero: one chunk takes one draw, whatever the settings.
    let at = (jitter as f64 * (rng::unit(draws) * 2.0)).round() as u64;
    span.saturating_add(at).saturating_sub(jitter)
}

#[cfg(test)]
mod tests {
    use super::super::job::Refusal;
    use super::super::server::Server;
    use super::super::settings::{Freeze, Serving};
    use super::*;

    const FIXED: Fixed = Fixed {
        ttft_ms: 200.0,
        ttft_per_in_flight_ms: 0.0,
        itl_ms: 20.0,
        ttft_jitter_ms: 0.0,
        itl_jitter_ms: 0.0,
    };

    fn server(fixed: Fixed) -> Server {
        Server::new(&Settings::serving(Serving::Fixed(fixed)), Stamp::ZERO).unwrap()
    }

    fn job(owner: u64, output_tokens: u32) -> Job {
        Job { owner, draw: owner, output_tokens, ..Job::default() }
    }

    fn at(ms: u64) -> Stamp {
        Stamp::from_millis(ms)
    }

    /// (owner, due in ms, tokens, last) of everything that comes out until the server rests.
    fn run(server: &mut Server) -> Vec<(u64, f64, u32, bool)> {
        let mut all = Vec::new();
        while server.next_wakeup() != Stamp::MAX {
            server.advance(server.next_wakeup(), &mut all);
        }
        all.iter().map(|e| (e.owner, e.due.as_nanos() as f64 / 1e6, e.tokens, e.last)).collect()
    }

    #[test]
    fn each_job_keeps_its_own_phase() {
        let mut server = server(FIXED);
        server.submit(at(1000), job(1, 3)).unwrap();
        server.submit(at(1007), job(2, 2)).unwrap();
        assert_eq!(
            run(&mut server),
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
        let mut server = server(FIXED);
        server.submit(at(0), job(1, 3)).unwrap();
        let mut all = Vec::new();
        server.advance(at(219), &mut all);
        assert_eq!(all.len(), 1);
        assert_eq!(server.next_wakeup(), at(220));
        server.advance(at(900), &mut all);
        assert_eq!(all.iter().map(|e| e.due).collect::<Vec<_>>(), [at(200), at(220), at(240)]);
        assert_eq!(all.iter().map(|e| e.first).collect::<Vec<_>>(), [true, false, false]);
        assert_eq!(server.next_wakeup(), Stamp::MAX);
    }

    #[test]
    fn chunks_hold_the_set_number_of_tokens_and_the_last_the_rest() {
        let settings = Settings { tokens_per_step: 4, ..Settings::serving(Serving::Fixed(FIXED)) };
        let mut server = Server::new(&settings, Stamp::ZERO).unwrap();
        server.submit(at(0), job(1, 10)).unwrap();
        assert_eq!(run(&mut server), [(1, 200.0, 4, false), (1, 220.0, 4, false), (1, 240.0, 2, true)]);
    }

    #[test]
    fn a_cancelled_job_gives_nothing_more_but_what_was_due() {
        let mut server = server(FIXED);
        let first = server.submit(at(0), job(1, 5)).unwrap();
        server.submit(at(1), job(2, 1)).unwrap();
        assert_eq!(server.gauges().running, 2);
        // The caller is late: one chunk was due before.
        assert!(server.cancel(at(215), first));
        assert!(!server.cancel(at(215), first));
        assert_eq!(run(&mut server), [(1, 200.0, 1, false), (2, 201.0, 1, true)]);
        assert_eq!(server.gauges().running, 0);
    }

    #[test]
    fn jitter_stays_in_its_bounds_repeats_and_differs_by_job() {
        let series = |owner| {
            let mut server = server(Fixed { ttft_jitter_ms: 50.0, itl_jitter_ms: 5.0, ..FIXED });
            server.submit(at(0), job(owner, 500)).unwrap();
            run(&mut server).into_iter().map(|e| e.1).collect::<Vec<_>>()
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
        let mut server = server(Fixed { itl_ms: 0.0, itl_jitter_ms: 5.0, ..FIXED });
        server.submit(at(0), job(1, 200)).unwrap();
        let all = run(&mut server);
        assert_eq!(all.len(), 200);
        assert!(all.windows(2).all(|w| w[0].1 <= w[1].1));
    }

    #[test]
    fn without_delays_jobs_take_turns_in_batches() {
        let mut server = server(Fixed { ttft_ms: 0.0, itl_ms: 0.0, ..FIXED });
        server.submit(at(5), job(1, 100)).unwrap();
        server.submit(at(5), job(2, 100)).unwrap();
        let mut batch = Vec::new();
        server.advance(at(5), &mut batch);
        assert_eq!(batch.len(), 64);
        assert!(batch.chunks(2).all(|pair| pair[0].owner != pair[1].owner));
        assert_eq!(server.next_wakeup(), at(5));
    }

    #[test]
    fn a_ttft_may_grow_with_the_jobs_in_flight_and_a_late_caller_does_not_change_their_number() {
        for late in [false, true] {
            let mut server = server(Fixed { ttft_ms: 10.0, ttft_per_in_flight_ms: 80.0, ..FIXED });
            let mut all = Vec::new();
            for (ms, owner) in [(0, 1), (0, 2), (100, 3)] {
                if !late {
                    server.advance(at(ms), &mut all);
                }
                server.submit(at(ms), job(owner, 1)).unwrap();
            }
            // At 100 ms the first has ended.
            while server.next_wakeup() != Stamp::MAX {
                server.advance(at(1000), &mut all);
            }
            let times: Vec<_> = all.iter().map(|e| (e.owner, e.due)).collect();
            assert_eq!(times, [(1, at(90)), (2, at(170)), (3, at(270))], "late: {late}");
        }
    }

    #[test]
    fn freezes_and_a_cold_start_hold_here_too() {
        let freezes = vec![Freeze { at_s: 0.21, for_s: 1.0 }];
        let settings = Settings { cold_start_s: 0.01, freezes, ..Settings::serving(Serving::Fixed(FIXED)) };
        let mut server = Server::new(&settings, Stamp::ZERO).unwrap();
        assert!(matches!(server.submit(at(9), job(1, 3)), Err(Refusal::Cold { .. })));
        server.submit(at(10), job(1, 3)).unwrap();
        let dues: Vec<f64> = run(&mut server).iter().map(|e| e.1).collect();
        // The first is due as the freeze begins, the second one gap after its end.
        assert_eq!(dues, [210.0, 1230.0, 1250.0]);
    }
}
