//! The law of the scan: what it knows of an event is what the full parser reports. For tests and the fuzz target.

use super::{Frame, walk, whole};
use crate::api::{Channel, Dialect, Finish, Reader, Usage};
use crate::wire::json::Json;

/// Holds the law of the scan for any bytes: where the scan knows the event, the full parser reports the same.
///
/// # Panics
/// If it does not.
#[doc(hidden)]
pub fn fuzz_json_scan(data: &[u8]) {
    let mut json = Json::new();
    for dialect in [Dialect::OpenaiChat, Dialect::Openai] {
        let mut frame = Frame::new();
        // As one event, and each line as one of the same answer. Each comes twice: to the walk, and to what is known since.
        let lines = data.split(|byte| *byte == b'\n');
        for data in lines.chain(data.contains(&b'\n').then_some(data)) {
            compare::<true>(dialect, &mut frame, &mut json, data);
            compare::<false>(dialect, &mut frame, &mut json, data);
            compare_whole::<true>(dialect, &mut json, data);
            compare_whole::<false>(dialect, &mut json, data);
        }
    }
}

fn compare<const TEXT: bool>(dialect: Dialect, frame: &mut Frame, json: &mut Json, data: &[u8]) {
    let mut fast = Log::<TEXT>::default();
    let mut full = Log::<TEXT>::default();
    let by_frame = frame.known(data, TEXT).map(|piece| format!("{piece:?}"));
    let known = dialect.part_of_event().map(|part| walk(part, data).and_then(|choice| choice.known(TEXT)));
    let fast_outcome = dialect.read_event(json, frame, data, &mut fast);
    let full_outcome = dialect.read_event_in_full(json, data, &mut full);
    assert_eq!((fast_outcome, &fast), (full_outcome, &full), "the scan was wrong: {by_frame:?}, {known:?}");
}

fn compare_whole<const TEXT: bool>(dialect: Dialect, json: &mut Json, body: &[u8]) {
    let mut fast = Log::<TEXT>::default();
    let mut full = Log::<TEXT>::default();
    let fast_outcome = dialect.read_whole(json, body, &mut fast);
    let full_outcome = dialect.read_whole_in_full(json, body, &mut full);
    let known = dialect.part_of_whole().map(|part| whole(part, body, TEXT));
    assert_eq!((fast_outcome, &fast), (full_outcome, &full), "the scan was wrong: {known:?}");
}

/// Every report in its order.
#[derive(Debug, Default, PartialEq)]
struct Log<const TEXT: bool>(Vec<Said>);

#[derive(Debug, PartialEq)]
enum Said {
    Piece(u32, Channel, String),
    Finish(u32, Finish),
    Tokens(u32, u32),
    Usage(Usage, u32),
    Error(String),
}

impl<const TEXT: bool> Reader for Log<TEXT> {
    const WANTS_TEXT: bool = TEXT;

    fn piece(&mut self, choice: u32, channel: Channel, text: &str) {
        self.0.push(Said::Piece(choice, channel, text.to_owned()));
    }

    fn finish(&mut self, choice: u32, reason: Finish) {
        self.0.push(Said::Finish(choice, reason));
    }

    fn tokens(&mut self, choice: u32, count: u32) {
        self.0.push(Said::Tokens(choice, count));
    }

    fn usage(&mut self, usage: Usage, choices: u32) {
        self.0.push(Said::Usage(usage, choices));
    }

    fn error(&mut self, message: &str) {
        self.0.push(Said::Error(message.to_owned()));
    }
}
