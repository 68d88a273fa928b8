//! Parts of a level that are looked at on their own: by model, by endpoint, by replica, and slow readers.

use serde::{Deserialize, Serialize};

use crate::metrics::metric::Metric;
use crate::metrics::{Flags, Record};
use crate::stats::sort;
use crate::summary::rates::Amounts;
use crate::summary::records::goodput;
use crate::summary::statistics::{Judged, is_wanted};
use crate::summary::{Against, Counts, Distribution, Goodput, Input, Rates, Tokens, against, columns};

/// Some of the requests of a level.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Which.
    pub of: GroupKey,
    /// Those planned in the window, by how they ended.
    pub counts: Counts,
    /// Token counts of the `ok` ones.
    pub tokens: Tokens,
    /// TTFT, TPOT, E2E and stall, and the first and third from the plan where requests are judged from it. Slow readers
    /// are left out as in the level, but in their own group.
    pub distributions: Vec<Distribution>,
    /// Those that kept every SLO; `None` without SLOs, and of slow readers.
    pub goodput: Option<Goodput>,
    /// Throughput in the window.
    pub rates: Rates,
    /// First requests of sessions among those planned in the window: what a choice of endpoint is made for.
    pub sessions: u64,
    /// Of an endpoint or a replica: its medians against those of the others.
    pub against: Vec<Against>,
}

/// What requests are told apart by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "by", content = "place", rename_all = "snake_case")]
pub enum GroupKey {
    /// The model asked for, by its place in the plan.
    Model(u16),
    /// The endpoint asked, by its place in the plan.
    Endpoint(u16),
    /// The replica that answered, by its place among the names that the level saw.
    Replica(u16),
    /// Their users read slowly on purpose.
    SlowReaders,
    /// A connection was opened for them.
    FreshConnections,
    /// Theirs stood already.
    ReusedConnections,
}

/// The groups of `population`, the requests planned in the window in the order of their plans: by model and by endpoint
/// where there are several, slow readers where there are some, and by whether a connection was opened for them where there
/// are enough of both. `measured` are all requests of the level.
pub(super) fn of(input: &Input<'_>, population: &[&Record], measured: &[&Record]) -> Vec<Group> {
    let keys = keys(population);
    let groups = keys.iter().map(|key| Group {
        rates: rates(input, measured, *key),
        against: against(population, *key, keys.iter().filter(|other| is_like(**other, *key)).count()),
        ..group(input, population, *key)
    });
    groups.collect()
}

/// What tells the requests apart, in order.
fn keys(population: &[&Record]) -> Vec<GroupKey> {
    let mut by_place: [Vec<GroupKey>; 3] = Default::default();
    let (mut slow, mut fresh, mut reused) = (0, 0, 0);
    for record in population {
        let own = [
            Some(GroupKey::Model(record.model)),
            Some(GroupKey::Endpoint(record.endpoint)),
            record.replica.map(GroupKey::Replica),
        ];
        for (keys, key) in by_place.iter_mut().zip(own) {
            let Some(key) = key else { continue };
            if let Err(place) = keys.binary_search(&key) {
                keys.insert(place, key);
            }
        }
        slow += usize::from(has(GroupKey::SlowReaders, record));
        fresh += usize::from(has(GroupKey::FreshConnections, record));
        reused += usize::from(has(GroupKey::ReusedConnections, record));
    }
    let mut keys: Vec<GroupKey> = by_place.into_iter().filter(|keys| keys.len() > 1).flatten().collect();
    keys.extend((slow > 0).then_some(GroupKey::SlowReaders));
    if fresh.min(reused) >= OF_CONNECTIONS_MIN {
        keys.extend([GroupKey::FreshConnections, GroupKey::ReusedConnections]);
    }
    keys
}

/// Requests on fresh connections and on others that are told apart: of fewer a median says little, and any run with a pool
/// has a few.
const OF_CONNECTIONS_MIN: usize = 20;

/// Whether both are parts of the same kind.
fn is_like(one: GroupKey, other: GroupKey) -> bool {
    std::mem::discriminant(&one) == std::mem::discriminant(&other)
}

#[inline]
fn has(key: GroupKey, record: &Record) -> bool {
    match key {
        GroupKey::Model(model) => record.model == model,
        GroupKey::Endpoint(endpoint) => record.endpoint == endpoint,
        GroupKey::Replica(replica) => record.replica == Some(replica),
        GroupKey::SlowReaders => is_slow(record),
        // One that was never sent has neither.
        GroupKey::FreshConnections => record.conn.is_some() && record.flags.contains(Flags::FRESH_CONNECTION),
        GroupKey::ReusedConnections => {
            record.conn.is_some() && !record.flags.contains(Flags::FRESH_CONNECTION)
        }
    }
}

fn rates(input: &Input<'_>, measured: &[&Record], key: GroupKey) -> Rates {
    let mut amounts = Amounts::default();
    measured.iter().filter(|record| has(key, record)).for_each(|record| amounts.add(record, &input.window));
    amounts.over(input.window.nanos())
}

/// The medians of one of `parts` parts of its kind against those of the others.
fn against(population: &[&Record], key: GroupKey, parts: usize) -> Vec<Against> {
    if !matches!(key, GroupKey::Endpoint(_) | GroupKey::Replica(_)) {
        return Vec::new();
    }
    let ok = population.iter().copied().filter(|record| record.outcome.is_ok() && !is_slow(record));
    let values =
        |own: bool| columns::of(against::METRICS, ok.clone().filter(|record| has(key, record) == own));
    let pairs = values(true).into_iter().zip(values(false));
    let of = |((metric, own), (_, others)): ((Metric, Vec<f64>), (Metric, Vec<f64>))| {
        Against::of(metric, &own, &others, against::confidence_of(parts))
    };
    pairs.filter_map(of).collect()
}

/// Whether the latencies of a request are made by its own user.
#[inline]
pub(super) fn is_slow(record: &Record) -> bool {
    record.flags.contains(Flags::SLOW_READER)
}

fn group(input: &Input<'_>, population: &[&Record], key: GroupKey) -> Group {
    let (mut sessions, mut counts, mut tokens) = (0, Counts::default(), Tokens::default());
    let apart = key == GroupKey::SlowReaders;
    let mut ranked = Vec::new();
    for record in population.iter().copied().filter(|record| has(key, record)) {
        sessions += u64::from(record.turn == 0);
        counts.add(record);
        if record.outcome.is_ok() {
            tokens.add(record);
        }
        if apart || !is_slow(record) {
            ranked.push(record);
        }
    }
    let failed = if apart { counts.failed } else { counts.ranked_failed() };
    let wanted = Metric::ALL.into_iter().filter(|metric| is_wanted(*metric, input.from_plan));
    let ok = ranked.iter().copied().filter(|record| record.outcome.is_ok());
    let distribution = |(metric, mut values): (Metric, Vec<f64>)| {
        sort::values(&mut values);
        Distribution::of_sorted(metric, &values, failed)
    };
    Group {
        of: key,
        distributions: columns::of(wanted, ok).into_iter().filter_map(distribution).collect(),
        goodput: if apart { None } else { goodput(input, Judged::of(input, &ranked).good(), &counts) },
        counts,
        tokens,
        rates: Rates::default(),
        sessions,
        against: Vec::new(),
    }
}
