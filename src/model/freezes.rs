//! When a server stands still, and how much slower it grows: what that does to the beginning and the end of anything.

use super::settings::Freeze;
use crate::stats::sort;
use crate::time::Stamp;

/// Windows of standstill, in order, apart from each other; and by how much work takes longer as time goes on.
#[derive(Clone, Debug)]
pub(super) struct Freezes {
    windows: Vec<Window>,
    start: Stamp,
    slowing: f64,
}

#[derive(Clone, Copy, Debug)]
struct Window {
    start: Stamp,
    end: Stamp,
}

impl Freezes {
    /// The windows of a server that started at `start`, and whose work takes `slowing` of its time longer for each minute
    /// since then.
    pub(super) fn new(freezes: &[Freeze], slowing: f64, start: Stamp) -> Freezes {
        let after = |s: f64| Stamp::from_nanos(start.as_nanos().saturating_add((s * 1e9).round() as u64));
        let mut windows: Vec<Window> = freezes
            .iter()
            .map(|freeze| Window { start: after(freeze.at_s), end: after(freeze.at_s + freeze.for_s) })
            .collect();
        sort::few_by_key(&mut windows, |window| window.start);
        windows.dedup_by(|next, last| {
            let joined = next.start <= last.end;
            if joined {
                last.end = last.end.max(next.end);
            }
            joined
        });
        Freezes { windows, start, slowing }
    }

    /// When something begins that would begin at `at`.
    #[inline]
    pub(super) fn begin(&self, at: Stamp) -> Stamp {
        // Windows are few, and most servers have none.
        self.windows
            .iter()
            .find(|window| window.start <= at && at < window.end)
            .map_or(at, |window| window.end)
    }

    /// How long work takes that takes `span_ns` at the start of the server.
    #[inline]
    fn slowed(&self, begin: Stamp, span_ns: u64) -> u64 {
        if self.slowing == 0.0 {
            return span_ns;
        }
        let minutes = begin.nanos_since(self.start) as f64 / 60e9;
        (span_ns as f64 * (1.0 + self.slowing * minutes)).round() as u64
    }

    /// When something ends that begins at `begin`, outside of all windows, and takes `span_ns` of work. An end on the
    /// very beginning of a window is in time.
    #[inline]
    pub(super) fn end(&self, begin: Stamp, span_ns: u64) -> Stamp {
        let mut end = begin.as_nanos().saturating_add(self.slowed(begin, span_ns));
        for window in self.windows.iter().filter(|window| begin < window.start) {
            if end > window.start.as_nanos() {
                end = end.saturating_add(window.end.nanos_since(window.start));
            }
        }
        Stamp::from_nanos(end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn at(ms: u64) -> Stamp {
        Stamp::from_millis(ms)
    }

    fn freezes(list: &[(f64, f64)]) -> Freezes {
        let list: Vec<Freeze> = list.iter().map(|&(at_s, for_s)| Freeze { at_s, for_s }).collect();
        Freezes::new(&list, 0.0, at(1000))
    }

    #[test]
    fn what_begins_inside_waits_and_what_runs_into_it_is_stretched() {
        let freezes = freezes(&[(9.0, 2.0)]);
        assert_eq!(freezes.begin(at(9_999)), at(9_999));
        assert_eq!(freezes.begin(at(10_000)), at(12_000));
        assert_eq!(freezes.begin(at(11_999)), at(12_000));
        assert_eq!(freezes.begin(at(12_000)), at(12_000));
        assert_eq!(freezes.end(at(9_950), 50 * MS), at(10_000));
        assert_eq!(freezes.end(at(9_951), 50 * MS), at(12_001));
        assert_eq!(freezes.end(at(12_000), 50 * MS), at(12_050));
    }

    #[test]
    fn a_server_that_slows_down_takes_longer_for_the_same_by_the_minute() {
        let slowing = Freezes::new(&[], 0.01, at(1000));
        assert_eq!(slowing.end(at(1000), 200 * MS), at(1200));
        assert_eq!(slowing.end(at(61_000), 200 * MS), at(61_202));
        assert_eq!(slowing.end(at(6_001_000), 200 * MS), at(6_001_400));
    }

    #[test]
    fn windows_that_touch_are_one_and_those_apart_add_up() {
        let freezes = freezes(&[(3.0, 1.0), (1.0, 0.5), (1.2, 1.0)]);
        assert_eq!(freezes.windows.len(), 2);
        assert_eq!(freezes.begin(at(2_000)), at(3_200));
        // 0.5 s before, 1.2 s of standstill, 0.8 s of work, 1 s of standstill, 0.2 s.
        assert_eq!(freezes.end(at(1_500), 1_500 * MS), at(5_200));
    }
}
