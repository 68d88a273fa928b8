//! `run`: load a server as planned, print the table, save the result.

use std::path::PathBuf;
use std::time::Duration;

use crate::cli::aliases::Tool;
use crate::cli::args::RunArgs;
use crate::cli::exit::Exit;
use crate::cli::failure::Failure;
use crate::cli::gather::{Gathering, Unmet};
use crate::cli::plan_from_args::{self, Order, Surroundings, share};
use crate::cli::ranks::Rank;
use crate::cli::script::{self, ScriptBlocks};
use crate::cli::session::{Files, Finished, Lingering, Session, check_limits};
use crate::cli::state::Memory;
use crate::cli::value::Format;
use crate::cli::{
    aiperf_result, dry_run, lint, next, normalise, print, rate_file, say, target, text_file, together,
    tokens, vllm_result, with_stdout,
};
use crate::report::{View, json, terminal};
use crate::run_file::WallTime;
use crate::run_file::schema::{RunFile, SeenBlock};
use crate::strategy::{Ending, Trial};
use crate::sys::clock::RunClock;
use crate::sys::signals::Interrupts;
use crate::verdict::Verdict;
use crate::workload::Script;

pub(super) fn main(args: &RunArgs, tool: Tool, typed: Vec<String>) -> Result<Exit, Failure> {
    let clock = RunClock::start();
    let config = config(args)?;
    let rank = together::rank(args, config.as_ref())?;
    let fresh_seed = rank.as_ref().and_then(Rank::seed);
    let args = &together::args(args, rank.as_ref());
    let mut order = order_with(args, tool, (fresh_seed, &clock), config).map_err(|failure| match &rank {
        Some(rank) => together::said_of(rank, failure),
        None => failure,
    })?;
    together::prepare(&mut order, rank)?;
    carry_out(order, Vec::new(), clock, typed)
}

/// Does what was ordered, behind what a search has tried before.
pub(super) fn carry_out(
    mut order: Order,
    earlier: Vec<Trial>,
    clock: RunClock,
    typed: Vec<String>,
) -> Result<Exit, Failure> {
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
        if let Some(note) = tokens::by_tokenizer(&mut order.plan, false)?.filter(|_| !order.output.quiet) {
            say(&note);
        }
        return print(dry_run::text(&order.plan, script.as_ref())?.trim_end()).map(|()| Exit::Done);
    }
    let mut gathering = together::open(&order, clock)?;
    match (measure((order, script), earlier, (clock, typed), gathering.as_mut()), gathering) {
        (Ok(mut done), Some(gathering)) => {
            let (lingering, quiet) = (done.finished.lingering.take(), done.session.output.quiet);
            let exit = together::conclude(done, gathering);
            linger(lingering, quiet);
            exit
        }
        (Ok(Done { session, mut finished, gate }), None) => {
            show(&session, &finished)?;
            linger(finished.lingering.take(), session.output.quiet);
            conclude(finished, gate)
        }
        (Err(failure), gathering) => {
            gathering.into_iter().for_each(|mut gathering| gathering.give_up(&failure.to_string()));
            Err(failure)
        }
    }
}

/// Keeps open what is to stay open when all is shown.
pub(super) fn linger(lingering: Option<Lingering>, quiet: bool) {
    if let Some(lingering) = lingering {
        lingering.wait(quiet);
    }
}

/// A run that was measured.
pub(super) struct Done {
    pub(super) session: Session,
    pub(super) finished: Finished,
    pub(super) gate: Gate,
}

/// Makes all ready, meets those who make the other shares, measures and saves.
fn measure(
    (order, script): (Order, Option<Script>),
    earlier: Vec<Trial>,
    (clock, typed): (RunClock, Vec<String>),
    gathering: Option<&mut Gathering>,
) -> Result<Done, Failure> {
    let Order { mut plan, secrets, output, ready_check_s, .. } = order;
    let gate = Gate { failed_share_max: order.failed_share_max, strict: order.strict };
    if let Some(file) = output.vllm.as_ref().and_then(|vllm| vllm.file.as_ref()) {
        file.check(output.dir.as_deref(), plan.in_rounds().len())?;
    }
    if output.aiperf.as_ref().is_some_and(|aiperf| aiperf.is_saved) {
        aiperf_result::check(output.dir.as_deref())?;
    }
    let files = Files::open(&output, &clock)?;
    let wait = Duration::try_from_secs_f64(ready_check_s).unwrap_or(Duration::MAX);
    let mut ready = match gathering {
        None => target::ready(&mut plan, script.clone(), &secrets, wait)?,
        Some(_) => together::ready(&mut plan, script.clone(), &secrets, wait)?,
    };
    let memory = Memory::of_user();
    let began = WallTime::from_unix_nanos(clock.epoch_wall_ns());
    ready.facts.seen_before = memory.recall(&plan, began);
    if !output.quiet {
        ready.notes.iter().for_each(|note| say(note));
    }
    let around = lint::surroundings(&plan, &ready.target.routes, ready.facts.via.clone());
    // A server that will be emptied before each level has nothing left of them.
    let seen = ready.facts.seen_before.as_ref().filter(|_| !plan.target.reset_prefix_cache);
    let around = crate::plan::lint::Surroundings {
        same_prompts_at: seen.map(SeenBlock::last_in_words),
        context_tokens: ready.facts.context_tokens,
        longest_prompt: script::longest_prompt(script.as_ref()),
        ..around
    };
    let tool = normalise::tool_of(&typed).unwrap_or(Tool::Tokload);
    let warnings = lint::warnings(&plan, &around, tool);
    let blocks = ScriptBlocks::of(script.as_ref());
    let (agreed, clock_offset) = match gathering {
        Some(gathering) => {
            check_limits(&plan)?;
            let user = Interrupts::listen().map_err(Failure::own)?;
            let notes = gathering.meet(&plan, &user).map_err(Unmet::into_failure)?;
            notes.iter().filter(|_| !output.quiet).for_each(|note| say(note));
            (Some(gathering.agreed()), gathering.clock())
        }
        None => (together::alone_at(output.start_at, clock)?, None),
    };
    let session = Session {
        clock,
        output,
        secrets,
        typed,
        warnings,
        blocks,
        ends_within_s: f64::INFINITY,
        earlier,
        library: None,
        agreed,
        clock_offset,
    };
    let finished = session.run(&plan, &ready, files)?;
    if !finished.run.levels.is_empty() {
        memory.keep(&plan, began);
    }
    Ok(Done { session, finished, gate })
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
    order_with(args, tool, (None, clock), config(args)?)
}

/// The order with `config`, name and text of a plan file, under it. The seed that is taken if none is given is that of all
/// processes of the run, where they have one.
pub(super) fn order_with(
    args: &RunArgs,
    tool: Tool,
    (seed_of_all, clock): (Option<u64>, &RunClock),
    config: Option<(&str, String)>,
) -> Result<Order, Failure> {
    let args = &with_files(args)?;
    let around = Surroundings {
        tool,
        fresh_seed: seed_of_all.unwrap_or_else(|| fresh_seed(clock)),
        config: config.as_ref().map(|(name, text)| (*name, text.as_str())),
        env: &|name| std::env::var(name).ok(),
        read: &crate::cli::text_file::read,
    };
    let order = plan_from_args::order(args, &around).map_err(Failure::bad)?;
    if seed_of_all.is_none() {
        share::same_seed(&order.plan, around.fresh_seed).map_err(Failure::bad)?;
    }
    Ok(order)
}

/// Name and text of the plan file, if one is named.
pub(super) fn config(args: &RunArgs) -> Result<Option<(&str, String)>, Failure> {
    let Some(path) = args.config.as_deref() else { return Ok(None) };
    let unreadable = |error| Failure::bad(format!("--config {path}: {error}; name a readable TOML file"));
    text_file::read(path).map(|text| Some((path, text))).map_err(unreadable)
}

/// The same options with what `--raw-body`, `--request-rate-series` and `--base-url-file` name files of in the place of
/// these names.
pub(super) fn with_files(args: &RunArgs) -> Result<RunArgs, Failure> {
    let mut args = rate_file::read_in(args.clone())?;
    let (named, typed) = args.base_url.into_iter().partition(|url: &String| url.starts_with('@'));
    let named: Vec<String> = named;
    args.base_url = typed;
    args.base_url_file.extend(named.iter().map(|url| url[1..].to_owned()));
    for name in &mut args.base_url_file {
        *name = text_file::read(name).map_err(|error| {
            let remedy = "name a readable file with one URL a line";
            Failure::bad(format!("--base-url-file {name}: {error}; {remedy}"))
        })?;
    }
    if let Some(body) = args.raw_body.as_mut().filter(|body| !body.trim_start().starts_with('{')) {
        *body = text_file::read(body).map_err(|error| {
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

/// Prints the result in the wished format.
pub(super) fn show(session: &Session, finished: &Finished) -> Result<(), Failure> {
    let saved = finished.saved.as_ref().map(|path| path.display().to_string());
    let commands = next::commands(&finished.run, saved.as_deref(), &session.clock);
    show_with(session, finished, &commands)
}

/// [`show`] with `next` as the commands to type next.
pub(super) fn show_with(session: &Session, finished: &Finished, next: &[String]) -> Result<(), Failure> {
    show_table(session, finished, next)?;
    let is_shown = session.output.format == Format::Json && !session.output.is_others();
    match finished.unsaved.as_ref().filter(|_| !is_shown) {
        // The last way to keep it.
        Some(text) => print(text.trim_end()),
        None => Ok(()),
    }
}

fn show_table(session: &Session, finished: &Finished, next: &[String]) -> Result<(), Failure> {
    let saved = finished.saved.as_ref().map(|path| path.display().to_string());
    let output = &session.output;
    if output.vllm.as_ref().is_some_and(|vllm| vllm.is_shown) {
        vllm_result::show(&finished.run, &finished.others.vllm, output.format, output.quiet)?;
    } else if output.aiperf.as_ref().is_some_and(|aiperf| aiperf.is_shown) {
        let levels = &finished.others.aiperf;
        aiperf_result::show(&finished.run, levels, output.format, terminal_width(), output.quiet)?;
    } else if let Some(view) = &finished.others.view {
        view.show(output.format)?;
    } else {
        return show_run(&finished.run, output.format, next, saved.as_deref())
            .and_then(|()| name_files(output.format, None, &finished.others_saved));
    }
    name_files(output.format, saved.as_deref(), &finished.others_saved)
}

/// Names the files that were written, where somebody reads it.
pub(super) fn name_files(format: Format, saved: Option<&str>, others: &[PathBuf]) -> Result<(), Failure> {
    if format == Format::Table {
        saved.iter().try_for_each(|saved| print(&format!("saved {saved}")))?;
        others.iter().try_for_each(|path| print(&format!("saved {}", path.display())))?;
    }
    Ok(())
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
pub(super) fn terminal_width() -> Option<usize> {
    let out = console::Term::stdout();
    // A terminal of unknown size, as in some CI, is taken as an ordinary one.
    let columns =
        || out.size_checked().map_or(terminal::Style::PLAIN.width, |(_, columns)| usize::from(columns));
    out.features().is_attended().then(columns)
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
    // A search drives a server beyond what it can: what failed there is part of the answer.
    if let Some(capacity) = &finished.run.capacity {
        return Ok(match capacity.answer.ending {
            Ending::NothingHolds | Ending::TooFew => Exit::GateFailed,
            _ => exit_of(&finished.run, gate.strict),
        });
    }
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
