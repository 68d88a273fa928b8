//! What holds for any bytes that follow a request: the law beside the code, for the fuzzer and the corpus test.

use super::{Error, Head, Limits, Part, Response};
use crate::wire::cuts::Cuts;

/// Decodes the bytes whole, byte by byte and in a few other cuts, under wide and under narrow limits.
///
/// # Panics
/// If a cut changes what is read, if more is kept than the limits allow, or if the decoder contradicts itself.
pub fn fuzz_http_response(bytes: &[u8]) {
    let narrow = Limits {
        chunk_line_bytes_max: 12,
        chunk_size_max: 300,
        head_bytes_max: 160,
        headers_max: 4,
        trailer_bytes_max: 24,
    };
    for limits in [Limits::default(), narrow] {
        let whole = read(bytes, Cuts::none(), limits);
        assert!(whole.used <= bytes.len());
        for cuts in Cuts::of(bytes) {
            assert_eq!(read(bytes, cuts, limits), whole, "{cuts:?} changed the reading");
        }
    }
}

/// Everything that a caller can learn of a response.
#[derive(PartialEq, Debug)]
struct Reading {
    interim: Vec<u16>,
    head: Option<Head>,
    body: Vec<u8>,
    complete: bool,
    keep_alive: bool,
    started: bool,
    error: Option<Error>,
    /// Bytes up to the end of the message; 0 for one without an end.
    used: usize,
    at_eof: Result<super::End, Error>,
}

fn read(bytes: &[u8], mut cuts: Cuts, limits: Limits) -> Reading {
    let mut response = Response::new(limits);
    let (mut interim, mut body, mut error, mut used) = (Vec::new(), Vec::new(), None, 0);
    let mut rest = bytes;
    'reads: while !rest.is_empty() && !response.is_complete() {
        let (mut input, later) = rest.split_at(cuts.next_len(rest.len()));
        rest = later;
        loop {
            let step = match response.next(input) {
                Ok(step) => step,
                Err(found) => {
                    assert_eq!(response.next(input), Err(found), "an error must stay");
                    error = Some(found);
                    break 'reads;
                }
            };
            input = &input[step.used..];
            assert!(response.buffered_bytes() <= limits.head_bytes_max);
            match step.part {
                Some(Part::Interim(status)) => interim.push(status),
                Some(Part::Head) => assert!(response.head().is_some()),
                Some(Part::Body(piece)) => {
                    assert!(!piece.is_empty());
                    body.extend_from_slice(piece);
                }
                Some(Part::End) => used = bytes.len() - rest.len() - input.len(),
                None => break,
            }
        }
        assert!(input.is_empty() || response.is_complete(), "unread input without an end");
    }
    Reading {
        interim,
        head: response.head().copied(),
        body,
        complete: response.is_complete(),
        keep_alive: response.keep_alive(),
        started: response.started(),
        error,
        used,
        at_eof: response.on_eof(),
    }
}
