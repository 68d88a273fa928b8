use super::*;
use crate::api::{Channel, Dialect, Usage};

/// An event stream response that is open for more.
const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";

fn at(ms: u64) -> Arrival {
    Arrival { read: Stamp::from_millis(ms), kernel: None, read_no: ms, late: false }
}

/// An exchange of `ask` that has read the head of a stream and `events`, all at 1 ms.
fn streamed(ask: Ask, events: &str) -> Exchange {
    let mut exchange = Exchange::new();
    exchange.begin(ask.clone(), Record::planned(0, Stamp::ZERO));
    let bytes = [HEAD, events.as_bytes()].concat();
    let progress = exchange.on_bytes(&at(1), &bytes, &mut Json::new(), &mut NoSink);
    assert_eq!(progress, Progress::Pending);
    exchange
}

fn usage(prompt: u32, completion: u32, cached: u32, reasoning: u32) -> String {
    format!(
        "data: {{\"choices\":[],\"usage\":{{\"prompt_tokens\":{prompt},\"completion_tokens\":{completion},\
         \"prompt_tokens_details\":{{\"cached_tokens\":{cached}}},\
         \"completion_tokens_details\":{{\"reasoning_tokens\":{reasoning}}}}}}}\n\n"
    )
}

#[test]
fn one_usage_per_answer_adds_what_was_made_and_counts_each_prompt_once() {
    let all = [usage(4, 6, 1, 2), usage(4, 7, 1, 3), usage(5, 8, 0, 0), usage(5, 9, 0, 1)].concat();
    for (answers, prompts, expected) in
        [(4, 2, (9, 30, 1, 6)), (4, 4, (18, 30, 2, 6)), (4, 1, (5, 30, 0, 6)), (3, 1, (5, 9, 0, 1))]
    {
        let ask = Ask { answers, prompts, ..Ask::default() };
        let exchange = streamed(ask.clone(), &all);
        let (prompt, completion, cached, reasoning) = expected;
        let expected = Usage {
            prompt: Some(prompt),
            completion: Some(completion),
            cached: Some(cached),
            reasoning: Some(reasoning),
        };
        assert_eq!(exchange.usages().total(&ask), Some(expected), "{answers} answers, {prompts} prompts");
    }
}

#[test]
fn bytes_after_the_end_leave_the_record_alone() {
    let mut exchange = Exchange::new();
    exchange.begin(Ask::default(), Record::planned(0, Stamp::ZERO));
    assert_eq!(exchange.on_timeout(Stamp::from_millis(5), TimeoutPhase::First), Progress::Over);
    let record = *exchange.record();
    assert_eq!(exchange.on_bytes(&at(6), HEAD, &mut Json::new(), &mut NoSink), Progress::Over);
    assert_eq!(*exchange.record(), record);
}

#[test]
fn one_line_end_behind_a_response_is_tolerated_however_it_is_cut() {
    let whole = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
    for (behind, reusable) in [
        (&b""[..], true),
        (b"\r\n", true),
        (b"\n", true),
        (b"\r", false),
        (b"\n\n", false),
        (b"\r\n\r\n", false),
        (b"\rx", false),
        (b"H", false),
    ] {
        let bytes = [&whole[..], behind].concat();
        for cut in 0..=bytes.len() {
            let mut exchange = Exchange::new();
            exchange.begin(Ask::default(), Record::planned(0, Stamp::ZERO));
            let (left, right) = bytes.split_at(cut);
            let _ = exchange.on_bytes(&at(1), left, &mut Json::new(), &mut NoSink);
            let progress = exchange.on_bytes(&at(1), right, &mut Json::new(), &mut NoSink);
            assert_eq!(progress, Progress::Over);
            assert_eq!(exchange.reusable(), reusable, "{behind:?} cut at {cut}");
        }
    }
}

fn sglang(text: &str, finish: &str, tokens: u32) -> String {
    format!(
        "data: {{\"text\":\"{text}\",\"meta_info\":{{\"finish_reason\":{finish},\"prompt_tokens\":3,\
         \"completion_tokens\":{tokens}}}}}\n\n"
    )
}

#[test]
fn of_text_that_is_repeated_what_goes_beyond_is_content() {
    let ask = Ask { dialect: Dialect::Sglang, ..Ask::default() };
    // The second token makes no text of its own yet; the last event takes a stop word back.
    let events = [
        sglang("", "null", 0),
        sglang("a", "null", 1),
        sglang("a", "null", 2),
        sglang("a b\u{e9}", "null", 4),
        sglang("a b", r#"{"type":"stop"}"#, 5),
        "data: [DONE]\n\n".to_owned(),
    ];
    struct Text(String, Vec<u32>);
    impl Sink for Text {
        const WANTS_TEXT: bool = true;
        fn piece(&mut self, _choice: u32, _channel: Channel, text: &str) {
            self.0.push_str(text);
        }
        fn content_event(&mut self, event: &ContentEvent) {
            self.1.push(event.tokens);
        }
    }
    let mut exchange = Exchange::new();
    exchange.begin(ask.clone(), Record::planned(0, Stamp::ZERO));
    let mut said = Text(String::new(), Vec::new());
    let bytes = [HEAD, events.concat().as_bytes()].concat();
    let _ = exchange.on_bytes(&at(1), &bytes, &mut Json::new(), &mut said);
    let _ = exchange.on_eof(Stamp::from_millis(2), &mut Json::new(), &mut said);
    assert_eq!(exchange.record().outcome.class, Class::Ok);
    assert_eq!((said.0.as_str(), said.1.as_slice()), ("a b\u{e9}", &[1, 2][..]));
    assert_eq!((exchange.record().events, exchange.record().output_tokens), (2, Some(5)));

    let pieces = [sglang("one", "null", 1), sglang("b", "null", 2)].concat();
    let exchange = streamed(ask.clone(), &pieces);
    assert_eq!(exchange.record().outcome.class, Class::StreamError);
    assert!(exchange.message().contains("became shorter"), "{}", exchange.message());
}

#[test]
fn counts_that_come_in_parts_are_one_usage() {
    let ask = Ask { dialect: Dialect::Messages, answers: 2, ..Ask::default() };
    let events = "data: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":1,\
                  \"cache_read_input_tokens\":25,\"output_tokens\":0}}}\n\n\
                  data: {\"type\":\"message_delta\",\"delta\":{},\"usage\":{\"output_tokens\":16}}\n\n";
    let exchange = streamed(ask.clone(), events);
    let expected = Usage { prompt: Some(26), completion: Some(16), cached: Some(25), reasoning: None };
    assert_eq!(exchange.usages().total(&ask), Some(expected));
    assert_eq!(exchange.usages().count, 1);
}

#[test]
fn what_comes_after_the_last_event_of_a_dialect_means_nothing() {
    let ask = Ask { dialect: Dialect::LlamaCpp, ..Ask::default() };
    let events = "data: {\"content\":\"a\",\"stop\":false}\n\n\
                  data: {\"content\":\"\",\"stop\":true,\"stop_type\":\"eos\"}\n\n\
                  data: {\"error\":\"late\"}\n\ndata: junk\n\n";
    let mut exchange = streamed(ask.clone(), events);
    assert!(exchange.done());
    let _ = exchange.on_eof(Stamp::from_millis(9), &mut Json::new(), &mut NoSink);
    let record = exchange.record();
    assert_eq!((record.outcome.class, record.end), (Class::Ok, Stamp::from_millis(1)));
}

#[test]
fn lines_without_a_type_are_lines_where_the_dialect_has_lines() {
    let ask = Ask { dialect: Dialect::OllamaGenerate, ..Ask::default() };
    for kind in ["", "content-type: application/octet-stream\r\n", "content-type: application/x-ndjson\r\n"] {
        let bytes = format!(
            "HTTP/1.1 200 OK\r\n{kind}\r\n{{\"response\":\"a\",\"done\":false}}\n{{\"response\":\"\",\"done\":true}}\n"
        );
        let mut exchange = Exchange::new();
        exchange.begin(ask.clone(), Record::planned(0, Stamp::ZERO));
        let _ = exchange.on_bytes(&at(1), bytes.as_bytes(), &mut Json::new(), &mut NoSink);
        let _ = exchange.on_eof(Stamp::from_millis(2), &mut Json::new(), &mut NoSink);
        let record = exchange.record();
        assert_eq!((record.outcome.class, record.events), (Class::Ok, 1), "{kind:?}");
        assert!(record.flags.contains(Flags::NO_FINISH_REASON));
    }
}
