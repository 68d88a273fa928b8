//! A run as it is compared: its blocks, and the requests behind them where their records are there.

use serde::Serialize;

use crate::metrics::Record;
use crate::plan::{Level, Slo, json_of};
use crate::run_file::schema::LevelBlock;
use crate::run_file::{Loaded, ReadError, RunFile};
use crate::summary::Observed;

/// A run with its records in memory.
#[derive(Clone, Debug)]
pub struct Sample {
    /// What it is called: the path of its file.
    pub name: String,
    /// The run.
    pub run: RunFile,
    /// For each level its requests; `None` where no records were kept.
    observed: Vec<Option<Observed>>,
}

/// Which run it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RunName {
    /// The path of its file.
    pub name: String,
    /// When it began, RFC 3339 in UTC.
    pub created: String,
    /// Its label.
    pub label: Option<String>,
    /// The kind and version of the server, where they are known.
    pub server: Option<String>,
}

/// Every round of one load in a run.
#[derive(Clone, Debug)]
pub struct LoadOf<'a> {
    /// The load setting as text, equal for equal loads, whatever their lengths.
    pub key: String,
    /// The load in words.
    pub label: String,
    /// Latencies are judged from the planned send.
    pub from_plan: bool,
    /// The levels with it, in the order in which they were run.
    pub rounds: Vec<Round<'a>>,
}

/// One level of a run.
#[derive(Clone, Copy, Debug)]
pub struct Round<'a> {
    /// Its block.
    pub block: &'a LevelBlock,
    /// Its requests, where records were kept.
    pub observed: Option<&'a Observed>,
}

impl Sample {
    /// The run `loaded` under `name`, with its records where they are there.
    ///
    /// # Errors
    ///
    /// When there are records that are damaged, too few, or cannot be read.
    pub fn of(name: &str, loaded: &Loaded) -> Result<Sample, ReadError> {
        let records = match loaded.records() {
            Ok(records) => Some(records),
            Err(ReadError::NoRecords { .. }) => None,
            Err(error) => return Err(error),
        };
        let of_level = |level: &LevelBlock| match (&records, level.records) {
            (Some(records), Some(range)) => records.read(range.into()).map(Some),
            _ => Ok(None),
        };
        let records = loaded.run.levels.iter().map(of_level).collect::<Result<Vec<_>, ReadError>>()?;
        Ok(Sample::new(name, loaded.run.clone(), &records))
    }

    /// The run `run` under `name` with the records of each level.
    #[must_use]
    pub fn new(name: &str, run: RunFile, records: &[Option<Vec<Record>>]) -> Sample {
        let observe = |(level, records): (&LevelBlock, Option<&Option<Vec<Record>>>)| {
            let timestamps = level.self_check.timestamps.unwrap_or_default();
            Some(Observed::of(records?.as_ref()?, level.window.into(), timestamps))
        };
        let padded = records.iter().map(Some).chain(std::iter::repeat(None));
        let observed = run.levels.iter().zip(padded).map(observe).collect();
        Sample { name: name.to_owned(), run, observed }
    }

    /// Which run it is.
    #[must_use]
    pub fn run_name(&self) -> RunName {
        let target = &self.run.target;
        let server: Vec<&str> =
            [&target.kind, &target.version].into_iter().flatten().map(String::as_str).collect();
        RunName {
            name: self.name.clone(),
            created: self.run.created.clone(),
            label: self.run.label.clone(),
            server: (!server.is_empty()).then(|| server.join(" ")),
        }
    }

    /// The limits of its plan; `None` where the plan is one of a later tokload.
    #[must_use]
    pub fn slo(&self) -> Option<Slo> {
        self.run.plan.read().ok().map(|plan| plan.slo)
    }

    /// Whether the records of every level are there.
    #[must_use]
    pub fn has_records(&self) -> bool {
        self.observed.iter().all(Option::is_some)
    }

    /// Its loads in the order in which they were first run. Levels of the same load are rounds of it.
    #[must_use]
    pub fn loads(&self) -> Vec<LoadOf<'_>> {
        let mut loads: Vec<LoadOf<'_>> = Vec::new();
        for (block, observed) in self.run.levels.iter().zip(&self.observed) {
            let round = Round { block, observed: observed.as_ref() };
            let setting = block.setting.read().ok();
            let key = key_of(block, setting.as_ref());
            match loads.iter_mut().find(|load| load.key == key) {
                Some(load) => load.rounds.push(round),
                None => loads.push(LoadOf {
                    key,
                    label: block.load_label(),
                    from_plan: setting.map_or_else(
                        || block.goodput.is_some_and(|goodput| goodput.from_plan),
                        |setting| setting.load.judged_from_plan(),
                    ),
                    rounds: vec![round],
                }),
            }
        }
        loads
    }
}

/// The load alone: how long it is kept up changes how well it is known, not what it is.
fn key_of(block: &LevelBlock, setting: Option<&Level>) -> String {
    let load = setting.map(|setting| json_of(&setting.load).to_string() + &setting.sizes.in_label());
    load.unwrap_or_else(|| block.load_label())
}

impl LoadOf<'_> {
    /// Requests planned in the windows of all rounds.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.rounds.iter().map(|round| round.block.counts.planned).sum()
    }

    /// Whether a queue grew in any round, so that latencies have no steady value.
    #[must_use]
    pub fn latency_grows(&self) -> bool {
        let grows = |round: &Round<'_>| {
            round.block.statistics.as_ref().is_some_and(|statistics| statistics.steady.latency_grows)
        };
        self.rounds.iter().any(grows)
    }
}
