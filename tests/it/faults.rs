//! Faults of the mock server through the real engine: each kind ends as the outcome that the definitions give it, and
//! what the client counts is what the server did.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;
use tokload::metrics::{Class, Flags, Kind, Record, TokenSource};
use tokload::mock::{Answer, Delivery, Ending, Fault, Faults, Mock, Outage, Reach, Settings, Truth, When};
use tokload::model;
use tokload::plan::{Level, Load, Plan, Stop};

use crate::rig::{Run, level, mock, plan_for, quick, run};

/// A fault by its word.
fn named(word: &str) -> Fault {
    Fault::NAMED.iter().find(|(name, _)| *name == word).expect(word).1
}

/// Every kind, HTTP errors included; slow heads come quickly enough.
fn every_kind() -> Vec<Fault> {
    let status = |status, retry_after_s| Fault::Answer(Answer::Status { status, retry_after_s });
    let named = Fault::NAMED.iter().map(|(_, fault)| match fault {
        Fault::Delivery(Delivery::SlowHead(_)) => {
            Fault::Delivery(Delivery::SlowHead(Duration::from_millis(20)))
        }
        fault => *fault,
    });
    named.chain([status(429, None), status(503, Some(1))]).collect()
}

/// What a client has to make of it (METRICS.md, section 2).
fn expected(fault: Fault) -> (Class, Kind) {
    let text = fault.to_string();
    let word = text.split('=').next().unwrap();
    match word {
        "bundle" | "byte-segments" | "close-idle" | "comments" | "connection-close" | "crlf" | "giant"
        | "missing-done" | "missing-usage" | "slow-headers" | "split-utf8" => (Class::Ok, Kind::None),
        "bad-json" => (Class::Malformed, Kind::BadJson),
        "close" | "truncated-chunk" => (Class::Truncated, Kind::Truncated),
        "close-before" | "reset-before" => (Class::Reset, Kind::NoResponse),
        "empty" => (Class::Empty, Kind::NoOutput),
        "error-event" => (Class::StreamError, Kind::InBandError),
        "html" | "json-body" | "wrong-type" => (Class::Malformed, Kind::NotSse),
        "http-429" | "http-503-retry-after" => (Class::Http, Kind::HttpStatus),
        "missing-finish" => (Class::Truncated, Kind::Incomplete),
        "reset" => (Class::Reset, Kind::Truncated),
        "silence" => (Class::TimeoutFirst, Kind::Timeout),
        "stall" => (Class::TimeoutGap, Kind::Timeout),
        _ => panic!("what is {word} to a client?"),
    }
}

fn outcome(record: &Record) -> (Class, Kind) {
    (record.outcome.class, record.outcome.kind)
}

/// A plan whose limits tests can wait for, and that no busy machine passes by itself.
fn patient_plan(mock: &Mock, limit_s: f64) -> Plan {
    let mut plan = plan_for(mock.address().port());
    plan.limits.gap_s = limit_s;
    plan.limits.first_s = limit_s;
    plan
}

fn without_warm_up(load: Load, units: u64) -> Level {
    Level { warmups: 0, ..level(load, units) }
}

#[test]
fn each_kind_ends_as_its_outcome() {
    for fault in every_kind() {
        let mock = mock(Faults::always(fault));
        // Only what has to pass a limit is worth a short one.
        let limit_s = if expected(fault).1 == Kind::Timeout { 0.4 } else { 20.0 };
        let run = run(&patient_plan(&mock, limit_s), 2, &without_warm_up(Load::closed(3), 6));
        let outcomes: Vec<_> = run.measured().iter().map(|record| outcome(record)).collect();
        assert_eq!(outcomes, [expected(fault); 6], "{fault}");
        let truth = mock.stop().unwrap();
        assert_eq!(truth.faults(), [(fault, truth.generations)], "{fault}");
        assert_eq!((truth.generations, truth.in_flight), (6, 0), "{fault}");
        for record in run.measured().iter().filter(|record| record.outcome.is_ok()) {
            assert_eq!((record.output_tokens, record.events), (Some(5), 5), "{fault}");
        }
    }
}

#[test]
fn what_is_unusual_in_an_answer_is_remarked() {
    let of =
        |word| run(&plan_for(mock(Faults::always(named(word)))), 1, &without_warm_up(Load::closed(1), 2));
    fn plan_for(mock: Mock) -> Plan {
        // The server goes on while the test process does.
        crate::rig::plan_for(Box::leak(Box::new(mock)).address().port())
    }
    let all = |run: &Run, law: fn(&Record) -> bool| run.measured().into_iter().all(law);
    assert!(all(&of("missing-done"), |record| record.flags.contains(Flags::NO_DONE)));
    assert!(all(&of("missing-usage"), |record| record.output_source != TokenSource::Usage));
    assert!(all(&of("crlf"), |record| record.output_source == TokenSource::Usage));
    assert!(all(&of("bundle"), |record| record.flags.contains(Flags::COALESCED)));
    let statuses = Fault::Answer(Answer::Status { status: 429, retry_after_s: Some(7) });
    let refused = run(&plan_for(mock(Faults::always(statuses))), 1, &without_warm_up(Load::closed(1), 2));
    assert!(all(&refused, |record| record.outcome.status == 429));
}

/// How often each outcome was seen.
type Counts = Vec<((Class, Kind), u64)>;

/// What the client counted, and what the server's faults say that it must be.
fn counts(run: &Run, truth: &Truth) -> (Counts, Counts) {
    let mut kinds: Vec<(Class, Kind)> = every_kind().into_iter().map(expected).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let met: u64 = truth.faults().iter().map(|(_, count)| count).sum();
    let count = |kind: (Class, Kind)| {
        let client = run.measured().iter().filter(|record| outcome(record) == kind).count() as u64;
        let faulty = truth.faults().iter().filter(|(fault, _)| expected(*fault) == kind);
        let untouched = if kind.0 == Class::Ok { truth.generations - met } else { 0 };
        ((kind, client), (kind, faulty.map(|(_, count)| count).sum::<u64>() + untouched))
    };
    kinds.into_iter().map(count).unzip()
}

#[test]
fn five_thousand_requests_with_all_kinds_are_all_accounted_for() {
    let smaller = |fault: Fault| match fault {
        // A MiB takes many turns of both sides, and a busy machine's turns are long.
        Fault::Delivery(Delivery::Giant(_)) => Fault::Delivery(Delivery::Giant(100_000)),
        fault => fault,
    };
    // What has to pass a limit takes the test as long.
    let chance = |fault| When::Chance(if expected(fault).1 == Kind::Timeout { 0.005 } else { 0.02 });
    let requests = every_kind().into_iter().map(|fault| (chance(fault), smaller(fault))).collect();
    let faults = Faults { requests, ..Faults::default() };
    let settings = Settings { faults, workers: 2, seed: 11, ..quick() };
    let mock = Mock::start(settings).unwrap();
    let run = run(&patient_plan(&mock, 3.0), 2, &without_warm_up(Load::closed(200), 5000));
    let truth = mock.stop().unwrap();

    let mut indices: Vec<u64> = run.measured().iter().map(|record| record.index).collect();
    indices.sort_unstable();
    assert_eq!(indices, (0..5000).collect::<Vec<_>>());
    assert!(truth.faults().iter().all(|(_, count)| *count > 0), "{:?}", truth.faults());

    // A request on a reused connection that was closed without a byte is sent once more: either a fault closed it, or
    // it had been idle and nobody read the request.
    let resent: u64 = run.result.shards.iter().map(|shard| shard.resent).sum();
    assert_eq!(truth.generations + truth.unheard, 5000 + resent);
    let (mut client, server) = counts(&run, &truth);
    let unanswered = client.iter_mut().find(|(kind, _)| *kind == (Class::Reset, Kind::NoResponse)).unwrap();
    unanswered.1 += resent - truth.unheard;
    assert_eq!(client, server);

    assert_eq!(truth.completed(), run.count(Class::Ok) as u64);
    let endings: u64 = Ending::ALL.into_iter().map(|ending| truth.ended(ending)).sum();
    assert_eq!((endings, truth.in_flight), (truth.generations, 0));
    assert_eq!((truth.ended(Ending::ClientLeft), truth.ended(Ending::Stopped)), (0, 0));
    assert!(truth.in_flight_max <= 200);
}

#[test]
fn a_server_that_goes_down_and_comes_back_costs_what_fell_in_between() {
    let ms = Duration::from_millis;
    let outage = Outage { reach: Reach::Server, start: ms(1000), length: ms(600) };
    let faults = Faults { outages: vec![outage], ..Faults::default() };
    // Long answers: some are always open when it goes down.
    let serving = model::Settings::fixed(5.0, 10.0);
    let mock = Mock::start(Settings { faults, serving, accounts_max: 100_000, ..quick() }).unwrap();
    let level = Level {
        load: Load::closed(8),
        stop: Stop { units: None, duration_s: Some(2.5), grace_s: 5.0 },
        warmups: 0,
        ..Level::default()
    };
    let run = run(&plan_for(mock.address().port()), 2, &level);
    let truth = mock.stop().unwrap();

    let refused = |record: &&&Record| outcome(record) == (Class::Connect, Kind::Refused);
    let measured = run.measured();
    let down = measured.iter().filter(refused).map(|record| record.start).min().expect("refusals");
    let back = measured.iter().filter(refused).map(|record| record.end).max().expect("refusals");
    let ok = |law: &dyn Fn(&Record) -> bool| measured.iter().filter(|r| r.outcome.is_ok() && law(r)).count();
    assert!(ok(&|record| record.end < down) > 0, "before");
    assert_eq!(ok(&|record| record.start > down && record.end < back), 0, "in between");
    assert!(ok(&|record| record.start > back) > 0, "afterwards");

    assert_eq!(truth.completed(), run.count(Class::Ok) as u64);
    let known = [Class::Ok, Class::Connect, Class::Reset].map(|class| run.count(class));
    assert_eq!(known.iter().sum::<usize>(), measured.len(), "nothing else happens");
    assert!(truth.ended(Ending::Stopped) > 0);
    assert_eq!(truth.accounts.len() as u64, truth.generations);
}

#[test]
fn while_connections_are_refused_open_ones_go_on() {
    let ms = Duration::from_millis;
    let outage = Outage { reach: Reach::Listener, start: ms(500), length: ms(500) };
    let faults = Faults { outages: vec![outage], ..Faults::default() };
    let mock = Mock::start(Settings { faults, workers: 2, ..quick() }).unwrap();
    let health = |socket: &mut TcpStream| {
        socket.write_all(b"GET /health HTTP/1.1\r\nHost: mock\r\n\r\n").unwrap();
        let mut head = [0; 15];
        socket.read_exact(&mut head).map(|()| head == *b"HTTP/1.1 200 OK")
    };
    // A connection that nobody has accepted yet falls with the listener.
    let mut open = TcpStream::connect(mock.address()).unwrap();
    assert!(health(&mut open).unwrap());
    let until = |law: &dyn Fn() -> bool| {
        let mut tries = 0;
        while !law() {
            tries += 1;
            assert!(tries < 10_000, "it never happens");
            std::thread::sleep(ms(1));
        }
    };
    let reachable = || TcpStream::connect(mock.address()).is_ok();
    until(&|| !reachable());
    // The rest of the last answer's head is still there; a byte of the next one follows it.
    open.write_all(b"GET /health HTTP/1.1\r\nHost: mock\r\n\r\n").unwrap();
    let mut rest = [0; 80];
    open.read_exact(&mut rest).unwrap();
    until(&reachable);
    assert_eq!(mock.stop().unwrap().requests, 2);
}

fn get(mock: &Mock, target: &str) -> String {
    let mut socket = TcpStream::connect(mock.address()).unwrap();
    let request = format!("GET {target} HTTP/1.1\r\nHost: mock\r\nConnection: close\r\n\r\n");
    socket.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    answer.split_once("\r\n\r\n").unwrap().1.to_owned()
}

fn truth_of(mock: &Mock, target: &str) -> Value {
    serde_json::from_str(&get(mock, target)).unwrap()
}

#[test]
fn the_truth_is_what_the_client_measured() {
    let mock = Mock::start(Settings { workers: 2, ..quick() }).unwrap();
    let run = run(&plan_for(mock.address().port()), 2, &without_warm_up(Load::closed(6), 40));
    let truth = truth_of(&mock, "/truth");
    let sum = |of: &dyn Fn(&Record) -> u64| run.measured().iter().map(|record| of(record)).sum::<u64>();
    assert_eq!((truth["generations"].as_u64(), truth["completed"].as_u64()), (Some(40), Some(40)));
    assert_eq!(truth["tokens"], sum(&|record| record.output_tokens.unwrap().into()));
    assert_eq!(truth["events"], sum(&|record| record.events.into()));
    assert_eq!(truth["itl"]["count"], sum(&|record| u64::from(record.events) - 1));
    for name in ["ttft", "tpot", "e2e"] {
        assert_eq!(truth[name]["count"], 40, "{name}");
        assert_eq!(truth[name]["exact"], true, "{name}");
    }
    assert!((1..=6).contains(&truth["in_flight_max"].as_u64().unwrap()));
    // Six for the run, one for this question.
    let connects = sum(&|record| record.flags.contains(Flags::FRESH_CONNECTION).into());
    assert_eq!(truth["connections"], connects + 1);
    // The client adds to what the server takes, and nothing is sent before it is due.
    let mut ttft: Vec<u64> = run.measured().iter().map(|record| record.ttft_ns().unwrap()).collect();
    ttft.sort_unstable();
    assert!(ttft[19] as f64 / 1e3 >= truth["ttft"]["p50_us"].as_f64().unwrap());
    assert!(truth["ttft"]["min_us"].as_f64().unwrap() >= 5000.0);

    assert_eq!(truth_of(&mock, "/truth?reset")["generations"], 40);
    let anew = truth_of(&mock, "/truth");
    assert_eq!((anew["generations"].as_u64(), anew["ttft"]["count"].as_u64()), (Some(0), Some(0)));
}

#[test]
fn the_metrics_are_those_of_the_requests() {
    let unavailable = Fault::Answer(Answer::Status { status: 503, retry_after_s: None });
    let mock = mock(Faults::when(When::First(1), unavailable));
    let run = run(&plan_for(mock.address().port()), 1, &without_warm_up(Load::closed(2), 9));
    assert_eq!(run.count(Class::Ok), 8);
    let page = get(&mock, "/metrics");
    let value = |name: &str, label: &str| -> f64 {
        let line = page.lines().find(|line| line.starts_with(&format!("{name}{{")) && line.contains(label));
        line.unwrap_or_else(|| panic!("{name} {label}")).rsplit(' ').next().unwrap().parse().unwrap()
    };
    assert_eq!(value("vllm:prompt_tokens_total", "mock-model"), 64.0);
    assert_eq!(value("vllm:generation_tokens_total", ""), 40.0);
    assert_eq!(value("vllm:request_success_total", "finished_reason=\"length\""), 8.0);
    assert_eq!(value("vllm:time_to_first_token_seconds_count", ""), 8.0);
    assert_eq!(value("vllm:time_to_first_token_seconds_bucket", "le=\"0.001\""), 0.0);
    assert_eq!(value("vllm:inter_token_latency_seconds_count", ""), 32.0);
    assert_eq!(value("vllm:num_requests_running", ""), 0.0);
}

#[test]
fn accounts_tell_what_was_due_and_what_was_done() {
    let mock = Mock::start(Settings { accounts_max: 7, samples_max: 7, ..quick() }).unwrap();
    let run = run(&plan_for(mock.address().port()), 1, &without_warm_up(Load::closed(2), 10));
    assert_eq!(run.count(Class::Ok), 10);
    let truth = mock.stop().unwrap();
    assert_eq!((truth.accounts.len(), truth.accounts_left_out), (7, 3));
    assert!(!truth.e2e().exact && truth.e2e().count == 10, "more than the bound, and it says so");
    for account in &truth.accounts {
        let (first, last) = (account.first.unwrap(), account.last.unwrap());
        assert_eq!(first.due, account.arrived + Duration::from_millis(5));
        assert_eq!(last.due, account.arrived + Duration::from_millis(9));
        assert!(first.due <= first.sent && first.sent <= last.sent && last.sent <= account.ended);
        assert_eq!((account.tokens, account.events, account.status), (5, 5, 200));
        assert_eq!((account.ending, account.prompt_tokens), (Ending::Complete, 8));
    }
}

#[test]
fn faults_that_cannot_be_are_refused() {
    let requests = vec![(When::Chance(0.7), named("stall")), (When::Chance(0.7), named("reset"))];
    let faults = Faults { requests, ..Faults::default() };
    let error = Mock::start(Settings { faults, ..quick() }).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
}
