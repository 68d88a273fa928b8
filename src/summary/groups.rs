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

/// The groups of `population`, the requests planned in the window in the order of their plans, one for each of `keys`.
/// `measured` are all requests of the level.
pub(super) fn of(
    input: &Input<'_>,
    keys: &[GroupKey],
    population: &[&Record],
    measured: &[&Record],
) -> Vec<Group> {
    let mut parts: Vec<Part<'_>> = keys.iter().map(|key| Part::new(*key)).collect();
    if parts.is_empty() {
        return Vec::new();
    }
    for record in population {
        parts.iter_mut().filter(|part| has(part.key, record)).for_each(|part| part.add(record));
    }
    for record in measured {
        let of = parts.iter_mut().filter(|part| has(part.key, record));
        of.for_each(|part| part.amounts.add(record, &input.window));
    }
    let like = |key| keys.iter().filter(|other| is_like(**other, key)).count();
    parts
        .into_iter()
        .map(|part| Group { against: against(population, part.key, like(part.key)), ..part.group(input) })
        .collect()
}

/// What tells requests apart, as far as it has been seen.
#[derive(Default)]
pub(super) struct Keys {
    by_place: [Vec<GroupKey>; 3],
    slow: usize,
    fresh: usize,
    reused: usize,
}

impl Keys {
    pub(super) fn add(&mut self, record: &Record) {
        let own = [
            Some(GroupKey::Model(record.model)),
            Some(GroupKey::Endpoint(record.endpoint)),
            record.replica.map(GroupKey::Replica),
        ];
        for (keys, key) in self.by_place.iter_mut().zip(own) {
            let Some(key) = key else { continue };
            if let Err(place) = keys.binary_search(&key) {
                keys.insert(place, key);
            }
        }
        self.slow += usize::from(has(GroupKey::SlowReaders, record));
        self.fresh += usize::from(has(GroupKey::FreshConnections, record));
        self.reused += usize::from(has(GroupKey::ReusedConnections, record));
    }

    /// By model, by endpoint and by replica where there are several, slow readers where there are some, and by whether a
    /// connection was opened for them where there are enough of both; in this order.
    pub(super) fn told_apart(self) -> Vec<GroupKey> {
        let Keys { by_place, slow, fresh, reused } = self;
        let mut keys: Vec<GroupKey> = by_place.into_iter().filter(|keys| keys.len() > 1).flatten().collect();
        keys.extend((slow > 0).then_some(GroupKey::SlowReaders));
        if fresh.min(reused) >= OF_CONNECTIONS_MIN {
            keys.extend([GroupKey::FreshConnections, GroupKey::ReusedConnections]);
        }
        keys
    }
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

/// A group while its requests are gathered.
struct Part<'r> {
    key: GroupKey,
    sessions: u64,
    counts: Counts,
    tokens: Tokens,
    ranked: Vec<&'r Record>,
    amounts: Amounts,
}

impl<'r> Part<'r> {
    fn new(key: GroupKey) -> Part<'r> {
        let (counts, tokens) = (Counts::default(), Tokens::default());
        Part { key, sessions: 0, counts, tokens, ranked: Vec::new(), amounts: Amounts::default() }
    }

    /// Those that are slow readers are a group of their own.
    fn is_apart(&self) -> bool {
        self.key == GroupKey::SlowReaders
    }

    /// One planned in the window.
    fn add(&mut self, record: &'r Record) {
        self.sessions += u64::from(record.turn == 0);
        self.counts.add(record);
        if record.outcome.is_ok() {
            self.tokens.add(record);
        }
        if self.is_apart() || !is_slow(record) {
            self.ranked.push(record);
        }
    }

    fn group(self, input: &Input<'_>) -> Group {
        let is_apart = self.is_apart();
        let Part { key, sessions, counts, tokens, ranked, amounts } = self;
        let failed = if is_apart { counts.failed } else { counts.ranked_failed() };
        let wanted = Metric::ALL.into_iter().filter(|metric| is_wanted(*metric, input.from_plan));
        let ok = ranked.iter().copied().filter(|record| record.outcome.is_ok());
        let distribution = |(metric, mut values): (Metric, Vec<f64>)| {
            sort::values(&mut values);
            Distribution::of_sorted(metric, &values, failed)
        };
        Group {
            of: key,
            distributions: columns::of(wanted, ok).into_iter().filter_map(distribution).collect(),
            goodput: if is_apart { None } else { goodput(input, Judged::of(input, &ranked).good(), &counts) },
            counts,
            tokens,
            rates: amounts.over(input.window.nanos()),
            sessions,
            against: Vec::new(),
        }
    }
}
