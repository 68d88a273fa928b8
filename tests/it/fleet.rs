//! Several endpoints: who gets what, one that differs, one that is down, replicas behind them.

use tokload::load::Route;
use tokload::metrics::Class;
use tokload::mock::{Faults, Mock, ServedBy, Settings};
use tokload::model::{self, Batching, Cost, Serving};
use tokload::plan::{Arrivals, Endpoint, Finding, Level, Load, Plan, Rule, Slo, Stop, UrlStrategy};
use tokload::summary::{self, Group, GroupKey, Input};
use tokload::sys::signals::Interrupts;
use tokload::sys::socket::Peer;
use tokload::verdict::facts::PartOf;
use tokload::verdict::{self, Facts};
use tokload::workload::{Item, Routing};

use crate::rig::{Run, level, mock, open, plan_for, quick, run, run_on, simulate_fleet};

fn plan_of(ports: impl IntoIterator<Item = u16>, strategy: UrlStrategy) -> Plan {
    let mut plan = plan_for(1);
    plan.target.endpoints =
        ports.into_iter().map(|port| Endpoint { url: format!("http://127.0.0.1:{port}") }).collect();
    plan.target.url_strategy = strategy;
    plan
}

fn groups(run: &Run) -> Vec<Group> {
    summary::level(&Input::new(&run.result, Some(&run.records), Slo::default())).groups
}

/// What the verdict says of the parts of a level.
fn found(plan: &Plan, run: &Run) -> Vec<Finding> {
    let part = |group: Group| PartOf {
        of: group.of,
        counts: group.counts,
        sessions: group.sessions,
        against: group.against,
    };
    let facts = Facts {
        level: run.result.level.clone(),
        parts: groups(run).into_iter().map(part).collect(),
        replicas: run.result.replicas.clone(),
        ..Facts::default()
    };
    let of_parts = [Rule::ReplicaFailing, Rule::ReplicaSlow, Rule::ShareUneven];
    verdict::findings(plan, &facts).into_iter().filter(|finding| of_parts.contains(&finding.rule)).collect()
}

/// Four replicas of these speeds with noise in their steps and a third of their slots taken, each asked 150 times.
fn four(seed: u64, speeds: [f64; 4]) -> (Plan, Run) {
    let mut plan = plan_of(8001..=8004, UrlStrategy::RoundRobin);
    plan.seed = seed;
    let server = |(place, speed): (u64, f64)| {
        let cost = Cost { base_ms: 12.0, per_sequence_ms: 1.0, per_prefill_token_ms: 0.5 };
        let batching = Batching { slots: 8, noise: 0.3, speeds: vec![speed], cost, ..Batching::default() };
        let serving = model::Settings {
            seed: seed * 7 + place,
            ..model::Settings::serving(Serving::Batching(batching))
        };
        Settings { serving, ..Settings::default() }
    };
    let servers = (0..).zip(speeds).map(server).collect();
    let run = simulate_fleet(&plan, servers, &level(open(60.0, None), 600), (None, Interrupts::default()));
    (plan, run)
}

#[test]
fn one_of_four_replicas_that_is_slower_is_named_with_its_numbers() {
    for seed in 1..=5 {
        let (plan, run) = four(seed, [1.0, 1.0, 1.0 / 1.5, 1.0]);
        let found = found(&plan, &run);
        let [slow] = found.as_slice() else { panic!("seed {seed}: {found:?}") };
        assert_eq!(slow.rule, Rule::ReplicaSlow);
        assert!(slow.evidence.starts_with("http://127.0.0.1:8003 is "), "{}", slow.evidence);
        assert!(
            slow.evidence.contains(" times slower (") && slow.evidence.contains(" p50 "),
            "{}",
            slow.evidence
        );
        let times: f64 = slow.evidence.split(' ').nth(2).unwrap().parse().unwrap();
        assert!((1.3..=2.0).contains(&times), "{}", slow.evidence);
    }
}

#[test]
fn of_four_equal_replicas_none_is_named() {
    let named = (1..=20).filter(|seed| {
        let (plan, run) = four(*seed, [1.0; 4]);
        !found(&plan, &run).is_empty()
    });
    assert!(named.count() <= 2);
}

#[test]
fn every_request_goes_where_its_number_says_on_any_number_of_shards() {
    let mocks = [(); 3].map(|()| mock(Faults::default()));
    let ports = || mocks.iter().map(|mock| mock.address().port());
    for (strategy, weights) in [
        (UrlStrategy::RoundRobin, vec![]),
        (UrlStrategy::Weighted, vec![4, 1, 1]),
        (UrlStrategy::Random, vec![]),
        (UrlStrategy::StickySession, vec![]),
    ] {
        let mut plan = plan_of(ports(), strategy);
        plan.target.url_weights = weights;
        let level = level(Load::closed(4), 36);
        let routing = Routing::new(&plan.target).of_level(&level);
        for shards in [1, 3] {
            let run = run(&plan, shards, &level);
            assert_eq!(run.count(Class::Ok), 36);
            for record in run.measured() {
                let item = Item { seed: plan.level_seed(0), phase: record.phase, index: record.index };
                assert_eq!(Some(usize::from(record.endpoint)), routing.of(item), "{strategy:?}");
                if strategy == UrlStrategy::StickySession {
                    assert_eq!(u64::from(record.endpoint), record.index % 4 % 3, "the user's");
                }
            }
        }
    }
    assert!(mocks.iter().all(|mock| mock.truth(false).requests > 0));
}

#[test]
fn the_fewest_under_way_are_exact_over_shards() {
    let slow = || Mock::start(Settings { serving: model::Settings::fixed(300.0, 1.0), ..quick() }).unwrap();
    let mocks = [(); 4].map(|()| slow());
    let plan = plan_of(mocks.iter().map(|mock| mock.address().port()), UrlStrategy::LeastOutstanding);
    for shards in [1, 3] {
        // All are under way before the first answer.
        let run = run(&plan, shards, &Level { warmups: 0, ..level(open_burst(), 40) });
        let counts: Vec<_> = groups(&run).iter().map(|group| (group.of, group.counts.ok)).collect();
        assert_eq!(counts, [0, 1, 2, 3].map(|place| (GroupKey::Endpoint(place), 10)), "{shards} shards");
    }
    assert!(mocks.iter().all(|mock| mock.truth(false).requests == 20), "the head says who is asked");
}

fn open_burst() -> Load {
    Load { arrivals: Arrivals::Burst, cap: None, users: None, think_s: 0.0 }
}

#[test]
fn a_slow_endpoint_gets_less_where_the_fewest_decide() {
    let plan = plan_of(8001..=8003, UrlStrategy::LeastOutstanding);
    let servers = [50.0, 50.0, 200.0]
        .map(|ms| Settings { serving: model::Settings::fixed(ms, 1.0), ..Settings::default() });
    let run =
        simulate_fleet(&plan, servers.into(), &level(Load::closed(6), 600), (None, Interrupts::default()));
    let ok: Vec<u64> = groups(&run).iter().map(|group| group.counts.ok).collect();
    assert!(ok[2] * 3 < ok[0] && ok[0].abs_diff(ok[1]) <= 6, "{ok:?}");
    assert!(found(&plan, &run).iter().all(|finding| finding.rule == Rule::ReplicaSlow), "no share is due");
}

#[test]
fn an_endpoint_that_is_down_fails_alone_and_is_named() {
    let mocks = [(); 2].map(|()| mock(Faults::default()));
    // Nobody listens on port 1.
    let ports = [mocks[0].address().port(), 1, mocks[1].address().port()];
    let open = Level {
        warmups: 0,
        stop: Stop { grace_s: 1.0, ..level(open(200.0, None), 60).stop },
        ..level(open(200.0, None), 60)
    };
    let plan = plan_of(ports, UrlStrategy::RoundRobin);
    let run = run(&plan, 2, &open);
    let counts: Vec<_> = groups(&run).iter().map(|group| (group.counts.ok, group.counts.failed)).collect();
    assert_eq!(counts, [(20, 0), (0, 20), (20, 0)]);
    let found = found(&plan, &run);
    let [down] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!(down.rule, Rule::ReplicaFailing);
    assert_eq!(
        down.evidence,
        "http://127.0.0.1:1 failed 20 of 20 requests (100.0 %), the other endpoints 0 of 40"
    );
    // Where the fewest under way decide, one that fails at once does not draw everything.
    let plan = plan_of(ports, UrlStrategy::LeastOutstanding);
    let run = crate::rig::run(&plan, 2, &open);
    assert!(run.count(Class::Connect) <= 4, "{}", run.count(Class::Connect));
}

#[test]
fn a_replica_is_known_by_what_its_answers_say() {
    let named = |name| Mock::start(Settings { served_by: ServedBy::new(name).unwrap(), ..quick() }).unwrap();
    let mocks = [named("left"), mock(Faults::default()), named("right")];
    let mut plan = plan_of(mocks.iter().map(|mock| mock.address().port()), UrlStrategy::RoundRobin);
    plan.target.replica_header = Some("X-Served-By".to_owned());
    let run = run(&plan, 2, &level(Load::closed(6), 30));
    let mut names = run.result.replicas.clone();
    names.sort();
    assert_eq!(names, ["left", "right"]);
    for record in run.measured() {
        let name = record.replica.map(|place| run.result.replicas[usize::from(place)].as_str());
        assert_eq!(name, [Some("left"), None, Some("right")][usize::from(record.endpoint)]);
    }
    let replicas = groups(&run).into_iter().filter(|group| matches!(group.of, GroupKey::Replica(_)));
    assert_eq!(replicas.map(|group| group.counts.ok).collect::<Vec<_>>(), [10, 10]);
}

#[test]
fn all_addresses_of_a_name_are_used_and_told_apart() {
    let mocks = [(); 2].map(|()| mock(Faults::default()));
    let mut plan = plan_of([1], UrlStrategy::RoundRobin);
    plan.target.all_addresses = true;
    let mut route = Route::nowhere("name", plan.target.request_path(), Vec::new()).unwrap();
    route.addresses = mocks.iter().map(|mock| Peer::Inet(mock.address())).collect();
    let run = run_on(&plan, 1, &level(Load::closed(4), 40), Interrupts::default(), vec![route]);
    assert_eq!(run.count(Class::Ok), 40);
    assert_eq!(run.result.replicas, mocks.each_ref().map(|mock| mock.address().to_string()));
    for (place, mock) in mocks.iter().enumerate() {
        let own = run.records.iter().filter(|record| record.replica == Some(place as u16)).count() as u64;
        assert!(own > 0 && own == mock.truth(false).requests, "{own} of {}", mock.truth(false).requests);
    }
}
