//! How the options of a search for capacity make a plan of one level and what is searched for.

use super::{RunArgs, value};
use crate::cli::args::FindCapacityArgs;
use crate::plan::{Axis, Error, Plan, Search};

/// The options of a plan with the first load of the search among them; `from_file` where a file has one of its own.
///
/// # Errors
/// Options that fix what is to be varied, and values that cannot be read.
pub fn prepared(own: &FindCapacityArgs, plan: &RunArgs, from_file: bool) -> Result<RunArgs, Error> {
    let mut args = plan.clone();
    if plan.share.is_some() {
        let remedy = "leave it out: search by one process, and give the load that was found to all";
        return Err(Error::new("--share", "the next load depends on the answers of all", remedy));
    }
    let Some(vary) = axis(own, plan, from_file)? else { return Ok(args) };
    let place = match vary {
        Axis::Concurrency => &mut args.max_concurrency,
        Axis::Rate => &mut args.request_rate,
        Axis::Speedup => &mut args.trace_speedup,
        Axis::InputLen => &mut args.random_input_len,
        Axis::OutputLen => &mut args.random_output_len,
    };
    let start = own.start.clone().unwrap_or_else(|| vary.usual_start().to_string());
    // Here rather than as the option that it becomes, which nobody has typed.
    vary.check_load("--start", value::number("--start", &start)?)?;
    if place.replace(start.trim().to_owned()).is_some() {
        let remedy = "give --start and --max for where it begins and ends";
        return Err(Error::new(vary.option(), format!("is what the search varies ({vary})"), remedy));
    }
    if vary == Axis::Concurrency && args.request_rate.is_some() {
        let remedy = "give --vary rate to search for a rate, or leave it out to search for a number of users";
        return Err(Error::new("--request-rate", "does not go with a search for concurrency", remedy));
    }
    // One user is a load as well: how long a prompt may be if nobody else is there.
    let has_load =
        [&args.max_concurrency, &args.request_rate, &args.config].iter().any(|given| given.is_some())
            || args.pace.is_some();
    if vary.is_length() && !has_load && !from_file {
        args.max_concurrency = Some("1".to_owned());
    }
    let has_end = args.num_prompts.is_some() || args.max_sessions.is_some() || args.duration.is_some();
    if !has_end && vary != Axis::Speedup && !from_file {
        let usual = Search::along(vary);
        let target = share_or("--target", &own.target, usual.target)?;
        args.num_prompts = Some(Search { target, ..usual }.usual_requests().to_string());
    }
    Ok(args)
}

/// Gives the plan, which has its one level, what is searched for.
///
/// # Errors
/// Values that cannot be read, and a search that does not fit the plan.
pub fn set(own: &FindCapacityArgs, plan: &mut Plan) -> Result<(), Error> {
    let trace = plan.levels.first().is_some_and(|level| level.load.speedup().is_some());
    let usual = if trace { Axis::Speedup } else { Axis::Concurrency };
    let vary = own.vary.as_deref().map(read_axis).transpose()?;
    let mut search = match (vary, plan.search) {
        (None, Some(search)) => search,
        (vary, _) => Search::along(vary.unwrap_or(usual)),
    };
    search.target = share_or("--target", &own.target, search.target)?;
    search.failures_max = share_or("--max-failures", &own.max_failures, search.failures_max)?;
    search.tolerance = share_or("--tolerance", &own.tolerance, search.tolerance)?;
    value::set(&mut search.start, "--start", &own.start, value::number)?;
    value::set(&mut search.max, "--max", &own.max, value::number)?;
    value::set(&mut search.times_max, "--max-length", &own.max_length, value::integer)?;
    if let Some(text) = &own.max_time {
        search.time_max_s = Some(value::seconds("--max-time", text)?);
    }
    search.overload |= own.hysteresis;
    plan.search = Some(search);
    plan.validate()
}

/// What is varied; `None` where the file says.
fn axis(own: &FindCapacityArgs, plan: &RunArgs, from_file: bool) -> Result<Option<Axis>, Error> {
    match own.vary.as_deref() {
        Some(text) => read_axis(text).map(Some),
        None if from_file => Ok(None),
        None if plan.trace.is_some() || plan.fixed_schedule => Ok(Some(Axis::Speedup)),
        None => Ok(Some(Axis::Concurrency)),
    }
}

fn read_axis(text: &str) -> Result<Axis, Error> {
    text.parse().map_err(|remedy| Error::new("--vary", format!("'{text}' cannot be varied"), remedy))
}

fn share_or(option: &str, text: &Option<String>, usual: f64) -> Result<f64, Error> {
    text.as_deref().map_or(Ok(usual), |text| value::portion(option, text))
}
