//! Every way in which a life can end early, and what a connection carries over into the next: nothing.

use tokload::exchange::{Ask, Progress};
use tokload::metrics::{Class, Kind, Outcome, Record, TimeoutPhase};
use tokload::time::Stamp;

use super::script::{
    Connection, DONE, End, FINISH, HEAD, LAST_CHUNK, ROLE, Script, content, event, golden_stream, learned,
    played, stream, whole_stream,
};

/// The points of a life at which it can end early.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Point {
    BeforeHead,
    InHead,
    AfterHead,
    AfterRole,
    AfterContent,
    InsideEvent,
    AfterFinish,
    AfterDone,
}

/// A script up to `point`; its last read is at 30 ms.
fn up_to(point: Point) -> Script {
    let all = [
        ("HTTP/1.1 2", Point::InHead),
        ("00 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n", Point::AfterHead),
        (&event(ROLE), Point::AfterRole),
        (&event(&content("a")), Point::AfterContent),
        // Whole but for the blank line: never accepted after a cut.
        ("1000\r\ndata: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"b\"}}]}\n", Point::InsideEvent),
        (&event(FINISH), Point::AfterFinish),
        (&event(DONE), Point::AfterDone),
    ];
    let mut bytes = String::new();
    for (piece, reached) in all {
        if point == Point::BeforeHead {
            break;
        }
        if reached != Point::InsideEvent || point == Point::InsideEvent {
            bytes.push_str(piece);
        }
        if reached == point {
            break;
        }
    }
    vec![(30, bytes.into_bytes())]
}

#[test]
fn an_early_end_has_the_class_of_its_place_and_cause() {
    use Point::*;
    const POINTS: [Point; 8] =
        [BeforeHead, InHead, AfterHead, AfterRole, AfterContent, InsideEvent, AfterFinish, AfterDone];
    let first = End::Timeout(TimeoutPhase::First);
    let gap = End::Timeout(TimeoutPhase::Gap);
    let total = End::Timeout(TimeoutPhase::Total);
    for point in POINTS {
        let status = if matches!(point, BeforeHead | InHead) { 0 } else { 200 };
        let silence = match point {
            BeforeHead | InHead | AfterHead | AfterRole => first,
            _ => gap,
        };
        for end in [End::Close, End::Reset, silence, total, End::Abandon] {
            let (class, kind) = match (point, end) {
                (AfterDone, _) => (Class::Ok, Kind::None),
                (AfterFinish, End::Close) => (Class::Ok, Kind::None),
                (BeforeHead, End::Close | End::Reset) => (Class::Reset, Kind::NoResponse),
                (_, End::Close) => (Class::Truncated, Kind::Truncated),
                (_, End::Reset) => (Class::Reset, Kind::Truncated),
                (_, End::Timeout(TimeoutPhase::First)) => (Class::TimeoutFirst, Kind::Timeout),
                (_, End::Timeout(TimeoutPhase::Gap)) => (Class::TimeoutGap, Kind::Timeout),
                (_, End::Timeout(_)) => (Class::TimeoutTotal, Kind::Timeout),
                (_, End::Abandon) => (Class::Unfinished, Kind::None),
            };
            let (mut connection, progress) = played(Ask::default(), &up_to(point));
            assert_eq!(progress, Progress::Pending, "{point:?}");
            assert_eq!(connection.end(500, end), Progress::Over);
            let record = *connection.record();
            assert_eq!(record.outcome, Outcome { class, kind, status }, "{point:?}, {end:?}");
            let remarks = match (point, end) {
                (AfterDone, _) => &["framing_incomplete"][..],
                (AfterFinish, End::Close) => &["framing_incomplete", "no_done"],
                _ => &[],
            };
            assert_eq!(connection.remarks(), remarks, "{point:?}, {end:?}");
            let end_ms = if point == AfterDone { 30 } else { 500 };
            assert_eq!(record.end, Stamp::from_millis(end_ms), "{point:?}, {end:?}");
            let spoke = matches!(point, AfterContent | InsideEvent | AfterFinish | AfterDone);
            assert_eq!(record.first, spoke.then_some(Stamp::from_millis(30)), "{point:?}, {end:?}");
            assert_eq!(record.events, u32::from(spoke));
            assert!(!connection.exchange.reusable(), "an early end costs the connection: {point:?}, {end:?}");
            // What comes later changes nothing.
            let _ = connection.end(600, End::Reset);
            let _ = connection.read(700, &[HEAD.as_bytes()]);
            assert_eq!(*connection.record(), record);
        }
    }
}

#[test]
fn the_limit_that_is_running_is_known_at_each_point() {
    for (point, phase) in [
        (Point::BeforeHead, Some(TimeoutPhase::First)),
        (Point::AfterHead, Some(TimeoutPhase::First)),
        (Point::AfterRole, Some(TimeoutPhase::First)),
        (Point::AfterContent, Some(TimeoutPhase::Gap)),
        (Point::AfterFinish, Some(TimeoutPhase::Gap)),
        (Point::AfterDone, None),
    ] {
        let (connection, _) = played(Ask::default(), &up_to(point));
        let waiting = connection.exchange.waiting_for();
        let since = if phase == Some(TimeoutPhase::First) { 0 } else { 30 };
        assert_eq!((waiting.phase, waiting.since), (phase, Stamp::from_millis(since)), "{point:?}");
    }
}

#[test]
fn a_limit_before_the_connection_is_one_of_connecting() {
    let mut connection = Connection::default();
    connection.exchange.begin(Ask::default(), Record::planned(0, Stamp::ZERO));
    connection.exchange.on_start(Stamp::from_millis(2));
    assert_eq!(connection.end(100, End::Timeout(TimeoutPhase::Connect)), Progress::Over);
    let record = connection.record();
    assert_eq!(record.outcome, Outcome::new(Class::TimeoutConnect, Kind::Timeout, 0));
    assert_eq!((record.conn, record.ttft_ns(), record.e2e_ns()), (None, None, None));

    connection.exchange.begin(Ask::default(), Record::planned(1, Stamp::ZERO));
    let now = Stamp::from_millis(3);
    assert_eq!(connection.exchange.on_no_connection(now, Kind::Refused, "nobody listens"), Progress::Over);
    assert_eq!(connection.record().outcome, Outcome::new(Class::Connect, Kind::Refused, 0));
    assert_eq!((connection.record().end, connection.exchange.message()), (now, "nobody listens"));
}

/// At a clean end of the body a last event without its blank line counts, if it is whole.
#[test]
fn a_clean_end_accepts_a_last_event_that_is_whole() {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
    for (tail, outcome, remarks, events) in [
        ("data: [DONE]", "ok", &["no_finish_reason", "flushed_at_eof"][..], 1),
        (&format!("data: {FINISH}"), "ok", &["no_done", "flushed_at_eof"], 1),
        (&format!("data: {}", content("b")), "truncated", &["flushed_at_eof"], 2),
        ("data: {\"choices\":[{\"index\":0,\"del", "truncated", &[], 1),
    ] {
        let bytes = format!("{head}data: {}\n\n{tail}", content("a"));
        let (mut connection, _) = played(Ask::default(), &vec![(10, bytes.into_bytes())]);
        assert_eq!(connection.end(40, End::Close), Progress::Over);
        let record = connection.record();
        assert_eq!(record.outcome.label(), outcome, "{tail}");
        assert_eq!(record.events, events, "{tail}");
        let mut found = connection.remarks();
        found.sort_unstable();
        let mut expected = remarks.to_vec();
        expected.sort_unstable();
        assert_eq!(found, expected, "{tail}");
        assert!(!connection.exchange.reusable(), "a body that ends with the connection");
    }
}

/// An `error` field is no event, but the answer has failed, however it ends.
#[test]
fn an_error_field_fails_the_answer_at_every_end() {
    let mut script = stream(&[(10, content("a"))]);
    script[0].1.extend(b"9\r\nerror: x\n\r\n1\r\n\n\r\n");
    let [done, last] = [event(DONE), LAST_CHUNK.to_owned()].map(String::into_bytes);
    for (more, end) in [
        (vec![], Some(End::Close)),
        (vec![], Some(End::Reset)),
        (vec![], Some(End::Timeout(TimeoutPhase::Gap))),
        (vec![(20, done.clone())], Some(End::Close)),
        (vec![(20, done), (20, last.clone())], None),
        (vec![(20, last)], None),
    ] {
        let (mut connection, progress) = played(Ask::default(), &[script.clone(), more].concat());
        let progress = end.map_or(progress, |end| connection.end(50, end));
        assert_eq!(progress, Progress::Over);
        let outcome = Outcome::new(Class::StreamError, Kind::InBandError, 200);
        assert_eq!(connection.record().outcome, outcome, "{end:?}");
        assert_eq!(connection.exchange.message(), "x");
    }
}

/// What a connection has seen before must not show in the next request.
#[test]
fn who_has_enough_goes_away_with_that_event_however_the_stream_is_cut() {
    let script = golden_stream();
    let bytes: Vec<u8> = script.iter().flat_map(|(_, bytes)| bytes.clone()).collect();
    let ask = || Ask { leaves_with: 4, ..Ask::default() };
    let (connection, progress) = played(ask(), &script);
    assert_eq!(progress, Progress::Over);
    let record = *connection.record();
    assert_eq!(record.outcome, Outcome::new(Class::Cancelled, Kind::None, 200));
    assert_eq!((record.events, record.output_tokens), (4, Some(4)));
    assert_eq!(connection.events.times_ms(), [412, 436, 461, 485]);
    assert_eq!((record.end, record.last), (Stamp::from_millis(485), Some(Stamp::from_millis(485))));
    assert!(!connection.exchange.reusable(), "the rest of the answer would come");
    // In one read, or a byte at a time.
    let play = |pieces: &[&[u8]]| {
        let mut connection = Connection::default();
        connection.send(ask(), 0, 0);
        assert_eq!(connection.read(900, pieces), Progress::Over);
        learned(connection)
    };
    let whole = play(&[&bytes]);
    assert_eq!(play(&bytes.chunks(1).collect::<Vec<_>>()), whole);
    for cut in 1..bytes.len() {
        assert_eq!(play(&[&bytes[..cut], &bytes[cut..]]), whole, "cut at {cut}");
    }
    // One more than there are: the answer is complete before.
    let (connection, _) = played(Ask { leaves_with: 9, ..Ask::default() }, &script);
    assert_eq!(connection.record().outcome, Outcome::ok(200));
}

#[test]
fn who_goes_away_leaves_what_has_come_and_an_answer_that_is_settled_stays() {
    for point in [Point::BeforeHead, Point::InHead, Point::AfterHead, Point::AfterContent, Point::AfterFinish]
    {
        let (mut connection, _) = played(Ask::default(), &up_to(point));
        assert_eq!(connection.exchange.on_leaving(Stamp::from_millis(500)), Progress::Over);
        let record = connection.record();
        assert_eq!((record.outcome.class, record.outcome.kind), (Class::Cancelled, Kind::None), "{point:?}");
        assert_eq!(record.end, Stamp::from_millis(500));
        assert_eq!(record.events, u32::from(matches!(point, Point::AfterContent | Point::AfterFinish)));
        assert!(!connection.exchange.reusable());
        // It is over: what comes later changes nothing.
        let left = *record;
        assert_eq!(connection.end(600, End::Reset), Progress::Over);
        assert_eq!(*connection.record(), left);
    }
    let (mut connection, _) = played(Ask::default(), &up_to(Point::AfterDone));
    assert_eq!(connection.exchange.on_leaving(Stamp::from_millis(500)), Progress::Pending);
    let _ = connection.end(600, End::Close);
    assert_eq!(connection.record().outcome, Outcome::ok(200));
}

#[test]
fn a_used_exchange_is_as_a_new_one() {
    let thought = r#"{"choices":[{"index":0,"delta":{"reasoning":"hm"}}]}"#;
    let hidden = r#"{"choices":[],"usage":{"completion_tokens":9,"completion_tokens_details":{"reasoning_tokens":4}}}"#;
    let counted = r#"{"choices":[{"index":0,"delta":{"content":"a"}}],"usage":{"completion_tokens":3}}"#;
    let said = |data: &[&str]| {
        let events: Vec<_> = data.iter().map(|data| (10, (*data).to_owned())).collect();
        whole_stream(&events)
    };
    let before = [
        up_to(Point::InHead),
        up_to(Point::InsideEvent),
        up_to(Point::AfterDone),
        said(&[counted, counted]),
        said(&[thought, FINISH, r#"{"error":{"message":"out of memory"}}"#]),
        vec![(5, b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n{\"choices\":".to_vec())],
    ];
    let after = [
        golden_stream(),
        said(&[DONE]),
        said(&[counted, DONE]),
        said(&[&content("a"), hidden, FINISH]),
        up_to(Point::AfterRole),
    ];
    for used in &before {
        for script in &after {
            let mut connection = Connection { kernel_lag_ms: Some(1), ..Connection::default() };
            connection.send(Ask { answers: 3, max_tokens: 2, ..Ask::default() }, 4, 0);
            let _ = connection.play(0, used);
            let _ = connection.end(100, End::Close);
            (connection.reads, connection.kernel_lag_ms) = (0, None);
            connection.send(Ask::default(), 0, 0);
            let _ = connection.play(0, script);
            let _ = connection.end(900, End::Abandon);
            let (mut fresh, _) = played(Ask::default(), script);
            let _ = fresh.end(900, End::Abandon);
            assert_eq!(learned(connection), learned(fresh));
        }
    }
}
