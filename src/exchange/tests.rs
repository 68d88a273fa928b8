use super::*;
use crate::api::Usage;

/// An event stream response that is open for more.
const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";

fn at(ms: u64) -> Arrival {
    Arrival { read: Stamp::from_millis(ms), kernel: None, read_no: ms, late: false }
}

/// An exchange of `ask` that has read the head of a stream and `events`, all at 1 ms.
fn streamed(ask: Ask, events: &str) -> Exchange {
    let mut exchange = Exchange::new();
    exchange.begin(ask, Record::planned(0, Stamp::ZERO));
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
        let exchange = streamed(ask, &all);
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
