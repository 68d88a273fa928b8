//! What is measured of one request, and the formula of each metric: each is computed here and nowhere else.
//!
//! Definitions are those of the measurement spec in `ARCHITECTURE.md`. Durations are nanoseconds inside,
//! milliseconds only where they are shown.

pub mod counts;
pub mod gaps;
pub mod joined;
pub mod live;
pub mod meter;
pub mod metric;
pub mod outcome;
pub mod record;
pub mod slices;
pub mod slo;
pub mod tally;

pub use gaps::Gaps;
pub use joined::Joined;
pub use live::{Live, LiveShard};
pub use meter::Meter;
pub use metric::Metric;
pub use outcome::{Class, Kind, Outcome, TimeoutPhase};
pub use record::{Flags, Handshake, Phase, Record, TokenSource};
pub use slices::Slices;
pub use slo::Slo;
pub use tally::Tally;
