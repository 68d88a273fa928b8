//! What the file of statistics says beside the numbers, and the folders in which aiperf puts its files.

use super::Level;
use crate::api::Dialect;
use crate::plan::{self, Arrivals, Load, Plan};
use crate::run_file::RunFile;
use crate::run_file::schema::LevelBlock;

/// What a level's file says beside the numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Saved {
    /// The command line, without secrets.
    pub command_line: Vec<String>,
    /// The version of tokload.
    pub version: String,
    /// The plan, if it can be read.
    pub plan: Option<Plan>,
    /// The level's setting, if it can be read.
    pub setting: Option<plan::Level>,
    /// The label of the run.
    pub label: Option<String>,
    /// The label of the level.
    pub level: String,
    /// Which of several rounds over all levels it is of, from 0.
    pub round: usize,
    /// How many levels of its round with the same load were before it: a search tries loads again.
    pub again: usize,
    /// Levels of each round.
    pub levels: usize,
    /// Rounds.
    pub rounds: u32,
}

impl Saved {
    /// Of a level of `run`.
    #[must_use]
    pub fn of(run: &RunFile, level: &Level) -> Saved {
        let block = run.levels.iter().find(|block| block.ordinal == level.about.ordinal);
        let plan: Option<Plan> = run.plan.read().ok();
        let load = |block: &LevelBlock| block.setting.read().ok().map(|level| level.load);
        let again = block.map_or(0, |block| {
            let before = run.levels.iter().take_while(|other| other.ordinal < block.ordinal);
            before.filter(|other| other.repeat == block.repeat && load(other) == load(block)).count()
        });
        Saved {
            again,
            command_line: run.environment.command_line.clone(),
            version: run.tool.version.clone(),
            setting: block.and_then(|block| block.setting.read().ok()),
            label: run.label.clone(),
            level: block.map(|block| block.label.clone()).unwrap_or_default(),
            round: block.map_or(0, |block| block.repeat),
            // A search tries levels that no plan knows.
            levels: plan.as_ref().map_or(0, |plan| plan.levels.len()).max(run.levels.len().min(2)),
            rounds: plan.as_ref().map_or(1, |plan| plan.runs),
            plan,
        }
    }

    /// aiperf's name for the folder of a run: `{model}-openai-{endpoint}-{load}`, of several loads the first.
    #[must_use]
    pub fn run_folder(&self) -> String {
        let target = self.plan.as_ref().map(|plan| &plan.target);
        let models = target.map(|target| target.models.as_slice()).unwrap_or_default();
        let model = models.first().map(|model| {
            let several = if models.len() > 1 { "_multi" } else { "" };
            format!("{}{several}", model.replace('/', "_"))
        });
        let kind = target.map_or("chat", |target| match target.dialect {
            Dialect::OpenaiChat => "chat",
            Dialect::Openai => "completions",
            Dialect::Embeddings => "embeddings",
            other => other.name(),
        });
        let is_traced = self.plan.as_ref().is_some_and(|plan| plan.workload.trace.is_some());
        let load = match self.plan.as_ref().and_then(|plan| plan.levels.first()).map(|level| &level.load) {
            _ if is_traced => Some("fixed_schedule".to_owned()),
            Some(Load { users: Some(users), .. }) => Some(format!("concurrency{users}")),
            Some(load) => {
                let cap = load.cap.map(|cap| format!("concurrency{cap}"));
                let parts = [cap, rate(load).map(|rate| format!("request_rate{rate}"))];
                Some(parts.into_iter().flatten().collect::<Vec<_>>().join("-"))
            }
            None => None,
        };
        let parts = [model, Some(format!("openai-{kind}")), load];
        parts.into_iter().flatten().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-")
    }

    /// The folder, within that of the run, of one of several levels or rounds; empty for the only one.
    #[must_use]
    pub fn folder(&self) -> String {
        let mut folder = Vec::new();
        if self.rounds > 1 {
            let what = if self.levels > 1 { "trial" } else { "run" };
            folder.push("profile_runs".to_owned());
            folder.push(format!("{what}_{:04}", self.round + 1));
        }
        if self.levels > 1 {
            let load = self.setting.as_ref().map(|level| &level.load);
            let known = load.and_then(|load| match (load.users, rate(load)) {
                (Some(users), _) => Some(format!("concurrency_{users}")),
                (None, Some(rate)) => Some(format!("rate_{rate}")),
                (None, None) => None,
            });
            // Two levels of one rate may differ in their caps.
            let cap = load.and_then(|load| load.cap);
            let cap = cap.map_or_else(String::new, |cap| format!("__concurrency_{cap}"));
            let other = || self.level.replace(|letter: char| !letter.is_ascii_alphanumeric(), "_");
            let again = if self.again > 0 { format!("__{}", self.again + 1) } else { String::new() };
            folder.push(format!("{}{cap}{again}", known.unwrap_or_else(other)));
        }
        folder.join("/")
    }
}

fn rate(load: &Load) -> Option<String> {
    match load.arrivals {
        Arrivals::Constant { rate } | Arrivals::Gamma { rate, .. } | Arrivals::Poisson { rate } => {
            Some(format!("{rate:?}"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_have_the_names_that_aiperf_gives_them() {
        let level = |load| plan::Level { load, ..plan::Level::default() };
        let mut plan = Plan { levels: vec![level(Load::closed(8))], ..Plan::new(1) };
        plan.target.models = vec!["org/name".to_owned()];
        let mut saved = Saved { plan: Some(plan.clone()), levels: 1, rounds: 1, ..Saved::default() };
        assert_eq!(saved.run_folder(), "org_name-openai-chat-concurrency8");
        assert_eq!(saved.folder(), "");
        let open =
            Load { arrivals: Arrivals::Poisson { rate: 5.0 }, cap: Some(4), users: None, think_s: 0.0 };
        plan.target.models.push("other".to_owned());
        plan.target.dialect = Dialect::Openai;
        plan.levels[0].load = open.clone();
        saved.plan = Some(plan);
        assert_eq!(saved.run_folder(), "org_name_multi-openai-completions-concurrency4-request_rate5.0");
        saved = Saved { setting: Some(level(open)), levels: 3, rounds: 2, round: 1, ..saved };
        assert_eq!(saved.folder(), "profile_runs/trial_0002/rate_5.0__concurrency_4");
        saved = Saved { setting: Some(level(Load::closed(16))), rounds: 1, ..saved };
        assert_eq!(saved.folder(), "concurrency_16");
        saved.again = 1;
        assert_eq!(saved.folder(), "concurrency_16__2", "a search tries a load again");
        saved.again = 0;
        saved = Saved { setting: None, level: "2 users, ramp".to_owned(), levels: 1, rounds: 3, ..saved };
        assert_eq!(saved.folder(), "profile_runs/run_0002");
        assert_eq!(Saved::default().run_folder(), "openai-chat", "of a plan that cannot be read");
    }
}
