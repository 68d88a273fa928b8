//! The plan: the whole truth of a run, and the plan block of its run file.
//!
//! A plan says what is sent, where, when and until when. It is inert data, written by the command line or read from
//! a TOML file, and the same plan with the same seed gives the same requests at the same planned times for any
//! number of shards. Secrets are not part of it ([`Secrets`] travels beside it).
//!
//! A plan is made in three steps: [`Plan::from_toml`] or [`Plan::new`] and the command line's flags, which may leave
//! things open; [`Plan::complete`], which fills what was left open with the defaults; [`Plan::validate`], which says
//! what cannot be run. After that no code sees a string where an enum is meant.

mod arrivals;
mod behaviour;
mod body;
mod builder;
mod check;
mod client;
mod connections;
mod conversation;
mod data;
mod endpoint;
mod error;
mod finding;
mod fleet;
mod lengths;
mod level;
pub mod lint;
mod ports;
mod prefix;
mod rate;
mod search;
mod secrets;
mod share;
mod sizes;
mod stress;
mod table;
mod telemetry;
mod text;
mod tokens;
mod trace;
mod until;
mod workload;

pub use behaviour::{Aborts, ModelChoice, SlowReaders};
pub use builder::{NOBODY, PlanBuilder};
pub use client::{Burn, Client, Driver, Timestamps};
pub use connections::{ConnectTo, Connections, Reuse};
pub use conversation::{Conversation, Replies, Timing, TurnShares};
pub use data::{Compat, DataSet, Filter, LengthRule};
pub use endpoint::{Address, Scheme};
pub use error::{Error, nearest};
pub use finding::{Finding, Grade, Rule};
pub use fleet::UrlStrategy;
pub use lengths::{Distribution, Lengths};
pub use level::Descriptors;
pub use ports::{PortsNeeded, TIME_WAIT_S};
pub use prefix::{Prefix, Sharing};
pub use rate::{Course, Gaps, Piece, Rate, Series, Shape, Varying, in_label};
pub use search::{Axis, Decide, Search};
pub use secrets::{Secret, Secrets};
pub use share::Share;
pub use sizes::Sizes;
pub use stress::{Stress, StressPhase};
pub use table::{Part, Table};
pub use telemetry::{Nvml, Telemetry};
pub(crate) use text::{json_of, to_toml, without_place};
pub use tokens::{Begins, Found, Tokens};
pub use trace::{RecordErrors, Trace};
pub use until::{Figure, Until};
pub use workload::{RequestOptions, Sampling, Workload};

use serde::{Deserialize, Serialize};

use crate::api::{Dialect, Raw};

pub use crate::metrics::slo::Slo;

/// Everything needed to repeat a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Seed of every random draw, at most [`Plan::SEED_MAX`].
    #[serde(default)]
    pub seed: u64,
    /// How often every level is run, at least 1: all levels in turn, then all again, each time with requests of their
    /// own ([`Plan::level_seed`]).
    #[serde(default = "level::once", skip_serializing_if = "level::is_once")]
    pub runs: u32,
    /// How well a figure is to be known before a level ends; absent: levels have their planned length.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Until>,
    /// Which part of the run is this process's; absent: all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<Share>,
    /// What capacity is searched for; absent: the levels are run as they stand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<Search>,
    /// A stress test of the one level, whose load is then the normal one; absent: it is run as it stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stress: Option<Stress>,
    /// Where the steady state of a level begins.
    #[serde(default)]
    pub steady_cut: SteadyCut,
    /// Length of the slices of time that levels are looked at by, s; absent: they are not cut up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slice_s: Option<f64>,
    /// Whom to ask.
    #[serde(default)]
    pub target: Target,
    /// The load settings, run one after another.
    #[serde(default)]
    pub levels: Vec<Level>,
    /// What to ask.
    #[serde(default)]
    pub workload: Workload,
    /// Limits that a good request keeps; [`Slo::usual`] where a file does not say.
    #[serde(default = "Slo::usual")]
    pub slo: Slo,
    /// When a request counts as lost.
    #[serde(default)]
    pub limits: Limits,
    /// How the client itself runs.
    #[serde(default)]
    pub client: Client,
    /// Whom to ask meanwhile how the servers, their GPUs and this machine fare.
    #[serde(default, skip_serializing_if = "Telemetry::is_default")]
    pub telemetry: Telemetry,
    /// What is kept beside the summary.
    #[serde(default)]
    pub keep: Keep,
    /// What only the user knows, for the findings.
    #[serde(default, skip_serializing_if = "Declared::is_empty")]
    pub declared: Declared,
}

/// Endpoints and how to speak to them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Target {
    /// Where requests go, in the order given.
    pub endpoints: Vec<Endpoint>,
    /// Which of them a request goes to.
    #[serde(skip_serializing_if = "UrlStrategy::is_default")]
    pub url_strategy: UrlStrategy,
    /// How often each of them is chosen, as whole numbers in their order; empty: alike.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub url_weights: Vec<u32>,
    /// Connections go to all addresses of a name in turn, and requests are told apart by them; else to the first that
    /// takes them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub all_addresses: bool,
    /// How connections are opened, kept and closed.
    #[serde(skip_serializing_if = "Connections::is_default")]
    pub connections: Connections,
    /// The response header in which a replica behind an endpoint says who it is; absent: none is looked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replica_header: Option<String>,
    /// Models asked for; requests choose among them by `model_choice`. Empty until the server was asked for its only one.
    pub models: Vec<String>,
    /// How often each of them is asked for, as whole numbers in their order; empty: alike.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub model_weights: Vec<u32>,
    /// How requests choose among them.
    #[serde(skip_serializing_if = "ModelChoice::is_default")]
    pub model_choice: ModelChoice,
    /// Dialect of requests and answers.
    pub dialect: Dialect,
    /// How requests are written and answers read, for the dialect `raw` alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw: Option<Raw>,
    /// Path of the request; the dialect's own (`/v1/chat/completions`) if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Whether answers are streamed. They are by default.
    pub stream: bool,
    /// Further request headers that are not secret, in order.
    pub headers: Vec<Header>,
    /// TLS settings, used by `https` endpoints.
    pub tls: Tls,
    /// Ask the servers to empty their prefix caches before each level.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub reset_prefix_cache: bool,
}

/// One base URL without `/v1` and without userinfo: `http://host:port[/prefix]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Endpoint {
    /// The base URL.
    pub url: String,
}

/// One request header.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// Field name.
    pub name: String,
    /// Field value.
    pub value: String,
}

/// TLS settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Tls {
    /// Accept any certificate.
    pub insecure: bool,
    /// PEM file with the roots to trust instead of the system's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cacert: Option<String>,
    /// Where the client's certificate is, with those between it and a root, PEM: a file, or `env:NAME` for a variable of
    /// the environment. What is in it is no part of a plan. Absent: none is sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cert: Option<String>,
    /// Where its private key is, likewise; absent: beside the certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The name that is asked for (SNI) and that the certificate must have; absent: the URL's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sni: Option<String>,
    /// Whether a further connection takes up the session of an earlier one. It does by default.
    #[serde(skip_serializing_if = "is_true")]
    pub resumption: bool,
}

/// One load setting. By default a burst.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Level {
    /// How requests arrive.
    pub load: Load,
    /// When the level ends.
    pub stop: Stop,
    /// Warm-up requests before it, sent at the level's own concurrency; they count nowhere. 2 by default.
    pub warmups: u32,
    /// It may end when it is known whether enough requests are good; absent: it has its planned length.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decide: Option<Decide>,
    /// Lengths of its own in place of the workload's; absent: those are its lengths.
    #[serde(skip_serializing_if = "Sizes::is_empty")]
    pub sizes: Sizes,
}

/// How requests arrive.
///
/// `users` set: a closed loop of that many users (`arrivals` is then [`Arrivals::Closed`], [`Arrivals::Joining`] where they
/// come in one after another, or [`Arrivals::Paced`] where each of them has a schedule). Otherwise an open loop,
/// with `cap` as the largest number in flight if given. Where a file names no arrivals, `users` makes them
/// [`Arrivals::Closed`]; without `users` they are a burst.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "level::LoadText")]
pub struct Load {
    /// The arrival process.
    pub arrivals: Arrivals,
    /// Most requests in flight at once in an open loop; arrivals beyond it wait (`cap_wait`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cap: Option<u32>,
    /// Users of a closed loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub users: Option<u32>,
    /// Pause of a user between an answer and the next request, s.
    #[serde(default)]
    pub think_s: f64,
}

/// The arrival process. Rates are requests per second over all shards.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "arrivals::Text", into = "arrivals::Text")]
pub enum Arrivals {
    /// No schedule: each user sends when it is ready.
    Closed,
    /// The same, with users who come in one after another, at equal gaps: the first at once, the last after `ramp_s`.
    Joining {
        /// When the last user comes in, s after the start.
        ramp_s: f64,
    },
    /// A schedule for each user: its requests are planned this far apart, and sent when planned or, where the answer
    /// before comes later than that, as soon as it is there. The users' schedules are shifted evenly, so that all
    /// together plan equal gaps.
    Paced {
        /// Gap between the planned sends of a user, s.
        interval_s: f64,
    },
    /// All at once.
    Burst,
    /// So many at once, and again after each `every_s`, the first at the start.
    Bursts {
        /// Requests of each burst.
        size: u32,
        /// From one burst to the next, s.
        every_s: f64,
    },
    /// Equal gaps.
    Constant {
        /// Requests per second.
        rate: f64,
    },
    /// Exponential gaps.
    Poisson {
        /// Requests per second.
        rate: f64,
    },
    /// Gamma gaps of shape `burstiness` (1: Poisson; below: bursty; above: regular).
    Gamma {
        /// Requests per second.
        rate: f64,
        /// Shape of the gaps.
        burstiness: f64,
    },
    /// Any of the last three with a rate over time, or with an exact number of arrivals. In a file it bears their name.
    Varying(Varying),
    /// The times of [`Workload::trace`].
    Trace {
        /// How much faster than recorded: 2 halves all times. 1 by default.
        speedup: f64,
    },
}

/// When a level ends: after `units` sessions or `duration_s`, whichever is given; both: whichever comes first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Stop {
    /// Number of sessions (requests, while a session has one turn).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub units: Option<u64>,
    /// Planned length, s: every send is planned before its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_s: Option<f64>,
    /// How long requests still open at the end are followed, s. 30 by default.
    pub grace_s: f64,
}

/// When a request counts as lost, s. 0 means no limit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Until the connection (with TLS) stands.
    pub connect_s: f64,
    /// From the start until the first content event.
    pub first_s: f64,
    /// Silence after a content event.
    pub gap_s: f64,
    /// The whole request.
    pub total_s: f64,
}

/// Where the measurement window of a level begins that is bounded by time and at least 60 s long; others have no ramp
/// cut off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SteadyCut {
    /// After 10 s, a tenth of the level or twice the median E2E, whichever is longest.
    #[default]
    Default,
    /// Where the requests in flight settle (MSER-5), found when the level is over; as [`SteadyCut::Default`] where they
    /// do not.
    Mser5,
    /// With the first planned send.
    None,
}

/// Facts that change what a result means and that no request shows. Absent: not said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Declared {
    /// The server starts anew before each configuration that is measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fresh_server: Option<bool>,
    /// Hardware and software are those of production.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub same_as_production: Option<bool>,
}

/// What is kept beside the summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Keep {
    /// One binary record per request; without them no later SLO, no exact percentiles, no merge by records.
    pub records: bool,
    /// The time of every content event.
    pub chunks: bool,
}

impl Plan {
    /// Largest seed: what the integers of TOML hold.
    pub const SEED_MAX: u64 = i64::MAX as u64;

    /// The plan that leaves everything but the seed to the defaults: no endpoint, no model, no level yet.
    #[must_use]
    pub fn new(seed: u64) -> Plan {
        Plan {
            seed,
            runs: 1,
            until: None,
            share: None,
            search: None,
            stress: None,
            steady_cut: SteadyCut::default(),
            slice_s: None,
            target: Target::default(),
            levels: Vec::new(),
            workload: Workload::default(),
            slo: Slo::usual(),
            limits: Limits::default(),
            client: Client::default(),
            telemetry: Telemetry::default(),
            keep: Keep::default(),
            declared: Declared::default(),
        }
    }
}

impl Declared {
    fn is_empty(&self) -> bool {
        *self == Declared::default()
    }
}

impl Slo {
    /// TTFT 500 ms and TPOT 50 ms: a reply that starts without a pause and is faster than it is read.
    #[must_use]
    pub fn usual() -> Slo {
        Slo { ttft_ms: Some(500.0), tpot_ms: Some(50.0), ..Slo::default() }
    }
}

impl Load {
    /// A closed loop of `users`.
    #[must_use]
    pub fn closed(users: u32) -> Load {
        Load { arrivals: Arrivals::Closed, cap: None, users: Some(users), think_s: 0.0 }
    }

    /// A closed loop of `users` who each send every `interval_s` seconds, if their answers are there by then.
    #[must_use]
    pub fn paced(users: u32, interval_s: f64) -> Load {
        Load { arrivals: Arrivals::Paced { interval_s }, ..Load::closed(users) }
    }

    /// Whether latencies of this load are judged from the planned send: open loops and paced users are, closed loops
    /// and bursts capped as closed loops are not.
    #[must_use]
    pub fn judged_from_plan(&self) -> bool {
        self.users.is_none() || self.interval_s().is_some()
    }

    /// The gap between the planned sends of a paced user, s; `None` where users are not paced.
    #[must_use]
    pub fn interval_s(&self) -> Option<f64> {
        match self.arrivals {
            Arrivals::Paced { interval_s } => Some(interval_s),
            _ => None,
        }
    }

    /// How much faster than recorded a trace is replayed; `None` where none is.
    #[must_use]
    pub fn speedup(&self) -> Option<f64> {
        match self.arrivals {
            Arrivals::Trace { speedup } => Some(speedup),
            _ => None,
        }
    }

    /// The asked rate, requests per second over all users, on average where requests come in bursts; `None` where there is
    /// none, or more than one.
    #[must_use]
    pub fn rate(&self) -> Option<f64> {
        match self.arrivals {
            Arrivals::Burst | Arrivals::Closed | Arrivals::Joining { .. } | Arrivals::Trace { .. } => None,
            Arrivals::Bursts { size, every_s } => Some(f64::from(size) / every_s),
            Arrivals::Varying(ref varying) => varying.rate.steady(),
            // Whoever gave a rate gets it back without the rounding of two divisions.
            Arrivals::Paced { interval_s } => {
                self.users.map(|users| (f64::from(users) / interval_s * 1e9).round() / 1e9)
            }
            Arrivals::Constant { rate } | Arrivals::Poisson { rate } | Arrivals::Gamma { rate, .. } => {
                Some(rate)
            }
        }
    }
}

impl Default for Target {
    fn default() -> Target {
        Target {
            endpoints: Vec::new(),
            url_strategy: UrlStrategy::default(),
            url_weights: Vec::new(),
            all_addresses: false,
            connections: Connections::default(),
            replica_header: None,
            models: Vec::new(),
            model_weights: Vec::new(),
            model_choice: ModelChoice::default(),
            dialect: Dialect::default(),
            raw: None,
            path: None,
            stream: true,
            headers: Vec::new(),
            tls: Tls::default(),
            reset_prefix_cache: false,
        }
    }
}

impl Default for Tls {
    fn default() -> Tls {
        Tls { insecure: false, cacert: None, cert: None, key: None, sni: None, resumption: true }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_true(value: &bool) -> bool {
    *value
}

impl Default for Level {
    fn default() -> Level {
        let load = Load { arrivals: Arrivals::Burst, cap: None, users: None, think_s: 0.0 };
        Level { load, stop: Stop::default(), warmups: 2, decide: None, sizes: Sizes::default() }
    }
}

impl Default for Stop {
    fn default() -> Stop {
        Stop { units: None, duration_s: None, grace_s: 30.0 }
    }
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { connect_s: 10.0, first_s: 600.0, gap_s: 120.0, total_s: 3600.0 }
    }
}

impl Default for Keep {
    fn default() -> Keep {
        Keep { records: true, chunks: false }
    }
}
