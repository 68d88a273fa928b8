//! A tally in files: what several processes counted is added up later, and must then be what one would have counted.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Joined, Population, Tally};
use crate::metrics::metric::Metric;
use crate::stats::{Histogram, Series};
use crate::time::Stamp;

/// The form in files: histograms by name, without the empty ones.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Stored {
    start_ns: u64,
    last_end_ns: Option<u64>,
    whole: Population,
    window: Population,
    histograms: BTreeMap<Metric, Histogram>,
    early: BTreeMap<Metric, Histogram>,
    joined: [Joined; 2],
    early_joined: [Joined; 2],
    series: Series,
}

impl From<Tally> for Stored {
    fn from(tally: Tally) -> Stored {
        let by_name = |histograms: [Histogram; Metric::COUNT]| {
            Metric::ALL.into_iter().zip(histograms).filter(|(_, histogram)| histogram.n() > 0).collect()
        };
        Stored {
            start_ns: tally.start.as_nanos(),
            last_end_ns: tally.last_end.map(Stamp::as_nanos),
            whole: tally.whole,
            window: tally.window,
            histograms: by_name(tally.histograms),
            early: by_name(tally.early),
            joined: tally.joined,
            early_joined: tally.early_joined,
            series: tally.series,
        }
    }
}

impl From<Stored> for Tally {
    fn from(stored: Stored) -> Tally {
        let mut tally = Tally {
            start: Stamp::from_nanos(stored.start_ns),
            last_end: stored.last_end_ns.map(Stamp::from_nanos),
            whole: stored.whole,
            window: stored.window,
            joined: stored.joined,
            early_joined: stored.early_joined,
            series: stored.series,
            ..Tally::default()
        };
        for (into, from) in [(&mut tally.histograms, stored.histograms), (&mut tally.early, stored.early)] {
            from.into_iter().for_each(|(metric, histogram)| into[metric as usize] = histogram);
        }
        tally
    }
}
