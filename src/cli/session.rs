//! One run from a ready target to a saved file: files opened, engine driven, levels summarised, result written.

mod others;
pub(super) mod ports;
mod room;
mod saving;
mod spools;
mod telemetry;
mod watching;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::cli::failure::Failure;
use crate::cli::own_words;
use crate::cli::plan_from_args::{Output, share};
use crate::cli::script::ScriptBlocks;
use crate::cli::selftest;
use crate::cli::target::Ready;
use crate::engine::{Course, Driven, Engine, drive};
use crate::load::agreed::Agreed;
use crate::load::{LoadEngine, Setup, Target, probe};
use crate::metrics::Record;
use crate::mock::Paper;
use crate::pace::Kernel;
use crate::plan::{Plan, Secrets};
use crate::report::selftest::plan_beyond;
use crate::run::{Event, LevelResult};
use crate::run_file::schema::{
    ClockOffset, EnvironmentBlock, RunFile, TargetBlock, TelemetryBlock, VIRTUAL_CLOCK,
};
use crate::run_file::{Chunks, Destination, WallTime};
use crate::sim::{self, SimEngine};
use crate::strategy::{Hunt, Surge, Trial};
use crate::summary;
use crate::summary::telemetry::Observed;
use crate::sys::affinity::usable_cores;
use crate::sys::clock::{RunClock, Source};
use crate::sys::host::Host;
use crate::sys::limits::reserve_descriptors;
use crate::sys::signals::Interrupts;
use crate::sys::usage::Ports;
use crate::telemetry::Telemetry;
use crate::workload::Content;

pub(super) use others::Others;
pub(super) use room::check_limits;
use room::{OWN_DESCRIPTORS, shard_cores};
use spools::{EXACT_MAX, Spools};
pub(super) use watching::Lingering;
use watching::Watching;

/// What a session needs beside the plan.
pub(super) struct Session {
    pub(super) clock: RunClock,
    pub(super) output: Output,
    pub(super) secrets: Secrets,
    /// The words after the program's name.
    pub(super) typed: Vec<String>,
    /// What is said before the first request, one line each, unless it is to be quiet.
    pub(super) warnings: Vec<String>,
    /// What is stored of the file of requests, if there is one.
    pub(super) blocks: ScriptBlocks,
    /// No level is begun that would end later than this, s after the session's start; `f64::INFINITY`: no limit.
    pub(super) ends_within_s: f64,
    /// What a search for capacity has tried in an earlier run.
    pub(super) earlier: Vec<Trial>,
    /// What ends the run early for a program that uses the library: no signal is listened to then, nothing is printed, and
    /// the records are kept in memory. `None`: the run is a command's.
    pub(super) library: Option<Interrupts>,
    /// Where the starts of levels are agreed on with other processes, or known beforehand.
    pub(super) agreed: Option<Arc<Agreed>>,
    /// How this machine's clock stands to that of the first share of the run.
    pub(super) clock_offset: Option<ClockOffset>,
}

/// What the engine brought home.
struct Conducted {
    driven: Driven,
    /// The search for capacity, if that is what it was.
    hunt: Option<Hunt>,
    /// What servers, GPUs and this machine said meanwhile.
    observed: Observed,
    interrupts: Interrupts,
}

/// A run that is over.
pub(super) struct Finished {
    pub(super) run: RunFile,
    /// Where it is saved; `None` if it is not.
    pub(super) saved: Option<PathBuf>,
    /// The text of its file where no disk has room for that: it is to follow the table.
    pub(super) unsaved: Option<String>,
    /// Its levels as other tools would have them.
    pub(super) others: Others,
    /// The files that these tools would have written.
    pub(super) others_saved: Vec<PathBuf>,
    /// The records of its levels where they are kept; empty in a run of a command.
    pub(super) records: Vec<Option<Vec<Record>>>,
    /// Why the run ended before its last level, if it did.
    pub(super) failed: Option<Failure>,
    /// The endpoint for its metrics, where that stays open for a while.
    pub(super) lingering: Option<Lingering>,
}

/// What is made of the levels beside the run.
#[derive(Default)]
struct Beside {
    others: Others,
    records: Vec<Option<Vec<Record>>>,
    /// Why a level could not be seen as other tools would have it.
    unseen: Option<Failure>,
}

/// Files of a run and what else it needs of the machine, opened before anything is measured.
pub(super) struct Files {
    destination: Destination,
    /// The files are only there to be read once.
    temporary: bool,
    /// Who looks on.
    watching: Watching,
}

/// Runs of this process so far that are not saved.
static UNSAVED: AtomicU64 = AtomicU64::new(0);

impl Files {
    /// Opens the place of the result, so that an unwritable one is known before the run.
    pub(super) fn open(output: &Output, clock: &RunClock) -> Result<Files, Failure> {
        let watching = Watching::open(output)?;
        output.exports.iter().try_for_each(|export| export.check(output.force))?;
        let time = WallTime::from_unix_nanos(clock.epoch_wall_ns());
        let dir = output.dir.as_deref().unwrap_or(".");
        fs::create_dir_all(dir).map_err(|error| {
            Failure::unwritable(Path::new(dir), &error).and("name a --result-dir that can be written")
        })?;
        let suffix = share::suffix(output.share);
        let opened = match &output.file {
            _ if output.no_save => {
                // Runs of one process may go on at once, and nothing bears the name before its run has ended.
                let number = UNSAVED.fetch_add(1, Ordering::Relaxed);
                Destination::named_after(time, &format!("-{number}{suffix}"), &std::env::temp_dir())
            }
            Some(path) => Destination::at(share::file(Path::new(path), output.share), output.force),
            None => Destination::named_after(time, &suffix, Path::new(dir)),
        };
        let destination = opened.map_err(|error| Failure::of_write(&error))?;
        if output.detailed {
            saving::check_detailed(destination.path(), output.force)?;
        }
        Ok(Files { destination, temporary: output.no_save, watching })
    }
}

impl Session {
    /// Runs the plan's levels on a ready target.
    pub(super) fn run(&self, plan: &Plan, ready: &Ready, files: Files) -> Result<Finished, Failure> {
        let limit = check_limits(plan)?;
        let of_ports = ports::check(plan, &ready.target.routes, &Ports::read())?;
        reserve_descriptors(plan.descriptors_needed().connections.saturating_add(OWN_DESCRIPTORS));
        let cores = shard_cores(plan)?;
        let spools = Spools::open(plan, &files.destination, files.temporary)?;
        // Until here Ctrl-C ends the program; from here on it ends the run, and what was measured is kept.
        let interrupts = self.interrupts()?;
        let setup = Setup {
            clock: self.clock,
            plan: Arc::new(plan.clone()),
            target: Arc::clone(&ready.target),
            ask: probe::ask_of(plan),
            cores: cores.clone(),
            spool: spools.start(plan, self.clock)?,
            live: files.watching.live(cores.len()),
            interrupts: interrupts.clone(),
            agreed: self.agreed.clone(),
        };
        let mut engine = LoadEngine::start(setup)?;
        let (quoted, unusable) = selftest::stored::quoted(usable_cores().len());
        let mut notes: Vec<String> = unusable.into_iter().chain(of_ports).collect();
        notes.extend(quoted.as_ref().and_then(|block| plan_beyond(plan, block)));
        let environment =
            EnvironmentBlock { selftest: quoted, ..self.environment(plan, (&engine, &cores, limit)) };
        spools.begin(&self.head(plan, ready.facts.clone(), environment.clone()))?;
        let telemetry = telemetry::start(plan, ready, self.clock)?;
        let lookers = (&files.watching, interrupts, Some(&telemetry));
        let mut driven = self.conduct(&mut engine, plan, (&notes, &spools), lookers);
        driven.observed = telemetry.finish(telemetry::PATIENCE);
        let facts = TargetBlock { prefix_cache_reset: engine.prefix_caches_emptied(), ..ready.facts.clone() };
        let lost = engine.finish().err().map(Failure::from);
        let about = (facts, environment, &ready.target.content);
        let mut finished = self.write_up(plan, about, driven, (spools, files))?;
        finished.failed = finished.failed.or(lost);
        Ok(finished)
    }

    /// Runs the plan's levels against modelled servers in virtual time, one for each route of the target.
    pub(super) fn simulate(
        &self,
        plan: &Plan,
        target: Arc<Target>,
        servers: Vec<Paper>,
        files: Files,
    ) -> Result<Finished, Failure> {
        let spools = Spools::open(plan, &files.destination, files.temporary)?;
        let interrupts = self.interrupts()?;
        let mut engine = SimEngine::new(sim::Setup {
            plan: Arc::new(plan.clone()),
            target: Arc::clone(&target),
            ask: probe::ask_of(plan),
            servers,
            spool: spools.start(plan, self.clock)?,
            live: files.watching.live(1),
            interrupts: interrupts.clone(),
        });
        let facts = TargetBlock { kind: Some("simulated server".to_owned()), ..TargetBlock::default() };
        let environment = EnvironmentBlock {
            driver: Some("none: simulated".to_owned()),
            clock: Some(VIRTUAL_CLOCK.to_owned()),
            ..self.machine(plan)
        };
        spools.begin(&self.head(plan, facts.clone(), environment.clone()))?;
        let driven = self.conduct(&mut engine, plan, (&[], &spools), (&files.watching, interrupts, None));
        // What the spool says is said again by the file at its end.
        let _ = engine.finish();
        self.write_up(plan, (facts, environment, &target.content), driven, (spools, files))
    }

    fn interrupts(&self) -> Result<Interrupts, Failure> {
        self.library.clone().map_or_else(|| Interrupts::listen().map_err(Failure::own), Ok)
    }

    fn conduct(
        &self,
        engine: &mut dyn Engine,
        plan: &Plan,
        (notes, spools): (&[String], &Spools),
        (watching, interrupts, telemetry): (&Watching, Interrupts, Option<&Telemetry>),
    ) -> Conducted {
        if !self.output.quiet {
            self.warnings.iter().for_each(|warning| super::say(warning));
            watching.note().iter().for_each(|note| super::say(note));
        }
        let viewer = telemetry.map(Telemetry::viewer);
        let mut progress = watching.progress(plan, self.clock, interrupts.clone(), viewer);
        notes.iter().for_each(|note| progress.on_event(&Event::Note(note)));
        let mut hunt = Hunt::of(plan, &self.earlier);
        let surge = Surge::of(plan);
        let levels = plan.in_rounds();
        let mut next = |done: &[LevelResult]| match &mut hunt {
            _ if !self.has_time_for_another(done) => None,
            Some(hunt) => hunt.next(done),
            None => match &surge {
                Some(surge) => surge.next(done),
                None => levels.get(done.len()).cloned(),
            },
        };
        let searches = plan.search.is_some() || surge.as_ref().is_some_and(|surge| surge.levels().is_none());
        let course = Course {
            first: self.earlier.len(),
            levels: (!searches).then_some(levels.len()),
            next: &mut next,
        };
        let driven = drive(engine, course, &mut |event| {
            watching.on_event(&event);
            if let Event::LevelFinished(result) = &event {
                spools.level_done(result);
            }
            match (telemetry, &event) {
                (Some(telemetry), Event::LevelStarted { .. } | Event::MeasuringStarted { .. }) => {
                    telemetry.cut()
                }
                (Some(telemetry), Event::LevelFinished(_)) => telemetry.look(),
                _ => {}
            }
            progress.on_event(&event);
        });
        progress.finish();
        Conducted { driven, hunt, observed: Observed::default(), interrupts }
    }

    /// Summarises what was measured and saves it.
    fn write_up(
        &self,
        plan: &Plan,
        about: (TargetBlock, EnvironmentBlock, &Content),
        conducted: Conducted,
        into: (Spools, Files),
    ) -> Result<Finished, Failure> {
        let (spools, files) = into;
        let Conducted { driven, hunt, observed, interrupts } = conducted;
        let mut beside = Beside::default();
        let mut run = self.assemble(plan, about, (&driven, hunt, &observed), (&spools, &mut beside));
        // A program that has stopped its own run asks for what there is of it.
        let is_empty = || run.levels.iter().all(|level| level.counts.planned == 0);
        if self.library.is_none() && driven.failed.is_none() && run.interrupted && is_empty() {
            spools.discard();
            return Err(Failure::unmeasured());
        }
        let Beside { others, records, unseen } = beside;
        // Whatever of it cannot be kept, the rest is kept and shown.
        let mut failures: Vec<Failure> = driven.failed.map(Failure::from).into_iter().collect();
        failures.extend(unseen);
        let mut others = others;
        match self.view_of_others(&run, &spools, &plan.slo) {
            Ok(view) => others.view = view,
            Err(failure) => failures.push(failure),
        }
        let (kept, whole) = spools.finish(&mut run, files.temporary);
        failures.extend(whole.err());
        let (saved, unsaved) = match self.save(&mut run, &files, &mut failures) {
            Ok(saved) => {
                drop(kept);
                (saved, None)
            }
            // What could not be saved can still be reported from its checkpoint.
            Err(unsaved) => {
                kept.stay();
                (None, unsaved.text)
            }
        };
        let others_saved = self.save_others(&run, &others, saved.as_deref(), &plan.slo, &mut failures);
        let mut failures = failures.into_iter();
        let failed = failures.next();
        if self.library.is_none() {
            failures.for_each(|further| super::say(&format!("tokload: {further}")));
        }
        let lingering = files.watching.into_lingering(interrupts);
        Ok(Finished { run, saved, unsaved, others, others_saved, records, failed, lingering })
    }

    /// Whether a level half as long again as the last one would still end in time.
    fn has_time_for_another(&self, done: &[LevelResult]) -> bool {
        let last = done.last().map_or(0.0, |level| (level.span.t2 - level.span.t0).as_secs_f64());
        self.clock.now().as_secs_f64() + 1.5 * last <= self.ends_within_s
    }

    fn environment(
        &self,
        plan: &Plan,
        (engine, cores, limit): (&LoadEngine, &[Option<u32>], u64),
    ) -> EnvironmentBlock {
        let driver = match engine.kernel() {
            Kernel::Epoll => "epoll",
            Kernel::IoUring => "io_uring",
        };
        let clock = match self.clock.source() {
            Source::Counter => "tsc",
            Source::Monotonic => "clock_gettime",
        };
        EnvironmentBlock {
            cores_used: cores.iter().copied().flatten().collect(),
            shards: u32::try_from(cores.len()).ok(),
            driver: Some(driver.to_owned()),
            open_files_max: Some(limit),
            clock: Some(clock.to_owned()),
            ..self.machine(plan)
        }
    }

    /// What is true of the machine, whatever runs on it.
    fn machine(&self, plan: &Plan) -> EnvironmentBlock {
        let host = Host::read();
        EnvironmentBlock {
            command_line: self.typed.clone(),
            host: host.name.filter(|_| self.output.share.is_some()),
            clock_offset: self.clock_offset,
            platform: Some(format!("{} {}", std::env::consts::OS, std::env::consts::ARCH)),
            kernel: host.kernel,
            cpu_model: host.cpu_model,
            cores_machine: host.cores,
            cores_usable: u32::try_from(usable_cores().len()).ok(),
            memory_bytes: host.memory_bytes,
            proxies: super::proxies::ignored(plan),
            ..EnvironmentBlock::default()
        }
    }

    /// The run before its first level, free of secrets.
    fn head(&self, plan: &Plan, facts: TargetBlock, environment: EnvironmentBlock) -> RunFile {
        let created = WallTime::from_unix_nanos(self.clock.epoch_wall_ns());
        let mut run = RunFile::new(created, plan, environment, facts);
        run.label = self.output.label.clone();
        (run.trace, run.data) = (self.blocks.trace.clone(), self.blocks.data.clone());
        run.metadata = self.output.metadata.iter().cloned().collect();
        self.scrub(&mut run);
        run
    }

    fn scrub(&self, run: &mut RunFile) {
        let secrets: Vec<&str> = self.secrets.texts().collect();
        run.scrub(&secrets);
    }

    fn assemble(
        &self,
        plan: &Plan,
        about: (TargetBlock, EnvironmentBlock, &Content),
        conducted: (&Driven, Option<Hunt>, &Observed),
        (spools, beside): (&Spools, &mut Beside),
    ) -> RunFile {
        let (driven, mut hunt, observed) = conducted;
        let mut run = self.head(plan, about.0, about.1);
        let mut chunks = spools.chunks.as_ref().and_then(|spool| Chunks::open(spool.part()).ok());
        for (place, result) in driven.finished.iter().enumerate() {
            // A record file that cannot be read costs exactness, not the level: the histograms have every request.
            let records = spools.read(result).unwrap_or(None);
            if let Some(range) =
                result.records.filter(|range| range.count > EXACT_MAX && self.library.is_none())
            {
                super::say(&format!(
                    "level {} has {} requests, too many to look at one by one: its numbers are those of histograms, \
                     without goodput and intervals; its records are kept",
                    place + 1,
                    range.count
                ));
            }
            if let (Some(hunt), Some(records)) = (&mut hunt, &records) {
                hunt.look_at(place, records, plan);
            }
            let input = summary::Input::new(result, records.as_deref(), plan.slo);
            let users = summary::Users::of(&result.level.load, plan.own_share());
            let input = summary::Input { steady_cut: plan.steady_cut, users, ..input };
            let numbers = summary::level(&input);
            run.push(result, &numbers);
            if let Some(level) = run.levels.last_mut() {
                let ours = summary::telemetry::Ours::of(&numbers);
                level.telemetry = summary::telemetry::level(observed, result.span, numbers.window, &ours);
            }
            if let (Some(records), Some(level)) = (&records, run.levels.last_mut()) {
                level.look_at(plan, records, &plan.slo);
            }
            let others = &mut beside.others;
            let seen = self.view_as_others(&run, records.as_deref(), chunks.as_mut(), &plan.slo, others);
            beside.unseen = beside.unseen.take().or(seen.err());
            // A share sees its own requests alone, and a cache those of all.
            let all = records.as_ref().filter(|_| plan.share.is_none());
            if let (Some(records), Some(level)) = (all, run.levels.last_mut()) {
                let content = about.2.clone().of_level(&result.level, result.ordinal);
                level.find_reuse(&content, plan.level_seed(result.ordinal), records);
            }
            if self.library.is_some() {
                beside.records.push(records);
            }
        }
        run.telemetry = TelemetryBlock::of(observed);
        run.compare_repeats();
        run.capacity = hunt.map(|hunt| hunt.into_found(&driven.finished));
        run.find_knee();
        self.scrub(&mut run);
        run.judge();
        own_words::advise(&mut run, &self.typed);
        run
    }
}
