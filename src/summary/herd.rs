//! Requests that are sent at the same instant: how near to each other they really were, and what became of the connections
//! that they needed.

use serde::{Deserialize, Serialize};

use crate::metrics::{Class, Flags, Phase, Record};
use crate::plan::{Arrivals, Level};
use crate::stats::Quantile;
use crate::stats::quantile::nearest_rank;
use crate::stats::sort;

/// The bursts of a level, over all shards. Times are ns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HerdSummary {
    /// How many bursts there were.
    pub bursts: u64,
    /// Requests of the largest.
    pub size: u64,
    /// From the first request of a burst that was handed to the kernel to the last: the median over the bursts; `None` where
    /// none has two.
    pub spread_p50: Option<u64>,
    /// The same of the widest burst.
    pub spread_max: Option<u64>,
    /// From the planned instant to the last send of a burst: the greatest.
    pub late_max: Option<u64>,
    /// Connections that were opened for them.
    pub connections: u64,
    /// How long it took until these stood, TLS included: median, 99th percentile and greatest; `None` where none was opened.
    pub connect_p50: Option<u64>,
    /// See above.
    pub connect_p99: Option<u64>,
    /// See above.
    pub connect_max: Option<u64>,
    /// Requests that got no connection, by how that ended, the most frequent first.
    pub unconnected: Vec<(String, u64)>,
}

/// Of a level that is sent in bursts, from its records; `None` of others.
#[must_use]
pub fn of(level: &Level, records: &[Record]) -> Option<HerdSummary> {
    let in_bursts = matches!(level.load.arrivals, Arrivals::Burst | Arrivals::Bursts { .. });
    if !in_bursts || level.load.users.is_some() {
        return None;
    }
    let mut measured: Vec<&Record> = records.iter().filter(|one| one.phase == Phase::Measured).collect();
    measured.sort_unstable_by_key(|one| (one.plan, one.index));
    let (mut bursts, mut size, mut spreads, mut late) = (0, 0, Vec::new(), None);
    for burst in measured.chunk_by(|a, b| a.plan == b.plan) {
        bursts += 1;
        size = size.max(burst.len() as u64);
        let sent = || burst.iter().filter_map(|one| one.sent);
        if let (Some(first), Some(last)) = (sent().min(), sent().max()) {
            late = late.max(Some(last.nanos_since(burst[0].plan)));
            if burst.len() > 1 {
                spreads.push(last.nanos_since(first));
            }
        }
    }
    spreads.sort_unstable();
    let fresh = measured.iter().filter(|one| one.flags.contains(Flags::FRESH_CONNECTION));
    let mut connects: Vec<u64> = fresh.filter_map(|one| one.connect_ns()).collect();
    connects.sort_unstable();
    let mut unconnected: Vec<(String, u64)> = Vec::new();
    for one in
        measured.iter().filter(|one| matches!(one.outcome.class, Class::Connect | Class::TimeoutConnect))
    {
        let name = format!("{} {}", one.outcome.label(), one.outcome.kind.name());
        match unconnected.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += 1,
            None => unconnected.push((name, 1)),
        }
    }
    sort::few_by(&mut unconnected, |a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    Some(HerdSummary {
        bursts,
        size,
        spread_p50: nearest_rank(&spreads, Quantile::P50),
        spread_max: spreads.last().copied(),
        late_max: late,
        connections: connects.len() as u64,
        connect_p50: nearest_rank(&connects, Quantile::P50),
        connect_p99: nearest_rank(&connects, Quantile::P99),
        connect_max: connects.last().copied(),
        unconnected,
    })
}
