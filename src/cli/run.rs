//! `run`: load a server as planned, print the table, save the result.

use std::path::PathBuf;
use std::time::Duration;

use crate::cli::aliases::Tool;
use crate::cli::args::RunArgs;
use crate::cli::exit::Exit;
use crate::cli::failure::Failure;
use crate::cli::plan_from_args::{self, Order, Surroundings, share};
use crate::cli::script::{self, ScriptBlocks};
use crate::cli::session::{Files, Finished, Session};
use crate::cli::state::Memory;
use crate::cli::value::Format;
use crate::cli::{
    aiperf_result, lint, next, normalise, print, rate_file, say, target, text_file, tokens, vllm_result,
    with_stdout,
};
use crate::metrics::Phase;
use crate::plan::Plan;
use crate::report::{View, json, terminal};
use crate::run_file::WallTime;
use crate::run_file::schema::{RunFile, SeenBlock};
use crate::strategy::{Ending, Trial};
use crate::sys::clock::RunClock;
use crate::verdict::Verdict;
use crate::workload::preview::LaterTurn;
use crate::workload::reuse::Sent;
use crate::workload::{Abort, Conduct, Content, Item, Mix, Preview, Reuse, Routing, Script};

/// Requests of each level that `--dry-run` shows.
const SHOWN: usize = 5;
/// Pieces of a rate over time that it shows.
const PIECES_SHOWN: usize = 12;
/// Most requests of a level of which is worked out what a cache would find.
const COUNTED_MAX: u64 = 1_000_000;
/// The same of a trace, whose times nobody can work out.
const SHOWN_OF_TRACE: usize = 10;

pub(super) fn main(args: &RunArgs, tool: Tool, typed: Vec<String>) -> Result<Exit, Failure> {
    let clock = RunClock::start();
    carry_out(order(args, tool, &clock)?, Vec::new(), clock, typed)
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
        return print(dry_run(&order.plan, script.as_ref())?.trim_end()).map(|()| Exit::Done);
    }
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
    let around = crate::plan::lint::Surroundings {
        same_prompts_at: seen.map(SeenBlock::last_in_words),
        context_tokens: ready.facts.context_tokens,
        longest_prompt: script::longest_prompt(script.as_ref()),
        ..around
    };
    let tool = normalise::tool_of(&typed).unwrap_or(Tool::Tokload);
    let warnings = lint::warnings(&plan, &around, tool);
    let blocks = ScriptBlocks::of(script.as_ref());
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
    };
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
    order_with(args, tool, clock, config(args)?)
}

/// The order with `config`, name and text of a plan file, under it.
pub(super) fn order_with(
    args: &RunArgs,
    tool: Tool,
    clock: &RunClock,
    config: Option<(&str, String)>,
) -> Result<Order, Failure> {
    let args = &with_files(args)?;
    let around = Surroundings {
        tool,
        fresh_seed: fresh_seed(clock),
        config: config.as_ref().map(|(name, text)| (*name, text.as_str())),
        env: &|name| std::env::var(name).ok(),
        read: &crate::cli::text_file::read,
    };
    let order = plan_from_args::order(args, &around).map_err(Failure::bad)?;
    share::same_seed(&order.plan, around.fresh_seed).map_err(Failure::bad)?;
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

/// The resolved plan and the first requests of each level, with their planned times.
pub(super) fn dry_run(plan: &Plan, script: Option<&Script>) -> Result<String, Failure> {
    let mut text = plan.to_toml();
    if plan.runs > 1 {
        let runs = plan.runs;
        text.push_str(&format!(
            "\n# {runs} rounds over all levels, with other requests in each; the first:\n"
        ));
    }
    let (conduct, mix) = (Conduct::new(&plan.workload), Mix::new(&plan.target));
    let unit = if plan.counts_tokens() { "tokens" } else { "words" };
    if let Some(share) = plan.share {
        let place = share.index.saturating_sub(1);
        let what = "requests (users of a closed loop) whose number is";
        text.push_str(&format!(
            "\n# share {share}: this process sends the {what} {place} modulo {}\n",
            share.of
        ));
    }
    if let Some(slice_s) = plan.slice_s {
        text.push_str(&format!("\n# each level is looked at in slices of {slice_s} s\n"));
    }
    let stressed = stress_in_words(plan, &mut text);
    let plan = stressed.as_ref().unwrap_or(plan);
    for (ordinal, level) in plan.levels.iter().enumerate() {
        text.push_str(&format!("\n# level {}: {}\n", ordinal + 1, level.label()));
        for line in level.load.course_in_words(PIECES_SHOWN) {
            text.push_str(&format!("# {line}\n"));
        }
        let requests = match script {
            Some(Script::Data(deck)) => Preview::of_data(plan, ordinal, deck, SHOWN).map_err(Failure::bad)?,
            Some(Script::Trace(recording)) => {
                Preview::of_trace(plan, ordinal, recording, SHOWN_OF_TRACE).map_err(Failure::bad)?
            }
            None => Preview::of_level(plan, ordinal, SHOWN),
        };
        if let Some(line) = found_in_cache(plan, ordinal, script)? {
            text.push_str(&line);
        }
        for request in requests {
            let at = match request.offset_ns {
                Some(ns) => format!("at {:.6} s", ns as f64 / 1e9),
                None => "after its user's answer".to_owned(),
            };
            text.push_str(&format!(
                "# request {} {at}, {} {unit}, max_tokens {}{}: {}\n",
                request.index,
                request.words,
                request.max_tokens,
                particulars(plan, (&conduct, &mix), item(plan, &request)),
                request.prompt
            ));
            for (turn, later) in (2..).zip(&request.later) {
                let more = if later.whole { "" } else { " more" };
                text.push_str(&format!(
                    "#   turn {turn} {}, {} {unit}{more}, max_tokens {}: {}\n",
                    when(later),
                    later.words,
                    later.max_tokens,
                    later.prompt
                ));
            }
            if request.more > 0 {
                text.push_str(&format!("#   and {} more turns\n", request.more));
            }
        }
    }
    Ok(text)
}

/// Says what a stress test does; its plan with the level that is looked at in the place of the normal one, where that is
/// known beforehand.
fn stress_in_words(plan: &Plan, text: &mut String) -> Option<Plan> {
    let (stress, like) = (plan.stress.as_ref()?, plan.levels.first()?);
    for line in stress.in_words(like) {
        text.push_str(&format!("\n# {line}\n"));
    }
    let level = stress.level(like, stress.to_rate?)?;
    Some(Plan { levels: vec![level], ..plan.clone() })
}

/// When a later turn goes.
fn when(turn: &LaterTurn) -> String {
    let after = match turn.after.as_deref() {
        None => "after the answer".to_owned(),
        Some([]) => "with its session".to_owned(),
        Some([one]) => format!("after the answer to turn {}", u32::from(*one) + 1),
        Some(several) => {
            let numbers: Vec<String> =
                several.iter().map(|number| (u32::from(*number) + 1).to_string()).collect();
            format!("after the answers to turns {}", numbers.join(", "))
        }
    };
    match (turn.pause, turn.offset_ns) {
        (_, Some(ns)) if turn.after.as_ref().is_some_and(Vec::is_empty) => {
            format!("at {:.6} s", ns as f64 / 1e9)
        }
        (_, Some(ns)) => format!("at {:.6} s, or {after}", ns as f64 / 1e9),
        (Some(pause), None) if !pause.is_zero() => format!("{pause:?} {after}"),
        (_, None) => format!("at once {after}"),
    }
}

fn item(plan: &Plan, request: &Preview) -> Item {
    Item { seed: plan.level_seed(request.ordinal), phase: Phase::Measured, index: request.index }
}

/// What not all requests have in common: the model, where there are several, and how the user behaves.
fn particulars(plan: &Plan, (conduct, mix): (&Conduct, &Mix), item: Item) -> String {
    let mut said = String::new();
    if plan.target.models.len() > 1 {
        let model = mix.model(item.seed, Routing::new(&plan.target).turn_of(item));
        said += &format!(", to {}", plan.target.models[model]);
    }
    if let Some(rate) = conduct.read_rate(item) {
        said += &format!(", read at {rate} bytes/s");
    }
    if let Some(Abort { after, after_tokens }) = conduct.abort(item, 0) {
        let time = after.map(|after| format!("{} s after it is sent", after.as_secs_f64()));
        let token = after_tokens.map(|token| format!("with token {token}"));
        let when: Vec<String> = time.into_iter().chain(token).collect();
        said += &format!(", given up {}", when.join(" or "));
    }
    said
}

/// What an unlimited prefix cache would find of the prompts of a level, where they have something in common.
fn found_in_cache(plan: &Plan, ordinal: usize, script: Option<&Script>) -> Result<Option<String>, Failure> {
    let Some(level) = plan.levels.get(ordinal) else { return Ok(None) };
    // Later turns repeat what the server said before, of which nobody knows how many tokens it is.
    let of_agents = |script: &Script| match script {
        Script::Data(deck) => deck.agents().is_some(),
        Script::Trace(recording) => recording.agents().is_some(),
    };
    // Of agents it is said with the file.
    if plan.workload.conversation.is_some() || script.is_some_and(of_agents) {
        return Ok(None);
    }
    let all = match script {
        Some(Script::Trace(recording)) => Some(recording.overview().requests),
        _ => None,
    };
    let requests = [level.requests_expected(), all].into_iter().flatten().min();
    let Some(requests) = requests.filter(|requests| (1..=COUNTED_MAX).contains(requests)) else {
        return Ok(None);
    };
    let content = Content::new(plan).with_script(script.cloned());
    let sent: Vec<Sent> = (0..requests).map(|index| Sent { index, counts: true }).collect();
    let reuse = Reuse::of(&content, plan.level_seed(ordinal), &sent).map_err(Failure::bad)?;
    Ok(reuse.filter(|reuse| reuse.found_tokens > 0).map(|reuse| {
        let (share, tokens) = (100.0 * reuse.share(), reuse.prompt_tokens);
        format!("# an unlimited prefix cache finds {share:.1} % of the {tokens} prompt tokens of {requests} requests\n")
    }))
}

/// Prints the result in the wished format.
pub(super) fn show(session: &Session, finished: &Finished) -> Result<(), Failure> {
    let saved = finished.saved.as_ref().map(|path| path.display().to_string());
    let commands = next::commands(&finished.run, saved.as_deref(), &session.clock);
    show_with(session, finished, &commands)
}

/// [`show`] with `next` as the commands to type next.
pub(super) fn show_with(session: &Session, finished: &Finished, next: &[String]) -> Result<(), Failure> {
    let saved = finished.saved.as_ref().map(|path| path.display().to_string());
    let output = &session.output;
    if output.vllm.as_ref().is_some_and(|vllm| vllm.is_shown) {
        vllm_result::show(&finished.run, &finished.others.vllm, output.format, output.quiet)?;
    } else if output.aiperf.as_ref().is_some_and(|aiperf| aiperf.is_shown) {
        let levels = &finished.others.aiperf;
        aiperf_result::show(&finished.run, levels, output.format, terminal_width(), output.quiet)?;
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
