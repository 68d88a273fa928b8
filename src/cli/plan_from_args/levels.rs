//! How rates, concurrencies and lengths make levels.

use super::rates::{self, Asked};
use super::{RunArgs, Tool, trace, value};
use crate::plan::{Arrivals, Error, Gaps, Level, Load, Plan, Stop, Workload};

/// Sets the levels of `plan` from the options, or keeps those of the file where none shapes the load.
///
/// - `--request-rate inf`, the default, with a concurrency of N: a closed loop of N users.
/// - `--pace` with it: the same users with a schedule each.
/// - `inf` without a concurrency: a burst. (aiperf's default instead is one user.)
/// - a finite rate: an open loop, with the concurrency, if there is one, as its cap.
/// - a rate over time, or bursts: in the place of one rate.
/// - one of the two may be a list: one level of each.
/// - a trace: its own times, with the concurrency as a cap.
pub(super) fn set(args: &RunArgs, tool: Tool, plan: &mut Plan) -> Result<(), Error> {
    let is_replay = trace::is_asked(args) || plan.workload.trace.is_some();
    trace::set(args, plan, warmups(tool))?;
    if !is_replay && let Some(loads) = loads(args, tool, plan.levels.is_empty())? {
        let like =
            plan.levels.first().cloned().unwrap_or(Level { warmups: warmups(tool), ..Level::default() });
        plan.levels = loads.into_iter().map(|load| Level { load, ..like.clone() }).collect();
    }
    for level in &mut plan.levels {
        set_pace(args, &mut level.load)?;
        rates::ramp_users(args, &mut level.load)?;
        value::set(&mut level.load.think_s, "--think-time", &args.think_time, value::seconds)?;
        value::set(&mut level.warmups, "--num-warmups", &args.num_warmups, value::integer)?;
        value::set(
            &mut level.stop.grace_s,
            "--benchmark-grace-period",
            &args.benchmark_grace_period,
            value::seconds,
        )?;
        set_end(args, &plan.workload, &mut level.stop)?;
        // A trace has an end of its own, and so has a rate over time.
        let endless = level.stop.units.is_none() && level.stop.duration_s.is_none();
        if !is_replay && endless {
            level.stop.units = match level.load.arrivals.series() {
                Some(_) => rates::units_of_ramp(args, level),
                None => units(tool, &level.load),
            };
        }
        rates::ramp_up(args, level)?;
    }
    Ok(())
}

/// Gives the users of a closed loop their schedules.
fn set_pace(args: &RunArgs, load: &mut Load) -> Result<(), Error> {
    let (option, interval_s) = match (args.pace.as_deref(), args.pace_interval.as_deref()) {
        (None, None) => return Ok(()),
        (Some(_), Some(_)) => {
            let wrong = "and --pace-interval are the same in two units";
            return Err(Error::new("--pace", wrong, "give one of them"));
        }
        (Some(rate), None) => {
            let rate = value::number("--pace", rate)?;
            ("--pace", load.users.map(|users| f64::from(users) / rate))
        }
        (None, Some(text)) => {
            let interval_s = value::seconds("--pace-interval", text)?;
            ("--pace-interval", load.users.map(|_| interval_s))
        }
    };
    let remedy =
        "give --max-concurrency without a finite --request-rate; an open loop has its plan by its rate";
    let interval_s = interval_s
        .ok_or_else(|| Error::new(option, "is the schedule of the users of a closed loop", remedy))?;
    load.arrivals = Arrivals::Paced { interval_s };
    Ok(())
}

/// An end is one thing: an option that gives a number of requests or a duration replaces both of the file.
fn set_end(args: &RunArgs, workload: &Workload, stop: &mut Stop) -> Result<(), Error> {
    if args.num_prompts.is_some() || args.max_sessions.is_some() || args.duration.is_some() {
        let duration_s = args.duration.as_deref().map(|text| value::seconds("--duration", text));
        (stop.units, stop.duration_s) = (units_asked(args, workload)?, duration_s.transpose()?);
    }
    Ok(())
}

/// The sessions asked for. Where requests are limited as well, what is reached first ends the level; a session that has
/// begun is finished, so that only a limit of one of the two can be kept.
fn units_asked(args: &RunArgs, workload: &Workload) -> Result<Option<u64>, Error> {
    let read = |option: &str, text: &Option<String>| {
        text.as_deref().map(|text| value::integer::<u64>(option, text)).transpose()
    };
    let requests = read("--num-prompts", &args.num_prompts)?;
    let sessions = read("--max-sessions", &args.max_sessions)?;
    let (Some(requests), Some(sessions)) = (requests, sessions) else { return Ok(requests.or(sessions)) };
    let Some(conversation) = &workload.conversation else { return Ok(Some(requests.min(sessions))) };
    let turns_max = u64::from(conversation.turns.bounds().1);
    let of_a_file = workload.data.is_some();
    if !of_a_file && sessions.saturating_mul(turns_max) <= requests {
        return Ok(Some(sessions));
    }
    let turns = match of_a_file {
        true => "the turns of a file".to_owned(),
        false => format!("up to {turns_max} turns"),
    };
    let wrong = format!(
        "{requests} requests may be over before {sessions} sessions of {turns} are, and no session is cut off"
    );
    Err(Error::new("--num-prompts", wrong, "give the number of sessions alone"))
}

/// The loads that the options ask for; `None` where they do not shape the load and the file does.
fn loads(args: &RunArgs, tool: Tool, file_has_none: bool) -> Result<Option<Vec<Load>>, Error> {
    let shaped = args.request_rate.is_some()
        || args.max_concurrency.is_some()
        || args.arrival_pattern.is_some()
        || args.burstiness.is_some()
        || rates::is_asked(args);
    if !shaped && !file_has_none {
        return Ok(None);
    }
    let rates = rates::asked(args)?;
    let caps = match args.max_concurrency.as_deref() {
        Some(text) => {
            let read = |option: &str, item: &str| value::integer(option, item).map(Some);
            value::list("--max-concurrency", text, read)?
        }
        None if tool == Tool::Aiperf && rates == [Asked::AtOnce] => vec![Some(1)],
        None => vec![None],
    };
    if rates.len() > 1 && caps.len() > 1 {
        let remedy = "give one list: rates with one --max-concurrency as their cap, \
                      or concurrencies with one --request-rate";
        return Err(Error::new("--request-rate", "and --max-concurrency are both lists", remedy));
    }
    let shape = Shape::new(args)?;
    let pairs = rates.iter().flat_map(|rate| caps.iter().map(move |&cap| (rate, cap)));
    pairs.map(|(rate, cap)| shape.load(rate, cap)).collect::<Result<_, _>>().map(Some)
}

/// How sends are spread: `--arrival-pattern` and `--burstiness`.
#[derive(Clone, Copy)]
struct Shape {
    pattern: Option<Pattern>,
    burstiness: Option<f64>,
}

#[derive(Clone, Copy, PartialEq)]
enum Pattern {
    Burst,
    Constant,
    Gamma,
    Poisson,
}

impl Shape {
    fn new(args: &RunArgs) -> Result<Shape, Error> {
        let pattern = args.arrival_pattern.as_deref().map(pattern).transpose()?;
        let burstiness =
            args.burstiness.as_deref().map(|text| value::number("--burstiness", text)).transpose()?;
        Ok(Shape { pattern, burstiness })
    }

    fn load(self, asked: &Asked, cap: Option<u32>) -> Result<Load, Error> {
        match asked {
            Asked::Rate(rate) => {
                let arrivals = rates::arrivals(self.gaps()?, rate.clone());
                Ok(Load { arrivals, cap, users: None, think_s: 0.0 })
            }
            Asked::Bursts(bursts) => {
                self.without_rate(None)?;
                Ok(Load { arrivals: bursts.clone(), cap, users: None, think_s: 0.0 })
            }
            Asked::AtOnce => {
                self.without_rate(cap)?;
                Ok(cap.map_or_else(|| Level::default().load, Load::closed))
            }
        }
    }

    fn gaps(self) -> Result<Gaps, Error> {
        let plain = self.burstiness.is_none_or(|k| k == 1.0);
        match self.pattern {
            Some(Pattern::Burst) => {
                let remedy = "leave out the rate for a burst, or the pattern for a rate";
                Err(Error::new("--arrival-pattern", "a burst has no rate", remedy))
            }
            Some(Pattern::Constant) if plain => Ok(Gaps::Constant),
            Some(Pattern::Constant | Pattern::Poisson) if !plain => {
                let remedy = "use --arrival-pattern gamma, or leave it out";
                Err(Error::new("--burstiness", "is the shape of gamma gaps", remedy))
            }
            _ => Ok(match self.burstiness {
                Some(burstiness) if !plain => Gaps::Gamma { burstiness },
                _ => Gaps::Poisson,
            }),
        }
    }

    /// Without a finite rate there are no gaps to shape. A burstiness of 1 says nothing and is common in scripts.
    fn without_rate(self, cap: Option<u32>) -> Result<(), Error> {
        let remedy = "give a finite --request-rate, or leave it out";
        match self.pattern {
            Some(Pattern::Burst) if cap.is_some() => {
                let remedy = "leave out the pattern for a closed loop of that many users, or the concurrency for a burst";
                return Err(Error::new("--arrival-pattern", "a burst has no limit in flight", remedy));
            }
            None | Some(Pattern::Burst) => {}
            Some(_) => return Err(Error::new("--arrival-pattern", "shapes the gaps of a rate", remedy)),
        }
        match self.burstiness {
            Some(k) if k != 1.0 => Err(Error::new("--burstiness", "shapes the gaps of a rate", remedy)),
            _ => Ok(()),
        }
    }
}

fn pattern(text: &str) -> Result<Pattern, Error> {
    match text {
        "burst" => Ok(Pattern::Burst),
        "constant" => Ok(Pattern::Constant),
        "gamma" => Ok(Pattern::Gamma),
        "poisson" => Ok(Pattern::Poisson),
        _ => {
            let remedy = "give poisson, constant, gamma or burst, or trace with --trace FILE";
            Err(Error::new("--arrival-pattern", format!("'{text}' is not a pattern"), remedy))
        }
    }
}

/// Warm-up requests where no option says: the other tools send none.
fn warmups(tool: Tool) -> u32 {
    match tool {
        Tool::Tokload => Level::default().warmups,
        Tool::Aiperf | Tool::Vllm => 0,
    }
}

/// The number of requests of a level that says nothing, in the other tools: vLLM sends 1000, aiperf max(10, 2 N).
fn units(tool: Tool, load: &Load) -> Option<u64> {
    match tool {
        Tool::Aiperf => Some((2 * u64::from(load.users.or(load.cap).unwrap_or(1))).max(10)),
        Tool::Tokload => None,
        Tool::Vllm => Some(1000),
    }
}
