//! From a workload to the body of its requests.

use serde_json::{Map, Value, json};

use super::{Error, Header, Plan, Sampling, Slo, Target, Workload};
use crate::api::request::{BodyOptions, Template, check_placeholders};
use crate::api::{Dialect, Extra, RawError, Text};

impl Plan {
    /// The body of requests for `model`.
    ///
    /// # Errors
    /// That of the user's own API cannot be used.
    pub fn template(&self, model: &str) -> Result<Template, Error> {
        let Target { dialect, raw, stream, .. } = &self.target;
        match raw.as_ref().filter(|_| *dialect == Dialect::Raw) {
            Some(raw) => Template::of_raw(raw, model, *stream).map_err(raw_error),
            None => Ok(Template::new(*dialect, model, *stream, &self.workload.body_options())),
        }
    }

    /// Switches off optional request fields that the target's dialect does not have, and gives their names; the same
    /// without a name for streams and for limits on what its answers do not have.
    pub fn fit_dialect(&mut self) -> Vec<&'static str> {
        let dialect = self.target.dialect;
        self.target.stream &= dialect.streams();
        if !dialect.generates() {
            self.slo = Slo { e2e_ms: self.slo.e2e_ms, ..Slo::default() };
        }
        let options = &mut self.workload.options;
        let fields = [
            ("ignore_eos", Extra::IgnoreEos, &mut options.ignore_eos),
            ("min_tokens", Extra::MinTokens, &mut options.min_tokens),
            ("stream_options", Extra::IncludeUsage, &mut options.include_usage),
            ("continuous_usage_stats", Extra::ContinuousUsage, &mut options.continuous_usage),
        ];
        let mut off = Vec::new();
        for (name, extra, on) in fields {
            if *on && !dialect.has(extra) {
                *on = false;
                off.push(name);
            }
        }
        off
    }
}

/// The option at fault.
pub(super) fn raw_error(error: RawError) -> Error {
    let RawError { field, wrong } = error;
    let remedy = match field {
        "body" => "give a JSON object in which \"{{prompt}}\" stands for the prompt",
        _ => "give the path to it, as in /choices/0/text",
    };
    Error::new(format!("--raw-{}", field.replace('_', "-")), wrong, remedy)
}

impl Header {
    /// Its value, in which placeholders may stand.
    ///
    /// # Errors
    /// There is none of that name, or it makes no sense.
    pub fn text(&self) -> Result<Text, Error> {
        Text::read(&self.value).map_err(|wrong| {
            let remedy = "correct it, or write {{{{ for braces that are meant as they stand";
            Error::new("--header", format!("{} {wrong}", self.name), remedy)
        })
    }
}

impl Workload {
    pub(super) fn check_placeholders(&self) -> Result<(), Error> {
        check_placeholders(&self.extra_body).map_err(|wrong| {
            let remedy = "correct it, or write {{{{ for braces that are meant as they stand";
            Error::new("--extra-body", wrong, remedy)
        })
    }

    /// What every request body says beside model, prompt and limit.
    #[must_use]
    pub fn body_options(&self) -> BodyOptions {
        BodyOptions {
            choices: self.choices,
            ignore_eos: self.options.ignore_eos,
            min_tokens: self.options.min_tokens,
            include_usage: self.options.include_usage,
            continuous_usage: self.options.continuous_usage,
            system: self.system_words.is_some(),
            prompt_ids: self.tokens.as_ref().is_some_and(|tokens| tokens.ids),
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
    fn what_a_dialect_does_not_have_is_switched_off_and_named() {
        let fitted = |dialect| {
            let mut plan = Plan::new(1);
            plan.target.dialect = dialect;
            plan.workload.options.continuous_usage = true;
            let off = plan.fit_dialect();
            assert_eq!(plan.fit_dialect(), [""; 0], "it is done once");
            (off, plan.workload.options.ignore_eos, plan.workload.options.include_usage)
        };
        assert_eq!(fitted(Dialect::Openai), (vec![], true, true));
        let all = vec!["ignore_eos", "stream_options", "continuous_usage_stats"];
        assert_eq!(fitted(Dialect::Messages), (all, false, false));
        assert_eq!(
            fitted(Dialect::LlamaCpp),
            (vec!["stream_options", "continuous_usage_stats"], true, false)
        );
        let mut plan = Plan::new(1);
        plan.target.dialect = Dialect::Embeddings;
        plan.slo.e2e_ms = Some(80.0);
        plan.complete();
        assert_eq!(plan.slo, Slo { e2e_ms: Some(80.0), ..Slo::default() });
        assert!(!plan.target.stream);
    }

    #[test]
    fn only_what_is_set_is_sent() {
        let sampling = Sampling { temperature: Some(0.0), top_k: Some(40), ..Sampling::default() };
        assert_eq!(Value::Object(sampling.fields()), json!({ "temperature": 0.0, "top_k": 40 }));
        assert!(Sampling::default().fields().is_empty());
    }
}
