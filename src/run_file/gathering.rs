//! The folder beside the output in which the processes of one run find each other: small files, each written by one of
//! them alone and replaced as a whole.
//!
//! Owns what stands in them and where they lie; who writes when, and what follows from it, is the entry's. Each process
//! draws a token when it starts, and takes nothing from a file that does not answer to it: so what an earlier run has left
//! behind is never taken for a word of this one.

mod told;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::layout;
use super::schema::ClockOffset;
use super::write::part_of;
use crate::stats::sort;
use crate::sys::host::process_exists;

pub use told::Told;

/// How far a process has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// It makes its server and data ready, or waits for the others.
    Waiting,
    /// It warms up or measures.
    Running,
    /// Its share is saved.
    Done,
    /// It has ended without one.
    Failed,
}

/// What one process says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sign {
    /// Which share it makes, from 1.
    pub share: u32,
    /// Of how many.
    pub of: u32,
    /// What it drew when it started.
    pub token: String,
    /// The token of the first share, once it has heard of it.
    pub first: Option<String>,
    /// Its host.
    pub host: Option<String>,
    /// Its process id there.
    pub pid: u32,
    /// When it wrote this by its own clock, RFC 3339 in UTC.
    pub at: String,
    /// Rises while it lives.
    pub beat: u64,
    /// How far it has come.
    pub stage: Stage,
    /// The mark of what it is about to run ([`Told::mark`]), once that is known.
    #[serde(default)]
    pub plan: Option<String>,
    /// How often it has asked the first share for the time.
    pub asked: u64,
    /// How its clock stands to that of the first share, once it knows.
    pub clock: Option<ClockOffset>,
    /// The place of the last level that it was ready to start.
    pub ready: Option<usize>,
    /// Why it failed, or what it has to say else.
    pub said: Option<String>,
}

/// What the first share tells the others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct First {
    /// What it drew when it started.
    pub token: String,
    /// Rises while it lives.
    pub beat: u64,
    /// What it has answered to whom, by their shares.
    pub answers: BTreeMap<u32, Answer>,
    /// The tokens of all shares, once all are there.
    pub together: Option<BTreeMap<u32, String>>,
    /// When each level starts by its clock, ns since 1970.
    pub starts: Vec<u64>,
    /// Why the run does not take place.
    pub failed: Option<String>,
    /// It does not for what somebody has typed, rather than for who did not come.
    #[serde(default)]
    pub refused: bool,
}

/// The time, told to one share.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// To whom.
    pub token: String,
    /// To which of its questions.
    pub asked: u64,
    /// When the question was read, ns since 1970.
    pub seen_ns: u64,
    /// When this was written.
    pub told_ns: u64,
}

/// The folder of one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folder {
    path: PathBuf,
    job: String,
}

impl Folder {
    /// That of the run whose result is to be `result`, started as `job`.
    #[must_use]
    pub fn beside(result: &Path, job: Option<&str>) -> Folder {
        Folder { path: path_of(result), job: file_safe(job.unwrap_or("run")) }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes it, unless another process has.
    ///
    /// # Errors
    /// The folder that it lies in is not there or cannot be written to.
    pub fn make(&self) -> io::Result<()> {
        fs::create_dir_all(&self.path)
    }

    /// Puts a process's sign there.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn put_sign(&self, sign: &Sign) -> io::Result<()> {
        self.put(&self.sign_file(sign.share), sign)
    }

    /// The signs of a run of `of` shares, in their order. What cannot be read is not there yet.
    #[must_use]
    pub fn signs(&self, of: u32) -> Vec<Sign> {
        let mut signs = self.everybody();
        signs.retain(|sign| sign.of == of);
        signs
    }

    /// The signs of all that have this job, however many shares they are of.
    #[must_use]
    pub fn everybody(&self) -> Vec<Sign> {
        let prefix = format!("{}.share-", self.job);
        signs_in(&self.path, |name| name.starts_with(&prefix))
    }

    /// The sign that stands where that of `share` does.
    #[must_use]
    pub fn sign(&self, share: u32) -> Option<Sign> {
        self.look_again();
        read(&self.sign_file(share))
    }

    /// Puts there what a share is about to run.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn put_told(&self, share: u32, told: &Told) -> io::Result<()> {
        self.put(&self.told_file(share), told)
    }

    /// What the process of this sign is about to run, if it has said that.
    #[must_use]
    pub fn told(&self, sign: &Sign) -> Option<Told> {
        read(&self.told_file(sign.share)).filter(|told: &Told| told.token == sign.token)
    }

    /// Puts the word of the first share there.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn put_first(&self, first: &First) -> io::Result<()> {
        self.put(&self.first_file(), first)
    }

    /// The word of the first share, if there is one yet.
    #[must_use]
    pub fn first(&self) -> Option<First> {
        self.look_again();
        read(&self.first_file())
    }

    /// A listing makes network file systems look again instead of trusting what they knew.
    fn look_again(&self) {
        let _ = fs::read_dir(&self.path).map(|entries| entries.count());
    }

    /// Takes on what only one process may do, in the run whose first share drew `token`: true for one of all that ask.
    ///
    /// # Errors
    /// The folder cannot be written to.
    pub fn claim(&self, token: &str) -> io::Result<bool> {
        let path = self.path.join(format!("{}.merge-{}", self.job, file_safe(token)));
        match File::create_new(path) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Removes the files of this run, and the folder if nothing else is in it.
    pub fn remove(&self) {
        let prefix = format!("{}.", self.job);
        for entry in fs::read_dir(&self.path).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with(&prefix) {
                // What stays is ignored by whoever comes later.
                let _ = fs::remove_file(entry.path());
            }
        }
        let _ = fs::remove_dir(&self.path);
    }

    fn sign_file(&self, share: u32) -> PathBuf {
        self.path.join(format!("{}.share-{share}.json", self.job))
    }

    fn told_file(&self, share: u32) -> PathBuf {
        self.path.join(format!("{}.plan-{share}.json", self.job))
    }

    fn first_file(&self) -> PathBuf {
        self.path.join(format!("{}.first.json", self.job))
    }

    fn put(&self, path: &Path, value: &impl Serialize) -> io::Result<()> {
        let part = part_of(path);
        let mut file = File::create(&part)?;
        file.write_all(&layout::to_line(value)?)?;
        drop(file);
        fs::rename(&part, path)
    }
}

/// The folder beside the result `run.json`: `run.gathering`.
#[must_use]
pub fn path_of(result: &Path) -> PathBuf {
    let is_json = result.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
    let stem = if is_json { result.file_stem() } else { result.file_name() };
    let mut name = stem.unwrap_or_default().to_owned();
    name.push(".gathering");
    result.with_file_name(name)
}

/// The last signs of the shares `missing` of `of`, looked for beside `file`, the file of another share.
#[must_use]
pub fn last_signs(file: &Path, missing: &[u32], of: u32) -> Vec<Sign> {
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let Some((stem, _)) = name.split_once(".share-") else { return Vec::new() };
    let mut last: BTreeMap<u32, Sign> = BTreeMap::new();
    let signs = signs_in(&path_of(&file.with_file_name(stem)), |name| name.contains(".share-"));
    for sign in signs.into_iter().filter(|sign| sign.of == of) {
        let is_later = last.get(&sign.share).is_none_or(|other| other.at < sign.at);
        if missing.contains(&sign.share) && is_later {
            last.insert(sign.share, sign);
        }
    }
    last.into_values().collect()
}

impl Sign {
    /// Where its process is, in words: `process 7 on n2`.
    #[must_use]
    pub fn whose(&self) -> String {
        format!("process {} on {}", self.pid, self.host.as_deref().unwrap_or("an unknown host"))
    }

    /// Whether it is sure that its process is over, seen from `host`: it has said so, or is not there any more. A process
    /// of another host is over only if it has said so.
    #[must_use]
    pub fn is_over(&self, host: Option<&str>) -> bool {
        match self.stage {
            Stage::Done | Stage::Failed => true,
            Stage::Waiting | Stage::Running => {
                host.is_some() && self.host.as_deref() == host && !process_exists(self.pid)
            }
        }
    }

    /// Who it is and what became of it, in words.
    #[must_use]
    pub fn in_words(&self) -> String {
        let what = match (self.stage, self.ready) {
            (Stage::Waiting, _) => "before the run began".to_owned(),
            (Stage::Running, None) => "in the warm-up of level 1".to_owned(),
            (Stage::Running, Some(level)) => format!("in level {}", level + 1),
            (Stage::Done, _) => "when it had saved its share".to_owned(),
            (Stage::Failed, _) => "when it gave up".to_owned(),
        };
        let said = self.said.as_ref().map_or_else(String::new, |said| format!(": {said}"));
        format!("share {} ({}) last wrote at {}, {what}{said}", self.share, self.whose(), self.at)
    }
}

fn signs_in(path: &Path, is_one: impl Fn(&str) -> bool) -> Vec<Sign> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let names = entries.filter(|entry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        name.ends_with(".json") && is_one(&name)
    });
    let mut signs: Vec<Sign> = names.filter_map(|entry| read(&entry.path())).collect();
    signs.retain(|sign| (1..=sign.of).contains(&sign.share));
    sort::few_by_key(&mut signs, |sign| sign.share);
    signs
}

/// What stands in a file; `None` if it is not there, or is something else.
fn read<T: DeserializeOwned>(path: &Path) -> Option<T> {
    layout::of_line(&fs::read(path).ok()?).ok()
}

/// A name that is one of a file whatever the launcher has called its job, and another for another job.
fn file_safe(job: &str) -> String {
    let plain = |one: char| one.is_ascii_alphanumeric() || matches!(one, '-' | '_' | '@');
    let name: String = job.chars().map(|one| if plain(one) { one } else { '-' }).take(NAME_MAX).collect();
    if name == job && !name.is_empty() {
        return name;
    }
    let hash = job.bytes().fold(0_u64, |hash, byte| crate::rng::mixed(hash ^ u64::from(byte)));
    format!("{name}-{hash:016x}")
}

const NAME_MAX: usize = 60;

#[cfg(test)]
mod tests {
    use super::*;

    fn sign(share: u32, at: &str) -> Sign {
        Sign {
            share,
            of: 3,
            token: format!("t{share}"),
            first: None,
            host: Some("n2".to_owned()),
            pid: 7,
            at: at.to_owned(),
            beat: 0,
            stage: Stage::Running,
            plan: None,
            asked: 0,
            clock: None,
            ready: Some(0),
            said: None,
        }
    }

    #[test]
    fn signs_are_those_of_the_job_and_are_replaced_whole() {
        let dir = tempfile::tempdir().unwrap();
        let [ours, other] =
            ["slurm-5-0", "slurm-6-0"].map(|job| Folder::beside(&dir.path().join("a.json"), Some(job)));
        assert_eq!(ours.path(), dir.path().join("a.gathering"));
        assert_eq!((ours.signs(3), ours.first()), (vec![], None));
        ours.make().unwrap();
        ours.make().unwrap();
        other.put_sign(&sign(2, "2026-12-01T00:00:00Z")).unwrap();
        assert_eq!(ours.signs(3), []);
        ours.put_sign(&sign(2, "2026-12-01T00:00:01Z")).unwrap();
        ours.put_sign(&sign(1, "2026-12-01T00:00:01Z")).unwrap();
        ours.put_sign(&sign(1, "2026-12-01T00:00:02Z")).unwrap();
        assert_eq!(ours.signs(3), [sign(1, "2026-12-01T00:00:02Z"), sign(2, "2026-12-01T00:00:01Z")]);
        assert_eq!(ours.signs(4), []);
        let first = First { token: "t1".to_owned(), starts: vec![5], ..First::default() };
        ours.put_first(&first).unwrap();
        assert_eq!((ours.first(), other.first()), (Some(first), None));
        fs::write(other.first_file(), "{").unwrap();
        assert_eq!(other.first(), None);
        // One of all that ask.
        assert_eq!([(); 3].map(|()| ours.claim("t1").unwrap()), [true, false, false]);
        assert!(ours.claim("t2").unwrap());
        ours.remove();
        assert_eq!((ours.signs(3), other.signs(3).len()), (vec![], 1));
        other.remove();
        assert!(!other.path().exists());
    }

    #[test]
    fn the_last_sign_of_a_missing_share_is_found_beside_another() {
        let dir = tempfile::tempdir().unwrap();
        for (job, at) in [("a", "2026-12-01T00:00:09Z"), ("b", "2026-12-01T00:00:05Z")] {
            let folder = Folder::beside(&dir.path().join("run.json"), Some(job));
            folder.make().unwrap();
            folder.put_sign(&sign(2, at)).unwrap();
            folder.put_sign(&sign(3, at)).unwrap();
        }
        let found = last_signs(&dir.path().join("run.share-1-of-3.json"), &[2], 3);
        assert_eq!(found, [sign(2, "2026-12-01T00:00:09Z")]);
        assert_eq!(
            found[0].in_words(),
            "share 2 (process 7 on n2) last wrote at 2026-12-01T00:00:09Z, in level 1"
        );
        assert_eq!(last_signs(&dir.path().join("whole.json"), &[2], 3), []);
    }

    #[test]
    fn a_process_is_over_if_it_says_so_or_is_missing_on_the_host_that_looks() {
        let sign = |pid, stage| Sign { pid, stage, ..sign(1, "2026-12-01T00:00:00Z") };
        let here = std::process::id();
        assert!(!sign(here, Stage::Waiting).is_over(Some("n2")));
        assert!(sign(here, Stage::Failed).is_over(Some("n2")));
        // Numbers of processes end at 4194304.
        assert!(sign(u32::MAX, Stage::Running).is_over(Some("n2")));
        assert!(!sign(u32::MAX, Stage::Running).is_over(Some("n3")));
        assert!(!sign(u32::MAX, Stage::Running).is_over(None));
    }

    #[test]
    fn names_of_jobs_are_names_of_files() {
        assert_eq!(file_safe("prterun-n1-22@1"), "prterun-n1-22@1");
        let [a, b, none] = ["a/../b", "a:../b", ""].map(file_safe);
        assert!(a.starts_with("a----b-") && a != b && !none.is_empty(), "{a} {b} {none}");
        assert!(file_safe(&"x".repeat(500)).len() < 100);
    }
}
