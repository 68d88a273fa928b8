//! How the user of a request behaves once it is sent: a function of the seed and the index.

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

    /// When the user of `item` goes away; `None` for one who waits. Warm-up requests are all waited for: what they are to
    /// warm is not warm before they have ended.
    #[must_use]
    pub fn abort(&self, item: Item) -> Option<Abort> {
        let Aborts { share, after_s, after_tokens } = self.aborts?;
        met(item, Purpose::Aborts, share).then(|| {
            let after = after_s.map(|s| Duration::try_from_secs_f64(s).unwrap_or(Duration::MAX));
            match (after, after_tokens) {
                (None, None) => Abort { after: Some(Duration::ZERO), after_tokens },
                _ => Abort { after, after_tokens },
            }
        })
    }

    /// The most bytes per second that the user of `item` reads; `None` for one who reads all there is.
    #[must_use]
    pub fn read_rate(&self, item: Item) -> Option<u64> {
        let SlowReaders { share, bytes_per_s } = self.slow_readers?;
        met(item, Purpose::SlowReaders, share).then_some(bytes_per_s)
    }
}

/// Whether a measured request is among the `share` of them that something happens to.
fn met(item: Item, purpose: Purpose, share: f64) -> bool {
    item.phase == Phase::Measured && rng::unit(&mut rng::stream(item.seed, purpose, item.index)) < share
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
            let (abort, rate) = (conduct.abort(item(index)), conduct.read_rate(item(index)));
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
            assert_eq!(conduct.abort(item(index)), Some(at_once));
            assert_eq!(conduct.read_rate(item(index)), Some(99));
            let warm_up = Item { phase: Phase::Warmup, ..item(index) };
            assert_eq!((conduct.abort(warm_up), conduct.read_rate(warm_up)), (None, None));
        }
        assert_eq!(Conduct::default().abort(item(0)), None);
    }
}
