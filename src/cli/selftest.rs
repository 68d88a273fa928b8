//! `selftest`: how far off the client is on this machine, and up to which load.
//!
//! Runs the real engine against the mock server, a child process on other cores where there are any, over loads of known
//! times, compares both sides request by request and looks for the largest load at which the error stays small. The result
//! is stored: `run` quotes it. Owns the order of the trials and their time; one trial is `trial`'s.

mod errors;
mod ladder;
mod outcome;
mod server;
mod shares;
pub(super) mod stored;
mod table;
mod trial;

use super::args::SelftestArgs;
use super::exit::Exit;
use super::failure::Failure;
use super::run::{fresh_seed, terminal_style};
use super::state_dir::StateDir;
use super::value::{self, Format};
use super::{print, say, with_stdout};
use crate::plan::Error;
use crate::report::terminal;
use crate::run_file::WallTime;
use crate::sys::affinity::usable_cores;
use crate::sys::clock::RunClock;
use crate::sys::limits::raise_descriptor_limit;
use crate::sys::signals::Interrupts;
use crate::sys::usage::Ports;
use crate::time::Stamp;
use ladder::{Effort, Search, Step, ladder, sends_length_s, wished_max};
use outcome::{ERROR_MAX_NS, Limit, Machine, SCHEMA, Selftest, VERSION};
use shares::{Cores, Room};
use trial::{Bench, Watch};

/// What was ordered.
struct Order {
    effort: Effort,
    format: Format,
    quiet: bool,
    stores: bool,
}

/// Before the last moment all ends, so that the end itself is within the time, s.
const END_S: f64 = 0.4;
const NO_TIME: &str = "there was no time left for it";

pub(super) fn main(args: &SelftestArgs) -> Result<Exit, Failure> {
    let order = order(args).map_err(Failure::bad)?;
    let clock = RunClock::start();
    let usable = usable_cores();
    let cores = Cores::split(&usable);
    let user = Interrupts::listen().map_err(Failure::own)?;
    let ends = Stamp::ZERO + std::time::Duration::from_secs_f64((order.effort.all_s - END_S).max(0.0));
    let watch = Watch::new(clock, ends, user);
    let bench = Bench { cores: &cores, watch, seed: fresh_seed(&clock) };
    let selftest = Selftest {
        schema: SCHEMA.to_owned(),
        version: VERSION,
        created: WallTime::from_unix_nanos(clock.epoch_wall_ns()).to_string(),
        machine: Machine::this(usable.len()),
        cores: cores.clone(),
        error_max_ns: ERROR_MAX_NS,
        steps: Vec::new(),
        sends: None,
        limit: None,
        remarks: Vec::new(),
    };
    let mut session = Session { order: &order, bench, selftest, search: Search::default() };
    session.go()?;
    let interrupted = session.is_interrupted();
    if interrupted {
        session.remark("interrupted: loads are missing, and nothing is stored".to_owned());
    }
    let selftest = session.conclude();
    // Half a test would stand for the whole until the next one.
    let saved = match order.stores && !interrupted && !selftest.steps.is_empty() {
        true => stored::store(&selftest, StateDir::find().as_ref()).map_err(|line| say(&line)).ok(),
        false => None,
    };
    show(&selftest, order.format, saved.as_deref())?;
    Ok(if interrupted { Exit::Interrupted } else { Exit::Done })
}

fn order(args: &SelftestArgs) -> Result<Order, Error> {
    let usual = if args.quick { Effort::QUICK } else { Effort::FULL };
    let mut effort = usual;
    value::set(&mut effort, "--budget", &args.budget, |option, text| {
        let seconds = value::seconds(option, text)?;
        match seconds > 0.0 && seconds <= Effort::FULL.all_s {
            true => Ok(Effort::within(seconds)),
            false => Err(Error::new(option, format!("'{text}' is out of range"), "give up to 60 seconds")),
        }
    })?;
    let mut format = Format::default();
    value::set(&mut format, "--format", &args.format, value::format)?;
    Ok(Order { effort, format, quiet: args.quiet, stores: !args.no_save })
}

fn show(selftest: &Selftest, format: Format, saved: Option<&str>) -> Result<(), Failure> {
    match format {
        Format::Json => print(&serde_json::to_string_pretty(selftest).map_err(Failure::own)?),
        Format::Table => {
            let view = table::view(selftest, saved);
            with_stdout(|mut out| terminal::write(&view, terminal_style(), &mut out))
        }
    }
}

/// A selftest while it goes on.
struct Session<'a> {
    order: &'a Order,
    bench: Bench<'a>,
    selftest: Selftest,
    search: Search,
}

impl Session<'_> {
    /// All trials for which there is time.
    fn go(&mut self) -> Result<(), Failure> {
        let effort = self.order.effort;
        let room = Room { descriptors: raise_descriptor_limit(), ports: Ports::read().all };
        let streams_max = room.streams_max();
        if streams_max < wished_max() {
            let wished = wished_max();
            self.remark(format!("{wished} streams cannot be held, at most {streams_max}: {}", room.bound()));
        }
        if self.fits(sends_length_s(&effort)) {
            self.progress("sends at a constant rate");
            self.selftest.sends = trial::sends(effort.sends_s, &self.bench)?;
        }
        if self.selftest.sends.is_none() {
            self.lacks("sends at a constant rate", NO_TIME);
        }
        for step in ladder(&effort, self.bench.cores, streams_max) {
            if !self.fits(step.length_s(self.bench.cores)) {
                self.lacks(&format!("{} streams", step.streams), NO_TIME);
                continue;
            }
            self.try_step(&step)?;
        }
        while let Some(streams) = self.search.next() {
            let step = Step::of(streams, &effort, self.bench.cores);
            if !self.fits(step.length_s(self.bench.cores)) {
                break;
            }
            self.try_step(&step)?;
        }
        Ok(())
    }

    fn try_step(&mut self, step: &Step) -> Result<(), Failure> {
        self.progress(&format!("{} streams", step.streams));
        match trial::run(step, &self.bench)? {
            Some(done) => {
                self.search.on_tried(step.streams, done.holds());
                self.selftest.add(done);
            }
            None => self.lacks(&format!("{} streams", step.streams), NO_TIME),
        }
        Ok(())
    }

    /// The finished test.
    fn conclude(mut self) -> Selftest {
        let holding = |streams: u32| {
            let steps =
                self.selftest.steps.iter().filter(|step| step.holds() && step.step.streams <= streams);
            Limit {
                streams,
                events_s: steps.map(|step| step.events_s).max().unwrap_or(0),
                fails_at: self.search.fails(),
            }
        };
        self.selftest.limit = self.search.holds().map(holding);
        self.selftest
    }

    fn is_interrupted(&self) -> bool {
        self.bench.watch.user.count() > 0
    }

    fn fits(&self, seconds: f64) -> bool {
        !self.bench.watch.is_over() && seconds <= self.bench.watch.left_s()
    }

    /// Says why something is missing, unless the user has wished the end of all.
    fn lacks(&mut self, what: &str, why: &str) {
        if !self.is_interrupted() {
            self.remark(format!("{what}: {why}"));
        }
    }

    fn remark(&mut self, remark: String) {
        self.selftest.remarks.push(remark);
    }

    fn progress(&self, what: &str) {
        if !self.order.quiet {
            say(&format!("selftest: {what} ({:.0} s left)", self.bench.watch.left_s()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_read_and_bad_ones_named() {
        let of = |change: fn(&mut SelftestArgs)| {
            let mut args = SelftestArgs::default();
            change(&mut args);
            order(&args)
        };
        assert_eq!(of(|_| {}).unwrap().effort, Effort::FULL);
        assert_eq!(of(|args| args.quick = true).unwrap().effort, Effort::QUICK);
        assert_eq!(of(|args| args.budget = Some("2s".to_owned())).unwrap().effort.all_s, 2.0);
        assert!(of(|args| args.budget = Some("0".to_owned())).is_err());
        assert!(of(|args| args.budget = Some("61".to_owned())).is_err());
        assert!(of(|args| args.format = Some("xml".to_owned())).is_err());
        assert!(!of(|args| args.no_save = true).unwrap().stores);
    }
}
