//! What the clients of vLLM and aiperf do where their options do not say, for their command lines.

use super::{RunArgs, Tool, trace};
use crate::api::Dialect;
use crate::plan::{Endpoint, Limits, Plan, Slo, Workload};

/// Sets in `plan`, which no option has touched yet, what `tool` has by default.
pub(super) fn before_options(tool: Tool, plan: &mut Plan) {
    let local = |url: &str| vec![Endpoint { url: url.to_owned() }];
    match tool {
        Tool::Tokload => return,
        Tool::Vllm => {
            plan.seed = 0;
            plan.target.endpoints = local("http://127.0.0.1:8000");
            plan.target.dialect = Dialect::Openai;
            plan.workload.input_words = 1024.into();
            plan.workload.output_tokens = 128.into();
        }
        Tool::Aiperf => {
            plan.target.endpoints = local("http://localhost:8000");
            plan.target.stream = false;
            plan.workload.input_words = 550.into();
        }
    }
    plan.workload.options.ignore_eos = false;
    plan.slo = Slo::default();
    // Both give a request six hours, and no part of it less.
    plan.limits = Limits { connect_s: 0.0, first_s: 0.0, gap_s: 0.0, total_s: 21_600.0 };
}

/// Sets what `tool` has by default for the workload that the options chose, and says where ours differs on purpose.
pub(super) fn after_options(args: &RunArgs, tool: Tool, workload: &mut Workload, notes: &mut Vec<String>) {
    // The trace of the command line is looked at later, with the levels.
    let is_synthetic = workload.data.is_none() && workload.trace.is_none() && !trace::is_asked(args);
    match tool {
        Tool::Tokload => {}
        Tool::Vllm => {
            // Its random prompts are nonsense that a model would soon stop answering; its pool of prefixes is not asked
            // for the whole length.
            let is_random = matches!(args.dataset_name.as_deref(), None | Some("random"));
            let is_timed = args.dataset_name.as_deref().is_some_and(|name| name.starts_with("timed"));
            if (is_synthetic && is_random || is_timed) && !args.no_ignore_eos {
                workload.options.ignore_eos = true;
            }
            let is_custom = args.dataset_name.as_deref() == Some("custom");
            if is_custom && args.random_output_len.is_none() {
                notes.push(
                    "vLLM asks for 256 tokens of each custom prompt; here answers are as long as the file says, or 128 \
                     tokens (see --custom-output-len)"
                        .to_owned(),
                );
            }
        }
        Tool::Aiperf => {
            if args.random_output_len.is_none() {
                notes.push(format!(
                    "aiperf sends no limit on the length of answers by default; {} tokens are asked for here (see --osl)",
                    workload.output_tokens
                ));
            }
            // Its data set has as many prompts as requests are asked for, else 100.
            let is_sized = [&args.num_prompts, &args.max_sessions, &args.num_dataset_entries]
                .iter()
                .any(|n| n.is_some());
            if is_synthetic && !is_sized {
                workload.distinct = Some(PROMPTS_OF_AIPERF);
            }
        }
    }
}

const PROMPTS_OF_AIPERF: u64 = 100;
