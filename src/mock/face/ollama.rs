//! Ollama's shapes: one JSON object a line, the last of them with `done` and the counts. A tool call comes whole, in a
//! line of its own, with its arguments as an object.
//!
//! `created_at` is the time of the request in all of them: a client that trusts it instead of its own clock measures
//! nothing here.

use std::ops::Range;

use super::{Channel, Face, Piece, Whole, write_padding};
use crate::mock::ask::{Finish, Surface};
use crate::mock::reply::push;

impl Face {
    pub(super) fn ollama_line(&self, piece: &Piece, out: &mut Vec<u8>) -> Range<usize> {
        self.ollama_open(out);
        if let (Channel::Tool, Some(name)) = (piece.channel, &self.tool) {
            out.extend_from_slice(b"\"message\":{\"role\":\"assistant\",\"content\":\"\",");
            let words = self.ollama_call(name, piece, out);
            out.extend_from_slice(b"},\"done\":false}\n");
            return words;
        }
        out.extend_from_slice(match (self.surface, piece.channel) {
            (Surface::OllamaChat, Channel::Reasoning) => {
                b"\"message\":{\"role\":\"assistant\",\"content\":\"\",\"thinking\":\"".as_slice()
            }
            (Surface::OllamaChat, _) => b"\"message\":{\"role\":\"assistant\",\"content\":\"",
            (_, Channel::Reasoning) => b"\"response\":\"\",\"thinking\":\"",
            _ => b"\"response\":\"",
        });
        let start = out.len();
        self.vocabulary.write(piece.choice, piece.from, piece.tokens, out);
        let words = start..out.len();
        out.extend_from_slice(if self.surface == Surface::OllamaChat { b"\"}" } else { b"\"" });
        write_padding(piece.padding, out);
        out.extend_from_slice(b",\"done\":false}\n");
        words
    }

    /// Appends the last line: no text, but the counts.
    pub(in crate::mock) fn ollama_done(&self, whole: &Whole, out: &mut Vec<u8>) {
        self.ollama_whole(&Whole { reasoning: 0, tokens: 0, ..*whole }, out);
        out.push(b'\n');
    }

    pub(super) fn ollama_whole(&self, whole: &Whole, out: &mut Vec<u8>) {
        self.ollama_open(out);
        let reasoning = whole.reasoning.min(whole.tokens);
        let is_chat = self.surface == Surface::OllamaChat;
        out.extend_from_slice(if is_chat {
            b"\"message\":{\"role\":\"assistant\",\"content\":\""
        } else {
            b"\"response\":\""
        });
        let rest = whole.tokens - reasoning;
        let tool = self.tool.as_ref().filter(|_| is_chat && rest > 0);
        if tool.is_none() {
            self.vocabulary.write(0, reasoning, rest, out);
        }
        out.push(b'"');
        if let Some(name) = tool {
            out.push(b',');
            let call = Piece { from: reasoning, tokens: rest, ..CALL };
            self.ollama_call(name, &call, out);
        }
        if reasoning > 0 {
            out.extend_from_slice(b",\"thinking\":\"");
            self.vocabulary.write(0, 0, reasoning, out);
            out.push(b'"');
        }
        out.extend_from_slice(if is_chat { b"},\"done\":true" } else { b",\"done\":true" });
        if let Some(finish) = whole.finish {
            let reason = if finish == Finish::Length { "length" } else { "stop" };
            push(out, format_args!(",\"done_reason\":\"{reason}\""));
        }
        let (prompt, tokens) = (whole.times.prompt.as_nanos(), whole.times.tokens.as_nanos());
        push(out, format_args!(",\"total_duration\":{},\"load_duration\":0", prompt + tokens));
        if let Some(counts) = whole.usage {
            push(
                out,
                format_args!(
                    ",\"prompt_eval_count\":{},\"prompt_eval_duration\":{prompt},\"eval_count\":{},\
                     \"eval_duration\":{tokens}",
                    counts.prompt, counts.completion
                ),
            );
        }
        out.push(b'}');
    }

    /// Appends the member with the call of a tool, as [`Channel::Tool`] counts its tokens; gives the place of the words.
    fn ollama_call(&self, name: &str, piece: &Piece, out: &mut Vec<u8>) -> Range<usize> {
        let of_name = u32::from(piece.nth == 0).min(piece.tokens);
        push(
            out,
            format_args!("\"tool_calls\":[{{\"function\":{{\"name\":{name},\"arguments\":{{\"text\":\""),
        );
        let start = out.len();
        self.vocabulary.write(piece.choice, piece.from + of_name, piece.tokens - of_name, out);
        let words = start..out.len();
        out.extend_from_slice(b"\"}}}]");
        words
    }

    fn ollama_open(&self, out: &mut Vec<u8>) {
        push(out, format_args!("{{\"model\":{},\"created_at\":\"{}\",", self.model, utc(self.created)));
    }
}

/// A whole call.
const CALL: Piece =
    Piece { choice: 0, channel: Channel::Tool, from: 0, nth: 0, tokens: 0, end: None, padding: 0 };

/// A time of seconds since 1970 as RFC 3339 has it.
pub(in crate::mock) fn utc(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Year, month and day of a number of days since 1970. Years are counted from March, so that the leap day is the last
/// day of a year and 400 years (146 097 days) are a whole cycle.
fn civil(days: u64) -> (u64, u64, u64) {
    // 719 468 days lie between the first of March of the year 0 and 1970.
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::Value;

    use super::*;
    use crate::mock::face::tests::{PIECE, face};
    use crate::mock::face::{Counts, Times};

    const WHOLE: Whole = Whole {
        choices: 1,
        reasoning: 1,
        tokens: 3,
        finish: Some(Finish::Length),
        usage: Some(Counts { prompt: 7, completion: 3, cached: None, reasoning: None }),
        times: Times { prompt: Duration::from_millis(2), tokens: Duration::from_millis(5) },
    };

    #[test]
    fn a_line_is_one_object_and_says_that_more_comes() {
        for (surface, text) in
            [(Surface::OllamaChat, "/message/content"), (Surface::OllamaGenerate, "/response")]
        {
            let mut out = Vec::new();
            let piece = Piece { tokens: 2, padding: 4, ..PIECE };
            let words = face(surface).content(&piece, None, &mut out);
            assert_eq!(&out[words], b" apple bread");
            assert_eq!(out.iter().filter(|byte| **byte == b'\n').count(), 1);
            let line: Value = serde_json::from_slice(&out).unwrap();
            assert_eq!(line.pointer(text).unwrap(), " apple bread");
            assert_eq!(line["done"], false);
            assert_eq!(line["created_at"], "2026-11-30T17:52:41Z");
            out.clear();
            face(surface).content(&Piece { channel: Channel::Reasoning, ..piece }, None, &mut out);
            let line: Value = serde_json::from_slice(&out).unwrap();
            assert_eq!(line.pointer(text).unwrap(), "");
        }
    }

    #[test]
    fn the_last_line_has_the_counts() {
        let mut out = Vec::new();
        face(Surface::OllamaChat).ollama_done(&WHOLE, &mut out);
        let line: Value = serde_json::from_slice(&out).unwrap();
        assert_eq!((line["done"].as_bool(), line["done_reason"].as_str()), (Some(true), Some("length")));
        assert_eq!(line["message"]["content"], "");
        assert_eq!((line["prompt_eval_count"].as_u64(), line["eval_count"].as_u64()), (Some(7), Some(3)));
        assert_eq!(line["total_duration"], 7_000_000);
        out.clear();
        face(Surface::OllamaGenerate).whole(&WHOLE, &mut out);
        let line: Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(
            (line["response"].as_str(), line["thinking"].as_str()),
            (Some(" bread cloud"), Some(" apple"))
        );
    }

    #[test]
    fn a_tool_is_called_in_one_object() {
        let face = Face { tool: Some("\"weather\"".into()), ..face(Surface::OllamaChat) };
        let call =
            serde_json::json!([{"function": {"name": "weather", "arguments": {"text": " cloud dance"}}}]);
        let mut out = Vec::new();
        let words = face.content(&Piece { from: 1, tokens: 3, ..CALL }, None, &mut out);
        assert_eq!(&out[words], b" cloud dance");
        let line: Value = serde_json::from_slice(&out).unwrap();
        assert_eq!((&line["message"]["tool_calls"], &line["done"]), (&call, &false.into()));
        out.clear();
        face.whole(&Whole { tokens: 4, finish: Some(Finish::ToolCalls), ..WHOLE }, &mut out);
        let whole: Value = serde_json::from_slice(&out).unwrap();
        let message = serde_json::json!({
            "role": "assistant", "content": "", "thinking": " apple", "tool_calls": call
        });
        assert_eq!((&whole["message"], &whole["done_reason"]), (&message, &"stop".into()));
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, date) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_799, "2000-02-29T23:59:59Z"),
            (1_709_251_200, "2024-03-01T00:00:00Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(utc(seconds), date);
        }
    }
}
