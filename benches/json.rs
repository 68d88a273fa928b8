//! What one event of a stream costs to read, ns per event.
//!
//! `read_event` on a usual chunk is what the scan knows of the one before; on a chunk with a finish reason or running usage it is the scan's
//! refusal and then the full parser; `parse` is the full parser alone.

use divan::{Bencher, black_box};
use tokload::api::{Channel, Dialect, Finish, Frame, Reader, Usage};
use tokload::wire::json::Json;

fn main() {
    divan::main();
}

#[divan::bench(args = CHUNKS)]
fn read_event(bencher: Bencher<'_, '_>, chunk: &Chunk) {
    let mut json = Json::new();
    let mut frame = Frame::new();
    let mut pieces = Pieces(0);
    bencher.bench_local(|| {
        let _ =
            chunk.dialect.read_event(&mut json, &mut frame, black_box(chunk.data.as_bytes()), &mut pieces);
    });
    black_box(pieces.0);
}

#[divan::bench(args = CHUNKS)]
fn parse(bencher: Bencher<'_, '_>, chunk: &Chunk) {
    let mut json = Json::new();
    bencher.bench_local(|| {
        let document = json.parse(black_box(chunk.data.as_bytes()));
        black_box(document.is_ok())
    });
}

/// Counts, as an exchange without a text sink does.
struct Pieces(u64);

impl Reader for Pieces {
    const WANTS_TEXT: bool = false;

    fn piece(&mut self, _: u32, _: Channel, _: &str) {
        self.0 += 1;
    }

    fn finish(&mut self, _: u32, _: Finish) {}

    fn tokens(&mut self, _: u32, _: u32) {}

    fn usage(&mut self, _: Usage, _: u32) {}

    fn error(&mut self, _: &str) {}
}

struct Chunk {
    name: &'static str,
    dialect: Dialect,
    data: &'static str,
}

impl std::fmt::Display for Chunk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

const CHUNKS: &[Chunk] = &[
    Chunk {
        name: "vllm chat",
        dialect: Dialect::OpenaiChat,
        data: r#"{"id":"chatcmpl-8d123781d36db42f","object":"chat.completion.chunk","created":1796061161,"model":"meta-llama/Llama-3.1-8B-Instruct","choices":[{"index":0,"delta":{"content":" corn"},"logprobs":null,"finish_reason":null,"token_ids":null}]}"#,
    },
    Chunk {
        name: "llama.cpp chat",
        dialect: Dialect::OpenaiChat,
        data: r#"{"choices":[{"finish_reason":null,"index":0,"delta":{"content":" corn"}}],"created":1796061161,"id":"chatcmpl-mj9LUcNanPhdJEABVG9ThyxEZhzV0cfV","model":"tiny","system_fingerprint":"b10434-7e4c0a9","object":"chat.completion.chunk"}"#,
    },
    Chunk {
        name: "vllm completions",
        dialect: Dialect::Openai,
        data: r#"{"id":"cmpl-991594e8c22022c8","object":"text_completion","created":1796061184,"model":"tiny","choices":[{"index":0,"text":" islan","logprobs":null,"finish_reason":null,"stop_reason":null,"prompt_token_ids":null,"token_ids":null}]}"#,
    },
    Chunk {
        name: "vllm chat, running usage",
        dialect: Dialect::OpenaiChat,
        data: r#"{"id":"chatcmpl-a63a167ffdb28eae","object":"chat.completion.chunk","created":1796061161,"model":"tiny","choices":[{"index":0,"delta":{"content":" corn"},"logprobs":null,"finish_reason":null,"token_ids":null}],"usage":{"prompt_tokens":26,"total_tokens":27,"completion_tokens":1,"completion_tokens_details":null}}"#,
    },
    Chunk {
        name: "vllm chat, finish",
        dialect: Dialect::OpenaiChat,
        data: r#"{"id":"chatcmpl-8d123781d36db42f","object":"chat.completion.chunk","created":1796061161,"model":"tiny","choices":[{"index":0,"delta":{"content":" a"},"logprobs":null,"finish_reason":"length","stop_reason":null,"token_ids":null}]}"#,
    },
];
