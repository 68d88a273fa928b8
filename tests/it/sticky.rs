//! What the requests of a session keep to: one endpoint, and connections of their own. Real sockets against the mock, with
//! sessions whose requests go beside each other: those of agents and their sub-agents.

use std::collections::BTreeMap;

use tokload::metrics::{Class, Flags, Record};
use tokload::mock::{Mock, Settings};
use tokload::model;
use tokload::plan::{
    Arrivals, Connections, Conversation, DataSet, Endpoint, Level, Load, Plan, Reuse, Trace, UrlStrategy,
};

use crate::rig::{Run, level, plan_for, quick, run};

/// Quick answers, which sub-agents give beside each other all the same.
fn mock() -> Mock {
    Mock::start(Settings { serving: model::Settings::fixed(3.0, 0.02), ..quick() }).unwrap()
}

/// The plan of requests to `mocks`, whose sessions keep what is asked for.
fn plan_to(mocks: &[Mock], url_strategy: UrlStrategy, max: Option<u32>) -> Plan {
    let mut plan = plan_for(1);
    let endpoint = |mock: &Mock| Endpoint { url: format!("http://{}", mock.address()) };
    plan.target.endpoints = mocks.iter().map(endpoint).collect();
    plan.target.url_strategy = url_strategy;
    plan.target.connections = Connections { reuse: Reuse::StickyUserSessions, max, ..Connections::default() };
    plan
}

fn file() -> String {
    format!("{}/tests/traces/agents.json", env!("CARGO_MANIFEST_DIR"))
}

/// The three sessions of the file again and again, without pauses.
fn of_agents(plan: Plan) -> Plan {
    let mut plan = plan;
    plan.workload.data = Some(DataSet { shuffle: false, ..DataSet::of(&file()) });
    plan.workload.conversation = Some(Conversation { delay_ratio: 0.0, ..Conversation::default() });
    plan
}

/// `sessions` of `users`.
fn of_users(users: u32, sessions: u64) -> Level {
    Level { warmups: 0, ..level(Load::closed(users), sessions) }
}

fn by_session(run: &Run) -> BTreeMap<u64, Vec<&Record>> {
    let mut sessions: BTreeMap<u64, Vec<&Record>> = BTreeMap::new();
    run.measured().into_iter().for_each(|record| sessions.entry(record.session).or_default().push(record));
    sessions
}

/// Most of them that were under way at once.
fn most_at_once(records: &[&Record]) -> usize {
    let at = |one: &&&Record| {
        records.iter().filter(|other| other.start <= one.start && one.start < other.end).count()
    };
    records.iter().map(|one| at(&one)).max().unwrap_or(0)
}

fn is_fresh(record: &&Record) -> bool {
    record.flags.contains(Flags::FRESH_CONNECTION)
}

#[test]
fn all_requests_of_a_session_of_agents_go_to_one_endpoint() {
    let mocks = [(); 3].map(|()| mock());
    let plan = of_agents(plan_to(&mocks, UrlStrategy::StickySession, None));
    for shards in [1, 2] {
        let run = run(&plan, shards, &of_users(2, 6));
        assert_eq!(run.count(Class::Ok), 24);
        // A user's, who has every other session: the third endpoint has none.
        let expected = |record: &&Record| u64::from(record.endpoint) == record.session % 2;
        assert!(run.measured().iter().all(expected), "{shards} shards");
    }
    // Without users a session has an endpoint of its own.
    let mut plan = plan_to(&mocks, UrlStrategy::StickySession, None);
    plan.workload.trace = Some(Trace::of(&file()));
    let load = Load { arrivals: Arrivals::Trace { speedup: 1000.0 }, cap: None, users: None, think_s: 0.0 };
    let mut level = Level { warmups: 0, ..level(load, 3) };
    level.stop.units = None;
    for shards in [1, 2] {
        let run = run(&plan, shards, &level);
        assert_eq!(run.count(Class::Ok), 12);
        assert!(run.measured().iter().all(|record| u64::from(record.endpoint) == record.session % 3));
    }
}

#[test]
fn sub_agents_have_connections_of_their_session_and_no_others() {
    for shards in [1, 2] {
        let mocks = [mock()];
        let run = run(&of_agents(plan_to(&mocks, UrlStrategy::default(), None)), shards, &of_users(2, 6));
        assert_eq!(run.count(Class::Ok), 24);
        let sessions = by_session(&run);
        for (number, records) in &sessions {
            // One is opened where all that the session has are in use, and for nothing else.
            let opened = records.iter().filter(|record| is_fresh(record)).count();
            assert_eq!(opened, most_at_once(records), "session {number}, {shards} shards");
        }
        assert!(most_at_once(&sessions[&0]) >= 2, "its sub-agents go beside each other");
        let opened = run.measured().iter().filter(|record| is_fresh(record)).count() as u64;
        assert_eq!(mocks[0].truth(false).connections, opened);
    }
}

/// A sub-agent that waits for a connection gets that of its session when it rests: nothing else of the session may be left that
/// would ever give one back.
#[test]
fn sessions_of_agents_end_under_any_limit_on_connections() {
    for (max, users, shards) in [(1, 1, 1), (2, 3, 1), (1, 3, 2)] {
        let mocks = [mock()];
        let plan = of_agents(plan_to(&mocks, UrlStrategy::default(), Some(max)));
        let run = run(&plan, shards, &of_users(users, 9));
        assert_eq!(run.count(Class::Ok), 36, "{max} connections, {users} users, {shards} shards");
        assert!(run.most_in_flight() <= i64::from(max));
        // None is ever another session's: each session opens one at least.
        assert!(by_session(&run).values().all(|records| records.iter().any(is_fresh)));
    }
}

/// A session that has to wait at one endpoint keeps nothing at another, where somebody may wait who keeps what it waits for.
#[test]
fn sessions_do_not_wait_for_each_other_over_several_endpoints() {
    for (users, shards) in [(2, 1), (3, 2)] {
        let mocks = [(); 2].map(|()| mock());
        let mut plan = plan_to(&mocks, UrlStrategy::LeastOutstanding, Some(1));
        plan.workload.conversation = Some(Conversation { turns: 4.into(), ..Conversation::default() });
        let of_turns = run(&plan, shards, &of_users(users, 15));
        assert_eq!(of_turns.count(Class::Ok), 60, "{users} users, {shards} shards");
        let plan = of_agents(plan_to(&mocks, UrlStrategy::LeastOutstanding, Some(1)));
        let of_agents = run(&plan, shards, &of_users(users, 9));
        assert_eq!(of_agents.count(Class::Ok), 36, "{users} users, {shards} shards");
    }
}
