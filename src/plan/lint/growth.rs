//! How long prompts become, turn by turn, and whether the model takes them.

use super::Surroundings;
use crate::plan::{Conversation, Finding, Grade, Plan, Rule};

/// So many times as long as the first turn, and what is measured over all turns is measured of the later ones.
const GROWTH_MAX: f64 = 4.0;

/// The expected length of a session's prompts, tokens where these are counted, words elsewhere.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Growth {
    turns: f64,
    first: f64,
    last: f64,
    answer: f64,
}

pub(super) fn look(plan: &Plan, around: &Surroundings, found: &mut Vec<Finding>) {
    let growth = Growth::of(plan);
    if let Some(most) = around.context_tokens {
        found.extend(too_long(plan, growth, (f64::from(most), around.longest_prompt)));
    }
    found.extend(growth.and_then(Growth::grows));
}

impl Growth {
    /// That of the plan's synthetic prompts.
    fn of(plan: &Plan) -> Option<Growth> {
        let workload = &plan.workload;
        if workload.is_recorded() {
            return None;
        }
        let answer = workload.output_tokens.mean();
        let own = workload.input_words.mean();
        let before = workload.system_words.unwrap_or(0)
            + workload.context_words.unwrap_or(0)
            + workload.prefix.map_or(0, |prefix| prefix.words);
        let first = f64::from(before) + own;
        let alone = Growth { turns: 1.0, first, last: first, answer };
        Some(match &workload.conversation {
            None | Some(Conversation { shares: Some(_), .. }) => alone,
            Some(Conversation { turns, later_words, .. }) => {
                let later = later_words.as_ref().map_or(own, |words| words.mean());
                let turns = turns.mean().max(1.0);
                Growth { turns, last: first + (turns - 1.0) * (answer + later), ..alone }
            }
        })
    }

    fn grows(self) -> Option<Finding> {
        let Growth { turns, first, last, .. } = self;
        (last > GROWTH_MAX * first.max(1.0)).then(|| {
            let evidence = format!(
                "prompts grow from {first:.0} tokens in the first turn to {last:.0} in the last of {turns:.0}: latencies over \
                 all turns are those of the later ones"
            );
            let remedy = "read the table by turns, or give fewer turns or a longer --random-input-len";
            Finding::new(Rule::ContextGrowth, Grade::Info, evidence, remedy)
        })
    }
}

/// Prompts that the model does not take together with their answers.
fn too_long(plan: &Plan, growth: Option<Growth>, (most, longest): (f64, Option<u32>)) -> Option<Finding> {
    let (evidence, remedy) = match (growth, longest) {
        (Some(Growth { turns, first, last, answer }), _) if last + answer > most => {
            let of_turns = if turns > 1.0 {
                format!("from {first:.0} tokens in the first turn to {last:.0} in the last of {turns:.0}")
            } else {
                format!("{last:.0} tokens")
            };
            let evidence = format!(
                "prompts have {of_turns}, and answers {answer:.0}: more than the {most:.0} that the model takes"
            );
            (evidence, "give fewer turns or shorter lengths")
        }
        (None, Some(longest)) if f64::from(longest) > most => {
            let evidence = format!(
                "the longest request has {longest} tokens, its answer included: more than the {most:.0} that the model takes"
            );
            let remedy = match plan.workload.trace {
                Some(_) => "cut prompts by --trace-input-max",
                None => "leave out long ones by --dataset-lengths total:-N",
            };
            (evidence, remedy)
        }
        _ => return None,
    };
    Some(Finding::new(Rule::ContextGrowth, Grade::Warn, evidence, remedy))
}
