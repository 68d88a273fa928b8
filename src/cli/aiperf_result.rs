//! aiperf's tables on standard output and its files: `--metric-view aiperf`, and what `profile` leaves behind.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::failure::Failure;
use super::value::Format;
use super::whole_file::replace;
use super::{say, with_stdout};
use crate::api::Dialect;
use crate::plan::{Arrivals, Load, Plan};
use crate::report::View;
use crate::report::aiperf::{self, Group, Level, Metric, Saved};
use crate::run_file::RunFile;

/// What of aiperf's is wanted of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AiperfOutput {
    /// The tables are printed instead of ours.
    pub is_shown: bool,
    /// The files are written.
    pub is_saved: bool,
}

/// The files of a level, relative to its folder.
const FILES: [&str; 3] = ["profile_export_aiperf.csv", "profile_export_aiperf.json", "profile_export.jsonl"];

/// Writes the files of each level, over those that are there as aiperf does; returns their names. They lie in `dir`, or
/// where aiperf puts them; those of several levels and rounds in folders of it.
pub(super) fn save(run: &RunFile, levels: &[Level], dir: Option<&str>) -> Result<Vec<PathBuf>, Failure> {
    let mut written = Vec::new();
    for level in levels {
        let saved = about(run, level);
        let base = dir.map_or_else(|| Path::new("artifacts").join(name(&saved)), PathBuf::from);
        let folder = base.join(within(run, &saved));
        let [csv, json, lines] = FILES.map(|name| folder.join(name));
        replace(&csv, |out| aiperf::write_csv(level, out))?;
        let object = Value::Object(aiperf::to_json(level, &saved));
        replace(&json, |out| write!(out, "{object:#}"))?;
        replace(&lines, |out| aiperf::write_lines(level, out))?;
        written.extend([csv, json, lines]);
    }
    Ok(written)
}

/// Prints the tables, or the objects as lines of JSON, and beside them on standard error what must not be missed.
pub(super) fn show(
    run: &RunFile,
    levels: &[Level],
    format: Format,
    terminal: Option<usize>,
    quiet: bool,
) -> Result<(), Failure> {
    match format {
        Format::Json => with_stdout(|out| {
            for level in levels {
                writeln!(out, "{}", Value::Object(aiperf::to_json(level, &about(run, level))))?;
            }
            Ok(())
        }),
        Format::Table => with_stdout(|mut out| {
            for level in levels {
                if levels.len() > 1 {
                    writeln!(out, "\n{}", about(run, level).level)?;
                }
                aiperf::write(level, aiperf::width(terminal), &mut out)?;
                let duration = level.figure(Metric::BenchmarkDuration).and_then(|figure| figure.stats.avg);
                if let Some(seconds) = duration {
                    let early = if level.about.interrupted { " (cancelled early)" } else { "" };
                    writeln!(out, "\nBenchmark Duration: {seconds:.2} sec{early}")?;
                }
            }
            Ok(())
        }),
    }?;
    if quiet {
        return Ok(());
    }
    remarks(levels).iter().for_each(|remark| say(remark));
    let view = View::new(run, &[], None);
    view.verdict.iter().for_each(|verdict| say(verdict));
    view.findings.iter().filter(|note| note.warning).for_each(|note| say(&note.text));
    Ok(())
}

/// What of `levels` is not as aiperf would have it, one line each.
fn remarks(levels: &[Level]) -> Vec<String> {
    let mut said = vec![DEFINITIONS.to_owned()];
    let ok = || levels.iter().flat_map(|level| &level.answers).filter(|answer| answer.failure.is_none());
    if ok().any(|answer| answer.ttft_ns.is_some() && answer.gaps_ns.is_none()) {
        said.push(
            "times of events were not kept (--save-chunks): there is no time to second token, inter-chunk latency is that \
             of a histogram, within 0.1 %, and decode throughput is even within a request"
                .to_owned(),
        );
    }
    let uncounted = ok().filter(|answer| answer.input_tokens.is_none()).count();
    if uncounted > 0 {
        said.push(format!(
            "the server counted no prompt tokens for {uncounted} answers: input sequence length is without them"
        ));
    }
    if ok().any(|answer| answer.output_tokens.is_some() && answer.usage.completion.is_none()) {
        said.push(
            "where the server counts no tokens, output sequence length is our count of them".to_owned(),
        );
    }
    if levels.iter().any(|level| level.about.slo.itl_max_ms.is_some()) {
        said.push("aiperf has no limit on the largest gap: itl_max is left out of goodput here".to_owned());
    }
    let has = |metric| levels.iter().any(|level| level.figure(metric).is_some());
    if has(Metric::UsagePromptTokens) && !has(Metric::UsagePromptCacheReadTokens) {
        said.push(
            "the server says nothing of tokens from its prefix cache (vLLM: --enable-prompt-tokens-details, SGLang: \
             --enable-cache-report)"
                .to_owned(),
        );
    }
    let is_empty = |level: &Level| level.figures.iter().all(|figure| figure.metric.group() == Group::Files);
    if levels.iter().any(is_empty) {
        said.push("a level without any request has no tables".to_owned());
    }
    said
}

fn about(run: &RunFile, level: &Level) -> Saved {
    let block = run.levels.iter().find(|block| block.ordinal == level.about.ordinal);
    Saved {
        command_line: run.environment.command_line.clone(),
        version: run.tool.version.clone(),
        plan: run.plan.read().ok(),
        setting: block.and_then(|block| block.setting.read().ok()),
        label: run.label.clone(),
        level: block.map(|block| block.label.clone()).unwrap_or_default(),
        round: block.map_or(0, |block| block.repeat),
    }
}

/// aiperf's name for the folder of a run: `{model}-openai-{endpoint}-{load}`.
fn name(saved: &Saved) -> String {
    let target = saved.plan.as_ref().map(|plan| &plan.target);
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
    let is_traced = saved.plan.as_ref().is_some_and(|plan| plan.workload.trace.is_some());
    // Of several loads the first names the folder, and each has one of its own in it.
    let first = saved.plan.as_ref().and_then(|plan| plan.levels.first()).map(|level| &level.load);
    let load = match first.filter(|_| !is_traced) {
        Some(Load { users: Some(users), .. }) => Some(format!("concurrency{users}")),
        Some(load) => {
            let parts = [
                load.cap.map(|cap| format!("concurrency{cap}")),
                rate(load).map(|rate| format!("request_rate{rate}")),
            ];
            Some(parts.into_iter().flatten().collect::<Vec<_>>().join("-"))
        }
        None => Some("fixed_schedule".to_owned()).filter(|_| is_traced),
    };
    let parts = [model, Some(format!("openai-{kind}")), load];
    parts.into_iter().flatten().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-")
}

fn rate(load: &Load) -> Option<String> {
    match load.arrivals {
        Arrivals::Constant { rate } | Arrivals::Gamma { rate, .. } | Arrivals::Poisson { rate } => {
            Some(format!("{rate:?}"))
        }
        _ => None,
    }
}

/// The folder of one of several levels or rounds, as aiperf has it; empty for the only one.
fn within(run: &RunFile, saved: &Saved) -> PathBuf {
    let plan: Option<Plan> = run.plan.read().ok();
    let levels = plan.as_ref().map_or(run.levels.len(), |plan| plan.levels.len());
    let rounds = plan.as_ref().map_or(1, |plan| plan.runs);
    let mut folder = PathBuf::new();
    if rounds > 1 {
        let what = if levels > 1 { "trial" } else { "run" };
        folder = folder.join("profile_runs").join(format!("{what}_{:04}", saved.round + 1));
    }
    if levels > 1 {
        let load = saved.setting.as_ref().map(|level| &level.load);
        let known = load.and_then(|load| match (load.users, rate(load)) {
            (Some(users), _) => Some(format!("concurrency_{users}")),
            (None, Some(rate)) => Some(format!("rate_{rate}")),
            (None, None) => None,
        });
        // Two levels of one rate may differ in their caps.
        let cap =
            load.and_then(|load| load.cap).map_or_else(String::new, |cap| format!("__concurrency_{cap}"));
        let other = || saved.level.replace(|letter: char| !letter.is_ascii_alphanumeric(), "_");
        folder = folder.join(format!("{}{cap}", known.unwrap_or_else(other)));
    }
    folder
}

/// What the numbers are, and where the others stand.
const DEFINITIONS: &str = "these are aiperf's definitions over all requests of the level, without a warm-up cut: \
    percentiles by linear interpolation, cancelled requests among the errors, which are left out of all but the \
    error-adjusted rows; inter-token latency is what tokload calls TPOT; tokload report shows the saved run in ours";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan;

    fn saved(plan: &str) -> Saved {
        let plan: Plan = toml::from_str(plan).unwrap();
        Saved { setting: plan.levels.first().cloned(), plan: Some(plan), ..Saved::default() }
    }

    #[test]
    fn folders_have_the_names_that_aiperf_gives_them() {
        let mut one = saved("");
        let plan = one.plan.as_mut().unwrap();
        plan.target.models = vec!["org/name".to_owned()];
        plan.levels = vec![plan::Level { load: Load::closed(8), ..plan::Level::default() }];
        assert_eq!(name(&one), "org_name-openai-chat-concurrency8");
        let plan = one.plan.as_mut().unwrap();
        plan.target.models.push("other".to_owned());
        plan.target.dialect = Dialect::Openai;
        let open =
            Load { arrivals: Arrivals::Poisson { rate: 5.0 }, cap: Some(4), users: None, think_s: 0.0 };
        plan.levels[0].load = open;
        assert_eq!(name(&one), "org_name_multi-openai-completions-concurrency4-request_rate5.0");
        assert_eq!(name(&Saved::default()), "openai-chat", "of a plan that cannot be read");
    }
}
