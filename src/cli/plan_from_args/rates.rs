//! How options make a rate: one, or over time, or bursts that come again; and users who come in one after another.

use super::{RunArgs, Tool, value};
use crate::plan::{Arrivals, Error, Gaps, Level, Load, Piece, Plan, Rate, Series, Shape, Varying};

/// What is asked for beside the limit in flight.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Asked {
    /// No rate: all at once, or as fast as users go.
    AtOnce,
    /// So many at once, again and again.
    Bursts(Arrivals),
    /// A rate.
    Rate(Rate),
}

/// Whether an option of this file shapes the load, so that the levels of a plan file give way.
pub(super) fn is_asked(args: &RunArgs) -> bool {
    args.request_rate_series.is_some()
        || args.request_rate_ramp_duration.is_some()
        || args.ramp_up_strategy.is_some()
        || args.bursts.is_some()
}

/// The rates asked for, one for each level.
pub(super) fn asked(args: &RunArgs) -> Result<Vec<Asked>, Error> {
    contradictions(args)?;
    if let Some(text) = &args.bursts {
        let (size, every_s) = value::bursts("--bursts", text)?;
        return Ok(vec![Asked::Bursts(Arrivals::Bursts { size, every_s })]);
    }
    if args.ramp_up_strategy.is_some() {
        // Which rate it goes through depends on the number of requests, see `ramp_up`.
        return Ok(vec![Asked::Rate(Rate::Steady(ramp_up_ends(args)?.1))]);
    }
    if let Some(text) = &args.request_rate_series {
        let mut series = value::series(SERIES, text)?;
        series.repeat = args.request_rate_series_repeat;
        return Ok(vec![Asked::Rate(led_in(args, Rate::Series(series))?)]);
    }
    let rates = args
        .request_rate
        .as_deref()
        .map_or(Ok(vec![None]), |text| value::list("--request-rate", text, rate))?;
    let asked = |rate: Option<f64>| match rate {
        Some(rate) => led_in(args, Rate::Steady(rate)).map(Asked::Rate),
        None if args.request_rate_ramp_duration.is_some() => {
            let remedy = "give a finite --request-rate, or --concurrency-ramp-duration for users";
            Err(Error::new("--request-rate-ramp-duration", "there is no rate that could rise", remedy))
        }
        None => Ok(Asked::AtOnce),
    };
    rates.into_iter().map(asked).collect()
}

/// A rate, `None` for `inf`.
fn rate(option: &str, text: &str) -> Result<Option<f64>, Error> {
    if text.trim().eq_ignore_ascii_case("inf") {
        return Ok(None);
    }
    let remedy = "give requests per second, as in 2.5, a comma list of these, or inf";
    match value::number(option, text) {
        Ok(rate) if rate > 0.0 => Ok(Some(rate)),
        _ => Err(Error::new(option, format!("'{text}' is not a rate"), remedy)),
    }
}

/// The same with a ramp from 0 before it, if `--request-rate-ramp-duration` asks for one.
fn led_in(args: &RunArgs, rate: Rate) -> Result<Rate, Error> {
    let option = "--request-rate-ramp-duration";
    let Some(text) = &args.request_rate_ramp_duration else { return Ok(rate) };
    let length_s = value::seconds(option, text)?;
    if length_s == 0.0 {
        return Err(Error::new(
            option,
            "0 s is no ramp",
            "give seconds above 0, or leave it out for the rate at once",
        ));
    }
    let series = match rate {
        Rate::Steady(rate) => {
            Series { pieces: vec![Piece::ramp(0.0, rate, length_s, Shape::Linear)], repeat: false }
        }
        Rate::Series(Series { repeat: true, .. }) => {
            let remedy = "give the ramp as the beginning of the series, or leave one of the two out";
            return Err(Error::new(option, "would come again with a series that is repeated", remedy));
        }
        Rate::Series(mut series) => {
            let first = series.pieces.first().map_or(0.0, |piece| piece.rate);
            series.pieces.insert(0, Piece::ramp(0.0, first, length_s, Shape::Linear));
            series
        }
    };
    Ok(Rate::Series(series))
}

/// The error of a rate over time under the option that was typed: ramps become series before they are checked.
pub(super) fn as_typed(args: &RunArgs, error: Error) -> Error {
    if error.subject != SERIES || args.request_rate_series.is_some() {
        return error;
    }
    let typed = [
        ("--ramp-up-strategy", args.ramp_up_strategy.is_some()),
        ("--request-rate-ramp-duration", args.request_rate_ramp_duration.is_some()),
    ];
    let option = typed.into_iter().find_map(|(option, is_typed)| is_typed.then_some(option));
    Error { subject: option.map_or(error.subject, str::to_owned), ..error }
}

/// The arrivals of a rate with these gaps.
pub(super) fn arrivals(gaps: Gaps, rate: Rate) -> Arrivals {
    Arrivals::with(Varying { gaps, rate, exact_count: false })
}

/// Gives a level the ramp over its requests that `--ramp-up-strategy` asks for, in vLLM's meaning: the rate depends on how
/// many requests there have been.
pub(super) fn ramp_up(args: &RunArgs, level: &mut Level) -> Result<(), Error> {
    let option = "--ramp-up-strategy";
    let Some(strategy) = &args.ramp_up_strategy else { return Ok(()) };
    let exponential = value::is_exponential(option, strategy)?;
    let (start, end) = ramp_up_ends(args)?;
    let units = match (level.stop.units, level.stop.duration_s) {
        (Some(units), _) => units,
        (None, None) => level.default_units(),
        (None, Some(_)) => {
            let remedy = "give --num-prompts, or a ramp over time by --request-rate-series, as in 1..50@60";
            return Err(Error::new(option, "is a ramp over a number of requests", remedy));
        }
    };
    let Some(gaps) = level.load.arrivals.gaps() else { return Ok(()) };
    let piece = Piece::ramp_over_requests(start, end, units as f64, exponential);
    level.load.arrivals = arrivals(gaps, Rate::Series(Series { pieces: vec![piece], repeat: false }));
    level.stop.units = Some(units);
    Ok(())
}

/// The rates at the beginning and the end of a ramp over requests.
fn ramp_up_ends(args: &RunArgs) -> Result<(f64, f64), Error> {
    let end = |option: &str, text: &Option<String>| {
        let missing = || Error::new(option, "is missing: a ramp has two ends", "give requests per second");
        let rate = value::number(option, text.as_deref().ok_or_else(missing)?)?;
        // From a rate of 0 the first request would never come.
        let is_rate = rate > 0.0;
        let remedy = "give requests per second above 0";
        is_rate.then_some(rate).ok_or_else(|| Error::new(option, format!("{rate} is not a rate"), remedy))
    };
    let start = end("--ramp-up-start-rps", &args.ramp_up_start_rps)?;
    Ok((start, end("--ramp-up-end-rps", &args.ramp_up_end_rps)?))
}

/// Lets the users of a closed loop come in one after another.
pub(super) fn ramp_users(args: &RunArgs, load: &mut Load) -> Result<(), Error> {
    let option = "--concurrency-ramp-duration";
    let Some(text) = &args.concurrency_ramp_duration else { return Ok(()) };
    let ramp_s = value::seconds(option, text)?;
    let wrong = |wrong: &str, remedy: &str| Err(Error::new(option, wrong, remedy));
    match load.arrivals {
        Arrivals::Closed | Arrivals::Joining { .. } => load.arrivals = Arrivals::Joining { ramp_s },
        Arrivals::Paced { .. } => {
            return wrong("users with a schedule begin as it says", "leave out one of the two");
        }
        _ if load.cap.is_some() => {
            let remedy =
                "leave out the rate for a closed loop, or let the rate rise by --request-rate-ramp-duration";
            return wrong("is of the users of a closed loop, not of a cap", remedy);
        }
        _ => return wrong("there are no users who could come in", "give --max-concurrency without a rate"),
    }
    Ok(())
}

/// As many requests as a level without an end of its own has after its rate has risen.
pub(super) fn units_of_ramp(args: &RunArgs, level: &Level) -> Option<u64> {
    args.request_rate_ramp_duration.as_ref()?;
    let risen = level.load.arrivals.series()?.lead_in_s()?;
    let meanwhile = level.load.course()?.count_by(risen).ceil() as u64;
    Some(meanwhile.saturating_add(level.default_units()))
}

/// Makes the number of requests exact where it is asked for, and where vLLM would.
pub(super) fn exact_count(
    args: &RunArgs,
    tool: Tool,
    plan: &mut Plan,
    notes: &mut Vec<String>,
) -> Result<(), Error> {
    let option = "--exact-count";
    if args.exact_count && args.no_exact_count {
        return Err(Error::new(option, "contradicts --no-exact-count", "give one of them"));
    }
    let lengthened = plan.until.is_some();
    let mut as_vllm = false;
    for level in &mut plan.levels {
        let Some(gaps) = level.load.arrivals.gaps() else {
            if args.exact_count {
                let remedy = "give a finite --request-rate, or leave it out";
                return Err(Error::new(option, "moves the requests of a rate", remedy));
            }
            continue;
        };
        // Equal gaps have no chance in them that could be taken out.
        let random = gaps != Gaps::Constant;
        let by_number = level.stop.units.is_some() && level.stop.duration_s.is_none();
        let plain = level.load.rate().is_some() && !level.load.arrivals.is_exact_count();
        let usual = tool == Tool::Vllm && random && by_number && plain && !lengthened;
        let asked = args.exact_count && random;
        if args.no_exact_count || asked || usual {
            as_vllm |= !asked && !args.no_exact_count;
            let rate = level.load.rate().map(Rate::Steady);
            let rate = rate.or_else(|| level.load.arrivals.series().cloned().map(Rate::Series));
            let Some(rate) = rate else { continue };
            let exact_count = !args.no_exact_count;
            level.load.arrivals = Arrivals::with(Varying { gaps, rate, exact_count });
        }
    }
    if as_vllm {
        notes.push(
            "gaps are stretched so that the last request comes at n / rate, as in vLLM (see --no-exact-count)"
                .to_owned(),
        );
    }
    Ok(())
}

/// Options that each say what the rate is.
fn contradictions(args: &RunArgs) -> Result<(), Error> {
    let finite = args.request_rate.as_deref().is_some_and(|text| !text.trim().eq_ignore_ascii_case("inf"));
    let given = [
        ("--bursts", args.bursts.is_some()),
        ("--ramp-up-strategy", args.ramp_up_strategy.is_some()),
        (SERIES, args.request_rate_series.is_some()),
        ("--request-rate", finite),
    ];
    let mut given = given.into_iter().filter(|(_, given)| *given).map(|(option, _)| option);
    if let (Some(one), Some(other)) = (given.next(), given.next()) {
        let wrong = format!("and {other} both say what the rate is");
        return Err(Error::new(one, wrong, "give one of them"));
    }
    let needs = |option: &str, of: &str| {
        Err(Error::new(option, format!("says nothing without {of}"), format!("give {of}")))
    };
    if args.ramp_up_strategy.is_none() {
        for (option, text) in
            [("--ramp-up-start-rps", &args.ramp_up_start_rps), ("--ramp-up-end-rps", &args.ramp_up_end_rps)]
        {
            if text.is_some() {
                return needs(option, "--ramp-up-strategy");
            }
        }
    }
    if args.request_rate_series_repeat && args.request_rate_series.is_none() {
        return needs("--request-rate-series-repeat", SERIES);
    }
    let ramped = args.bursts.is_some() || args.ramp_up_strategy.is_some();
    if args.request_rate_ramp_duration.is_some() && ramped {
        let remedy = "give a --request-rate or --request-rate-series that it leads to";
        return Err(Error::new("--request-rate-ramp-duration", "leads to no rate here", remedy));
    }
    Ok(())
}

const SERIES: &str = "--request-rate-series";
