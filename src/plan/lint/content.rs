//! What is asked, and in which form the answer comes.

use crate::api::Extra;
use crate::plan::{Finding, Grade, Level, Plan, Rule, Workload};

pub(super) fn look(plan: &Plan, found: &mut Vec<Finding>) {
    found.extend(identical_prompts(plan));
    found.extend(output_length(plan));
    if !plan.target.stream && plan.target.dialect.streams() {
        found.push(Finding::new(
            Rule::NotStreaming,
            Grade::Warn,
            "whole answers have no TTFT, TPOT and ITL",
            "leave out --no-streaming",
        ));
    }
}

fn identical_prompts(plan: &Plan) -> Option<Finding> {
    let workload = &plan.workload;
    if let Some(field) = prompt_override(plan) {
        let evidence = format!("`{field}` in the extra body makes every prompt the same");
        return Some(warning(evidence, "leave it out of --extra-body"));
    }
    let most = plan.levels.iter().map(|level| level.requests_expected().unwrap_or(u64::MAX)).max()?;
    if let Some(distinct) = workload.distinct.filter(|distinct| *distinct < most) {
        let prompts = if distinct == 1 { "prompt" } else { "prompts" };
        let evidence = match most {
            u64::MAX => format!("{distinct} different {prompts}, again and again: a prefix cache answers"),
            _ => format!("{distinct} different {prompts} for {most} requests: a prefix cache answers"),
        };
        return Some(warning(evidence, "leave out --num-dataset-entries"));
    }
    let prefix = workload.prefix?;
    let beginnings = match prefix.pool {
        1 => format!("the same {} words", prefix.words),
        n => format!("one of {n} times {} words", prefix.words),
    };
    if workload.input_words.bounds().1 == 0 {
        return Some(warning(
            format!("prompts are nothing but {beginnings}"),
            "give --random-input-len for words of their own",
        ));
    }
    // Asked for in so many words, unlike a repetition that an option of another name brings along.
    let evidence =
        format!("prompts begin with {beginnings}, which a prefix cache holds after their first use");
    let remedy = "leave out the shared beginning to measure whole prefills";
    Some(Finding::new(Rule::IdenticalPrompts, Grade::Info, evidence, remedy))
}

fn warning(evidence: String, remedy: &str) -> Finding {
    Finding::new(Rule::IdenticalPrompts, Grade::Warn, evidence, remedy)
}

/// The body field that stands in the place of our prompts, if there is one.
fn prompt_override(plan: &Plan) -> Option<&'static str> {
    let field = plan.target.dialect.prompt_field();
    // A text with placeholders need not be the same in all.
    let value = plan.workload.extra_body.get(field).filter(|value| !value.to_string().contains("{{"));
    value.map(|_| field)
}

fn output_length(plan: &Plan) -> Option<Finding> {
    let workload = &plan.workload;
    if workload.output_length_is_fixed() || plan.raw_fixes_length() || !plan.target.dialect.generates() {
        return None;
    }
    let dialect = plan.target.dialect;
    let missing = !dialect.has(Extra::IgnoreEos);
    let refused = workload.options.dropped.iter().any(|field| field == "ignore_eos");
    let why = match (missing, refused) {
        (true, _) => format!("the API {} has no ignore_eos: ", dialect.name()),
        (_, true) => "the server refuses ignore_eos: ".to_owned(),
        _ => String::new(),
    };
    let most = match workload.is_recorded() {
        true => "as many tokens as recorded".to_owned(),
        false => format!("{} tokens", workload.output_tokens),
    };
    let evidence = format!("{why}answers end where the model ends them, after at most {most}");
    let remedy = if missing || refused {
        "compare TPOT and token rates, which do not depend on lengths as E2E does"
    } else {
        "give --ignore-eos"
    };
    Some(Finding::new(Rule::OutputLengthNotFixed, Grade::Warn, evidence, remedy))
}

impl Workload {
    /// Whether each answer has the length that was asked for, as far as requests can say.
    #[must_use]
    pub fn output_length_is_fixed(&self) -> bool {
        let options = &self.options;
        let extra = |field| self.extra_body.get(field);
        options.ignore_eos
            || options.min_tokens
            || extra("ignore_eos").and_then(serde_json::Value::as_bool) == Some(true)
            || extra("min_tokens").is_some()
    }
}

impl Plan {
    /// Whether the body of the user's own API speaks of it.
    fn raw_fixes_length(&self) -> bool {
        self.target.raw.as_ref().is_some_and(|raw| raw.body.contains("ignore_eos"))
    }

    /// Whether no prompt of `level` shares its beginning with another one of the run.
    #[must_use]
    pub fn prompts_are_unique(&self, level: &Level) -> bool {
        let most = level.requests_expected().unwrap_or(u64::MAX);
        self.workload.prefix.is_none()
            // Later turns begin with the earlier ones.
            && self.workload.conversation.is_none()
            && !self.workload.is_recorded()
            && self.workload.distinct.is_none_or(|distinct| distinct >= most)
            && prompt_override(self).is_none()
    }
}
