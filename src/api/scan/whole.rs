//! The usual answer that is not streamed: one choice, its text, why it ended, and the token counts.

use super::{CHUNK_BYTES_MAX, Choice, Known, Name, Seen, Walk};
use crate::api::{Channel, Dialect, Finish, Usage};

/// An answer that is known to report this and nothing else, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::api) struct Whole<'t> {
    /// Its only choice and what that says.
    pub(in crate::api) said: Known<'t>,
    /// Why that ended.
    pub(in crate::api) finish: Option<Finish>,
    /// The counts, where there are any.
    pub(in crate::api) usage: Option<Usage>,
}

/// Looks at a whole answer; `None` is "ask the full parser".
pub(in crate::api) fn whole(dialect: Dialect, body: &[u8], wants_text: bool) -> Option<Whole<'_>> {
    if body.len() > CHUNK_BYTES_MAX {
        return None;
    }
    let mut walk = Walk { rest: body };
    let mut seen = Seen(0);
    let (mut choice, mut finish, mut usage) = (Choice::default(), None, Usage::default());
    walk.object(|walk, name| match name {
        Name::Choices => {
            seen.first(Seen::CHOICES) && walk.only_answer(dialect, &mut choice, &mut finish).is_some()
        }
        Name::Object => seen.first(Seen::OBJECT) && walk.harmless_object(),
        Name::Usage => seen.first(Seen::USAGE) && walk.usage(&mut usage).is_some(),
        Name::Created => walk.whole_number().is_some(),
        Name::Label => walk.nullable_text().is_some(),
        Name::Error | Name::AbsentAround => walk.null(),
        _ => false,
    })?;
    walk.end()?;
    if !seen.has(Seen::CHOICES) {
        return None;
    }
    Some(Whole { said: choice.known(wants_text)?, finish, usage: usage.told() })
}

/// A name in `usage`.
#[derive(Clone, Copy)]
enum Count {
    Prompt,
    Completion,
    /// The sum of both, which nobody reads.
    Total,
    PromptDetails,
    CompletionDetails,
}

/// A name in the details of a count: the one that is read, or another.
#[derive(Clone, Copy, PartialEq)]
enum Detail {
    Cached,
    Reasoning,
    Other,
}

impl<'t> Walk<'t> {
    /// `[{...}]`: the array of choices with its only one, which has its text as a `message` or as `text`.
    fn only_answer(
        &mut self,
        dialect: Dialect,
        choice: &mut Choice<'t>,
        finish: &mut Option<Finish>,
    ) -> Option<()> {
        let mut seen = Seen(0);
        self.take(b'[')?;
        self.object(|walk, name| match name {
            Name::Index => seen.first(Seen::INDEX) && walk.index(choice),
            Name::Message if dialect == Dialect::OpenaiChat => {
                seen.first(Seen::TEXTS) && walk.spoken(choice).is_some()
            }
            Name::Text if dialect == Dialect::Openai => {
                seen.first(Seen::TEXTS) && choice.say(Channel::Content, walk)
            }
            Name::FinishReason => seen.first(Seen::FINISH) && walk.finish_reason(finish),
            Name::AbsentInChoice | Name::AbsentAround => walk.null(),
            _ => false,
        })?;
        self.take(b']')
    }

    /// Why an answer ended, or null; a reason that would have to be decoded is none that is known.
    fn finish_reason(&mut self, finish: &mut Option<Finish>) -> bool {
        let plain = |reason: &&[u8]| reason.is_ascii() && !reason.contains(&b'\\');
        let Some(reason) = self.nullable_text().filter(plain) else { return false };
        *finish = str::from_utf8(reason).ok().and_then(Finish::of);
        true
    }

    /// The counts, or null in their place.
    fn usage(&mut self, usage: &mut Usage) -> Option<()> {
        if self.stands_null() {
            return Some(());
        }
        let mut seen = Seen(0);
        self.object_of(Walk::count_name, |walk, name| {
            seen.first(1 << name as u8)
                && match name {
                    Count::Prompt => walk.count().map(|n| usage.prompt = Some(n)),
                    Count::Completion => walk.count().map(|n| usage.completion = Some(n)),
                    Count::Total => walk.count().map(|_| ()),
                    Count::PromptDetails => walk.details(Detail::Cached, &mut usage.cached),
                    Count::CompletionDetails => walk.details(Detail::Reasoning, &mut usage.reasoning),
                }
                .is_some()
        })
    }

    fn count_name(&mut self) -> Option<Count> {
        self.skip_blanks();
        None.or_else(|| self.if_key(br#""prompt_tokens":"#, Count::Prompt))
            .or_else(|| self.if_key(br#""completion_tokens":"#, Count::Completion))
            .or_else(|| self.if_key(br#""total_tokens":"#, Count::Total))
            .or_else(|| self.if_key(br#""prompt_tokens_details":"#, Count::PromptDetails))
            .or_else(|| self.if_key(br#""completion_tokens_details":"#, Count::CompletionDetails))
    }

    /// The details of a count, or null in their place: of them `wanted` is read, once.
    fn details(&mut self, wanted: Detail, to: &mut Option<u32>) -> Option<()> {
        if self.stands_null() {
            return Some(());
        }
        self.object_of(Walk::detail_name, |walk, name| match name == wanted {
            true if to.is_some() => false,
            true => {
                *to = walk.count();
                to.is_some()
            }
            false => walk.count().is_some(),
        })
    }

    fn detail_name(&mut self) -> Option<Detail> {
        self.skip_blanks();
        None.or_else(|| self.if_key(br#""cached_tokens":"#, Detail::Cached))
            .or_else(|| self.if_key(br#""reasoning_tokens":"#, Detail::Reasoning))
            .or_else(|| self.if_key(br#""audio_tokens":"#, Detail::Other))
            .or_else(|| self.if_key(br#""accepted_prediction_tokens":"#, Detail::Other))
            .or_else(|| self.if_key(br#""rejected_prediction_tokens":"#, Detail::Other))
    }

    fn count(&mut self) -> Option<u32> {
        self.whole_number().and_then(super::number)
    }

    /// Steps over a null, if one stands here.
    fn stands_null(&mut self) -> bool {
        self.skip_blanks();
        self.rest.first() == Some(&b'n') && self.null()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::scan::fuzz_json_scan;
    use Dialect::{Openai, OpenaiChat};

    /// What the scan knows, as `choice channel text, finish, prompt completion cached reasoning`.
    fn known(dialect: Dialect, body: &str) -> Option<String> {
        fuzz_json_scan(body.as_bytes());
        let Whole { said, finish, usage } = whole(dialect, body.as_bytes(), true)?;
        let said = said.piece.map_or("nothing".to_owned(), |(channel, text)| format!("{channel:?} {text}"));
        let usage = usage.map(|usage| [usage.prompt, usage.completion, usage.cached, usage.reasoning]);
        let finish = finish.map_or("no end".to_owned(), |finish| format!("{finish:?}"));
        let counts = usage.into_iter().flatten().map(|count| count.map_or(" -".into(), |n| format!(" {n}")));
        Some(format!("{said}, {finish},{}", counts.collect::<String>()))
    }

    /// Server, dialect, body, what it says.
    const USUAL: [(&str, Dialect, &str, &str); 6] = [
        (
            "vLLM",
            OpenaiChat,
            r#"{"id":"chatcmpl-b","object":"chat.completion","created":1796061183,"model":"tiny","choices":[{"index":0,"message":{"role":"assistant","content":" corn lef","refusal":null,"annotations":null,"audio":null,"function_call":null,"reasoning":null},"logprobs":null,"finish_reason":"length","stop_reason":null,"token_ids":null,"routed_experts":null}],"service_tier":null,"system_fingerprint":"vllm-0.32.0","usage":{"prompt_tokens":26,"total_tokens":42,"completion_tokens":16,"prompt_tokens_details":null,"completion_tokens_details":null},"prompt_logprobs":null,"prompt_token_ids":null,"prompt_text":null,"kv_transfer_params":null,"ec_transfer_params":null,"metrics":null}"#,
            "Content  corn lef, Length, 26 16 - -",
        ),
        (
            "vLLM, completions",
            Openai,
            r#"{"id":"cmpl-a","object":"text_completion","created":1796061186,"model":"tiny","choices":[{"index":0,"text":" islan","logprobs":null,"finish_reason":"stop","stop_reason":null,"token_ids":null,"prompt_logprobs":null,"prompt_token_ids":null,"routed_experts":null}],"service_tier":null,"system_fingerprint":"vllm-0.32.0","usage":{"prompt_tokens":11,"total_tokens":16,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":8},"completion_tokens_details":{"reasoning_tokens":0}},"kv_transfer_params":null,"ec_transfer_params":null,"metrics":null}"#,
            "Content  islan, Stop, 11 5 8 0",
        ),
        (
            "llama-cpp-python",
            OpenaiChat,
            r#"{"id": "chatcmpl-e", "object": "chat.completion", "created": 1796061924, "model": "tiny", "choices": [{"index": 0, "message": {"content": " mount ha", "role": "assistant"}, "logprobs": null, "finish_reason": "length"}], "usage": {"prompt_tokens": 26, "completion_tokens": 16, "total_tokens": 42}}"#,
            "Content  mount ha, Length, 26 16 - -",
        ),
        (
            "transformers serve",
            OpenaiChat,
            r#"{"id":"267c","choices":[{"finish_reason":"length","index":0,"message":{"content":" corn","role":"assistant"}}],"created":1796061608,"model":"m","object":"chat.completion","usage":{"completion_tokens":16,"prompt_tokens":26,"total_tokens":42}}"#,
            "Content  corn, Length, 26 16 - -",
        ),
        (
            "reasoning alone, no counts",
            OpenaiChat,
            r#"{"choices":[{"message":{"content":null,"reasoning_content":"hm","tool_calls":[]},"finish_reason":null}],"usage":null}"#,
            "Reasoning hm, no end,",
        ),
        ("no text", Openai, r#"{"choices":[{"text":""}],"usage":{}}"#, "nothing, no end,"),
    ];

    #[test]
    fn the_usual_answer_of_each_server_is_known() {
        for (server, dialect, body, expected) in USUAL {
            assert_eq!(known(dialect, body).as_deref(), Some(expected), "{server}");
        }
    }

    #[test]
    fn anything_unusual_goes_to_the_full_parser() {
        for body in [
            "",
            "{}",
            r#"{"choices":[]}"#,
            r#"{"choices":[{"message":{"content":"a"}},{"message":{"content":"b"}}]}"#,
            r#"{"choices":[{"delta":{"content":"a"}}]}"#,
            r#"{"choices":[{"text":"a"}]}"#,
            r#"{"choices":[{"message":{"content":"a","content":"b"}}]}"#,
            r#"{"choices":[{"message":{"content":"a","reasoning":"b"}}]}"#,
            r#"{"choices":[{"message":{"content":"a\n"}}]}"#,
            r#"{"choices":[{"message":{"content":["a"]}}]}"#,
            r#"{"choices":[{"message":{"content":"a","tool_calls":[{}]}}]}"#,
            r#"{"choices":[{"message":{"content":"a","tool_calls":[],"tool_calls":[]}}]}"#,
            r#"{"choices":[{"message":{"content":"a"},"message":{}}]}"#,
            r#"{"choices":[{"message":{"content":"a"},"finish_reason":"stop","finish_reason":null}]}"#,
            r#"{"choices":[{"message":{"content":"a"},"finish_reason":"s\u0074op"}]}"#,
            r#"{"choices":[{"message":{"content":"a"},"finish_reason":1}]}"#,
            r#"{"choices":[{"message":{"content":"a"},"token_ids":[1]}]}"#,
            r#"{"choices":[{"message":{"content":"a"}}],"error":"x"}"#,
            r#"{"choices":[{"message":{"content":"a"}}],"object":"error"}"#,
            r#"{"choices":[{"message":{"content":"a"}}],"usage":{"prompt_tokens":1},"usage":null}"#,
            r#"{"choices":[{"message":{"content":"a"}}],"usage":{"prompt_tokens":1,"prompt_tokens":2}}"#,
            r#"{"choices":[{"message":{"content":"a"}}],"usage":{"prompt_tokens":-1}}"#,
            r#"{"choices":[{"message":{"content":"a"}}],"usage":{"prompt_tokens":1.0}}"#,
            r#"{"choices":[{"message":{"content":"a"}}],"usage":{"prompt_tokens":4294967296}}"#,
            r#"{"choices":[{"message":{"content":"a"}}],"usage":{"prompt_tokens":null}}"#,
            r#"{"choices":[{"message":{"content":"a"}}],"usage":{"cost":1}}"#,
            r#"{"choices":[{"message":{"content":"a"}}],"usage":{"prompt_tokens_details":{"cached_tokens":1,"cached_tokens":2}}}"#,
            r#"{"choices":[{"message":{"content":"a"}}],"usage":{"prompt_tokens_details":{"cached_tokens":null}}}"#,
            r#"{"choices":[{"message":{"content":"a"}}],"timings":{}}"#,
            r#"{"choices":[{"message":{"content":"a"}}]} x"#,
        ] {
            assert_eq!(known(OpenaiChat, body), None, "{body}");
        }
    }

    /// Every cut of the shorter answers, and every byte of them by each of a few others: whatever is known then is what the
    /// full parser reports.
    #[test]
    fn damaged_answers_are_never_known_wrongly() {
        for (_, _, body, _) in &USUAL[2..] {
            for at in 0..body.len() {
                fuzz_json_scan(&body.as_bytes()[..at]);
                for byte in *b"\"\\0,}]n \xff" {
                    let mut damaged = body.as_bytes().to_vec();
                    damaged[at] = byte;
                    fuzz_json_scan(&damaged);
                }
            }
        }
    }
}
