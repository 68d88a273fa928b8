//! The names of the metrics: for each its unit, its name in files, its direction.

use serde::{Deserialize, Serialize};

/// A per-request or per-gap metric with a distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Wait for the concurrency cap.
    CapWait,
    /// Our own lateness.
    ScheduleDelay,
    /// Connection set-up.
    Connect,
    /// First response byte.
    Ttfb,
    /// First content event.
    Ttft,
    /// First content event by the kernel's receive stamp.
    TtftKernel,
    /// First content event that is not reasoning.
    Ttfa,
    /// Last content event.
    E2e,
    /// End of the response.
    Stream,
    /// Time per output token after the first.
    Tpot,
    /// Time per output token after the first content event.
    TpotAdj,
    /// Gap between content events, pooled over requests.
    Itl,
    /// The same by kernel stamps.
    ItlKernel,
    /// Gap per token, where tokens per event are known.
    ItlToken,
    /// Largest gap of a request.
    Stall,
    /// Decode speed of one user.
    UserSpeed,
    /// TTFT from the planned send.
    TtftPlan,
    /// Time to first answer token from the planned send.
    TtfaPlan,
    /// E2E from the planned send.
    E2ePlan,
    /// End of the response from the planned send.
    StreamPlan,
}
