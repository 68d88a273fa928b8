//! What holds for any body taken as an event stream: the law beside the code, for the fuzzer and the corpus test.

use super::{Decoder, Error, Limits, Name};
use crate::wire::cuts::Cuts;

/// Decodes the bytes whole, byte by byte and in a few other cuts, under wide and under narrow limits.
///
/// # Panics
/// If a cut changes the events, if more is kept than the limits allow, or if the decoder contradicts itself.
pub fn fuzz_sse(bytes: &[u8]) {
    let narrow = Limits { line_bytes_max: 40, event_bytes_max: 60 };
    let narrower = Limits { line_bytes_max: 9, event_bytes_max: 3 };
    for limits in [Limits::default(), narrow, narrower] {
        let whole = read(bytes, Cuts::none(), limits);
        for cuts in Cuts::of(bytes) {
            assert_eq!(read(bytes, cuts, limits), whole, "{cuts:?} changed the reading");
        }
    }
}

/// An event as it can be kept.
type Owned = (Vec<u8>, Name, bool);

/// The events, then how it ended: with an event that lacks its blank line, without one, or broken.
type Reading = (Vec<Owned>, Result<Option<Owned>, Error>);

fn read(bytes: &[u8], mut cuts: Cuts, limits: Limits) -> Reading {
    let mut decoder = Decoder::new(limits);
    let mut events = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let (mut input, later) = rest.split_at(cuts.next_len(rest.len()));
        rest = later;
        loop {
            let step = match decoder.next(input) {
                Ok(step) => step,
                Err(error) => {
                    assert_eq!(decoder.next(input), Err(error), "an error must stay");
                    return (events, Err(error));
                }
            };
            input = &input[step.used..];
            let Some(event) = step.event else { break };
            assert!(event.data.len() <= limits.event_bytes_max.max(limits.line_bytes_max));
            events.push((event.data.to_vec(), event.name, event.error_field));
            let bound = 2 * limits.line_bytes_max.max(limits.event_bytes_max);
            assert!(decoder.buffered_bytes() <= bound);
        }
        assert!(input.is_empty(), "unread input without an event");
    }
    let last =
        decoder.finish().map(|last| last.map(|event| (event.data.to_vec(), event.name, event.error_field)));
    (events, last)
}
