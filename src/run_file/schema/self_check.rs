//! What the client says of itself, as stored.

use serde::{Deserialize, Serialize};

use crate::plan::Timestamps;
use crate::run::{HostCheck, LevelResult, ShardCheck};
use crate::stats::{Histogram, Quantile};
use crate::verdict::budget::{Checks, ClientError};

/// What the client says of itself. `None`: not measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SelfCheckBlock {
    /// Which stamps the latencies rest on.
    pub timestamps: Option<Timestamps>,
    /// Why these are not those that were asked for.
    pub timestamps_why_not: Option<String>,
    /// By how much the client may have falsified quantiles of metrics; empty where that is not known.
    pub client_error: Vec<ClientErrorBlock>,
    /// What a kernel stamp may itself be wrong by, ns.
    pub stamp_error_ns: Option<u64>,
    /// The largest step of the wall clock during the level, ns.
    pub wall_step_ns: Option<i64>,
    /// Our own lateness, of every request that was taken in hand.
    pub schedule_delay: Option<DelayBlock>,
    /// User stamp minus kernel receive stamp of the same read.
    pub receive_lag: Option<DelayBlock>,
    /// Late sight of a tick of 10 ms in each shard.
    pub loop_lag: Option<DelayBlock>,
    /// Bytes that waited in the receive queue, read by read.
    pub queue_bytes: Option<BytesBlock>,
    /// Round-trip time of the connections, at the end of a request, at most ten times a second of each.
    pub rtt: Option<DelayBlock>,
    /// Busy share of the busiest shard's thread, 0..=1.
    pub cpu_share_max: Option<f64>,
    /// Requests sent.
    pub sent: u64,
    /// Reads that returned bytes.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Reads without a kernel stamp while stamps were on.
    pub unstamped: u64,
    /// Kernel stamps that lay after the read that gave them.
    pub ahead: u64,
    /// Content events.
    pub events: u64,
    /// Content events that shared a read with an earlier one.
    pub coalesced: u64,
    /// Those among them that the client was late for.
    pub joined: u64,
    /// Their share of all content events; `None` without any.
    pub coalesced_share: Option<f64>,
    /// Connections opened.
    pub connects: u64,
    /// Requests resent on a fresh connection: the server had closed an idle one when they were written to it (keep-alive
    /// races).
    pub resent: u64,
    /// What became of connections; absent where there is nothing to say.
    #[serde(skip_serializing_if = "ConnectionsBlock::is_empty")]
    pub connections: ConnectionsBlock,
    /// Segments that the kernel sent again.
    pub retransmits: u64,
    /// Each shard.
    pub shards: Vec<ShardBlock>,
    /// What the machine went through.
    pub host: Option<HostBlock>,
}

/// What became of connections, beyond their number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ConnectionsBlock {
    /// Those that stood before the level began.
    pub prewarmed: u64,
    /// Those that were to and did not come about.
    pub prewarm_failed: u64,
    /// Those that we closed for their age, or for the number of requests that they had served.
    pub retired: u64,
    /// TLS handshakes from the beginning.
    pub tls_full: u64,
    /// TLS handshakes that took up an earlier session.
    pub tls_resumed: u64,
    /// From plan to connection of the requests that had to wait for one, as there may be only so many; absent if none had.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait: Option<DelayBlock>,
}

/// The client's error in one quantile of one metric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClientErrorBlock {
    /// The metric's name.
    pub metric: String,
    /// The quantile: `p50`, `p99`.
    pub quantile: String,
    /// The quantile as reported, ns.
    pub value_ns: f64,
    /// The same by kernel stamps, over the requests that have both; `None` without them.
    pub kernel_ns: Option<f64>,
    /// By how much the client may have falsified it, ns.
    pub error_ns: f64,
    /// Estimated from the client's lateness elsewhere, not measured.
    pub estimated: bool,
}

/// Quantiles of a delay, ns.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct DelayBlock {
    /// Median.
    pub p50_ns: Option<f64>,
    /// 99th percentile.
    pub p99_ns: Option<f64>,
    /// Largest.
    pub max_ns: f64,
    /// Number of values.
    #[serde(default)]
    pub n: u64,
}

/// Quantiles of a number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BytesBlock {
    /// Median.
    pub p50: u64,
    /// 99th percentile.
    pub p99: u64,
    /// Largest.
    pub max: u64,
}

/// One shard's self-check.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ShardBlock {
    /// The share of the run that it was a shard of, from 1; absent where one process made the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<u32>,
    /// Core that it was pinned to.
    pub core: Option<u32>,
    /// CPU time of its thread, ns.
    pub cpu_ns: u64,
    /// Length of the level on it, ns.
    pub wall_ns: u64,
    /// `cpu_ns / wall_ns`.
    pub cpu_share: Option<f64>,
    /// Requests sent.
    pub sent: u64,
    /// Reads that returned bytes.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Content events.
    pub events: u64,
    /// Content events that shared a read with an earlier one.
    pub coalesced: u64,
    /// Those among them that the client was late for.
    pub joined: u64,
    /// Connections opened.
    pub connects: u64,
    /// Requests resent on a fresh connection.
    pub resent: u64,
    /// Late sight of its tick.
    pub loop_lag: Option<DelayBlock>,
    /// Its lateness in sending.
    pub schedule_delay: Option<DelayBlock>,
}

/// What the machine went through during a level; `None`: it does not tell.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostBlock {
    /// Busy share of all CPUs, 0..=1.
    pub busy_share: Option<f64>,
    /// Share that other guests of the physical machine took, 0..=1.
    pub steal_share: Option<f64>,
    /// Time that our control group was held back by its CPU quota, s.
    pub throttled_s: Option<f64>,
    /// Page faults of the client that waited for a disk.
    pub major_faults: u64,
    /// Page faults of the client that did not.
    pub minor_faults: u64,
    /// Times that a thread of the client was put aside although it had more to do.
    pub preemptions: u64,
    /// Pages that the machine read from swap and wrote to it.
    pub swapped_pages: Option<u64>,
    /// TCP sockets in TIME_WAIT at the end.
    pub time_wait: Option<u64>,
    /// Local ports for connections.
    pub ports: Option<u64>,
    /// Records that could not be written.
    pub records_lost: u64,
}

impl SelfCheckBlock {
    pub(super) fn new(result: &LevelResult, errors: &[ClientError]) -> SelfCheckBlock {
        let shards: Vec<ShardBlock> = result.shards.iter().map(ShardBlock::new).collect();
        let all = Checks::of(&result.shards);
        let sum = |field: fn(&ShardCheck) -> u64| result.shards.iter().map(field).sum::<u64>();
        let (events, coalesced) = (sum(|s| s.events), sum(|s| s.coalesced));
        let stamped = all.receive_lag.n() > 0;
        let mut conn_wait = Histogram::new();
        result.shards.iter().for_each(|shard| conn_wait.merge(&shard.conn_wait));
        SelfCheckBlock {
            timestamps: Some(result.stamps.in_use),
            timestamps_why_not: result.stamps.why_not.clone(),
            client_error: errors.iter().map(ClientErrorBlock::new).collect(),
            stamp_error_ns: stamped.then_some(all.stamp_error_ns),
            wall_step_ns: all.wall_step_ns,
            schedule_delay: DelayBlock::of(&all.schedule_delay),
            receive_lag: DelayBlock::of(&all.receive_lag),
            loop_lag: DelayBlock::of(&all.loop_lag),
            queue_bytes: BytesBlock::of(&all.queue_bytes),
            rtt: DelayBlock::of(&all.rtt),
            cpu_share_max: shards.iter().filter_map(|s| s.cpu_share).reduce(f64::max),
            sent: sum(|s| s.sent),
            reads: sum(|s| s.reads),
            read_bytes: sum(|s| s.read_bytes),
            unstamped: sum(|s| s.unstamped),
            ahead: sum(|s| s.ahead),
            events,
            coalesced,
            joined: sum(|s| s.joined),
            coalesced_share: share(coalesced, events),
            connects: sum(|s| s.connects),
            resent: sum(|s| s.resent),
            connections: ConnectionsBlock {
                prewarmed: sum(|s| s.prewarmed),
                prewarm_failed: sum(|s| s.prewarm_failed),
                retired: sum(|s| s.retired),
                tls_full: sum(|s| s.tls_full),
                tls_resumed: sum(|s| s.tls_resumed),
                wait: DelayBlock::of(&conn_wait),
            },
            retransmits: sum(|s| s.retransmits),
            shards,
            host: result.host.as_ref().map(HostBlock::new),
        }
    }

    /// The client's error in one quantile of one metric.
    #[must_use]
    pub fn error_of(&self, metric: crate::metrics::Metric, quantile: Quantile) -> Option<&ClientErrorBlock> {
        let name = format!("p{quantile}");
        self.client_error.iter().find(|error| error.metric == metric.name() && error.quantile == name)
    }
}

impl ConnectionsBlock {
    fn is_empty(&self) -> bool {
        *self == ConnectionsBlock::default()
    }
}

impl ClientErrorBlock {
    fn new(error: &ClientError) -> ClientErrorBlock {
        let quantile = Quantile::from_parts(error.parts).map_or_else(String::new, |q| format!("p{q}"));
        ClientErrorBlock {
            metric: error.metric.name().to_owned(),
            quantile,
            value_ns: error.value_ns,
            kernel_ns: error.kernel_ns,
            error_ns: error.error_ns,
            estimated: error.estimated,
        }
    }
}

impl DelayBlock {
    /// `None` of nothing.
    fn of(histogram: &Histogram) -> Option<DelayBlock> {
        let max = histogram.totals().max()?;
        let quantile = |quantile| histogram.shown_quantile(quantile).map(|ns| ns as f64);
        Some(DelayBlock {
            p50_ns: quantile(Quantile::P50),
            p99_ns: quantile(Quantile::P99),
            max_ns: max as f64,
            n: histogram.n(),
        })
    }
}

impl BytesBlock {
    fn of(histogram: &Histogram) -> Option<BytesBlock> {
        Some(BytesBlock {
            p50: histogram.shown_quantile(Quantile::P50)?,
            p99: histogram.shown_quantile(Quantile::P99)?,
            max: histogram.totals().max()?,
        })
    }
}

impl ShardBlock {
    fn new(check: &ShardCheck) -> ShardBlock {
        ShardBlock {
            share: check.share,
            core: check.core,
            cpu_ns: check.cpu_ns,
            wall_ns: check.wall_ns,
            cpu_share: share(check.cpu_ns, check.wall_ns),
            sent: check.sent,
            reads: check.reads,
            read_bytes: check.read_bytes,
            events: check.events,
            coalesced: check.coalesced,
            joined: check.joined,
            connects: check.connects,
            resent: check.resent,
            loop_lag: DelayBlock::of(&check.loop_lag),
            schedule_delay: DelayBlock::of(&check.schedule_delay),
        }
    }
}

impl HostBlock {
    pub(super) fn new(check: &HostCheck) -> HostBlock {
        HostBlock {
            busy_share: check.busy_share,
            steal_share: check.steal_share,
            throttled_s: check.throttled_s,
            major_faults: check.major_faults,
            minor_faults: check.minor_faults,
            preemptions: check.preemptions,
            swapped_pages: check.swapped_pages,
            time_wait: check.time_wait,
            ports: check.ports,
            records_lost: check.records_lost,
        }
    }
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_quantile_of_a_delay_is_above_its_maximum() {
        let mut histogram = Histogram::new();
        (0..100).for_each(|_| histogram.record(195_905));
        let block = DelayBlock::of(&histogram).unwrap();
        assert_eq!((block.p50_ns, block.p99_ns, block.max_ns), (Some(195_905.0), Some(195_905.0), 195_905.0));
    }
}
