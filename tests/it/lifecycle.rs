//! The life of one request as a script of (milliseconds, bytes): the worked example of this program.
//!
//! Begin with `token_timings`. After it come the law that a cut changes nothing, the other goldens that are driven by
//! bytes, and the marks of each kind of answer. The lives that end early are in `ends`.

mod ends;
mod script;

use std::ops::Range;

use tokload::api::Dialect;
use tokload::exchange::{Ask, Progress};
use tokload::metrics::{Class, Flags, Kind, Metric, Outcome, Tally, TimeoutPhase, TokenSource};
use tokload::stats::{Histogram, Quantile};
use tokload::time::Stamp;

use crate::goldens::values;
use script::{
    Connection, DONE, End, FINISH, LAST_CHUNK, ROLE, Script, codes_ms, content, event, golden_stream,
    learned, millis, played, stream, usage, whole_stream,
};

#[test]
fn token_timings() {
    let (connection, progress) = played(Ask { max_tokens: 9, ..Ask::default() }, &golden_stream());
    assert_eq!(progress, Progress::Over);
    let record = connection.record();
    assert_eq!(record.outcome, Outcome::ok(200));
    assert_eq!(record.ttfb_ns(), millis(20), "the head came with the role");
    assert_eq!(record.ttft_ns(), millis(412), "which is no content event");
    assert_eq!(record.ttfa_ns(), millis(412));
    assert_eq!(record.e2e_ns(), millis(854));
    assert_eq!(record.stream_ns(), 861_000_000);
    assert_eq!(record.tpot_ns(), Some(55_250_000.0));
    assert_eq!(record.stall_ns.get(), millis(249));
    assert_eq!((record.events, record.output_tokens, record.prompt_tokens), (8, Some(9), Some(20)));
    assert_eq!((record.output_source, record.flags), (TokenSource::Usage, Flags::FRESH_CONNECTION));
    let listed: Vec<u64> = serde_json::from_value(values("TokenTimings")["itl_ms"].clone()).unwrap();
    assert_eq!(connection.events.gaps_ms(), listed);
    assert_eq!(listed, [24, 25, 24, 72, 24, 249, 24]);
    assert_eq!(connection.exchange.gaps().codes().collect::<Vec<_>>(), codes_ms(&listed));
    assert!(connection.exchange.reusable());
}

#[test]
fn every_split_is_the_same_exchange() {
    let script = golden_stream();
    // Whole, and broken off: between contents, behind the finish reason, behind [DONE].
    let silence = End::Timeout(TimeoutPhase::Gap);
    for end in
        [None, Some((5, End::Close)), Some((10, End::Close)), Some((10, silence)), Some((12, End::Reset))]
    {
        let script = &script[..end.map_or(script.len(), |(kept, _)| kept)];
        let play = |cut: &dyn Fn(Range<usize>, usize) -> bool| {
            let mut connection = Connection { kernel_lag_ms: Some(3), ..Connection::default() };
            connection.send(Ask::default(), 0, 0);
            let mut start = 0;
            for (ms, bytes) in script {
                let inside = |at: &usize| cut(start..start + bytes.len(), start + at);
                let mut pieces = Vec::new();
                let mut from = 0;
                for at in (1..bytes.len()).filter(inside).chain([bytes.len()]) {
                    pieces.push(&bytes[from..at]);
                    from = at;
                }
                let _ = connection.read(*ms, &pieces);
                start += bytes.len();
            }
            end.map(|(_, end)| connection.end(900, end));
            learned(connection)
        };
        let whole = play(&|_, _| false);
        assert_eq!(play(&|_, _| true), whole, "byte by byte");
        let len: usize = script.iter().map(|(_, bytes)| bytes.len()).sum();
        for cut in 1..len {
            assert_eq!(play(&|_, at| at == cut), whole, "cut at {cut}, {end:?}");
        }
        for period in [2, 3, 7, 31] {
            assert_eq!(play(&|read, at| (at - read.start) % period == 0), whole, "every {period} bytes");
        }
    }
}

/// The readings of these two goldens, as bytes that arrive at those moments.
fn golden_request(role_ms: u64, contents_ms: &[u64]) -> Script {
    let mut events = vec![(role_ms, ROLE.to_owned())];
    events.extend(contents_ms.iter().map(|ms| (*ms, content("word"))));
    let last = *contents_ms.last().unwrap();
    events.extend([(last, usage(4, contents_ms.len() as u32)), (last, DONE.to_owned())]);
    whole_stream(&events)
}

/// Three requests one after another on one connection. The stopwatch of this golden counted microseconds: here a
/// millisecond stands for 20 000 of them.
#[test]
fn bench_core() {
    const US_PER_MS: u64 = 20_000;
    let golden = values("BenchCore");
    let mut connection = Connection::default();
    let script = golden_request(5, &[15, 16, 17, 18, 21]);
    let sent: Vec<u64> = serde_json::from_value(golden["sent_us"].clone()).unwrap();
    let mut tally = Tally::new(Stamp::ZERO);
    for (index, sent_us) in sent.into_iter().enumerate() {
        let start = sent_us / US_PER_MS;
        connection.send(Ask::default(), index as u64, start);
        assert_eq!(connection.play(start, &script), Progress::Over);
        assert!(connection.exchange.reusable());
        let record = connection.record();
        let us = |ns: u64| ns / 1_000_000 * US_PER_MS;
        let expected = |key: &str| golden["per_request_us"][key].as_u64();
        assert_eq!(record.ttft_ns().map(us), expected("ttft"));
        assert_eq!(record.tpot_ns().map(|ns| (ns / 1e6 * US_PER_MS as f64) as u64), expected("tpot"));
        assert_eq!(record.e2e_ns().map(us), expected("e2e"));
        assert_eq!(record.flags.contains(Flags::FRESH_CONNECTION), index == 0);
        tally.on_done(record, connection.exchange.gaps(), connection.exchange.kernel_gaps(), Stamp::ZERO);
    }
    assert_eq!(tally.whole().tokens.output, golden["tokens"].as_u64().unwrap());
    assert_eq!(tally.histogram(Metric::Itl).n(), 12);
    let p50 = tally.histogram(Metric::Itl).quantile(Quantile::P50).unwrap();
    assert_eq!(Histogram::bucket_of(p50), Histogram::bucket_of(1_000_000));
}

/// Two workers share five requests; worker w sends w, w + 2 and so on, each as soon as the one before is done.
#[test]
fn bench_level() {
    let expected = [
        (0, 0, 0, [200, 230, 260, 290]),
        (0, 2, 290, [490, 520, 550, 580]),
        (0, 4, 580, [780, 810, 840, 870]),
        (1, 1, 0, [200, 230, 260, 290]),
        (1, 3, 290, [490, 520, 550, 580]),
    ];
    let script = golden_request(100, &[200, 230, 260, 290]);
    let mut seen = Vec::new();
    for worker in 0..2 {
        let mut connection = Connection::default();
        let mut free_ms = 0;
        for id in (worker..5).step_by(2) {
            connection.send(Ask { max_tokens: 4, ..Ask::default() }, id, free_ms);
            assert_eq!(connection.play(free_ms, &script), Progress::Over);
            let record = connection.record();
            assert_eq!(record.output_tokens, Some(4));
            assert!(!record.flags.contains(Flags::LENGTH_OFF));
            assert_eq!(
                (record.ttft_ns(), record.e2e_ns(), record.tpot_ns()),
                (millis(200), millis(290), Some(30e6))
            );
            let times = <[u64; 4]>::try_from(connection.events.times_ms()).unwrap();
            seen.push((worker, record.index, free_ms, times));
            free_ms = record.end.as_nanos() / 1_000_000;
        }
    }
    assert_eq!(seen, expected);
}

#[test]
fn a_resend_keeps_the_clock_and_forgets_the_connection() {
    let mut connection = Connection { reads: 7, ..Connection::default() };
    connection.send(Ask::default(), 0, 0);
    assert!(connection.exchange.is_unanswered());
    // The peer had closed the idle connection; the driver sees its end before any byte of a response.
    connection.exchange.resend();
    let record = connection.record();
    assert_eq!((record.conn, record.sent, record.byte, record.start), (None, None, None, Stamp::ZERO));
    connection.exchange.on_connected(Stamp::from_millis(8), true);
    connection.exchange.on_sent(Stamp::from_millis(9));
    assert_eq!(connection.play(0, &golden_stream()), Progress::Over);
    let record = connection.record();
    assert_eq!((record.outcome, record.ttft_ns()), (Outcome::ok(200), millis(412)));
    assert_eq!((record.connect_ns(), record.sent), (millis(8), Some(Stamp::from_millis(9))));
    assert_eq!(record.flags, Flags::RESENT.with(Flags::FRESH_CONNECTION));
    assert!(!connection.exchange.is_unanswered());
}

#[test]
fn an_interim_response_is_no_first_byte() {
    let mut script = golden_stream();
    script.insert(0, (3, b"HTTP/1.1 103 Early Hints\r\n\r\n".to_vec()));
    let (connection, _) = played(Ask::default(), &script);
    assert_eq!((connection.record().ttfb_ns(), connection.record().ttft_ns()), (millis(20), millis(412)));
    assert!(!connection.exchange.is_unanswered());
}

#[test]
fn kernel_stamps_give_marks_and_gaps_of_their_own() {
    let mut connection = Connection { kernel_lag_ms: Some(2), ..Connection::default() };
    connection.send(Ask::default(), 0, 0);
    let mut script = golden_stream();
    let answer_at = script.iter().position(|(ms, _)| *ms == 461).unwrap();
    let thought = r#"{"choices":[{"index":0,"delta":{"reasoning_content":"hm"}}]}"#;
    for (_, bytes) in &mut script[1..answer_at] {
        *bytes = event(thought).into_bytes();
    }
    for (place, (ms, bytes)) in script.iter().enumerate() {
        // This read was late by 20 ms; the kernel had the bytes in time.
        let late = u64::from(place == answer_at) * 20;
        connection.kernel_lag_ms = Some(2 + late);
        let _ = connection.read(ms + late, &[bytes]);
    }
    let record = connection.record();
    assert_eq!((record.ttft_ns(), record.kernel_ttft_ns()), (millis(412), millis(410)));
    let ms = |ms| Some(Stamp::from_millis(ms));
    assert_eq!((record.answer, record.kernel_answer), (ms(481), ms(459)));
    assert_eq!((record.last, record.kernel_last), (ms(854), ms(852)));
    assert_eq!(
        connection.exchange.gaps().codes().collect::<Vec<_>>(),
        codes_ms(&[24, 45, 4, 72, 24, 249, 24])
    );
    assert_eq!(
        connection.exchange.kernel_gaps().codes().collect::<Vec<_>>(),
        codes_ms(&[24, 25, 24, 72, 24, 249, 24])
    );
    assert_eq!((record.stall_ns.get(), record.kernel_stall_ns.get()), (millis(249), millis(249)));
}

#[test]
fn without_kernel_stamps_there_are_no_kernel_marks() {
    let (connection, _) = played(Ask::default(), &golden_stream());
    let record = connection.record();
    assert_eq!((record.kernel_first, record.kernel_answer, record.kernel_last), (None, None, None));
    assert_eq!((connection.exchange.kernel_gaps().len(), record.kernel_stall_ns.get()), (0, None));
}

/// Each chunk tells the tokens so far: the third event brings three.
#[test]
fn running_usage_gives_gaps_per_token_and_the_adjusted_tpot() {
    let running = |text: &str, so_far: u32| {
        format!(
            r#"{{"choices":[{{"index":0,"delta":{{"content":"{text}"}}}}],"usage":{{"prompt_tokens":5,"completion_tokens":{so_far}}}}}"#
        )
    };
    let script = whole_stream(&[
        (90, ROLE.to_owned()),
        (100, running("a b", 2)),
        (120, running("c", 3)),
        (180, running("d e f", 6)),
        (200, running("g", 7)),
        (201, FINISH.to_owned()),
        (201, usage(5, 8)),
        (201, DONE.to_owned()),
    ]);
    let (connection, _) = played(Ask { max_tokens: 8, ..Ask::default() }, &script);
    let record = connection.record();
    assert_eq!((record.output_tokens, record.tokens_after_first.get()), (Some(8), Some(5)));
    assert_eq!(record.tpot_adjusted_ns(), Some(100e6 / 5.0));
    assert_eq!(record.tpot_ns(), Some(100e6 / 7.0));
    let (mut per_token, mut expected) = (Histogram::new(), Histogram::new());
    connection.exchange.gaps().pool_tokens_into(&mut per_token);
    [20, 20, 20, 20, 20].iter().for_each(|ms| expected.record(ms * 1_000_000));
    assert_eq!(per_token, expected);
    let tokens: Vec<u32> = connection.events.0.iter().map(|event| event.tokens).collect();
    assert_eq!(tokens, [2, 1, 3, 1]);
}

#[test]
fn events_of_one_read_share_its_stamp_and_are_remarked() {
    let mut script = golden_stream();
    let second = script.remove(2).1;
    script[1].1.extend(second);
    let (connection, _) = played(Ask::default(), &script);
    assert_eq!(connection.events.gaps_ms(), [0, 49, 24, 72, 24, 249, 24]);
    assert!(connection.record().flags.contains(Flags::COALESCED));
}

#[test]
fn an_answer_in_one_body_has_no_first_token() {
    let body = r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"all of it"},"finish_reason":"stop"}],"usage":{"prompt_tokens":7,"completion_tokens":3}}"#;
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let ask = Ask { stream: false, max_tokens: 3, ..Ask::default() };
    let (head, body) = (head.into_bytes(), body.as_bytes().to_vec());
    let script = vec![(300, head.clone()), (310, body[..40].to_vec()), (320, body[40..].to_vec())];
    let (mut connection, progress) = played(ask.clone(), &script);
    assert_eq!(progress, Progress::Over);
    let record = connection.record();
    assert_eq!((record.outcome, record.flags.contains(Flags::WHOLE_BODY)), (Outcome::ok(200), true));
    assert_eq!(
        (record.ttfb_ns(), record.e2e_ns(), record.stream_ns()),
        (millis(300), millis(320), 320_000_000)
    );
    assert_eq!(
        (record.ttft_ns(), record.ttfa_ns(), record.tpot_ns(), record.stall_ns.get()),
        (None, None, None, None)
    );
    assert_eq!((record.output_tokens, record.prompt_tokens), (Some(3), Some(7)));
    assert!(connection.exchange.reusable());

    connection.send(ask, 1, 400);
    let _ = connection.play(400, &script[..2].to_vec());
    assert_eq!(connection.exchange.waiting_for().phase, Some(TimeoutPhase::First));
    assert_eq!(connection.end(900, End::Close), Progress::Over);
    assert_eq!(connection.record().outcome, Outcome::new(Class::Truncated, Kind::Truncated, 200));
    assert_eq!(connection.record().e2e_ns(), None);
}

/// With several choices the first event of any sets TTFT, and each choice has gaps of its own.
#[test]
fn choices_are_timed_apart_and_all_must_finish() {
    let piece = |index: u32| format!(r#"{{"choices":[{{"index":{index},"delta":{{"content":"x"}}}}]}}"#);
    let finish =
        |index: u32| format!(r#"{{"choices":[{{"index":{index},"delta":{{}},"finish_reason":"length"}}]}}"#);
    let both = r#"{"choices":[{"index":0,"delta":{"content":"x"}},{"index":1,"delta":{"content":"y"}}]}"#;
    let script = stream(&[
        (100, piece(1)),
        (110, piece(0)),
        (130, piece(1)),
        (150, both.to_owned()),
        (160, finish(1)),
        (165, finish(0)),
    ]);
    let ask = Ask { answers: 2, ..Ask::default() };
    let (mut connection, _) = played(ask.clone(), &script);
    assert_eq!(connection.end(170, End::Close), Progress::Over);
    let record = connection.record();
    assert_eq!((record.outcome, record.events), (Outcome::ok(200), 4));
    assert_eq!((record.ttft_ns(), record.e2e_ns(), record.tpot_ns()), (millis(100), millis(150), None));
    let mut codes = connection.exchange.gaps().codes().collect::<Vec<_>>();
    codes.sort_unstable();
    assert_eq!(codes, codes_ms(&[20, 30, 40]));
    assert_eq!(connection.remarks(), ["framing_incomplete", "no_done"]);

    // With one choice unfinished and no [DONE] the same end comes too early, cut or clean.
    let (mut connection, _) = played(ask.clone(), &script[..5].to_vec());
    let _ = connection.end(170, End::Close);
    assert_eq!(connection.record().outcome, Outcome::new(Class::Truncated, Kind::Truncated, 200));
    let mut clean = script[..5].to_vec();
    clean.push((166, LAST_CHUNK.into()));
    let (connection, progress) = played(ask, &clean);
    assert_eq!(progress, Progress::Over);
    assert_eq!(connection.record().outcome, Outcome::new(Class::Truncated, Kind::Incomplete, 200));
    assert!(connection.exchange.reusable());
}

#[test]
fn completions_are_timed_as_chat_is() {
    let text =
        |text: &str| format!(r#"{{"object":"text_completion","choices":[{{"index":0,"text":"{text}"}}]}}"#);
    let script = whole_stream(&[(50, text("")), (80, text("a")), (95, text("b")), (96, DONE.to_owned())]);
    let (connection, _) = played(Ask { dialect: Dialect::Openai, ..Ask::default() }, &script);
    let record = connection.record();
    assert_eq!((record.ttft_ns(), record.e2e_ns(), record.events), (millis(80), millis(95), 2));
    assert_eq!((record.output_tokens, record.output_source), (Some(2), TokenSource::Events));
}
