use super::*;
use std::fs;
use std::thread;

/// One share of a run that meets in `dir`, whose clock is off by `shift_ms`.
struct Case<'a> {
    dir: &'a Path,
    of: u32,
    job: Option<&'a str>,
    timeout_ms: u64,
    start_at: StartAt,
    seed: u64,
}

impl<'a> Case<'a> {
    fn new(dir: &'a Path, of: u32) -> Case<'a> {
        Case { dir, of, job: Some("j"), timeout_ms: 20_000, start_at: StartAt::Together, seed: 1 }
    }

    fn open(&self, index: u32, shift_ms: i64) -> Gathering {
        self.try_open(index, shift_ms).unwrap()
    }

    fn try_open(&self, index: u32, shift_ms: i64) -> Result<Gathering, String> {
        let wish = Wish {
            share: Share { index, of: self.of },
            result: &self.dir.join("run.json"),
            job: self.job,
            timeout: Duration::from_millis(self.timeout_ms),
            start_at: self.start_at,
            clock: RunClock::start(),
        };
        let grace = Duration::from_millis(300);
        Gathering::open_by(&wish, Odds { shift_ns: shift_ms * 1_000_000, grace })
    }

    /// All shares, each on a thread of its own, after they have met.
    fn met(&self, shifts_ms: &[i64]) -> Vec<(Gathering, Vec<String>)> {
        let all: Vec<Gathering> =
            (1..).zip(shifts_ms).map(|(index, shift)| self.open(index, *shift)).collect();
        let threads: Vec<_> = all
            .into_iter()
            .map(|mut one| {
                thread::spawn(move || {
                    let notes = one.meet(&Plan::new(1), &Interrupts::default()).unwrap();
                    (one, notes)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    }

    /// Why share `index`, which is opened now, does not meet the others.
    fn unmet(&self, index: u32) -> Unmet {
        unmet(&mut self.open(index, 0), self.seed)
    }

    fn folder(&self) -> Folder {
        Folder::beside(&self.dir.join("run.json"), self.job)
    }
}

fn unmet(one: &mut Gathering, seed: u64) -> Unmet {
    one.meet(&Plan::new(seed), &Interrupts::default()).unwrap_err()
}

fn said(unmet: Unmet) -> String {
    match unmet {
        Unmet::Absent(said) | Unmet::Refused(said) => said,
        Unmet::Stopped => "stopped".to_owned(),
    }
}

/// When a share starts level `ordinal`, by the true clock, ns since 1970; with the note.
fn started(one: &Gathering, ordinal: usize) -> (u64, Option<String>) {
    let agreed = one.agreed();
    agreed.ready(ordinal);
    let run = one.inner.wall.run;
    loop {
        if let Some(start) = agreed.take() {
            let wall = start.at.as_nanos().saturating_add_signed(run.wall_offset().wall_minus_run_ns);
            return (wall, start.note);
        }
        assert!(run.now().as_secs_f64() < 60.0, "no start");
        thread::sleep(Duration::from_millis(1));
    }
}

fn starts(all: &[(Gathering, Vec<String>)], ordinal: usize) -> Vec<(u64, Option<String>)> {
    thread::scope(|scope| {
        let threads: Vec<_> = all.iter().map(|(one, _)| scope.spawn(move || started(one, ordinal))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

fn apart_ns(starts: &[(u64, Option<String>)]) -> u64 {
    let times = || starts.iter().map(|(at, _)| *at);
    times().max().unwrap() - times().min().unwrap()
}

#[test]
fn shares_meet_start_every_level_together_and_the_last_one_merges() {
    let dir = tempfile::tempdir().unwrap();
    let mut all = Case::new(dir.path(), 3).met(&[0, 0, 0]);
    assert!(all[0].1[0].starts_with("all 3 shares are there; their clocks are within"), "{:?}", all[0].1);
    assert!(all[0].1.len() == 1 && all[1].1.is_empty());
    for ordinal in [0, 1] {
        let starts = starts(&all, ordinal);
        assert!(starts.iter().all(|(_, note)| note.is_none()), "{starts:?}");
        // One clock: they differ by what converting it is off by.
        assert!(apart_ns(&starts) < 1_000_000, "{starts:?}");
    }
    let merges: Vec<bool> = all
        .iter_mut()
        .map(|(one, _)| {
            one.end(None);
            one.is_to_merge().unwrap()
        })
        .collect();
    assert_eq!(merges, [false, false, true]);
    // Asked again, nobody else is.
    assert!(all.iter().all(|(one, _)| !one.is_to_merge().unwrap()));
    all[2].0.clear();
    assert!(fs::read_dir(dir.path()).unwrap().next().is_none());
}

#[test]
fn clocks_that_differ_are_known_to_their_bound_and_starts_are_corrected() {
    let dir = tempfile::tempdir().unwrap();
    let all = Case::new(dir.path(), 3).met(&[0, 2500, -700]);
    for ((one, _), expected_ms) in all[1..].iter().zip([-2500_i64, 700]) {
        let clock = one.clock().unwrap();
        let off = clock.offset_ns - expected_ms * 1_000_000;
        assert!(off.unsigned_abs() <= clock.bound_ns + 1_000_000 && clock.is_large(), "{clock:?}");
        assert_eq!(clock.correction_ns(), clock.offset_ns);
    }
    let said = all[0].1.join("\n");
    assert!(said.contains("2.50 s ahead of") && said.contains("behind that of share 1"), "{said}");
    let bound = all[1..].iter().map(|(one, _)| one.clock().unwrap().bound_ns).max().unwrap();
    let starts = starts(&all, 0);
    assert!(apart_ns(&starts) <= 2 * bound + 2_000_000, "{starts:?}");
}

#[test]
fn a_time_that_was_given_is_kept_or_said_to_have_passed() {
    let dir = tempfile::tempdir().unwrap();
    let clock = RunClock::start();
    let in_s = |s: u64| WallTime::from_unix_nanos(clock.epoch_wall_ns() + s * 1_000_000_000);
    let case = |start_at, job| Case { start_at, job: Some(job), ..Case::new(dir.path(), 2) };
    let at = in_s(2);
    let all = case(StartAt::Wall(at), "a").met(&[0, 0]);
    for (start, note) in starts(&all, 0) {
        assert!(start.abs_diff(at.unix_nanos()) < 1_000_000 && note.is_none(), "{start} {at} {note:?}");
    }
    let all = case(StartAt::Wall(in_s(0)), "b").met(&[0, 0]);
    let starts = starts(&all, 0);
    assert!(starts[0].1.as_ref().is_some_and(|note| note.contains("--start-at")), "{starts:?}");
    assert!(apart_ns(&starts) < 1_000_000, "{starts:?}");
}

#[test]
fn whoever_does_not_come_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let case = Case { timeout_ms: 150, ..Case::new(dir.path(), 4) };
    let mut first = case.open(1, 0);
    let error = said(unmet(&mut first, 1));
    assert!(
        error.contains("2, 3, 4") && error.contains("--share-timeout") && error.contains("run.gathering"),
        "{error}"
    );
    // The others are told at once, whenever they come.
    let error = said(Case::new(dir.path(), 4).unmet(2));
    assert!(error.contains("2, 3, 4"), "{error}");
    let lonely = Case { job: Some("k"), timeout_ms: 50, ..Case::new(dir.path(), 4) };
    let error = said(lonely.unmet(3));
    assert!(error.contains("nothing was heard of share 1") && error.contains("same folder"), "{error}");
}

#[test]
fn one_that_fails_ends_the_waiting_of_all() {
    let dir = tempfile::tempdir().unwrap();
    let case = Case::new(dir.path(), 3);
    let [mut one, mut two, mut three] = [1, 2, 3].map(|index| case.open(index, 0));
    three.end(Some("no route to it"));
    let other = thread::spawn(move || said(unmet(&mut two, 1)));
    let error = said(unmet(&mut one, 1));
    assert!(error.contains("share 3 has failed: no route to it"), "{error}");
    assert_eq!(other.join().unwrap(), error);
}

#[test]
fn what_an_earlier_run_left_behind_is_not_taken() {
    let dir = tempfile::tempdir().unwrap();
    // Without a name of their job only their tokens tell runs apart.
    let case = Case { job: None, ..Case::new(dir.path(), 2) };
    let mut earlier = case.met(&[0, 0]);
    starts(&earlier, 0);
    earlier.iter_mut().for_each(|(one, _)| one.end(Some("killed")));
    drop(earlier);
    let all = case.met(&[0, 0]);
    let starts = starts(&all, 0);
    assert!(starts.iter().all(|(_, note)| note.is_none()) && apart_ns(&starts) < 1_000_000, "{starts:?}");
    assert!(!all[0].0.is_to_merge().unwrap());
}

#[test]
fn a_share_that_is_over_is_not_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let mut all = Case::new(dir.path(), 3).met(&[0, 0, 0]);
    all[1].0.end(Some("its machine is gone"));
    let (_, note) = {
        let (first, rest) = all.split_at(1);
        thread::scope(|scope| {
            let other = scope.spawn(|| started(&rest[1].0, 0));
            let start = started(&first[0].0, 0);
            other.join().unwrap();
            start
        })
    };
    assert_eq!(note.as_deref(), Some("level 1 starts without shares 2"));
    // The first one gone, the others go on by themselves.
    all[0].0.end(None);
    let (_, note) = started(&all[2].0, 1);
    assert!(note.is_some_and(|note| note.contains("share 1 is gone")));
    let open: Vec<u32> = all[2].0.open_shares().iter().map(|sign| sign.share).collect();
    assert_eq!(open, [2, 3]);
}

#[test]
fn a_share_is_made_by_one_process_and_by_the_next_when_that_is_over() {
    let dir = tempfile::tempdir().unwrap();
    let case = Case::new(dir.path(), 3);
    let mut first = case.open(2, 0);
    let error = case.try_open(2, 0).unwrap_err();
    let whose = first.inner.sign().whose();
    assert!(
        error.contains("share 2 of 3 is made by another") && error.contains(&whose) && error.contains("once"),
        "{error}"
    );
    // It was not disturbed: the sign there is its own.
    assert_eq!(case.folder().sign(2).unwrap().token, first.inner.sign().token);
    first.end(Some("stopped"));
    let second = case.open(2, 0);
    // One that was killed says nothing, and its process is not there.
    let killed = Sign { pid: u32::MAX, token: "killed".to_owned(), share: 3, ..second.inner.sign().clone() };
    case.folder().put_sign(&killed).unwrap();
    let clock = RunClock::start();
    let third = case.open(3, 0);
    assert!(clock.now().as_secs_f64() < 1.0, "{}", clock.now());
    drop((second, third));
}

/// Both have looked before either of them had written: the later word stands, and the other process goes.
#[test]
fn of_two_processes_that_came_at_once_one_goes() {
    let dir = tempfile::tempdir().unwrap();
    let case = Case::new(dir.path(), 2);
    let mut one = case.open(2, 0);
    let other = Sign { token: "another".to_owned(), pid: 77, ..one.inner.sign().clone() };
    case.folder().put_sign(&other).unwrap();
    let error = unmet(&mut one, 1);
    assert!(matches!(&error, Unmet::Refused(said) if said.contains("process 77 on")), "{error:?}");
    one.end(Some(&said(error)));
    assert_eq!(case.folder().sign(2).unwrap(), other);
}

#[test]
fn a_share_of_another_plan_or_number_is_refused_with_both_values() {
    let dir = tempfile::tempdir().unwrap();
    let case = Case::new(dir.path(), 2);
    let mut second = case.open(2, 0);
    let other = thread::spawn(move || unmet(&mut second, 2));
    let error = case.unmet(1);
    let Unmet::Refused(said) = &error else { panic!("{error:?}") };
    assert!(
        said.contains("plan.seed is 1 in share 1 and 2 in share 2") && said.contains("same options"),
        "{said}"
    );
    assert!(said.contains(&format!("share 2 (process {} on", std::process::id())), "{said}");
    // Both say the same.
    assert_eq!(other.join().unwrap(), error);
    let [three, four] = [3, 4].map(|of| Case { job: Some("k"), ..Case::new(dir.path(), of) });
    let mut of_four = four.open(4, 0);
    let other = thread::spawn(move || unmet(&mut of_four, 1));
    let error = three.unmet(1);
    assert!(
        matches!(&error, Unmet::Refused(said) if said.contains("is 3 in share 1 and 4 in share 4")),
        "{error:?}"
    );
    assert_eq!(other.join().unwrap(), error);
}

#[test]
fn nothing_is_left_of_a_run_that_has_not_begun() {
    let dir = tempfile::tempdir().unwrap();
    let case = Case::new(dir.path(), 3);
    case.open(2, 0).give_up("no route to it");
    let left = || fs::read_dir(dir.path()).unwrap().count();
    assert_eq!(left(), 0);
    // Ctrl-C while one waits: the other is told, and the last of them clears away what they said.
    let (user, mut two) = (Interrupts::default(), case.open(2, 0));
    let mut one = case.open(1, 0);
    let other = thread::spawn(move || {
        let error = said(unmet(&mut two, 1));
        (two, error)
    });
    user.raise();
    assert_eq!(one.meet(&Plan::new(1), &user), Err(Unmet::Stopped));
    one.give_up("ended by the user");
    let (mut two, error) = other.join().unwrap();
    assert_eq!((error.as_str(), left()), ("share 1 has failed: ended by the user", 1));
    two.give_up(&error);
    assert_eq!(left(), 0);
    // All had met, and were ended before the first request: as long as one of them may still measure, what they said stays.
    let mut all = case.met(&[0, 0, 0]);
    for (place, (one, _)) in all.iter_mut().enumerate() {
        one.give_up("ended by the user");
        assert_eq!(left(), usize::from(place < 2));
    }
    // One that was killed, or has failed, does not hold up the next start of the same job.
    let mut killed = case.open(3, 0).inner.sign().clone();
    killed.pid = u32::MAX;
    case.folder().put_sign(&killed).unwrap();
    let failed = Sign { share: 2, stage: Stage::Failed, token: "old".to_owned(), ..killed };
    case.folder().put_sign(&failed).unwrap();
    let first = First { token: "old".to_owned(), failed: Some("old".to_owned()), ..First::default() };
    case.folder().put_first(&first).unwrap();
    assert_eq!(case.met(&[0, 0, 0]).len(), 3);
}

#[test]
fn whoever_comes_when_the_others_have_begun_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let case = Case::new(dir.path(), 2);
    let mut all = case.met(&[0, 0]);
    // Its process was killed, and is started again.
    let (killed, _) = all.pop().unwrap();
    let sign = Sign { pid: u32::MAX, ..killed.inner.sign().clone() };
    drop(killed);
    case.folder().put_sign(&sign).unwrap();
    let error = case.unmet(2);
    assert!(
        matches!(&error, Unmet::Refused(said) if said.contains("has begun with another process in the place of share 2 of 2")),
        "{error:?}"
    );
}
