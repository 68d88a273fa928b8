//! What an engine hands up: the result of a level, and the events on the way.

pub mod books;

use serde::{Deserialize, Serialize};

use crate::metrics::{Outcome, Slices, Tally};
use crate::plan::{Level, Timestamps};
use crate::stats::inflight;
use crate::stats::little::Counted;
use crate::stats::{Histogram, Running};
use crate::time::Stamp;

/// The measurement window `[start, end)` of a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// First stamp inside.
    pub start: Stamp,
    /// First stamp after it.
    pub end: Stamp,
    /// The window is the whole level and every request belongs to the population (levels bounded by a number of
    /// requests, shorter than 60 s, or sent as a burst).
    pub whole_level: bool,
}

impl Window {
    /// Whether what is planned for, or happens at, `at` belongs to the window.
    ///
    /// In a window that is the whole level everything does: its last event is its end, and would be cut off by it.
    #[must_use]
    #[inline]
    pub fn contains(&self, at: Stamp) -> bool {
        self.whole_level || (self.start <= at && at < self.end)
    }

    /// Its length, ns.
    #[must_use]
    pub fn nanos(&self) -> u64 {
        self.end.nanos_since(self.start)
    }
}

/// The marks of a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// First planned send.
    pub t0: Stamp,
    /// Last planned send, or the set end.
    pub t1: Stamp,
    /// End of the drain.
    pub t2: Stamp,
}

/// What one shard says of itself after a level.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ShardCheck {
    /// The share of the run that it was a shard of, from 1; `None` where one process made the run.
    pub share: Option<u32>,
    /// Core that it is pinned to.
    pub core: Option<u32>,
    /// CPU time of its thread during the level, ns.
    pub cpu_ns: u64,
    /// Length of the level on this shard, ns.
    pub wall_ns: u64,
    /// Requests sent.
    pub sent: u64,
    /// Sum of a hash of each of their bodies with its index, modulo 2^64: of all shards of a level together it says
    /// whether another run sent the same bodies in the same places, however many shards it had.
    pub bodies: u64,
    /// Reads that returned bytes.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Content events.
    pub events: u64,
    /// Content events that shared a read with an earlier one.
    pub coalesced: u64,
    /// Those among them that the client was late for: who is in time sees what the server sent together.
    pub joined: u64,
    /// Connections opened.
    pub connects: u64,
    /// Requests resent on a fresh connection: the server had closed an idle one when they were written to it (keep-alive
    /// races).
    pub resent: u64,
    /// Connections among those opened that stood before the level began.
    pub prewarmed: u64,
    /// Those that were to and did not come about.
    pub prewarm_failed: u64,
    /// Connections closed by us for their age, or for the number of requests that they had served.
    pub retired: u64,
    /// TLS handshakes from the beginning.
    pub tls_full: u64,
    /// TLS handshakes that took up an earlier session.
    pub tls_resumed: u64,
    /// From plan to connection of each request that had to wait for one, because there may be only so many, ns.
    pub conn_wait: Histogram,
    /// Our own lateness in starting each request, whatever became of it, ns.
    pub schedule_delay: Histogram,
    /// How late a tick of 10 ms was seen, ns: what any event may have had to wait.
    pub loop_lag: Histogram,
    /// User stamp minus kernel stamp of each stamped read, ns.
    pub receive_lag: Histogram,
    /// Bytes that waited in the receive queue, one value per read.
    pub queue_bytes: Histogram,
    /// Reads that returned bytes without a kernel stamp while stamps were on.
    pub unstamped: u64,
    /// Kernel stamps that would lie after the read that gave them; they count as the read's own.
    pub ahead: u64,
    /// Smoothed round-trip time of the connection at the end of a request, at most ten times a second of each, ns.
    pub rtt: Histogram,
    /// Segments that were sent again.
    pub retransmits: u64,
    /// The wall clock against ours.
    pub wall: WallCheck,
    /// Requests in flight, counted as they started and ended; `None` where nobody counted.
    pub running: Option<Running>,
    /// What became of its sessions; `None` where each request is one of its own.
    pub sessions: Option<Sessions>,
}

impl ShardCheck {
    /// A TLS handshake is through, which took up an earlier session or not.
    pub fn on_handshake(&mut self, resumed: bool) {
        *(if resumed { &mut self.tls_resumed } else { &mut self.tls_full }) += 1;
    }
}

/// What became of the sessions of several turns. Begun are finished, broken and cut together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sessions {
    /// Their first turn was sent.
    pub begun: u64,
    /// All of their turns were answered.
    pub finished: u64,
    /// A turn failed, and ended the session.
    pub broken: u64,
    /// The end of the level came before the last turn was answered, or its user gave up a turn.
    pub cut: u64,
    /// Turns behind one that failed: never planned, never sent.
    pub turns_broken: u64,
    /// Turns that were left unsent by that, but for those that had been planned by then and count as unfinished.
    pub turns_cut: u64,
}

impl Sessions {
    /// Those of both.
    #[must_use]
    pub fn with(self, other: Sessions) -> Sessions {
        Sessions {
            begun: self.begun + other.begun,
            finished: self.finished + other.finished,
            broken: self.broken + other.broken,
            cut: self.cut + other.cut,
            turns_broken: self.turns_broken + other.turns_broken,
            turns_cut: self.turns_cut + other.turns_cut,
        }
    }
}

/// The wall clock, which kernel stamps are in, against the run's clock during a level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WallCheck {
    /// By how much a kernel stamp may be misplaced on the run's time line, ns.
    pub error_ns: u64,
    /// The largest step of the wall clock, ns (positive: set forward): it makes kernel stamps worthless.
    pub step_ns: Option<i64>,
}

/// What the machine went through during a level; `None` where it does not tell.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct HostCheck {
    /// Busy share of all CPUs that the machine has, whoever used them, 0..=1.
    pub busy_share: Option<f64>,
    /// Share of the CPUs' time that other guests of the physical machine took, 0..=1.
    pub steal_share: Option<f64>,
    /// Time that threads of our control group were held back by its CPU quota, s.
    pub throttled_s: Option<f64>,
    /// Page faults of the process that waited for a disk.
    pub major_faults: u64,
    /// Page faults of the process that did not.
    pub minor_faults: u64,
    /// Times that a thread of the process was put aside although it had more to do.
    pub preemptions: u64,
    /// Pages that the machine read from swap and wrote to it.
    pub swapped_pages: Option<u64>,
    /// TCP sockets of the machine that hold a port in TIME_WAIT, at the end of the level.
    pub time_wait: Option<u64>,
    /// Local ports that the machine gives to connections.
    pub ports: Option<u64>,
    /// Records that could not be written.
    pub records_lost: u64,
}

/// Which stamps a level's latencies rest on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stamps {
    /// What was in use.
    pub in_use: Timestamps,
    /// Why that is less than the plan asked for; `None` if it is not.
    pub why_not: Option<String>,
}

/// What became of the wish to know a figure of the level well enough.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lengthened {
    /// How often its planned length the level was to have: 1 if it was not lengthened.
    pub times: u32,
    /// The figure is known as well as was wished, by all requests of the level.
    pub reached: bool,
    /// The figure; `None` where the requests do not bound it.
    pub value: Option<f64>,
    /// Lower end of its 95 % interval.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
}

/// On which side of a target the share of good requests of a level lies.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judged {
    /// What is known.
    pub outcome: Judgement,
    /// What decided it.
    pub why: Why,
    /// How sure the two bounds are, a share such as 0.95.
    pub confidence: f64,
    /// Requests that were judged.
    pub n: u64,
    /// How many of them were good.
    pub good: u64,
    /// How many failed.
    pub failed: u64,
    /// What the true share is above, one-sided.
    pub lower: f64,
    /// What it is below, one-sided.
    pub upper: f64,
    /// How often its planned length the level was to have: 1 if it was not lengthened.
    pub times: u32,
    /// It was stopped before its planned length, since nothing more could have changed the outcome.
    pub stopped_early: bool,
}

/// Whether a load holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Judgement {
    /// The share of good requests is above the target.
    Pass,
    /// It is below, or too many requests failed.
    Fail,
    /// The longest level has not shown it.
    Undecided,
}

/// What decided a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// The bounds of the share of good requests.
    Attainment,
    /// More requests failed than may.
    Failures,
    /// More requests missed a limit than the longest level may have.
    Misses,
}

/// One failure of a class, as an example for the reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Example {
    /// How it ended.
    pub outcome: Outcome,
    /// What the server or the system said; empty if nothing.
    pub message: String,
}

/// Everything measured in one level.
#[derive(Clone, Debug)]
pub struct LevelResult {
    /// Place of the level in the run, from 0; the rounds of a plan whose levels are run several times count through.
    pub ordinal: usize,
    /// The load setting.
    pub level: Level,
    /// Its marks.
    pub span: Span,
    /// Its window.
    pub window: Window,
    /// Histograms and counts of all shards, measured requests only.
    pub tally: Tally,
    /// The level in slices of time; `None` where none were asked for.
    pub slices: Option<Slices>,
    /// Where its records start in the record file, and how many there are (warm-up included).
    pub records: Option<RecordRange>,
    /// The names of the replicas that answered, by which records name them; empty where none was looked for.
    pub replicas: Vec<String>,
    /// Self-check of each shard.
    pub shards: Vec<ShardCheck>,
    /// What the machine went through; `None` in virtual time.
    pub host: Option<HostCheck>,
    /// Which stamps the latencies rest on.
    pub stamps: Stamps,
    /// At most one failure per outcome.
    pub examples: Vec<Example>,
    /// How it went with the plan's [`Until`](crate::plan::Until); `None` without one.
    pub lengthened: Option<Lengthened>,
    /// What became of the level's [`Decide`](crate::plan::Decide); `None` without one.
    pub judged: Option<Judged>,
    /// Ended early by the user.
    pub interrupted: bool,
}

impl LevelResult {
    /// What became of the sessions of all shards; `None` where each request is one of its own.
    #[must_use]
    pub fn sessions(&self) -> Option<Sessions> {
        self.shards.iter().filter_map(|shard| shard.sessions).reduce(Sessions::with)
    }

    /// What the engine counted in flight in the level's window; `None` where a shard did not.
    #[must_use]
    pub fn counted(&self) -> Option<Counted> {
        let window = inflight::Span { start: self.window.start.as_nanos(), end: self.window.end.as_nanos() };
        let running: Option<Vec<&Running>> = self.shards.iter().map(|shard| shard.running.as_ref()).collect();
        Running::over_all(running?, window)
    }
}

/// A range of records in a record file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordRange {
    /// Number of records before it.
    pub first: u64,
    /// Number of records in it.
    pub count: u64,
}

/// Progress of a level, for a live display.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tick {
    /// Time since the level's first planned send, s.
    pub elapsed_s: f64,
    /// Requests in flight.
    pub in_flight: u64,
    /// Requests ended well.
    pub ok: u64,
    /// Requests failed.
    pub failed: u64,
    /// Content events so far.
    pub events: u64,
}

/// What happens during a run: the only live path from an engine to a view.
#[derive(Debug)]
pub enum Event<'a> {
    /// A warm-up begins with this many requests.
    WarmupStarted {
        /// Place of its level.
        ordinal: usize,
        /// Number of requests.
        requests: u32,
    },
    /// A level begins.
    LevelStarted {
        /// Place of the level.
        ordinal: usize,
        /// Number of levels; `None` where it depends on what comes.
        levels: Option<usize>,
        /// The load setting.
        level: &'a Level,
    },
    /// The warm-up of a level is over, if it had one, and its measured requests begin.
    MeasuringStarted {
        /// Place of the level.
        ordinal: usize,
    },
    /// Four times a second.
    Tick(Tick),
    /// A level has ended.
    LevelFinished(&'a LevelResult),
    /// Something the user should know now, one line.
    Note(&'a str),
}
