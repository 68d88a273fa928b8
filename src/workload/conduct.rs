//! How the user of a request behaves once it is sent: a function of the seed, the index and the turn.

use std::time::Duration;

use super::content::Item;
use crate::metrics::Phase;
use crate::plan::{Aborts, SlowReaders, Workload};
use crate::rng::{self, Purpose};

/// The users of a workload.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Conduct {
    aborts: Option<Aborts>,
    slow_readers: Option<SlowReaders>,
}

/// When a user goes away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Abort {
    /// So long after the request was sent.
    pub after: Option<Duration>,
    /// With this token of the answer, from 1.
    pub after_tokens: Option<u32>,
}

impl Conduct {
    /// The users that `workload` asks for, which is taken as validated.
    #[must_use]
    pub fn new(workload: &Workload) -> Conduct {
        Conduct { aborts: workload.aborts, slow_readers: workload.slow_readers }
    }

    /// When the user of `item` goes away from turn `turn`, from 0, of its session; `None` for one who waits. Each turn is
    /// drawn anew: drawn once for all turns, only first ones would ever be given up, and fewer than the share. Warm-up
    /// requests are all waited for: what they are to warm is not warm before they have ended.
    #[must_use]
    pub fn abort(&self, item: Item, turn: u16) -> Option<Abort> {
        let Aborts { share, after_s, after_tokens } = self.aborts?;
        met((item, turn), Purpose::Aborts, share).then(|| {
            let after = after_s.map(|s| Duration::try_from_secs_f64(s).unwrap_or(Duration::MAX));
            match (after, after_tokens) {
                (None, None) => Abort { after: Some(Duration::ZERO), after_tokens },
                _ => Abort { after, after_tokens },
            }
        })
    }

    /// The most bytes per second that the user of `item` reads, in all turns of its session; `None` for one who reads all
    /// there is.
    #[must_use]
    pub fn read_rate(&self, item: Item) -> Option<u64> {
        let SlowReaders { share, bytes_per_s } = self.slow_readers?;
        met((item, 0), Purpose::SlowReaders, share).then_some(bytes_per_s)
    }
}

/// Whether a measured request is among the `share` of them that something happens to.
fn met((item, turn): (Item, u16), purpose: Purpose, share: f64) -> bool {
    if item.phase != Phase::Measured {
        return false;
    }
    let mut draws = rng::stream(item.seed, purpose, item.index);
    // One draw for each turn before: turns are few beside what a turn sends.
    (0..turn).for_each(|_| _ = rng::unit(&mut draws));
    rng::unit(&mut draws) < share
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(index: u64) -> Item {
        Item { seed: 7, phase: Phase::Measured, index }
    }

    #[test]
    fn the_share_is_met_and_independent_of_the_other() {
        let conduct = Conduct {
            aborts: Some(Aborts { share: 0.2, after_s: Some(0.5), after_tokens: None }),
            slow_readers: Some(SlowReaders { share: 0.5, bytes_per_s: 99 }),
        };
        let (mut aborted, mut slow, mut both) = (0, 0, 0);
        for index in 0..10_000 {
            let (abort, rate) = (conduct.abort(item(index), 0), conduct.read_rate(item(index)));
            aborted += u32::from(abort.is_some());
            slow += u32::from(rate.is_some());
            both += u32::from(abort.is_some() && rate.is_some());
            let expected = Abort { after: Some(Duration::from_millis(500)), after_tokens: None };
            assert!(abort.is_none_or(|abort| abort == expected) && rate.is_none_or(|rate| rate == 99));
        }
        // Means 2000, 5000, 1000; standard deviations 40, 50, 30: five of those either way.
        assert!((1800..=2200).contains(&aborted), "{aborted}");
        assert!((4750..=5250).contains(&slow), "{slow}");
        assert!((850..=1150).contains(&both), "{both}");
    }

    #[test]
    fn a_share_of_one_is_every_measured_request_and_no_warm_up() {
        let conduct = Conduct {
            aborts: Some(Aborts { share: 1.0, ..Aborts::default() }),
            slow_readers: Some(SlowReaders { share: 1.0, bytes_per_s: 99 }),
        };
        let at_once = Abort { after: Some(Duration::ZERO), after_tokens: None };
        for index in 0..1000 {
            assert_eq!(conduct.abort(item(index), 0), Some(at_once));
            assert_eq!(conduct.read_rate(item(index)), Some(99));
            let warm_up = Item { phase: Phase::Warmup, ..item(index) };
            assert_eq!((conduct.abort(warm_up, 0), conduct.read_rate(warm_up)), (None, None));
        }
        assert_eq!(Conduct::default().abort(item(0), 0), None);
    }

    #[test]
    fn each_turn_is_given_up_or_not_by_itself_and_read_as_its_session_is() {
        let conduct = Conduct {
            aborts: Some(Aborts { share: 0.3, after_s: None, after_tokens: Some(1) }),
            slow_readers: Some(SlowReaders { share: 0.5, bytes_per_s: 99 }),
        };
        let aborted = |turn| (0..10_000).filter(move |i| conduct.abort(item(*i), turn).is_some());
        // 3000 of each turn, standard deviation 46; 900 of two turns both, 29: five of those either way.
        let [first, second] = [0, 1].map(|turn| aborted(turn).count());
        assert!((2770..=3230).contains(&first) && (2770..=3230).contains(&second), "{first} {second}");
        let both = aborted(0).filter(|i| conduct.abort(item(*i), 1).is_some()).count();
        assert!((755..=1045).contains(&both), "{both}");
    }
}
