//! Nanoseconds per event of the wire decoders, with a chunk as vLLM sends it: 217 bytes of event in a chunk of its
//! own. One iteration is one read of one event unless the name says otherwise.

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use tokload::wire::http::{self, Part, Response};
use tokload::wire::sse;

const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n\
    transfer-encoding: chunked\r\n\r\n";

const CHUNK: &[u8] =
    b"d9\r\ndata: {\"id\":\"chatcmpl-8d123781d36db42f\",\"object\":\"chat.completion.chunk\",\
    \"created\":1796061161,\"model\":\"tiny\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\" corn\"},\
    \"logprobs\":null,\"finish_reason\":null,\"token_ids\":null}]}\n\n\r\n";

fn main() {
    assert_eq!(event().len(), 0xd9);
    divan::main();
}

/// The event in the chunk.
fn event() -> &'static [u8] {
    &CHUNK[4..CHUNK.len() - 2]
}

/// A response inside its body.
fn response() -> Response {
    let mut response = Response::new(http::Limits::default());
    let step = response.next(HEAD).expect("a good head");
    assert_eq!((step.used, step.part), (HEAD.len(), Some(Part::Head)));
    response
}

/// Takes one read through chunk framing, and what it frames to `on_body`.
#[inline]
fn read(response: &mut Response, mut input: &[u8], mut on_body: impl FnMut(&[u8]) -> usize) -> usize {
    let mut sum = 0;
    loop {
        let step = response.next(input).expect("good framing");
        input = &input[step.used..];
        match step.part {
            Some(Part::Body(data)) => sum += on_body(data),
            Some(_) => {}
            None => return sum,
        }
    }
}

/// Takes body bytes through the event stream decoder; gives the bytes of data.
#[inline]
fn events(decoder: &mut sse::Decoder, mut input: &[u8]) -> usize {
    let mut sum = 0;
    loop {
        let step = decoder.next(input).expect("within the limits");
        input = &input[step.used..];
        match step.event {
            Some(event) => sum += black_box(event.data).len(),
            None => return sum,
        }
    }
}

#[divan::bench]
fn chunk_framing(bencher: Bencher<'_, '_>) {
    let mut response = response();
    bencher
        .counter(ItemsCount::new(1u32))
        .bench_local(|| read(&mut response, black_box(CHUNK), |data| black_box(data).len()));
}

#[divan::bench]
fn sse_event(bencher: Bencher<'_, '_>) {
    let mut decoder = sse::Decoder::new(sse::Limits::default());
    bencher.counter(ItemsCount::new(1u32)).bench_local(|| events(&mut decoder, black_box(event())));
}

#[divan::bench]
fn framing_and_sse(bencher: Bencher<'_, '_>) {
    let (mut response, mut decoder) = (response(), sse::Decoder::new(sse::Limits::default()));
    bencher
        .counter(ItemsCount::new(1u32))
        .bench_local(|| read(&mut response, black_box(CHUNK), |data| events(&mut decoder, data)));
}

/// Time per ten events: a server that is faster than the reader.
#[divan::bench]
fn framing_and_sse_ten_in_one_read(bencher: Bencher<'_, '_>) {
    let (mut response, mut decoder) = (response(), sse::Decoder::new(sse::Limits::default()));
    let input = CHUNK.repeat(10);
    bencher
        .counter(ItemsCount::new(10u32))
        .bench_local(|| read(&mut response, black_box(&input), |data| events(&mut decoder, data)));
}

/// The slow path: the event is cut in the middle, so that it is put together in the decoder.
#[divan::bench]
fn framing_and_sse_cut_in_two_reads(bencher: Bencher<'_, '_>) {
    let (mut response, mut decoder) = (response(), sse::Decoder::new(sse::Limits::default()));
    let (left, right) = CHUNK.split_at(CHUNK.len() / 2);
    bencher.counter(ItemsCount::new(1u32)).bench_local(|| {
        read(&mut response, black_box(left), |data| events(&mut decoder, data))
            + read(&mut response, black_box(right), |data| events(&mut decoder, data))
    });
}

/// Once per request: the whole head.
#[divan::bench]
fn head(bencher: Bencher<'_, '_>) {
    let mut response = Response::new(http::Limits::default());
    bencher.counter(ItemsCount::new(1u32)).bench_local(|| {
        response.reset();
        response.next(black_box(HEAD)).expect("a good head").used
    });
}
