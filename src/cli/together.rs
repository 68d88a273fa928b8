//! A run of which this process makes a share beside others: what its launcher has said becomes options, and the last of
//! the shares makes the one result.

use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use super::args::RunArgs;
use super::exit::Exit;
use super::failure::Failure;
use super::gather::{Gathering, PATIENCE, Wish};
use super::metric_view::MetricView;
use super::plan_from_args::{Order, Output, share};
use super::ranks::{self, Rank};
use super::run::{Done, conclude as conclude_run, show_run};
use super::session::Finished;
use super::target::{self, Ready};
use super::value::{StartAt, waiting};
use super::{merge, say};
use crate::load::agreed::{Agreed, Start};
use crate::plan::{Error, Plan, Secrets, Share};
use crate::report::progress::Ui;
use crate::run_file::merge::{MergeError, Options, merge as merge_files};
use crate::run_file::{Destination, RunFile, WallTime, WriteError};
use crate::sys::affinity::usable_cores;
use crate::sys::clock::RunClock;
use crate::sys::host::Host;
use crate::sys::signals::Interrupts;
use crate::workload::Script;

/// Which process of several this is, unless the options or the plan file say that.
pub(super) fn rank(args: &RunArgs, config: Option<&(&str, String)>) -> Result<Option<Rank>, Failure> {
    let is_auto = args.share.as_deref().is_none_or(|share| share == "auto");
    let of_file = config.and_then(|(_, text)| Plan::from_toml(text, 0).ok()).and_then(|plan| plan.share);
    if !is_auto || of_file.is_some() {
        return Ok(None);
    }
    ranks::of_environment(&|name| std::env::var(name).ok()).map_err(Failure::bad)
}

/// The options with the share that was found.
pub(super) fn args(args: &RunArgs, rank: Option<&Rank>) -> RunArgs {
    let share = rank.map(|rank| format!("{}/{}", rank.share.index, rank.share.of));
    RunArgs { share: share.or_else(|| args.share.clone()), ..args.clone() }
}

/// What is wrong with a share that nobody typed is said with where it comes from.
pub(super) fn said_of(rank: &Rank, failure: Failure) -> Failure {
    failure.and(format!(
        "this is share {} by {}; --share none makes the whole load in this process",
        rank.share, rank.by
    ))
}

/// Makes of the order of one process that of one among others: one name for the result, files that do not collide, no
/// display but that of the first share.
pub(super) fn prepare(order: &mut Order, rank: Option<Rank>) -> Result<(), Failure> {
    let is_typed = order.output.start_at == Some(StartAt::Together);
    let Some(own) = order.plan.share.filter(|share| share.of > 1) else {
        return match is_typed {
            true => {
                Err(refused("--start-at", "this is the whole run and no share of one", "leave out together"))
            }
            false => Ok(()),
        };
    };
    if rank.is_none() && !is_typed {
        return Ok(());
    }
    let output = &mut order.output;
    if output.no_save {
        let wrong = "contradicts a run of several processes, whose shares are merged from their files";
        return Err(refused("--no-save", wrong, "leave it out, or give --share none"));
    }
    if output.detailed || !output.exports.is_empty() {
        let option = if output.detailed { "--save-detailed" } else { "--export" };
        let wrong = "each process would write a part of it in one place";
        return Err(refused(
            option,
            wrong,
            "leave it out, and give tokload report with --export of the merged run",
        ));
    }
    if output.vllm.as_ref().is_some_and(|vllm| vllm.file.is_some()) {
        let wrong = "each process would write its part in one place";
        return Err(refused(
            "--save-result",
            wrong,
            "leave it out, and give tokload report of the merged run",
        ));
    }
    let is_others = std::mem::take(&mut output.view) != MetricView::Tokload;
    if output.vllm.take().is_some() | output.aiperf.take().is_some() | is_others {
        order.notes.push(
            "the merged run is shown as tokload shows it: tokload report RUN.json --metric-view shows it otherwise"
                .to_owned(),
        );
    }
    let job = rank.as_ref().and_then(|rank| rank.job.as_deref());
    output.file = Some(match (&output.file, job) {
        (Some(file), _) => file.clone(),
        (None, Some(job)) => {
            let safe = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '-' };
            let name = format!("tokload-{}.json", job.chars().map(safe).collect::<String>());
            Path::new(output.dir.as_deref().unwrap_or("")).join(name).display().to_string()
        }
        (None, None) => {
            let wrong = "is missing: each process would name its share by its own clock";
            return Err(refused("--output-file", wrong, "name one in a folder that all hosts share"));
        }
    });
    let client = &mut order.plan.client;
    if client.affinity.is_none()
        && client.workers.is_none()
        && let Some(cores) = rank.as_ref().and_then(|rank| rank.cores(&usable_cores(), Host::read().cores))
    {
        client.workers = cores.is_empty().then_some(1);
        client.affinity = Some(cores);
    }
    if own.index > 1 {
        (output.ui, output.one_line, output.quiet) = (Ui::None, !output.quiet, true);
    } else if let Some(rank) = &rank {
        order.notes.insert(0, format!("this is share {own} by {}", rank.by));
    }
    order.rank = rank;
    Ok(())
}

fn refused(option: &str, wrong: &str, remedy: &str) -> Failure {
    Failure::bad(Error::new(option, wrong, remedy))
}

/// The result of all shares.
fn result_of(output: &Output) -> PathBuf {
    PathBuf::from(output.file.as_deref().unwrap_or_default())
}

/// Opens the folder in which the shares meet, if they are to. From then on the user's wish to stop is noted and no longer ends
/// the process by itself: what stands in the folder has to say what became of it.
pub(super) fn open(order: &Order, clock: RunClock) -> Result<Option<Gathering>, Failure> {
    let output = &order.output;
    let is_typed = output.start_at == Some(StartAt::Together);
    let share = order.plan.share.filter(|share| share.of > 1);
    let Some(share) = share.filter(|_| order.rank.is_some() || is_typed) else { return Ok(None) };
    let result = result_of(output);
    if result.exists() && !output.force {
        return Err(Failure::of_write(&WriteError::Exists { path: result }));
    }
    if let Some(dir) = output.dir.as_deref().map(Path::new) {
        std::fs::create_dir_all(dir).map_err(|error| Failure::unwritable(dir, &error))?;
    }
    let wish = Wish {
        share,
        result: &result,
        job: order.rank.as_ref().and_then(|rank| rank.job.as_deref()),
        timeout: output.share_timeout.unwrap_or(PATIENCE),
        start_at: output.start_at.unwrap_or(StartAt::Together),
        clock,
    };
    Interrupts::listen().map_err(Failure::own)?;
    Gathering::open(&wish).map(Some).map_err(Failure::bad)
}

/// How often the user's wish to stop is looked for.
const LOOK: Duration = Duration::from_millis(20);

/// [`target::ready`] for a process that others wait for. It is done on a thread of its own, for whoever asks a server has to
/// wait for its answer, and the user does not.
///
/// # Errors
/// Those of [`target::ready`], and that the user has ended the wait; the thread then ends with the process.
pub(super) fn ready(
    plan: &mut Plan,
    script: Option<Script>,
    secrets: &Secrets,
    wait: Duration,
) -> Result<Ready, Failure> {
    let user = Interrupts::listen().map_err(Failure::own)?;
    let (tell, told) = channel();
    let (mut own, secrets) = (plan.clone(), secrets.clone());
    let thread = std::thread::Builder::new().name("ready".to_owned()).spawn(move || {
        let ready = target::ready(&mut own, script, &secrets, wait);
        // Nobody listens if the user has ended the wait.
        let _ = tell.send(ready.map(|ready| (own, ready)));
    });
    let thread = thread.map_err(|error| Failure::own(format!("no thread to ask the server: {error}")))?;
    while user.count() == 0 {
        match told.recv_timeout(LOOK) {
            Ok(done) => {
                let (changed, ready) = done?;
                *plan = changed;
                return Ok(ready);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => match thread.join() {
                Err(panic) => resume_unwind(panic),
                Ok(()) => {
                    return Err(Failure::own("the thread that asks the server has ended without a word"));
                }
            },
        }
    }
    Err(Failure::interrupted("ended by the user while it waited for the server"))
}

/// The start of a process that meets no others: at a time, or so long after it is ready.
pub(super) fn alone_at(start_at: Option<StartAt>, clock: RunClock) -> Result<Option<Arc<Agreed>>, Failure> {
    let wall_ns = move || clock.now().as_nanos().saturating_add_signed(clock.wall_offset().wall_minus_run_ns);
    let first: Box<dyn Fn() -> Start + Send + Sync> = match start_at {
        None | Some(StartAt::Together) => return Ok(None),
        Some(StartAt::After(after)) => Box::new(move || {
            let ahead_ns = u64::try_from(after.as_nanos()).unwrap_or(u64::MAX);
            let at = WallTime::from_unix_nanos(wall_ns().saturating_add(ahead_ns));
            Start { at: clock.now() + after, note: waiting(at, after) }
        }),
        Some(StartAt::Wall(at)) => {
            let late_ns = wall_ns().saturating_sub(at.unix_nanos());
            if late_ns > 0 {
                let wrong = format!("{at} was {:.1} s before all was ready", late_ns as f64 / 1e9);
                return Err(refused("--start-at", &wrong, "name a later time, or +10s"));
            }
            Box::new(move || {
                let now = wall_ns();
                let ahead = Duration::from_nanos(at.unix_nanos().saturating_sub(now));
                let late = now.saturating_sub(at.unix_nanos());
                let note = (late > 0).then(|| {
                    format!(
                        "the warm-up ended {:.3} s behind --start-at: the run starts at once",
                        late as f64 / 1e9
                    )
                });
                Start { at: clock.now() + ahead, note: note.or_else(|| waiting(at, ahead)) }
            })
        }
    };
    // Only the first level has a time of its own.
    Ok(Some(Arc::new(Agreed::known(move |ordinal| match ordinal {
        0 => first(),
        _ => Start { at: clock.now(), note: None },
    }))))
}

/// Says what became of this share, and merges all of them if it was the last.
pub(super) fn conclude(done: Done, mut gathering: Gathering) -> Result<Exit, Failure> {
    let Done { session, finished, gate } = done;
    let Finished { run, failed, unsaved, .. } = finished;
    unsaved.iter().try_for_each(|text| super::print(text.trim_end()))?;
    gathering.end(failed.as_ref().map(ToString::to_string).as_deref());
    if let Some(failed) = failed {
        return Err(failed);
    }
    let output = &session.output;
    let Some(own) = output.share else { return Ok(Exit::Done) };
    let result = result_of(output);
    let own_file = share::file(&result, Some(own));
    if !output.quiet || output.one_line {
        say(&own_line(&run, own, &own_file));
    }
    let saved = |failure: Failure| failure.and(format!("the shares are saved: {}", by_hand(&result, own)));
    if !gathering.is_to_merge().map_err(|error| saved(Failure::own(error)))? {
        if gathering.is_first() && !output.quiet {
            let open = gathering.open_shares();
            let numbers: Vec<String> = open.iter().map(|sign| sign.share.to_string()).collect();
            if !open.is_empty() {
                say(&format!("not through yet: {}; the last share merges all", numbers.join(", ")));
            }
        }
        return Ok(if run.interrupted { Exit::Interrupted } else { Exit::Done });
    }
    let merged = merged(&result, own, output.force).map_err(saved);
    // All are saved, so that nobody asks any more what became of whom.
    gathering.clear();
    let merged = merged?;
    show_run(&merged, output.format, &merge::next(&result), Some(&result.display().to_string()))?;
    let whole = Finished {
        run: merged,
        saved: Some(result),
        unsaved: None,
        others: Default::default(),
        others_saved: Vec::new(),
        records: Vec::new(),
        failed: None,
        lingering: None,
    };
    conclude_run(whole, gate)
}

/// What a share has to say when it is through.
fn own_line(run: &RunFile, own: Share, file: &Path) -> String {
    let (ok, failed) = run
        .levels
        .iter()
        .fold((0, 0), |(ok, failed), level| (ok + level.counts.ok, failed + level.counts.failed));
    let stopped = if run.interrupted { ", stopped early" } else { "" };
    format!("share {own}: {ok} requests ok, {failed} failed{stopped}; saved {}", file.display())
}

fn merged(result: &Path, own: Share, force: bool) -> Result<RunFile, Failure> {
    let destination = Destination::at(result.to_owned(), force).map_err(|error| Failure::of_write(&error))?;
    let files: Vec<PathBuf> =
        (1..=own.of).map(|index| share::file(result, Some(Share { index, ..own }))).collect();
    let run = merge_files(&files, &destination, Options::default()).map_err(|error| match error {
        MergeError::Write(error) => Failure::of_write(&error),
        other => Failure::bad(other),
    })?;
    merge::save(&run, &destination)?;
    Ok(run)
}

fn by_hand(result: &Path, own: Share) -> String {
    let any = share::file(result, Some(Share { index: 1, ..own }));
    let files = any.display().to_string().replace(".share-1-of-", ".share-*-of-");
    format!("tokload merge {files} --output-file {}", result.display())
}
