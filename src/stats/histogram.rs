//! Placeholder until the statistics room is merged.

use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};

/// Placeholder.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram(hdrhistogram::Histogram<u64>);

#[allow(missing_docs, clippy::missing_errors_doc, clippy::new_without_default, clippy::must_use_candidate)]
impl Histogram {
    pub fn new() -> Histogram {
        Histogram(hdrhistogram::Histogram::new_with_bounds(1, 3_600_000_000_000, 3).expect("fixed bounds"))
    }

    pub fn record(&mut self, value: u64) {
        self.0.saturating_record(value);
    }

    pub fn to_base64(&self) -> String {
        use base64::Engine as _;
        let mut bytes = Vec::new();
        V2DeflateSerializer::new().serialize(&self.0, &mut bytes).expect("written to memory");
        base64::prelude::BASE64_STANDARD.encode(bytes)
    }

    pub fn from_base64(text: &str) -> Result<Histogram, String> {
        use base64::Engine as _;
        let bytes = base64::prelude::BASE64_STANDARD.decode(text).map_err(|e| e.to_string())?;
        Deserializer::new().deserialize(&mut bytes.as_slice()).map(Histogram).map_err(|e| e.to_string())
    }
}
