//! What a file is that is no run file, so that it can be said what to do with it.
//!
//! It only looks: nothing here is read as a run, and what is not recognised is just not one.

use std::fmt;

use serde::de::IgnoredAny;
use serde_json::Value;

use super::schema::SCHEMA;
use super::tool::Tool;

/// What was found in the place of a run file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Foreign {
    /// Bytes that are no text; those of a run's records or event times, as a rule.
    Binary,
    /// JSON that breaks off in the line.
    CutOff {
        /// From 1.
        line: usize,
    },
    /// Nothing at all.
    Empty,
    /// JSON of something else.
    Json,
    /// Several values of JSON, one to a line, as of `--save-detailed`.
    Lines,
    /// Another document of ours.
    Ours {
        /// Its schema: `tokload.check`.
        schema: String,
    },
    /// Text that is no JSON.
    Text,
    /// A result of another tool.
    Tool(Tool),
}

impl Foreign {
    /// What `text` is, which is no run file.
    #[must_use]
    pub fn of(text: &str) -> Foreign {
        let trimmed = text.trim_start();
        if trimmed.is_empty() {
            return Foreign::Empty;
        }
        if !trimmed.starts_with(['{', '[']) {
            // A number, a word of JSON or a string is JSON all the same.
            let text =
                || serde_json::from_str::<IgnoredAny>(trimmed).map_or(Foreign::Text, |_| Foreign::Json);
            return Tool::of_text(trimmed).map_or_else(text, Foreign::Tool);
        }
        let mut values = serde_json::Deserializer::from_str(trimmed).into_iter::<Value>();
        match values.next() {
            Some(Ok(first)) => {
                let tool = of_tool(&first);
                // What follows need not be whole to be another line.
                let more = || trimmed.get(values.byte_offset()..).is_some_and(|rest| !rest.trim().is_empty());
                tool.unwrap_or_else(|| if more() { Foreign::Lines } else { Foreign::Json })
            }
            _ => match serde_json::from_str::<IgnoredAny>(text) {
                Err(error) if error.is_eof() => Foreign::CutOff { line: error.line() },
                _ => Tool::of_text(trimmed).map_or(Foreign::Text, Foreign::Tool),
            },
        }
    }
}

/// Documents that say whose they are.
fn of_tool(value: &Value) -> Option<Foreign> {
    match value.get("schema").and_then(Value::as_str) {
        Some(schema) if schema.starts_with("tokload.") && schema != SCHEMA => {
            return Some(Foreign::Ours { schema: schema.chars().take(SCHEMA_CHARS_MAX).collect() });
        }
        _ => {}
    }
    // llama-bench writes one list of all its tests.
    let first = value.get(0).unwrap_or(value);
    Tool::of_value(first).map(Foreign::Tool)
}

impl fmt::Display for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Foreign::Binary => f.write_str(
                "it is no text; of a run with .records and .chunks beside it name the .json that they belong to",
            ),
            Foreign::CutOff { line } => write!(
                f,
                "it is JSON that breaks off in line {line}; copy it again, or take the file that was written first"
            ),
            Foreign::Empty => f.write_str("it is empty; name the file that a run has saved"),
            Foreign::Json => f.write_str("it is JSON of something else; name the file that a run has saved"),
            Foreign::Lines => {
                f.write_str("it has a value to a line, as the .jsonl of --save-detailed; name the .json beside it")
            }
            Foreign::Ours { schema } => {
                write!(f, "it is a {schema} document; name the file that a run has saved")
            }
            Foreign::Text => f.write_str("it is no JSON; name the file that a run has saved"),
            Foreign::Tool(tool) => {
                write!(f, "it is {}; make one of it with tokload import FILE --output-file NEW.json", tool.what())
            }
        }
    }
}

const SCHEMA_CHARS_MAX: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_is_is_told() {
        for (text, what) in [
            ("", Foreign::Empty),
            (" \n", Foreign::Empty),
            ("hello", Foreign::Text),
            ("{hello", Foreign::Text),
            ("null\n", Foreign::Json),
            ("17", Foreign::Json),
            ("\"run\"", Foreign::Json),
            ("{}", Foreign::Json),
            ("[1, 2]", Foreign::Json),
            ("{\"a\": [1,\n 2", Foreign::CutOff { line: 2 }),
            ("{\"schema\": \"tokload.run\", \"ver", Foreign::CutOff { line: 1 }),
            ("{\"level\":0}\n{\"level\":1}\n", Foreign::Lines),
            ("{\"schema\": \"tokload.check\"}", Foreign::Ours { schema: "tokload.check".to_owned() }),
            ("{\"schema\": \"other\"}", Foreign::Json),
            ("{\"completed\": 3, \"request_throughput\": 1.0}", Foreign::Tool(Tool::Vllm)),
            (
                "{\"completed\": 3, \"request_throughput\": 1.0}\n{\"completed\": 3}",
                Foreign::Tool(Tool::Vllm),
            ),
            ("{\"aiperf_version\": \"0.13\"}", Foreign::Tool(Tool::Aiperf)),
            ("[{\"n_prompt\": 1, \"n_gen\": 0, \"avg_ts\": 2}]", Foreign::Tool(Tool::LlamaBench)),
            ("#[Histogram log format version 1.3]\n", Foreign::Tool(Tool::HdrLog)),
            ("{\"metadata\": {}, \"metrics\": {}}\n{}", Foreign::Tool(Tool::Aiperf)),
        ] {
            assert_eq!(Foreign::of(text), what, "{text}");
        }
    }
}
