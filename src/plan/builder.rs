//! A plan from typed values, for programs that use the library. The command line has its own way, with layers that a
//! program does not need.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use super::search::at_rate;
use super::{
    Address, Arrivals, Axis, Endpoint, Error, Header, Lengths, Level, Load, Plan, Search, Slo, Stop, Stress,
    Workload,
};
use crate::api::Dialect;

/// The endpoint of a plan that is only simulated: a plan has one, and this name is never found.
pub const NOBODY: &str = "http://simulation.invalid:80";

/// A plan under construction: what is not said has the defaults of the command line.
///
/// Nothing is checked before [`PlanBuilder::build`]. Fields that have no method here are set by
/// [`PlanBuilder::adjust`].
#[derive(Clone, Debug)]
pub struct PlanBuilder {
    plan: Plan,
    url: String,
    dialect: Option<Dialect>,
    loads: Vec<Load>,
    /// What every level has beside its load.
    like: Level,
}

impl Plan {
    /// Begins a plan for the server at `base_url`: `http://host:port`, with or without `/v1` or the full path, which then
    /// names the API as well.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tokload::plan::{Plan, Slo};
    ///
    /// let plan = Plan::builder("http://127.0.0.1:8000")
    ///     .model("llama-3")
    ///     .users([1, 4, 16])
    ///     .duration(Duration::from_secs(60))
    ///     .prompt_words(512)
    ///     .output_tokens(128)
    ///     .slo(Slo { ttft_ms: Some(500.0), tpot_ms: Some(50.0), ..Slo::default() })
    ///     .build()?;
    /// assert_eq!(plan.levels.len(), 3);
    /// # Ok::<(), tokload::plan::Error>(())
    /// ```
    #[must_use]
    pub fn builder(base_url: &str) -> PlanBuilder {
        // Random without a clock, and small enough for a plan file.
        let seed = RandomState::new().hash_one(base_url) & Plan::SEED_MAX;
        PlanBuilder {
            plan: Plan::new(seed),
            url: base_url.to_owned(),
            dialect: None,
            loads: Vec::new(),
            like: Level::default(),
        }
    }

    /// Begins a plan that asks nobody, to be simulated.
    #[must_use]
    pub fn simulation() -> PlanBuilder {
        Plan::builder(NOBODY)
    }
}

impl PlanBuilder {
    /// The seed of all prompts, lengths and gaps, at most [`Plan::SEED_MAX`]. Without it each builder draws one: a prefix
    /// cache would answer for the model if the same prompts came again. A simulation that is to repeat its numbers needs
    /// one.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> PlanBuilder {
        self.plan.seed = seed;
        self
    }

    /// A model to ask for; several take turns. Without any the server is asked for its only one.
    #[must_use]
    pub fn model(mut self, name: impl Into<String>) -> PlanBuilder {
        self.plan.target.models.push(name.into());
        self
    }

    /// The API; chat completions by default, or what the URL names.
    #[must_use]
    pub fn dialect(mut self, dialect: Dialect) -> PlanBuilder {
        self.dialect = Some(dialect);
        self
    }

    /// A request header. Secret ones (keys, cookies) belong to the runner: a plan is stored.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> PlanBuilder {
        self.plan.target.headers.push(Header { name: name.into(), value: value.into() });
        self
    }

    /// A level for each number of users of a closed loop, each of whom sends again when its answer is complete.
    #[must_use]
    pub fn users(mut self, users: impl IntoIterator<Item = u32>) -> PlanBuilder {
        self.loads.extend(users.into_iter().map(Load::closed));
        self
    }

    /// A level for each rate of an open loop, requests per second with Poisson gaps.
    #[must_use]
    pub fn rates(mut self, rates: impl IntoIterator<Item = f64>) -> PlanBuilder {
        let open = |rate| Load { arrivals: Arrivals::Poisson { rate }, cap: None, users: None, think_s: 0.0 };
        self.loads.extend(rates.into_iter().map(open));
        self
    }

    /// A level with any load.
    #[must_use]
    pub fn load(mut self, load: Load) -> PlanBuilder {
        self.loads.push(load);
        self
    }

    /// How many requests each level sends; with [`PlanBuilder::duration`] whichever comes first. Without either, four for
    /// each user and 16 at least, 64 of an open loop, and of a search as many as it takes to confirm its target.
    #[must_use]
    pub fn requests(mut self, requests: u64) -> PlanBuilder {
        self.like.stop.units = Some(requests);
        self
    }

    /// How long each level sends.
    #[must_use]
    pub fn duration(mut self, duration: Duration) -> PlanBuilder {
        self.like.stop.duration_s = Some(duration.as_secs_f64());
        self
    }

    /// Warm-up requests before each level, which count nowhere; 2 by default.
    #[must_use]
    pub fn warmups(mut self, warmups: u32) -> PlanBuilder {
        self.like.warmups = warmups;
        self
    }

    /// How often all levels are run, in rounds; once by default. It takes five to rest a claim on.
    #[must_use]
    pub fn repeats(mut self, runs: u32) -> PlanBuilder {
        self.plan.runs = runs;
        self
    }

    /// Words of a prompt, each one token in most vocabularies: a number or a distribution; 128 by default.
    #[must_use]
    pub fn prompt_words(mut self, words: impl Into<Lengths>) -> PlanBuilder {
        self.plan.workload.input_words = words.into();
        self
    }

    /// Tokens of an answer that are asked for: a number or a distribution; 64 by default.
    #[must_use]
    pub fn output_tokens(mut self, tokens: impl Into<Lengths>) -> PlanBuilder {
        self.plan.workload.output_tokens = tokens.into();
        self
    }

    /// All of what is asked, in place of words and tokens: prefixes, data sets, traces, conversations, sampling.
    #[must_use]
    pub fn workload(mut self, workload: Workload) -> PlanBuilder {
        self.plan.workload = workload;
        self
    }

    /// Limits that a good request keeps; [`Slo::usual`] by default.
    #[must_use]
    pub fn slo(mut self, slo: Slo) -> PlanBuilder {
        self.plan.slo = slo;
        self
    }

    /// Looks at levels in slices of so long: latencies, failures and throughput of each, and what drifts over them.
    #[must_use]
    pub fn slices(mut self, length: Duration) -> PlanBuilder {
        self.plan.slice_s = Some(length.as_secs_f64());
        self
    }

    /// Makes it a stress test of its one rate, which is then the normal load: give no length.
    #[must_use]
    pub fn stress(mut self, stress: Stress) -> PlanBuilder {
        self.plan.stress = Some(stress);
        self
    }

    /// Looks for the highest load that keeps the limits, instead of running levels: give no others.
    #[must_use]
    pub fn search(mut self, search: Search) -> PlanBuilder {
        self.plan.search = Some(search);
        self
    }

    /// Sets whatever has no method of its own, before levels are made and the plan is checked.
    #[must_use]
    pub fn adjust(mut self, set: impl FnOnce(&mut Plan)) -> PlanBuilder {
        set(&mut self.plan);
        self
    }

    /// The plan, complete and checked.
    ///
    /// # Errors
    ///
    /// A URL that is none or holds a password (which a plan does not keep), loads beside a search, and whatever
    /// [`Plan::validate`] refuses. The sentence calls things by their options of the command line.
    pub fn build(self) -> Result<Plan, Error> {
        let PlanBuilder { mut plan, url, dialect, mut loads, like } = self;
        set_target(&mut plan, &url, dialect)?;
        let stop = match plan.search {
            None => like.stop.clone(),
            Some(search) => {
                if !loads.is_empty() {
                    let remedy = "give the search alone, with its start and its max";
                    return Err(Error::new("search", "there are loads beside it", remedy));
                }
                loads.push(first_load(&search));
                search.length(&like.stop)
            }
        };
        let levels = loads.into_iter().map(|load| Level { load, stop: stop.clone(), ..like.clone() });
        plan.levels.extend(levels);
        plan.complete();
        plan.validate()?;
        Ok(plan)
    }
}

impl Search {
    /// The level that the search begins with, `like` another but for its load; where that was as long as its own load
    /// makes it by default, it is as long as the search needs.
    #[must_use]
    pub fn level_to_begin(&self, like: &Level) -> Level {
        let is_default = like.stop.units == Some(like.default_units()) && like.stop.duration_s.is_none();
        let units = like.stop.units.filter(|_| !is_default);
        let stop = self.length(&Stop { units, ..like.stop.clone() });
        let cap = like.load.cap.filter(|_| self.vary != Axis::Concurrency);
        let think_s = if self.vary == Axis::Concurrency { like.load.think_s } else { 0.0 };
        let arrivals = match self.vary {
            Axis::Rate => at_rate(&like.load.arrivals, self.start),
            _ => first_load(self).arrivals,
        };
        let load = Load { arrivals, cap, think_s, ..first_load(self) };
        Level { load, stop, ..like.clone() }
    }

    /// How long its first level is where `stop` is wished: so many requests that good ones alone are enough to confirm
    /// the target, and a hundred at least, where nothing is said.
    #[must_use]
    pub fn length(&self, stop: &Stop) -> Stop {
        let says = stop.units.is_some() || stop.duration_s.is_some() || self.vary == Axis::Speedup;
        let units = if says { stop.units } else { Some(self.usual_requests()) };
        Stop { units, ..stop.clone() }
    }
}

fn set_target(plan: &mut Plan, url: &str, dialect: Option<Dialect>) -> Result<(), Error> {
    let address: Address = Endpoint::parse(url)?;
    if address.userinfo.is_some() {
        let remedy = "leave it out, and give the key to the runner";
        return Err(Error::new("--base-url", "the URL holds a user or a password", remedy));
    }
    plan.target.endpoints.push(address.endpoint());
    let asked = dialect;
    if let Some((dialect, path)) = address.request {
        if asked.is_some_and(|asked| asked != dialect) {
            let remedy = "leave out one of the two";
            return Err(Error::new("--backend", format!("the URL's path {path} is of another API"), remedy));
        }
        plan.target.dialect = dialect;
        plan.target.path = Some(path).filter(|path| path != dialect.path());
    }
    plan.target.dialect = asked.unwrap_or(plan.target.dialect);
    Ok(())
}

fn first_load(search: &Search) -> Load {
    let open = |arrivals| Load { arrivals, cap: None, users: None, think_s: 0.0 };
    match search.vary {
        // What is no whole number is refused with the plan.
        Axis::Concurrency => Load::closed(search.start as u32),
        // Lengths are varied at one user, unless a load is given.
        Axis::InputLen | Axis::OutputLen => Load::closed(1),
        Axis::Rate => open(Arrivals::Poisson { rate: search.start }),
        Axis::Speedup => open(Arrivals::Trace { speedup: search.start }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_said_is_as_on_the_command_line() {
        let plan = Plan::builder("h:8000/v1").seed(7).users([1, 8]).rates([2.5]).build().unwrap();
        assert_eq!(plan.target.endpoints[0].url, "http://h:8000");
        let units: Vec<_> = plan.levels.iter().map(|level| (level.label(), level.stop.units)).collect();
        let expected = [("1 user", 16), ("8 users", 32), ("2.5 req/s", 64)];
        assert_eq!(units, expected.map(|(label, units)| (label.to_owned(), Some(units))));
        let mut same = Plan::new(7);
        (same.target, same.levels) = (plan.target.clone(), plan.levels.clone());
        assert_eq!(plan, same);
    }

    #[test]
    fn seeds_are_drawn_unless_given() {
        let seed = || Plan::simulation().users([1]).build().unwrap().seed;
        assert_ne!(seed(), seed());
    }

    #[test]
    fn a_search_has_its_first_level_and_enough_requests() {
        let search = Search { start: 2.0, target: 0.99, ..Search::along(Axis::Concurrency) };
        let plan = Plan::simulation().search(search).build().unwrap();
        assert_eq!((plan.levels[0].label(), plan.levels[0].stop.units), ("2 users".to_owned(), Some(459)));
        let timed = Plan::simulation().search(search).duration(Duration::from_secs(5)).build().unwrap();
        assert_eq!((timed.levels[0].stop.units, timed.levels[0].stop.duration_s), (None, Some(5.0)));
        let rate = Plan::simulation().search(Search::along(Axis::Rate)).build().unwrap();
        assert_eq!(rate.levels[0].label(), "1 req/s");
    }

    #[test]
    fn what_cannot_be_run_is_refused() {
        let wrong = |builder: PlanBuilder| builder.build().unwrap_err().to_string();
        assert!(wrong(Plan::builder("ftp://h").users([1])).starts_with("--base-url: "));
        assert!(wrong(Plan::builder("http://u:p@h").users([1])).contains("holds a user or a password"));
        assert!(wrong(Plan::builder("h").users([0])).contains("--max-concurrency"));
        assert!(wrong(Plan::builder("h").rates([-1.0])).contains("--request-rate"));
        let beside = Plan::builder("h").users([1]).search(Search::along(Axis::Rate));
        assert!(wrong(beside).contains("there are loads beside it"));
        let other = Plan::builder("h/v1/completions").dialect(Dialect::Messages).users([1]);
        assert!(wrong(other).contains("of another API"));
        let fraction = Search { start: 1.5, ..Search::along(Axis::Concurrency) };
        assert!(!wrong(Plan::builder("h").search(fraction)).is_empty());
    }
}
