//! The trace that a run sends, by the options of every tool.

use super::{RunArgs, value};
use crate::plan::{Arrivals, Error, Level, Load, Plan, RecordErrors, Trace};
use crate::workload::trace::Format;

/// Whether the options ask for a trace at its times.
pub(super) fn is_asked(args: &RunArgs) -> bool {
    let by_name = args.dataset_name.as_deref().is_some_and(|name| format_of(name).is_some());
    args.trace.is_some() || args.fixed_schedule || by_name || args.arrival_pattern.as_deref() == Some(PATTERN)
}

/// Sets the trace of `plan` and a level for each of its speeds, or changes those of the file.
///
/// Not its end: that is set as for other levels.
pub(super) fn set(args: &RunArgs, plan: &mut Plan, warmups: u32) -> Result<(), Error> {
    let asked = is_asked(args);
    if !asked && plan.workload.trace.is_none() {
        return without(args);
    }
    if asked {
        alone(args)?;
    }
    let mut trace = plan.workload.trace.take();
    if let Some(file) = file(args)? {
        trace = Some(Trace::of(file));
    }
    let mut trace = trace.ok_or_else(|| {
        let by = if args.fixed_schedule { "--fixed-schedule" } else { "--arrival-pattern" };
        Error::new(by, "there is no trace whose times could be kept", "give --trace FILE")
    })?;
    options(args, &mut trace)?;
    plan.workload.trace = Some(trace);
    let is_replay = |level: &Level| level.load.speedup().is_some();
    let shaped = asked || args.trace_speedup.is_some() || args.max_concurrency.is_some();
    if shaped || !plan.levels.iter().all(is_replay) {
        let like = plan.levels.first().cloned().unwrap_or(Level { warmups, ..Level::default() });
        plan.levels = loads(args)?.into_iter().map(|load| Level { load, ..like.clone() }).collect();
    }
    Ok(())
}

/// The file, by either of its options.
fn file(args: &RunArgs) -> Result<Option<&str>, Error> {
    match (args.trace.as_deref(), args.dataset_path.as_deref()) {
        (Some(_), Some(_)) => {
            let remedy = "give one of them: --trace is --dataset-path with --fixed-schedule";
            Err(Error::new("--trace", "and --dataset-path name two files", remedy))
        }
        (trace, data) => Ok(trace.or(data)),
    }
}

fn options(args: &RunArgs, trace: &mut Trace) -> Result<(), Error> {
    if let Some(format) = args.dataset_name.as_deref().and_then(format_of) {
        trace.format = Some(format.to_owned());
    }
    if let Some(name) = &args.trace_format {
        trace.format = Some(format("--trace-format", name)?);
    }
    for text in &args.trace_slice {
        slice(text, trace)?;
    }
    value::set(&mut trace.errors, "--trace-errors", &args.trace_errors, errors)?;
    if !args.trace_model.is_empty() {
        trace.models.clone_from(&args.trace_model);
    }
    trace.failed_too |= args.trace_failed;
    for (place, option, text) in [
        (&mut trace.prompt_tokens_max, "--trace-input-max", &args.trace_input_max),
        (&mut trace.output_tokens_max, "--trace-output-max", &args.trace_output_max),
    ] {
        if let Some(text) = text {
            *place = Some(value::integer(option, text)?);
        }
    }
    value::set(&mut trace.delay_ratio, "--session-delay-ratio", &args.session_delay_ratio, value::number)?;
    if args.ignore_trace_delays {
        trace.delay_ratio = 0.0;
    }
    if let Some(text) = &args.inter_turn_delay_cap_seconds {
        trace.delay_max_s = Some(value::seconds("--inter-turn-delay-cap-seconds", text)?);
    }
    if let Some(text) = &args.trace_block_tokens {
        trace.block_tokens = Some(value::integer("--trace-block-tokens", text)?);
    }
    Ok(())
}

/// One level for each speed and each cap.
fn loads(args: &RunArgs) -> Result<Vec<Load>, Error> {
    let speeds = args.trace_speedup.as_deref();
    let speeds = speeds.map_or(Ok(vec![1.0]), |text| value::list("--trace-speedup", text, value::number))?;
    let read = |option: &str, text: &str| value::integer(option, text).map(Some);
    let caps = args.max_concurrency.as_deref();
    let caps = caps.map_or(Ok(vec![None]), |text| value::list("--max-concurrency", text, read))?;
    if speeds.len() > 1 && caps.len() > 1 {
        let remedy = "give one list";
        return Err(Error::new("--trace-speedup", "and --max-concurrency are both lists", remedy));
    }
    let pairs = speeds.iter().flat_map(|&speedup| caps.iter().map(move |&cap| (speedup, cap)));
    let load =
        |(speedup, cap)| Load { arrivals: Arrivals::Trace { speedup }, cap, users: None, think_s: 0.0 };
    Ok(pairs.map(load).collect())
}

/// Refuses what a trace says itself.
fn alone(args: &RunArgs) -> Result<(), Error> {
    let rate = args.request_rate.as_deref().filter(|rate| !rate.trim().eq_ignore_ascii_case("inf"));
    let pattern = args.arrival_pattern.as_deref().filter(|pattern| *pattern != PATTERN);
    let burstiness = args.burstiness.as_deref().filter(|k| k.trim().parse() != Ok(1.0));
    for (option, is_given) in [
        ("--request-rate", rate.is_some()),
        ("--arrival-pattern", pattern.is_some()),
        ("--burstiness", burstiness.is_some()),
    ] {
        if is_given {
            let remedy = "leave it out, and make the trace faster or slower by --trace-speedup";
            return Err(Error::new(option, "a trace has times of its own", remedy));
        }
    }
    let entries = args.num_dataset_entries.as_deref();
    has_prompts_of_its_own(args, "a trace", entries.or(args.random_prefix_len.as_deref()))
}

/// Refuses what says how synthetic prompts are made; `further` is an option of that kind that depends on the file.
pub(super) fn has_prompts_of_its_own(args: &RunArgs, what: &str, further: Option<&str>) -> Result<(), Error> {
    let by_further =
        if args.random_prefix_len.is_some() { "--random-prefix-len" } else { "--num-dataset-entries" };
    for (option, is_given) in [
        ("--random-input-len", args.random_input_len.is_some()),
        ("--random-range-ratio", args.random_range_ratio.is_some()),
        ("--sequence-distribution", args.sequence_distribution.is_some()),
        ("--isl-stddev", args.isl_stddev.is_some()),
        ("--num-prefix-prompts", args.num_prefix_prompts.is_some()),
        ("--prefix-prompt-length", args.prefix_prompt_length.is_some()),
        ("--prefix-zipf", args.prefix_zipf.is_some()),
        ("--prefix-hit-fraction", args.prefix_hit_fraction.is_some()),
        ("--shared-system-prompt-length", args.shared_system_prompt_length.is_some()),
        (by_further, further.is_some()),
    ] {
        if is_given {
            let wrong = format!("{what} has prompts of its own");
            return Err(Error::new(option, wrong, "leave it out"));
        }
    }
    Ok(())
}

/// Refuses options that say how to read a trace where there is none.
fn without(args: &RunArgs) -> Result<(), Error> {
    let is_file = args.dataset_path.is_some();
    for (option, is_given) in [
        ("--trace-format", args.trace_format.is_some() && !is_file),
        ("--trace-speedup", args.trace_speedup.is_some()),
        ("--trace-slice", !args.trace_slice.is_empty()),
        ("--trace-errors", args.trace_errors.is_some() && !is_file),
        ("--trace-model", !args.trace_model.is_empty()),
        ("--trace-failed", args.trace_failed),
        ("--trace-input-max", args.trace_input_max.is_some()),
        ("--trace-output-max", args.trace_output_max.is_some()),
        ("--trace-block-tokens", args.trace_block_tokens.is_some()),
    ] {
        if is_given {
            return Err(Error::new(
                option,
                "says how a trace is sent, and there is none",
                "give --trace FILE",
            ));
        }
    }
    Ok(())
}

/// The format that a name of a data set means which other tools replay at its times.
fn format_of(name: &str) -> Option<&'static str> {
    let name = name.replace('_', "-");
    let names = [
        ("azure-trace", "azure-llm"),
        ("bailian-trace", "bailian"),
        ("burst-gpt-trace", "burstgpt"),
        ("mooncake-trace", "mooncake"),
        ("timed-trace", "mooncake"),
    ];
    names.into_iter().find(|(of_tool, _)| *of_tool == name).map(|(_, format)| format)
}

pub(super) fn format(option: &str, name: &str) -> Result<String, Error> {
    Format::from_name(name).map(|format| format.name().to_owned()).ok_or_else(|| {
        let names = Format::ALL.map(Format::name).join(", ");
        Error::new(option, format!("'{name}' is no format"), format!("give one of {names}"))
    })
}

/// `FROM:UNTIL`, either of which may be left out.
fn slice(text: &str, trace: &mut Trace) -> Result<(), Error> {
    let option = "--trace-slice";
    let (from, until) = text.split_once(':').filter(|ends| *ends != ("", "")).ok_or_else(|| {
        let remedy = "give FROM:UNTIL in seconds, as in 0:600, 600: or 5m:1h";
        Error::new(option, format!("'{text}' is no slice"), remedy)
    })?;
    if !from.is_empty() {
        trace.from_s = value::seconds(option, from)?;
    }
    if !until.is_empty() {
        trace.until_s = Some(value::seconds(option, until)?);
    }
    Ok(())
}

pub(super) fn errors(option: &str, text: &str) -> Result<RecordErrors, Error> {
    match text {
        "fail" => Ok(RecordErrors::Fail),
        "skip" => Ok(RecordErrors::Skip),
        _ => Err(Error::new(option, format!("'{text}' is neither fail nor skip"), "give one of the two")),
    }
}

const PATTERN: &str = "trace";
