//! `find-capacity`: the highest load at which enough requests keep their limits.
//!
//! What its options mean is `plan_from_args::search`'s, running it is `run`'s way, choosing the loads is `strategy`'s.

use std::path::Path;

use crate::cli::aliases::Tool;
use crate::cli::args::FindCapacityWords;
use crate::cli::exit::Exit;
use crate::cli::failure::Failure;
use crate::cli::plan_from_args::search;
use crate::cli::{ranks, run};
use crate::plan::{Error, Plan};
use crate::run_file::Loaded;
use crate::strategy::capacity::{self, Step, Trial};
use crate::sys::clock::RunClock;

pub(super) fn main(words: &FindCapacityWords, tool: Tool, typed: Vec<String>) -> Result<Exit, Failure> {
    let clock = RunClock::start();
    let FindCapacityWords { own, plan } = words;
    let env = |name: &str| std::env::var(name).ok();
    ranks::alone("find-capacity", plan.share.as_deref(), &env).map_err(Failure::bad)?;
    let resumed = own.resume.as_deref().map(|path| Resumed::open(path, plan.config.is_some())).transpose()?;
    let config = match &resumed {
        Some(resumed) => Some((resumed.path.as_str(), resumed.plan.clone())),
        None => run::config(plan)?,
    };
    let has_search = |(_, text): &(&str, String)| text.lines().any(|line| line.trim() == "[search]");
    let args = search::prepared(own, plan, config.as_ref().is_some_and(has_search)).map_err(Failure::bad)?;
    let mut order = run::order_with(&args, tool, (None, &clock), config)?;
    search::set(own, &mut order.plan).map_err(Failure::bad)?;
    if let Some(resumed) = &resumed {
        resumed.asks_as(&order.plan).map_err(Failure::bad)?;
    }
    let earlier = resumed.map_or_else(Vec::new, |resumed| resumed.trials);
    if let Some(search) = &order.plan.search
        && !earlier.is_empty()
        && capacity::next(search, &earlier) == Step::Over
    {
        let remedy = "print it by tokload report, or search again without --resume";
        return Err(Failure::bad(Error::new("--resume", "the search of that run is over", remedy)));
    }
    run::carry_out(order, earlier, clock, typed)
}

/// A search that was broken off.
struct Resumed {
    path: String,
    /// As the text of a plan file.
    plan: String,
    asked: Plan,
    trials: Vec<Trial>,
}

impl Resumed {
    fn open(path: &str, has_config: bool) -> Result<Resumed, Failure> {
        let wrong = |wrong: &str, remedy: &str| Err(Failure::bad(Error::new("--resume", wrong, remedy)));
        if has_config {
            return wrong("has the plan of its run", "leave out --config");
        }
        let run = Loaded::open(Path::new(path)).map_err(Failure::bad)?.run;
        let Some(capacity) = run.capacity.as_ref().filter(|_| !run.is_simulated()) else {
            let remedy = "name the saved run of a tokload find-capacity that asked a real server";
            return wrong("that run has no search to go on with", remedy);
        };
        let plan = run.plan.read().map_err(Failure::bad)?;
        Ok(Resumed {
            path: path.to_owned(),
            plan: plan.to_toml(),
            asked: plan,
            trials: capacity.trials.clone(),
        })
    }

    /// Refuses options that ask something else than the loads that were tried: their outcomes would not count.
    fn asks_as(&self, plan: &Plan) -> Result<(), Error> {
        let was = &self.asked;
        let question =
            |plan: &Plan| plan.search.map(|search| (search.vary, search.target, search.failures_max));
        let load = |plan: &Plan| plan.levels.first().map(|level| level.load.clone());
        let is_length = was.search.is_some_and(|search| search.vary.is_length());
        let other = [
            (was.slo != plan.slo, "the limits of --goodput"),
            (was.workload != plan.workload, "what is sent"),
            (was.target != plan.target, "the server, its model or its API"),
            (question(was) != question(plan), "what is varied, --target or --max-failures"),
            (is_length && load(was) != load(plan), "the load"),
        ];
        let Some((_, what)) = other.into_iter().find(|(differs, _)| *differs) else { return Ok(()) };
        let wrong = format!("{what} would be other than for the loads that were tried");
        Err(Error::new("--resume", wrong, "leave that option out, or search again without --resume"))
    }
}
