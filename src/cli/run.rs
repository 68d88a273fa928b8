//! `run`: load a server as planned, print the table, save the result.

use std::time::Duration;

use crate::api::Dialect;
use crate::cli::aliases::Tool;
use crate::cli::args::RunArgs;
use crate::cli::exit::Exit;
use crate::cli::failure::Failure;
use crate::cli::plan_from_args::{self, Order, Surroundings, share};
use crate::cli::script::{self, ScriptBlocks};
use crate::cli::session::{Files, Finished, Session};
use crate::cli::state::Memory;
use crate::cli::value::Format;
use crate::cli::{lint, print, say, target, with_stdout};
use crate::plan::Plan;
use crate::report::{View, json, terminal};
use crate::run_file::WallTime;
use crate::run_file::schema::{RunFile, SeenBlock};
use crate::sys::clock::RunClock;
use crate::verdict::Verdict;
use crate::workload::{Preview, Script};

/// Requests of each level that `--dry-run` shows.
const SHOWN: usize = 5;
/// The same of a trace, whose times nobody can work out.
const SHOWN_OF_TRACE: usize = 10;

pub(super) fn main(args: &RunArgs, tool: Tool, typed: Vec<String>) -> Result<Exit, Failure> {
    let clock = RunClock::start();
    let order = order(args, tool, &clock)?;
    if !order.output.quiet {
        order.notes.iter().for_each(|note| say(note));
    }
    if order.print_config {
        return print(order.plan.to_toml().trim_end()).map(|()| Exit::Done);
    }
    let script = script::look(&order.plan)?;
    if let Some(script) = script.as_ref().filter(|_| !order.output.quiet) {
        script::notes(&order.plan, script).iter().for_each(|note| say(note));
    }
    if order.dry_run {
        return print(dry_run(&order.plan, script.as_ref())?.trim_end()).map(|()| Exit::Done);
    }
    let Order { mut plan, secrets, output, ready_check_s, .. } = order;
    let gate = Gate { failed_share_max: order.failed_share_max, strict: order.strict };
    let files = Files::open(&output, &clock)?;
    let wait = Duration::try_from_secs_f64(ready_check_s).unwrap_or(Duration::MAX);
    let mut ready = target::ready(&mut plan, script.clone(), &secrets, wait)?;
    let memory = Memory::of_user();
    let began = WallTime::from_unix_nanos(clock.epoch_wall_ns());
    ready.facts.seen_before = memory.recall(&plan, began);
    if !output.quiet {
        ready.notes.iter().for_each(|note| say(note));
    }
    let around = lint::surroundings(&ready.target.routes, ready.facts.via.clone());
    // A server that will be emptied before each level has nothing left of them.
    let seen = ready.facts.seen_before.as_ref().filter(|_| !plan.target.reset_prefix_cache);
    let around =
        crate::plan::lint::Surroundings { same_prompts_at: seen.map(SeenBlock::last_in_words), ..around };
    let warnings = lint::warnings(&plan, &around);
    let blocks = ScriptBlocks::of(script.as_ref());
    let session = Session { clock, output, secrets, typed, warnings, blocks, ends_within_s: f64::INFINITY };
    let finished = session.run(&plan, &ready, files)?;
    if !finished.run.levels.is_empty() {
        memory.keep(&plan, began);
    }
    show(&session, &finished)?;
    conclude(finished, gate)
}

/// What the exit code of a finished run depends on beside the run.
#[derive(Clone, Copy, Default)]
pub(super) struct Gate {
    /// Share of failed requests above which the run has failed; `None`: only if all failed.
    pub(super) failed_share_max: Option<f64>,
    /// An invalid measurement has an exit code of its own.
    pub(super) strict: bool,
}

pub(super) fn order(args: &RunArgs, tool: Tool, clock: &RunClock) -> Result<Order, Failure> {
    let config = config(args)?;
    let args = &with_raw_body(args)?;
    let around = Surroundings {
        tool,
        fresh_seed: fresh_seed(clock),
        config: config.as_ref().map(|(name, text)| (*name, text.as_str())),
        env: &|name| std::env::var(name).ok(),
    };
    let order = plan_from_args::order(args, &around).map_err(Failure::bad)?;
    share::same_seed(&order.plan, around.fresh_seed).map_err(Failure::bad)?;
    Ok(order)
}

/// Name and text of the plan file, if one is named.
pub(super) fn config(args: &RunArgs) -> Result<Option<(&str, String)>, Failure> {
    let Some(path) = args.config.as_deref() else { return Ok(None) };
    let unreadable = |error| Failure::bad(format!("--config {path}: {error}; name a readable TOML file"));
    std::fs::read_to_string(path).map(|text| Some((path, text))).map_err(unreadable)
}

/// The same options with the body of `--raw-body` in the place of the name of its file.
pub(super) fn with_raw_body(args: &RunArgs) -> Result<RunArgs, Failure> {
    let mut args = args.clone();
    if let Some(body) = args.raw_body.as_mut().filter(|body| !body.trim_start().starts_with('{')) {
        *body = std::fs::read_to_string(&*body).map_err(|error| {
            Failure::bad(format!(
                "--raw-body {body}: {error}; give a JSON object, or name a readable file of one"
            ))
        })?;
    }
    Ok(args)
}

/// Different for every run and process; its quality does not matter, it only names the streams.
pub(super) fn fresh_seed(clock: &RunClock) -> u64 {
    clock.epoch_wall_ns() ^ u64::from(std::process::id()).rotate_left(40)
}

/// The resolved plan and the first requests of each level, with their planned times.
pub(super) fn dry_run(plan: &Plan, script: Option<&Script>) -> Result<String, Failure> {
    let mut text = plan.to_toml();
    if plan.runs > 1 {
        let runs = plan.runs;
        text.push_str(&format!(
            "\n# {runs} rounds over all levels, with other requests in each; the first:\n"
        ));
    }
    if let Some(share) = plan.share {
        let place = share.index.saturating_sub(1);
        let what = "requests (users of a closed loop) whose number is";
        text.push_str(&format!(
            "\n# share {share}: this process sends the {what} {place} modulo {}\n",
            share.of
        ));
    }
    for (ordinal, level) in plan.levels.iter().enumerate() {
        text.push_str(&format!("\n# level {}: {}\n", ordinal + 1, level.label()));
        let requests = match script {
            Some(Script::Data(deck)) => Preview::of_data(plan, ordinal, deck, SHOWN).map_err(Failure::bad)?,
            Some(Script::Trace(recording)) => {
                Preview::of_trace(plan, ordinal, recording, SHOWN_OF_TRACE).map_err(Failure::bad)?
            }
            None => Preview::of_level(plan, ordinal, SHOWN),
        };
        for request in requests {
            let at = match request.offset_ns {
                Some(ns) => format!("at {:.6} s", ns as f64 / 1e9),
                None => "after its user's answer".to_owned(),
            };
            text.push_str(&format!(
                "# request {} {at}, {} words, max_tokens {}: {}\n",
                request.index, request.words, request.max_tokens, request.prompt
            ));
        }
    }
    Ok(text)
}

/// Prints the result in the wished format.
pub(super) fn show(session: &Session, finished: &Finished) -> Result<(), Failure> {
    let saved = finished.saved.as_ref().map(|path| path.display().to_string());
    show_with(session, finished, &next_commands(&finished.run, saved.as_deref()))
}

/// [`show`] with `next` as the commands to type next.
pub(super) fn show_with(session: &Session, finished: &Finished, next: &[String]) -> Result<(), Failure> {
    let saved = finished.saved.as_ref().map(|path| path.display().to_string());
    show_run(&finished.run, session.output.format, next, saved.as_deref())
}

/// Prints a run, measured or stored.
pub(super) fn show_run(
    run: &RunFile,
    format: Format,
    next: &[String],
    saved: Option<&str>,
) -> Result<(), Failure> {
    match format {
        Format::Json => with_stdout(|mut out| json::write(run, &mut out)),
        Format::Table => {
            let view = View::new(run, next, saved);
            with_stdout(|mut out| terminal::write(&view, terminal_style(), &mut out))
        }
    }
}

/// How text on standard output may look.
pub(super) fn terminal_style() -> terminal::Style {
    terminal::Style::of(terminal_width(), std::env::var_os("NO_COLOR").as_deref())
}

/// Columns of the terminal on standard output; `None` if that is none.
fn terminal_width() -> Option<usize> {
    let out = console::Term::stdout();
    // A terminal of unknown size, as in some CI, is taken as an ordinary one.
    let columns =
        || out.size_checked().map_or(terminal::Style::PLAIN.width, |(_, columns)| usize::from(columns));
    out.features().is_attended().then(columns)
}

/// What a user would probably do next.
fn next_commands(run: &RunFile, saved: Option<&str>) -> Vec<String> {
    let mut next = Vec::new();
    let plan = run.plan.read().ok();
    let dialect = plan.as_ref().map(|plan| plan.target.dialect).unwrap_or_default();
    if let Some(saved) = saved {
        let limits = if dialect.generates() { "ttft:1000 tpot:100" } else { "e2e:100" };
        next.push(format!("tokload report {saved} --goodput {limits}"));
    }
    if run.is_simulated() {
        // Of this run rather than of another server's, where it can be read again.
        next.push(match saved {
            Some(saved) => format!("tokload report {saved} --explain"),
            None => "tokload simulate --max-concurrency 1,4,16,64 --duration 120s --explain".to_owned(),
        });
    } else if let Some(plan) = plan
        && let Some(endpoint) = plan.target.endpoints.first()
    {
        let api = match dialect {
            Dialect::OpenaiChat => String::new(),
            other => format!(" --backend {}", other.name()),
        };
        let load = if plan.levels.len() > 1 {
            let rate = bearable_rate(run.levels.iter().map(|level| level.rates.window.req_s));
            format!("--request-rate {rate} --duration 120s")
        } else {
            "--max-concurrency 1,2,4,8,16".to_owned()
        };
        next.push(format!("tokload run --base-url {}{api} {load}", endpoint.url));
    }
    next
}

/// A rate that the server should bear, in two digits: four fifths of the most that it completed; 2 if that is nothing.
fn bearable_rate(completed_s: impl Iterator<Item = f64>) -> f64 {
    let most = completed_s.fold(0.0, f64::max) * 0.8;
    if most < 0.001 {
        return 2.0;
    }
    let digit = 10f64.powi(most.log10().floor() as i32 - 1);
    // Through text, so that no binary dust stands behind the digits.
    let rate = (most / digit).round() * digit;
    format!("{rate:.4}").parse().unwrap_or(2.0)
}

/// The exit code of a finished run.
pub(super) fn conclude(finished: Finished, gate: Gate) -> Result<Exit, Failure> {
    if let Some(failure) = finished.failed {
        return Err(failure);
    }
    if finished.run.interrupted {
        return Ok(Exit::Interrupted);
    }
    let (ok, failed) = finished
        .run
        .levels
        .iter()
        .fold((0, 0), |(ok, failed), level| (ok + level.counts.ok, failed + level.counts.failed));
    let share = failed as f64 / (ok + failed).max(1) as f64;
    if ok == 0 && failed > 0 {
        say("tokload: every request failed");
        return Ok(Exit::GateFailed);
    }
    match gate.failed_share_max {
        Some(max) if share > max => {
            say(&format!(
                "tokload: {:.1} % of the requests failed, more than --failed-request-threshold",
                share * 100.0
            ));
            Ok(Exit::GateFailed)
        }
        _ => Ok(exit_of(&finished.run, gate.strict)),
    }
}

/// Done, unless the run is invalid and that matters.
pub(super) fn exit_of(run: &RunFile, strict: bool) -> Exit {
    if strict && run.verdict == Some(Verdict::Invalid) {
        say("tokload: the measurement is invalid (--strict)");
        return Exit::NotValid;
    }
    Exit::Done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_to_try_next_is_what_the_server_should_bear() {
        let of = |completed: &[f64]| bearable_rate(completed.iter().copied()).to_string();
        assert_eq!(of(&[1.45, 5.79, 23.18]), "19");
        assert_eq!(
            (of(&[1.45]), of(&[0.0123]), of(&[62_780.0])),
            ("1.2".to_owned(), "0.0098".to_owned(), "50000".to_owned())
        );
        assert_eq!((of(&[]), of(&[0.0, 0.0])), ("2".to_owned(), "2".to_owned()));
    }
}
