//! A histogram in files where nothing may be lost: its buckets as other HDR tools read them, and beside them what these
//! cannot tell.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Histogram;
use crate::stats::totals::Totals;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    /// The buckets; absent where there is no value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    buckets: Option<String>,
    totals: Totals,
    #[serde(default)]
    overflow: u64,
}

impl Serialize for Histogram {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let buckets = (self.n() > 0).then(|| self.to_base64());
        Stored { buckets, totals: self.totals, overflow: self.overflow }.serialize(to)
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Histogram, D::Error> {
        let Stored { buckets, totals, overflow } = Stored::deserialize(from)?;
        let histogram = match buckets {
            Some(text) => Histogram::from_base64(&text).map_err(D::Error::custom)?,
            None => Histogram::new(),
        };
        if histogram.n() != totals.n() || overflow > totals.n() {
            return Err(D::Error::custom(
                "the buckets of a histogram hold another number of values than its totals",
            ));
        }
        Ok(histogram.with_totals(totals, overflow))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_stored_is_the_same_histogram() {
        let mut histogram = Histogram::new();
        for ns in [0, 5, 1_000_003, 77_777_777_777, Histogram::HIGHEST_NS + 9] {
            histogram.record_n(ns, ns % 7 + 1);
        }
        for histogram in [histogram, Histogram::new()] {
            let text = serde_json::to_string(&histogram).unwrap();
            assert_eq!(serde_json::from_str::<Histogram>(&text).unwrap(), histogram, "{text}");
        }
    }

    #[test]
    fn buckets_and_totals_of_different_histograms_are_refused() {
        let mut histogram = Histogram::new();
        histogram.record(5);
        let text = serde_json::to_string(&histogram).unwrap();
        let other = text.replace("\"n\":1", "\"n\":2");
        assert_ne!(text, other);
        let error = serde_json::from_str::<Histogram>(&other).unwrap_err().to_string();
        assert!(error.starts_with("the buckets of a histogram hold another number"), "{error}");
        assert!(
            serde_json::from_str::<Histogram>(&text.replace("\"buckets\":\"", "\"buckets\":\"!")).is_err()
        );
    }
}
