//! Connections as a subject, and TLS: real sockets against the mock on loopback.

use std::path::PathBuf;
use std::time::Duration;

use tokload::load::tls;
use tokload::metrics::{Class, Flags, Kind, Metric};
use tokload::mock::{Asks, Identity, Mock, Settings, Version};
use tokload::model;
use tokload::plan::{Connections, Conversation, Endpoint, Load, Plan, Reuse, Slo, UrlStrategy};
use tokload::run::ShardCheck;
use tokload::summary::{self, GroupKey, Input};
use tokload::sys::signals::Interrupts;

use crate::rig::{Run, level, open, plan_for, quick, run, run_through};

fn start(change: impl FnOnce(&mut Settings)) -> Mock {
    let mut settings = quick();
    change(&mut settings);
    Mock::start(settings).unwrap()
}

fn plan_with(mock: &Mock, connections: Connections) -> Plan {
    let mut plan = plan_for(mock.address().port());
    plan.target.connections = connections;
    plan
}

fn sum(run: &Run, field: fn(&ShardCheck) -> u64) -> u64 {
    run.result.shards.iter().map(field).sum()
}

fn fresh(run: &Run) -> usize {
    run.measured().iter().filter(|record| record.flags.contains(Flags::FRESH_CONNECTION)).count()
}

#[test]
fn a_connection_for_each_request_and_none_is_kept() {
    let mock = start(|_| {});
    let plan = plan_with(&mock, Connections { reuse: Reuse::Never, ..Connections::default() });
    let run = run(&plan, 2, &level(Load::closed(4), 24));
    assert_eq!((run.count(Class::Ok), fresh(&run)), (24, 24));
    assert_eq!(sum(&run, |shard| shard.connects), 24);
    // The warm-up's as well.
    assert_eq!(mock.truth(false).connections, 26);
    assert!(run.measured().iter().all(|record| record.tcp_connect_ns() == record.connect_ns()));
}

#[test]
fn a_session_keeps_its_connection_and_shares_it_with_nobody() {
    let mock = start(|_| {});
    let mut plan =
        plan_with(&mock, Connections { reuse: Reuse::StickyUserSessions, ..Connections::default() });
    plan.workload.conversation = Some(Conversation { turns: 3.into(), ..Conversation::default() });
    let mut level = level(Load::closed(3), 9);
    level.warmups = 0;
    let run = run(&plan, 2, &level);
    assert_eq!(run.count(Class::Ok), 27);
    for record in run.measured() {
        assert_eq!(record.flags.contains(Flags::FRESH_CONNECTION), record.turn == 0, "{record:?}");
    }
    assert_eq!(mock.truth(false).connections, 9);
}

#[test]
fn never_more_connections_than_allowed_over_any_number_of_shards() {
    for (shards, reuse) in [(1, Reuse::Pooled), (3, Reuse::Pooled), (2, Reuse::Never)] {
        let mock = start(|_| {});
        let plan = plan_with(&mock, Connections { reuse, max: Some(3), ..Connections::default() });
        let mut level = level(Load::closed(12), 60);
        level.warmups = 0;
        let run = run(&plan, shards, &level);
        assert_eq!(run.count(Class::Ok), 60, "{shards} shards, {reuse:?}");
        assert!(run.most_in_flight() <= 3);
        let waited = sum(&run, |shard| shard.conn_wait.n());
        assert!(waited >= 9, "{waited}");
        // Who waits does so between plan and start, by no fault of the client.
        let longest = run.measured().iter().map(|record| record.cap_wait_ns()).max().unwrap();
        assert!(longest > 1_000_000, "{longest}");
        // Each shard keeps what it has, while its own requests wait.
        if reuse == Reuse::Pooled {
            let opened = mock.truth(false).connections;
            assert!(opened <= 12, "{opened} connections for 60 requests over {shards} shards");
        }
        // Where one is closed here and opened there, the server may learn of the second first.
        if (shards, reuse) == (1, Reuse::Pooled) {
            assert!(mock.truth(false).connections_max <= 3, "{}", mock.truth(false).connections_max);
        }
    }
}

#[test]
fn a_wait_for_a_connection_is_in_the_latency_from_the_planned_send() {
    // Each answer takes 40 ms, and 50 requests a second come to one connection.
    let mock = start(|settings| settings.serving = model::Settings::fixed(40.0, 0.0));
    let plan = plan_with(&mock, Connections { max: Some(1), ..Connections::default() });
    let mut level = level(open(50.0, None), 10);
    level.warmups = 0;
    let run = run(&plan, 2, &level);
    assert_eq!((run.count(Class::Ok), run.most_in_flight()), (10, 1));
    let mut records = run.measured();
    records.sort_by_key(|record| record.plan);
    assert!(records.is_sorted_by_key(|record| record.start), "first planned, first sent");
    for record in &records {
        assert!(record.permit <= record.start && record.schedule_delay_ns() < 20_000_000);
        assert_eq!(
            record.ttft_plan_ns().unwrap() - record.ttft_ns().unwrap(),
            record.start.nanos_since(record.plan)
        );
    }
    assert!(records[9].cap_wait_ns() > 100_000_000);
}

#[test]
fn the_choice_of_the_fewest_and_a_limit_on_connections_live_together() {
    let mocks = [(); 2].map(|()| start(|_| {}));
    let mut plan = plan_with(&mocks[0], Connections { max: Some(2), ..Connections::default() });
    plan.target.endpoints =
        mocks.iter().map(|mock| Endpoint { url: format!("http://{}", mock.address()) }).collect();
    plan.target.url_strategy = UrlStrategy::LeastOutstanding;
    let run = run(&plan, 2, &level(Load::closed(12), 48));
    assert_eq!(run.count(Class::Ok), 48);
    for endpoint in [0, 1] {
        let of_endpoint = run.records.iter().filter(|record| record.endpoint == endpoint).copied().collect();
        let part = Run { result: run.result.clone(), records: of_endpoint };
        assert!((1..=2).contains(&part.most_in_flight()), "{}", part.most_in_flight());
    }
}

#[test]
fn connections_retire_by_age_and_by_requests() {
    let mock = start(|_| {});
    let plan = plan_with(&mock, Connections { max_requests: Some(4), ..Connections::default() });
    let mut level = level(Load::closed(1), 12);
    level.warmups = 0;
    let served = run(&plan, 1, &level);
    assert_eq!((served.count(Class::Ok), fresh(&served), sum(&served, |shard| shard.retired)), (12, 3, 3));
    // An answer takes some 9 ms.
    let plan = plan_with(&mock, Connections { max_age_s: Some(0.02), ..Connections::default() });
    let aged = run(&plan, 1, &level);
    assert_eq!(aged.count(Class::Ok), 12);
    assert!((4..=12).contains(&fresh(&aged)), "{}", fresh(&aged));
}

#[test]
fn connections_stand_before_the_level_begins() {
    let identity = Identity::self_signed(&["localhost".to_owned()]).unwrap();
    let mock = start(|settings| settings.tls = Some(identity));
    let mut plan = plan_with(&mock, Connections { prewarm: 5, ..Connections::default() });
    plan.target.endpoints[0].url = format!("https://{}", mock.address());
    let mut level = level(Load::closed(4), 16);
    level.warmups = 0;
    // Each of two shards has two users, and two or three connections.
    let run = run(&plan, 2, &level);
    assert_eq!((run.count(Class::Ok), fresh(&run)), (16, 0));
    assert_eq!((sum(&run, |shard| shard.prewarmed), sum(&run, |shard| shard.connects)), (5, 0));
    assert_eq!(sum(&run, |shard| shard.tls_full + shard.tls_resumed), 5);
    assert_eq!(mock.truth(false).connections, 5);
}

#[test]
fn connections_that_cannot_be_opened_beforehand_are_counted_and_do_not_hold_the_level_up() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut plan = plan_for(port);
    plan.target.connections = Connections { prewarm: 3, max: Some(3), ..Connections::default() };
    let mut level = level(open(1000.0, None), 4);
    level.warmups = 0;
    let run = run(&plan, 2, &level);
    assert_eq!((run.count(Class::Connect), sum(&run, |shard| shard.prewarm_failed)), (4, 3));
    assert!(run.measured().iter().all(|record| record.outcome.kind == Kind::Refused));
}

/// A place for a socket.
fn socket(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("tokload-{}-{name}.sock", std::process::id()))
}

#[test]
fn a_unix_socket_carries_a_level_by_its_url_and_by_its_path() {
    let path = socket("unix");
    let mock = start(|settings| settings.unix_socket = Some(path.clone()));
    let by_url = {
        let mut plan = plan_for(1);
        plan.target.endpoints[0].url = format!("unix://{}", path.display());
        run(&plan, 2, &level(Load::closed(3), 12))
    };
    let by_path = {
        let mut plan = plan_for(1);
        plan.target.connections.unix_socket = Some(path.to_str().unwrap().to_owned());
        run(&plan, 1, &level(Load::closed(3), 12))
    };
    assert_eq!((by_url.count(Class::Ok), by_path.count(Class::Ok)), (12, 12));
    assert_eq!(mock.stop().unwrap().requests, 28);
    assert!(!path.exists(), "the server takes its socket away");
    let gone = run(&plan_with_socket(&path), 1, &level(Load::closed(1), 2));
    assert!(gone.measured().iter().all(|record| record.outcome.kind == Kind::Unreachable));
}

fn plan_with_socket(path: &std::path::Path) -> Plan {
    let mut plan = plan_for(1);
    plan.target.endpoints[0].url = format!("unix://{}", path.display());
    plan
}

#[test]
fn a_request_goes_where_it_is_told_to_and_asks_for_whom_it_named() {
    let (identity, pem) = identity("api.example");
    let mock = start(|settings| settings.tls = Some(identity));
    let rule = format!("api.example:443:127.0.0.1:{}", mock.address().port());
    let mut plan = plan_with(&mock, Connections { connect_to: vec![rule], ..Connections::default() });
    plan.target.endpoints[0].url = "https://api.example:443".to_owned();
    let config = || tls::config(&tls::Trust { cacert: Some(&pem), ..tls::Trust::default() }).unwrap();
    let right = run_through(&plan, 1, &level(Load::closed(2), 6), Interrupts::default(), config());
    assert_eq!(right.count(Class::Ok), 6);
    plan.target.tls.sni = Some("other.example".to_owned());
    let wrong = run_through(&plan, 1, &level(Load::closed(2), 2), Interrupts::default(), config());
    assert!(wrong.measured().iter().all(|record| record.outcome.kind == Kind::Tls));
}

fn identity(name: &str) -> (Identity, Vec<u8>) {
    let identity = Identity::self_signed(&[name.to_owned()]).unwrap();
    let pem = identity.certificate_pem.clone();
    (identity, pem)
}

/// Eight requests, each on a connection of its own, to a server that asks for what `asks` says.
fn over_tls(asks: Asks, trust: &tls::Trust<'_>) -> (Run, Mock) {
    let (identity, _) = identity("localhost");
    let mock = start(|settings| (settings.tls, settings.tls_asks) = (Some(identity), asks));
    let mut plan = plan_with(&mock, Connections { reuse: Reuse::Never, ..Connections::default() });
    plan.target.endpoints[0].url = format!("https://{}", mock.address());
    let mut level = level(Load::closed(1), 8);
    level.warmups = 0;
    let run = run_through(&plan, 1, &level, Interrupts::default(), tls::config(trust).unwrap());
    (run, mock)
}

#[test]
fn sessions_are_taken_up_again_and_counted_as_the_server_counts_them() {
    for version in [Version::Tls12, Version::Tls13] {
        for no_resumption in [false, true] {
            let asks = Asks { version: Some(version), ..Asks::default() };
            let (run, mock) = over_tls(asks, &tls::Trust { no_resumption, ..tls::Trust::anyone() });
            assert_eq!((run.count(Class::Ok), fresh(&run)), (8, 8), "{version:?}");
            let expected = if no_resumption { (8, 0) } else { (1, 7) };
            assert_eq!((sum(&run, |shard| shard.tls_full), sum(&run, |shard| shard.tls_resumed)), expected);
            let truth = mock.truth(false);
            assert_eq!((truth.tls_full, truth.tls_resumed), expected, "{version:?}");
            let resumed = run.measured().iter().filter(|one| one.handshake.unwrap().is_resumed()).count();
            assert_eq!(resumed as u64, expected.1);
        }
    }
}

#[test]
fn a_handshake_that_is_held_back_is_in_its_own_time_and_in_the_ttft() {
    const HELD_NS: u64 = 20_000_000;
    let asks = Asks { hold: Duration::from_nanos(HELD_NS), ..Asks::default() };
    let (run, _mock) = over_tls(asks, &tls::Trust::anyone());
    assert_eq!(run.count(Class::Ok), 8);
    for record in run.measured() {
        let handshake = record.tls_handshake_ns().unwrap();
        // What a record holds is exact to a part in 8192. The upper bound is `tools/handshake.py`'s to look at.
        assert!(handshake + handshake / 8192 >= HELD_NS, "{handshake}");
        assert!(record.connect_ns().unwrap() >= handshake && record.ttft_ns() > record.connect_ns());
        assert_eq!(record.tcp_connect_ns().unwrap() + handshake, record.connect_ns().unwrap());
    }
    let summary = summary::level(&Input::new(&run.result, Some(&run.records), Slo::default()));
    let count =
        |metric: Metric| summary.distributions.iter().find(|one| one.metric == metric).map_or(0, |one| one.n);
    assert_eq!((count(Metric::TlsHandshake), count(Metric::TcpConnect)), (8, 8));
}

#[test]
fn a_server_may_demand_a_certificate_of_its_client() {
    let (client, ca) = identity("client");
    let asks = || Asks { client_ca: Some(ca.clone()), ..Asks::default() };
    let shown = Some((client.certificate_pem.as_slice(), client.key_pem.as_slice()));
    let (run, _) = over_tls(asks(), &tls::Trust { identity: shown, ..tls::Trust::anyone() });
    assert_eq!(run.count(Class::Ok), 8);
    let (stranger, _) = identity("stranger");
    let other = Some((stranger.certificate_pem.as_slice(), stranger.key_pem.as_slice()));
    for identity in [None, other] {
        let (run, _) = over_tls(asks(), &tls::Trust { identity, ..tls::Trust::anyone() });
        assert_eq!(run.count(Class::Ok), 0);
    }
}

#[test]
fn requests_on_fresh_connections_are_told_apart_where_there_are_enough_of_both() {
    let mock = start(|_| {});
    let plan = plan_with(&mock, Connections { max_requests: Some(2), ..Connections::default() });
    let mut level = level(Load::closed(1), 40);
    level.warmups = 0;
    let run = run(&plan, 1, &level);
    let groups = summary::level(&Input::new(&run.result, Some(&run.records), Slo::default())).groups;
    let ok = |key: GroupKey| groups.iter().find(|group| group.of == key).map(|group| group.counts.ok);
    assert_eq!((ok(GroupKey::FreshConnections), ok(GroupKey::ReusedConnections)), (Some(20), Some(20)));
}
