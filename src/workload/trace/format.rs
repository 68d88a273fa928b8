//! The formats: their names, and how one is told from the beginning of a file.
//!
//! Owns the table of names and the rules of detection. How a record is read is owned by one file per format.

use super::parser::BYTE_ORDER_MARK;

/// A public format of traces or prompts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// Azure LLM inference traces of 2023 and 2024: CSV with `TIMESTAMP,ContextTokens,GeneratedTokens`.
    AzureLlm,
    /// Azure multimodal trace of 2025: the same with `NumImages`.
    AzureLmm,
    /// BurstGPT, both versions: CSV with `Timestamp,Model,Request tokens,Response tokens`.
    BurstGpt,
    /// Mooncake, and what other tools have added to it: JSON lines, 512-token blocks.
    Mooncake,
    /// Bailian: JSON lines, 16-token blocks, turns linked by `parent_chat_id`.
    Bailian,
    /// Agent sessions of the KV cache tester: JSON objects with `requests`, 64-token blocks.
    Weka,
    /// JSON lines with `text` or `texts`, one request each.
    AiperfSingleTurn,
    /// JSON lines with `turns`, one conversation each.
    AiperfMultiTurn,
    /// JSON lines with `prompt` and perhaps `output_tokens`.
    VllmCustom,
    /// JSON lines with `method`, `url` and `body`.
    OpenAiBatch,
    /// A JSON array (or lines) of `conversations`.
    ShareGpt,
    /// JSON lines with `instruction`, `context` and `response`.
    Dolly,
    /// JSON lines with `prompt`, `text` or `messages`.
    Jsonl,
    /// CSV with a column of prompts.
    Csv,
    /// One prompt per line.
    Text,
}

impl Format {
    /// All of them.
    pub const ALL: [Format; 15] = [
        Format::AzureLlm,
        Format::AzureLmm,
        Format::BurstGpt,
        Format::Mooncake,
        Format::Bailian,
        Format::Weka,
        Format::AiperfSingleTurn,
        Format::AiperfMultiTurn,
        Format::VllmCustom,
        Format::OpenAiBatch,
        Format::ShareGpt,
        Format::Dolly,
        Format::Jsonl,
        Format::Csv,
        Format::Text,
    ];

    /// Its name in options and plans.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.names()[0]
    }

    /// The format of that name, or of the name that another tool gives it; `-` and `_` are the same.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Format> {
        let name = name.replace('_', "-").to_ascii_lowercase();
        Format::ALL.into_iter().find(|format| format.names().contains(&name.as_str()))
    }

    fn names(self) -> &'static [&'static str] {
        match self {
            Format::AzureLlm => &["azure-llm", "azure"],
            Format::AzureLmm => &["azure-lmm"],
            Format::BurstGpt => &["burstgpt", "burst-gpt", "burst-gpt-trace"],
            Format::Mooncake => &["mooncake", "mooncake-trace", "timed-trace"],
            Format::Bailian => &["bailian", "bailian-trace"],
            Format::Weka => &["weka", "weka-trace"],
            Format::AiperfSingleTurn => &["single-turn", "aiperf-single-turn"],
            Format::AiperfMultiTurn => &["multi-turn", "aiperf-multi-turn"],
            Format::VllmCustom => &["custom", "vllm-custom"],
            Format::OpenAiBatch => &["openai-batch"],
            Format::ShareGpt => &["sharegpt"],
            Format::Dolly => &["dolly"],
            Format::Jsonl => &["jsonl"],
            Format::Csv => &["csv"],
            Format::Text => &["text", "txt"],
        }
    }

    /// The format of a file of that name which begins with these bytes; a few kilobytes do, and they may end anywhere.
    /// `None` where nothing fits: of JSON that is not known, no prompts are guessed.
    #[must_use]
    pub fn detect(file: &str, beginning: &[u8]) -> Option<Format> {
        let text = beginning.strip_prefix(BYTE_ORDER_MARK).unwrap_or(beginning).trim_ascii_start();
        match text.first()? {
            b'{' | b'[' => Format::of_keys(&first_keys(text)),
            _ => {
                let header = text.split(|byte| matches!(byte, b'\n' | b'\r')).next().unwrap_or_default();
                Format::of_header(&String::from_utf8_lossy(header)).or_else(|| Format::of_file_name(file))
            }
        }
    }

    fn of_keys(keys: &[String]) -> Option<Format> {
        let has = |wanted: &[&str]| keys.iter().any(|key| wanted.contains(&key.as_str()));
        let rules: [(bool, Format); 11] = [
            (has(&["body"]) && has(&["custom_id", "url"]), Format::OpenAiBatch),
            (has(&["requests"]), Format::Weka),
            (has(&["conversations"]), Format::ShareGpt),
            (has(&["turns"]), Format::AiperfMultiTurn),
            (has(&["chat_id", "parent_chat_id"]), Format::Bailian),
            (has(&["instruction"]) && has(&["response"]), Format::Dolly),
            (has(&MOONCAKE_KEYS), Format::Mooncake),
            (
                has(&["messages"]) && has(&["timestamp", "delay", "delay_ms", "output_length"]),
                Format::Mooncake,
            ),
            (has(&["text", "texts"]), Format::AiperfSingleTurn),
            (has(&["prompt"]), Format::VllmCustom),
            (has(&["messages"]), Format::Jsonl),
        ];
        rules.into_iter().find(|(is_met, _)| *is_met).map(|(_, format)| format)
    }

    fn of_header(header: &str) -> Option<Format> {
        let names: Vec<_> =
            header.split(',').map(|name| name.trim().trim_matches('"').to_ascii_lowercase()).collect();
        let has = |wanted: &[&str]| wanted.iter().all(|name| names.iter().any(|found| found == name));
        if has(&["timestamp", "contexttokens", "generatedtokens"]) {
            return Some(if has(&["numimages"]) { Format::AzureLmm } else { Format::AzureLlm });
        }
        has(&["timestamp", "request tokens", "response tokens"]).then_some(Format::BurstGpt)
    }

    fn of_file_name(file: &str) -> Option<Format> {
        match file.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase()).as_deref() {
            Some("csv") => Some(Format::Csv),
            Some("json" | "jsonl" | "ndjson") => None,
            _ => Some(Format::Text),
        }
    }
}

const MOONCAKE_KEYS: [&str; 6] =
    ["created_time", "hash_ids", "input_length", "input_tokens", "payload", "text_input"];

/// The keys of the first object, as far as the bytes go. Escapes in them are left as they are: no format has any.
fn first_keys(text: &[u8]) -> Vec<String> {
    let mut keys = Vec::new();
    let mut depth = 0;
    let mut at = text.iter().position(|byte| *byte == b'{').unwrap_or(text.len());
    while at < text.len() {
        match text[at] {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth -= 1;
                if depth == 0 {
                    break;
                }
            }
            b'"' => {
                let Some(len) = string_bytes(&text[at..]) else { break };
                let is_key = text[at + len..].trim_ascii_start().first() == Some(&b':');
                if depth == 1 && is_key {
                    keys.push(String::from_utf8_lossy(&text[at + 1..at + len - 1]).into_owned());
                }
                at += len;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    keys
}

/// Length of the string that begins here, with its quotes; `None` if it does not end.
fn string_bytes(text: &[u8]) -> Option<usize> {
    let mut at = 1;
    loop {
        match text.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_read_back() {
        for format in Format::ALL {
            assert_eq!(Format::from_name(format.name()), Some(format));
            for name in format.names() {
                assert_eq!(Format::from_name(&name.replace('-', "_")), Some(format), "{name}");
            }
        }
        assert_eq!(Format::from_name("parquet"), None);
    }

    #[test]
    fn a_beginning_tells_the_format_even_if_it_is_cut() {
        for (file, beginning, expected) in [
            ("a.csv", "TIMESTAMP,ContextTokens,GeneratedTokens\n", Some(Format::AzureLlm)),
            ("a", "\u{FEFF}timestamp, NumImages ,\"ContextTokens\",GeneratedTokens", Some(Format::AzureLmm)),
            ("a.csv", "Timestamp,Model,Request tokens,Response tokens,x", Some(Format::BurstGpt)),
            ("a.CSV", "question,answer\n", Some(Format::Csv)),
            ("a.txt", "Timestamp and more\n", Some(Format::Text)),
            ("a", "plain", Some(Format::Text)),
            ("a.jsonl", "plain", None),
            ("a", "", None),
            ("a", " \n{\"input_length\": 1, \"ha", Some(Format::Mooncake)),
            ("a", "{\"messages\": [{\"turns\": 1}], \"delay\":", Some(Format::Mooncake)),
            ("a", "{\"messages\": [{\"text\": 1}]}{\"delay\": 1}", Some(Format::Jsonl)),
            ("a", "[ {\"id\": \"a\\\"]}\", \"conversations\": [", Some(Format::ShareGpt)),
            ("a", "{\"id\": \"a\", \"block_size\": 64, \"requests\": [{", Some(Format::Weka)),
            ("a", "{\"instruction\": \"a\", \"context\": \"text\", \"response\": \"\"}", Some(Format::Dolly)),
            ("a", "{\"something\": \"prompt\"}", None),
        ] {
            assert_eq!(Format::detect(file, beginning.as_bytes()), expected, "{beginning}");
        }
    }
}
