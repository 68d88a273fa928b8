//! From a workload to the body of its requests.

use serde_json::{Map, Value, json};

use super::{Sampling, Workload};
use crate::api::request::BodyOptions;

impl Workload {
    /// What every request body says beside model, prompt and limit.
    #[must_use]
    pub fn body_options(&self) -> BodyOptions {
        BodyOptions {
            choices: self.choices,
            ignore_eos: self.options.ignore_eos,
            min_tokens: self.options.min_tokens,
            include_usage: self.options.include_usage,
            continuous_usage: self.options.continuous_usage,
            sampling: self.sampling.fields(),
            extra_body: self.extra_body.clone(),
        }
    }
}

impl Sampling {
    /// The parameters that are set, under their names on the wire.
    fn fields(&self) -> Map<String, Value> {
        let floats = [
            ("temperature", self.temperature),
            ("top_p", self.top_p),
            ("min_p", self.min_p),
            ("frequency_penalty", self.frequency_penalty),
            ("presence_penalty", self.presence_penalty),
            ("repetition_penalty", self.repetition_penalty),
        ];
        let set = floats.into_iter().filter_map(|(name, value)| Some((name.to_owned(), json!(value?))));
        set.chain(self.top_k.map(|top_k| ("top_k".to_owned(), json!(top_k)))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_set_is_sent() {
        let sampling = Sampling { temperature: Some(0.0), top_k: Some(40), ..Sampling::default() };
        assert_eq!(Value::Object(sampling.fields()), json!({ "temperature": 0.0, "top_k": 40 }));
        assert!(Sampling::default().fields().is_empty());
    }
}
