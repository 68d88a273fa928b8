//! The processes of one run find each other, begin together, and the last of them knows that it is.
//!
//! They talk through small files in a folder beside the output (`run_file::gathering`), since a folder is what a
//! scheduler's processes have in common. Before the run all wait until all are there, each compares its clock with that of
//! the first share, and the first share each one's plan with its own. A thread of its own writes signs of life from the
//! beginning on and agrees on the start of each level; nothing of that touches a shard.

mod first;
mod other;
mod place;
mod starts;
#[cfg(test)]
mod tests;

use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::failure::Failure;
use super::value::StartAt;
use crate::load::agreed::Agreed;
use crate::plan::{Plan, Share};
use crate::run_file::WallTime;
use crate::run_file::gathering::{First, Folder, Sign, Stage, Told};
use crate::run_file::schema::ClockOffset;
use crate::sys::clock::RunClock;
use crate::sys::host::Host;
use crate::sys::signals::Interrupts;
use crate::time::Stamp;

/// How long shares wait for each other unless the user says otherwise.
pub(super) const PATIENCE: Duration = Duration::from_secs(300);
/// A process of which nothing is heard for so long is not waited for any more.
const LOST: Duration = Duration::from_secs(20);
/// How often a process writes that it lives.
const BEAT: Duration = Duration::from_secs(1);
/// A failure that was there before us is believed only after so long, in which its process may be started again.
const GRACE: Duration = Duration::from_secs(3);

/// One that is older is of another start of the same job.
const RECENT: Duration = Duration::from_secs(60);

/// What a gathering is to be.
pub(super) struct Wish<'a> {
    /// This process's part.
    pub(super) share: Share,
    /// Where the result of all is to be.
    pub(super) result: &'a Path,
    /// What the launcher calls the start of these processes.
    pub(super) job: Option<&'a str>,
    /// How long others are waited for.
    pub(super) timeout: Duration,
    /// When the first level starts.
    pub(super) start_at: StartAt,
    /// The run's time line.
    pub(super) clock: RunClock,
}

/// This process among the others of its run.
pub(super) struct Gathering {
    inner: Arc<Inner>,
    thread: Option<JoinHandle<()>>,
}

/// Why the processes of a run do not come together.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unmet {
    /// Some did not come, or have failed.
    Absent(String),
    /// What was typed is wrong: a share was started twice, or is one of another run.
    Refused(String),
    /// The user has ended the wait.
    Stopped,
}

/// In what a process is another one than it would be; for tests.
#[derive(Clone, Copy)]
struct Odds {
    /// How much more its clock shows than the machine's.
    shift_ns: i64,
    /// See [`GRACE`].
    grace: Duration,
}

struct Inner {
    share: Share,
    folder: Folder,
    /// The job has a name of its own, so that whatever bears it is of this run.
    is_named: bool,
    timeout: Duration,
    grace: Duration,
    start_at: StartAt,
    wall: Wall,
    /// What this process says of itself.
    sign: Mutex<Sign>,
    /// Another process has put its sign where ours stands: who it is.
    taken: OnceLock<String>,
    /// What stood in the folder before us.
    before: Before,
    /// What it says to the others, if it is the first share.
    first: Mutex<First>,
    agreed: Arc<Agreed>,
    over: AtomicBool,
}

/// What stands in the folder when a process comes, which may be of an earlier run.
struct Before {
    /// Whose signs, and how often they had been written.
    signs: Vec<(String, u64)>,
    /// Whose word to the others, and how often that had been.
    first: Option<(String, u64)>,
}

/// The wall clock, and the way from it to the run's time line.
#[derive(Clone, Copy)]
struct Wall {
    run: RunClock,
    /// How much more it shows than it does; only tests have another clock than the machine's.
    shift_ns: i64,
}

impl Wall {
    fn now_ns(self) -> u64 {
        let offset = self.run.wall_offset().wall_minus_run_ns;
        self.run.now().as_nanos().saturating_add_signed(offset).saturating_add_signed(self.shift_ns)
    }

    /// The stamp of a time of this clock: now if it has passed, which the second value says by how much, ns.
    fn stamp(self, wall_ns: u64) -> (Stamp, u64) {
        let now = self.now_ns();
        let ahead = Duration::from_nanos(wall_ns.saturating_sub(now));
        (self.run.now() + ahead, now.saturating_sub(wall_ns))
    }

    fn text(self) -> String {
        WallTime::from_unix_nanos(self.now_ns()).to_string()
    }
}

impl Gathering {
    /// Says in the folder that this process is there, and goes on saying so.
    ///
    /// # Errors
    /// The folder cannot be written to, or another process that lives makes the same share.
    pub(super) fn open(wish: &Wish<'_>) -> Result<Gathering, String> {
        Gathering::open_by(wish, Odds { shift_ns: 0, grace: GRACE })
    }

    fn open_by(wish: &Wish<'_>, odds: Odds) -> Result<Gathering, String> {
        let wall = Wall { run: wish.clock, shift_ns: odds.shift_ns };
        let folder = Folder::beside(wish.result, wish.job);
        // No other process has the same: hosts differ, or process ids, or the time.
        let host = Host::read().name;
        let pid = std::process::id();
        let place = std::ptr::from_ref(wish).addr() as u64;
        let token = [wall.now_ns(), u64::from(pid), place, u64::from(wish.share.index)]
            .into_iter()
            .chain(host.iter().flat_map(|name| name.bytes().map(u64::from)))
            .fold(0, |token, part| crate::rng::mixed(token ^ part));
        let token = format!("{token:016x}");
        let sign = Sign {
            share: wish.share.index,
            of: wish.share.of,
            token: token.clone(),
            first: None,
            host,
            pid,
            at: wall.text(),
            beat: 0,
            stage: Stage::Waiting,
            plan: None,
            asked: 0,
            clock: None,
            ready: None,
            said: None,
        };
        let cannot = |error: std::io::Error| {
            format!(
                "{}: {error}: the processes of a run meet in this folder; name an --output-file in a folder that all of \
                 them can write to",
                folder.path().display()
            )
        };
        folder.make().map_err(cannot)?;
        place::look(&folder, &sign, wall.run)?;
        let before = Before {
            signs: folder.everybody().into_iter().map(|sign| (sign.token, sign.beat)).collect(),
            first: folder.first().map(|first| (first.token, first.beat)),
        };
        folder.put_sign(&sign).map_err(cannot)?;
        let inner = Inner {
            share: wish.share,
            folder,
            is_named: wish.job.is_some(),
            timeout: wish.timeout,
            grace: odds.grace,
            start_at: wish.start_at,
            wall,
            sign: Mutex::new(sign),
            taken: OnceLock::new(),
            before,
            first: Mutex::new(First { token, ..First::default() }),
            agreed: Arc::default(),
            over: AtomicBool::new(false),
        };
        let inner = Arc::new(inner);
        let thread = std::thread::Builder::new().name("gathering".to_owned()).spawn({
            let inner = Arc::clone(&inner);
            move || starts::agree(&inner)
        });
        let thread = thread.map_err(|error| format!("no thread for signs of life: {error}"))?;
        Ok(Gathering { inner, thread: Some(thread) })
    }

    /// Waits until all shares are there and ready to run `plan`, unless `user` ends the wait. Returns what the user should
    /// know of it.
    ///
    /// # Errors
    /// Another share has failed or did not come in time, runs another plan, or is made by two processes: a sentence that
    /// says which, and what to do.
    pub(super) fn meet(&mut self, plan: &Plan, user: &Interrupts) -> Result<Vec<String>, Unmet> {
        let inner = &*self.inner;
        let told = Told::of(plan, &inner.sign().token);
        let put = inner.folder.put_told(inner.share.index, &told);
        put.map_err(|error| Unmet::Refused(format!("{}: {error}", inner.folder.path().display())))?;
        inner.write(|sign| sign.plan = Some(told.mark()));
        let notes = if self.is_first() { first::meet(inner, &told, user) } else { other::meet(inner, user) }?;
        inner.write(|sign| sign.stage = Stage::Running);
        Ok(notes)
    }

    /// Where the starts of levels are agreed on.
    pub(super) fn agreed(&self) -> Arc<Agreed> {
        Arc::clone(&self.inner.agreed)
    }

    /// How this clock stands to that of the first share, once they have met.
    pub(super) fn clock(&self) -> Option<ClockOffset> {
        self.inner.sign().clock
    }

    pub(super) fn is_first(&self) -> bool {
        self.inner.share.index == 1
    }

    /// Ends with a share that is saved, or with one of which something could not be.
    pub(super) fn end(&mut self, failed: Option<&str>) {
        self.stop();
        self.inner.write(|sign| {
            sign.stage = if failed.is_some() { Stage::Failed } else { Stage::Done };
            sign.said = failed.map(str::to_owned);
        });
        if self.is_first() && failed.is_some() {
            self.inner.tell(|first| {
                let said = || failed.map(|said| format!("share 1 has failed: {said}"));
                first.failed = first.failed.take().or_else(said);
            });
        }
    }

    /// Ends without a share: nothing was measured here. Of a run of which that is true of all nothing is left once the last of
    /// its processes is over.
    pub(super) fn give_up(&mut self, why: &str) {
        self.end(Some(why));
        place::leave(&self.inner);
    }

    fn stop(&mut self) {
        self.inner.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // It has nothing to give back.
            let _ = thread.join();
        }
    }

    /// Whether all shares are saved and this process is the one of them all that is to merge them.
    ///
    /// # Errors
    /// They are, and the folder does not take the word of whoever would merge them.
    pub(super) fn is_to_merge(&self) -> Result<bool, String> {
        let folder = &self.inner.folder;
        let Some((token, tokens)) = self.inner.together() else { return Ok(false) };
        let signs = folder.signs(self.inner.share.of);
        let is_done = |(share, token): (&u32, &String)| {
            signs.iter().any(|sign| sign.share == *share && sign.token == *token && sign.stage == Stage::Done)
        };
        if !tokens.iter().all(is_done) {
            return Ok(false);
        }
        folder.claim(&token).map_err(|error| format!("{}: {error}", folder.path().display()))
    }

    /// The shares that are not saved, with what they last said.
    pub(super) fn open_shares(&self) -> Vec<Sign> {
        let mut signs = self.inner.folder.signs(self.inner.share.of);
        signs.retain(|sign| sign.stage != Stage::Done);
        signs
    }

    /// Clears away what they told each other.
    pub(super) fn clear(&self) {
        self.inner.folder.remove();
    }
}

impl fmt::Debug for Gathering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gathering").field("share", &self.inner.share).finish_non_exhaustive()
    }
}

impl Drop for Gathering {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Unmet {
    /// What the process ends with.
    pub(super) fn into_failure(self) -> Failure {
        match self {
            Unmet::Absent(said) => Failure::unreachable(said),
            Unmet::Refused(said) => Failure::bad(said),
            Unmet::Stopped => Failure::interrupted("ended by the user while it waited for the other shares"),
        }
    }
}

impl Inner {
    fn sign(&self) -> MutexGuard<'_, Sign> {
        self.sign.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the sign of this process and puts it into the folder, unless another process has put its own there before
    /// the run began. A write that fails is made up for by the next: who is not heard is waited for, and named.
    fn write(&self, change: impl FnOnce(&mut Sign)) {
        let mut sign = self.sign();
        if sign.stage == Stage::Waiting {
            self.find_other(&sign);
        }
        change(&mut sign);
        sign.beat += 1;
        sign.at = self.wall.text();
        if self.taken.get().is_none() {
            let _ = self.folder.put_sign(&sign);
        }
    }

    /// Looks whether the sign that stands where ours does is ours.
    fn find_other(&self, own: &Sign) {
        if let Some(other) = self.folder.sign(own.share).filter(|other| other.token != own.token) {
            self.taken.get_or_init(|| place::twice(&other));
        }
    }

    /// Whether the wait has to end, whoever else comes.
    fn look(&self, user: &Interrupts) -> Result<(), Unmet> {
        if user.count() > 0 {
            return Err(Unmet::Stopped);
        }
        self.taken.get().map_or(Ok(()), |said| Err(Unmet::Refused(said.clone())))
    }

    /// The same of what the first share tells.
    fn tell(&self, change: impl FnOnce(&mut First)) {
        let mut first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut first);
        first.beat += 1;
        if self.taken.get().is_none() {
            let _ = self.folder.put_first(&first);
        }
    }

    /// The token of the first share and those of all, once they are together.
    fn together(&self) -> Option<(String, std::collections::BTreeMap<u32, String>)> {
        let mine = self.first.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let first = if self.share.index == 1 { mine } else { self.folder.first()? };
        let own = self.sign().token.clone();
        let tokens = first.together.filter(|tokens| tokens.get(&self.share.index) == Some(&own))?;
        Some((first.token, tokens))
    }

    /// Whether a failure is believed that stood there before us: only of a job that has a name of its own, if it is of just
    /// now, and when `waited` was long enough for its process to be started again.
    fn is_believed(&self, sign: &Sign, waited: Duration) -> bool {
        let at = WallTime::parse(&sign.at).map_or(0, WallTime::unix_nanos);
        let age = Duration::from_nanos(self.wall.now_ns().saturating_sub(at)).saturating_sub(waited);
        self.is_named && waited > self.grace && age < RECENT
    }

    /// How long to wait until the next look into the folder, after so long without anything new there.
    fn pause(quiet: Duration) -> Duration {
        match quiet.as_millis() {
            0..500 => Duration::from_millis(1),
            500..5000 => Duration::from_millis(5),
            _ => Duration::from_millis(50),
        }
    }

    fn asked_s(&self) -> f64 {
        self.timeout.as_secs_f64()
    }
}

/// A span for reading, in its own unit.
fn in_words(ns: u64) -> String {
    match ns {
        0..1_000_000_000 => format!("{:.1} ms", ns as f64 / 1e6),
        _ => format!("{:.2} s", ns as f64 / 1e9),
    }
}
