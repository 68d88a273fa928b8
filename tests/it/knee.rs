//! The knee of a sweep, from levels in virtual time to the sentence and the file.

use std::path::Path;
use std::sync::LazyLock;
use std::time::Duration;

use tokload::model::{Batching, Cost, Server, Serving, Settings};
use tokload::plan::{Arrivals, Axis, Grade, Load, Share};
use tokload::report::View;
use tokload::run_file::schema::{FindingBlock, KneeBlock, Served, Verbatim};
use tokload::run_file::write::to_json;
use tokload::run_file::{Loaded, RunFile, read};
use tokload::stats::knee::{Bend, Point, Sweep};
use tokload::time::Stamp;

use crate::fit_run::{Driving, STEADY, run, server};
use crate::goldens_model::ClosedLoop;
use crate::java_random::JavaRandom;
use crate::run_file::against_the_schema;

const USERS: [u32; 8] = [1, 2, 4, 8, 12, 16, 24, 32];
/// A level of 10 s behind one of 10 s.
const SHORT: Driving = Driving { seconds: 10, ..STEADY };
const VARIED: Driving = Driving { varied: true, ..SHORT };

/// The sweep of the course model that most tests look at.
static COURSE: LazyLock<RunFile> = LazyLock::new(|| swept(&Settings::course(), &USERS, VARIED));

fn swept(settings: &Settings, users: &[u32], driving: Driving) -> RunFile {
    let mut run = run(settings, users, driving);
    run.find_knee();
    run
}

fn users(run: &RunFile) -> Option<f64> {
    run.knee.and_then(|knee| knee.at).map(|at| at.load)
}

fn sentence(run: &RunFile) -> String {
    let notes = View::new(run, &[], None).notes;
    notes
        .into_iter()
        .map(|note| note.text)
        .find(|text| text.contains("knee") || text.contains("grow"))
        .unwrap()
}

#[test]
fn the_course_model_has_its_knee_at_its_slots() {
    let knee = COURSE.knee.unwrap();
    assert_eq!(knee.at.unwrap().load, 16.0);
    assert_eq!((knee.below.unwrap().load, knee.last.load, knee.loads), (12.0, 32.0, 8));
    assert_eq!((knee.vary, knee.throughput, knee.waits), (Axis::Concurrency, Served::OutputTokens, true));
}

#[test]
fn the_sentence_has_the_numbers_that_it_rests_on() {
    let mut run = COURSE.clone();
    let said = "knee at 16 users: output tokens/s grow up to there (652.5 with 12 users, 752.8 with 16) and no further \
                (754.8 with 32), while mean E2E goes from 1051 to 2104 ms";
    assert_eq!(sentence(&run), said);
    let late = FindingBlock {
        rule: "late_client".to_owned(),
        grade: Grade::Warn,
        evidence: String::new(),
        remedy: String::new(),
    };
    run.levels[4].findings = Some(vec![late.clone()]);
    assert_eq!(sentence(&run), said, "below the knee");
    run.levels[6].findings = Some(vec![late]);
    assert_eq!(sentence(&run), format!("{said}; it may be the client's own (late_client)"));
}

#[test]
fn where_throughput_still_grows_there_is_none() {
    let run = swept(
        &server(64, Cost { base_ms: 10.0, per_sequence_ms: 0.5, per_prefill_token_ms: 0.05 }),
        &USERS,
        STEADY,
    );
    let knee = run.knee.unwrap();
    assert_eq!((knee.at, knee.below.unwrap().load), (None, 24.0));
    let said = sentence(&run);
    assert!(said.starts_with("no knee up to 32 users: output tokens/s still grow ("), "{said}");
    let near = swept(&Settings::course(), &[1, 16, 18], VARIED);
    let said = sentence(&near);
    assert!(said.starts_with("no knee is shown up to 18 users: output tokens/s hardly grow"), "{said}");
}

#[test]
fn too_few_loads_say_nothing() {
    for users in [&[][..], &[16], &[16, 32], &[16, 16, 32]] {
        assert_eq!(swept(&Settings::course(), users, SHORT).knee, None);
    }
}

/// Points of the model alone, without requests: 20 sweeps of 10 s a load.
#[test]
fn noise_moves_it_to_a_neighbour_at_most() {
    let end = Stamp::from_millis(10_000);
    for seed in 1..=20 {
        let batching = Batching { noise: 0.3, ..Batching::default() };
        let settings = Settings { seed, ..Settings::serving(Serving::Batching(batching)) };
        let points = USERS.map(|users| {
            let mut random = JavaRandom::new(seed);
            let draw = || 30 + random.below(41) as u32;
            let server = Server::new(&settings, Stamp::ZERO).unwrap();
            let run = ClosedLoop::new(server, u64::from(users), Duration::ZERO, draw).run(end);
            let lives: f64 = run.done.iter().map(|asked| (asked.last - asked.sent).as_secs_f64()).sum();
            Point {
                load: f64::from(users),
                throughput: run.done.iter().map(|asked| f64::from(asked.tokens)).sum::<f64>() / 10.0,
                latency: lives / run.done.len() as f64,
            }
        });
        let sweep = Sweep::of(&points);
        let Some(Bend::Knee(place)) = sweep.bend() else { panic!("none with seed {seed}: {points:?}") };
        let knee = sweep.points()[place].load;
        assert!((12.0..=24.0).contains(&knee), "{knee} with seed {seed}");
    }
}

#[test]
fn repeats_of_a_load_are_one_and_other_kinds_of_load_are_not_mixed_in() {
    let mut run = swept(&Settings::course(), &[1, 8, 16, 32, 1, 8, 16, 32], VARIED);
    let knee = run.knee.unwrap();
    assert_eq!((knee.at.unwrap().load, knee.loads), (16.0, 4));
    // Users who pause are another sweep, of two loads only.
    for place in [0, 1] {
        let mut setting = run.levels[place].setting.read().unwrap();
        setting.load.think_s = 1.0;
        run.levels[place].setting = Verbatim::of(&setting);
    }
    run.find_knee();
    assert_eq!(run.knee.unwrap().loads, 4);
    run.levels.truncate(4);
    run.find_knee();
    assert_eq!(run.knee, None);
}

/// The sweep as one of rates: what each level gets done is what the course model gives with as many users.
fn at_rates(rates: [f64; 4]) -> RunFile {
    let mut run = swept(&Settings::course(), &[4, 8, 16, 32], VARIED);
    for (level, rate) in run.levels.iter_mut().zip(rates) {
        let mut setting = level.setting.read().unwrap();
        setting.load = Load { arrivals: Arrivals::Poisson { rate }, cap: None, users: None, think_s: 0.0 };
        level.setting = Verbatim::of(&setting);
    }
    run.find_knee();
    run
}

#[test]
fn rates_have_theirs_between_what_is_kept_up_with_and_what_is_not() {
    let run = at_rates([6.0, 10.0, 16.0, 32.0]);
    assert_eq!(run.knee.unwrap().vary, Axis::Rate);
    let said = sentence(&run);
    assert!(
        said.starts_with("knee between 10 and 16 requests/s: output tokens/s grow up to there ("),
        "{said}"
    );
}

#[test]
fn shares_searches_and_missing_users_have_none() {
    let mut run = COURSE.clone();
    let mut plan = run.plan.read().unwrap();
    plan.share = Some(Share { index: 1, of: 2 });
    let whole = std::mem::replace(&mut run.plan, Verbatim::of(&plan));
    run.find_knee();
    assert_eq!(run.knee, None);
    run.plan = whole;
    for level in &mut run.levels[6..] {
        level.in_flight.as_mut().unwrap().max = 16;
    }
    run.find_knee();
    // Without these loads throughput grows to the end.
    let knee = run.knee.unwrap();
    assert_eq!((knee.at, knee.loads, knee.last.load), (None, 6, 16.0));
}

#[test]
fn without_growing_latency_the_server_is_not_said_to_be_full() {
    let mut run = COURSE.clone();
    for level in &mut run.levels {
        let e2e = level.distributions.get_mut(&tokload::metrics::Metric::E2e).unwrap();
        e2e.mean = Some(5e8);
    }
    run.find_knee();
    assert!(!run.knee.unwrap().waits);
    let said = sentence(&run);
    assert!(said.contains("do not grow from 16 users on") && said.contains("is not a full server"), "{said}");
}

#[test]
fn it_is_stored_and_found_in_files_from_before() {
    let mut run = COURSE.clone();
    let text = to_json(&run);
    assert_eq!(against_the_schema(&serde_json::from_str(&text).unwrap()), Ok(()));
    assert_eq!(read::parse(&text, Path::new("run.json")).unwrap().knee, run.knee);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.json");
    let found: Option<KneeBlock> = run.knee.take();
    assert!(found.is_some());
    std::fs::write(&path, to_json(&run)).unwrap();
    assert_eq!(Loaded::open(&path).unwrap().run.knee, found);
}

#[test]
fn pauses_do_not_hide_it() {
    let driving = Driving { think: Duration::from_secs(1), seconds: 20, ..VARIED };
    let run = swept(&Settings::course(), &[4, 8, 16, 32, 48, 64], driving);
    // 16 slots are full when N = X (W + Z): 15.06 requests/s and 1.06 s of an answer behind a pause of 1 s.
    assert_eq!(users(&run), Some(32.0));
}
