//! One answer in the making: emissions of the model in, bytes out. Pure: it owns neither time nor socket.

use super::ask::{Ask, Denial};
use super::event::{self, Counts, Face, Framing, Piece, Template};
use super::faults::{Break, Cut};
use super::reply::{self, Manner, Reply};
use crate::api::Dialect;

/// When a chat stream says whose turn it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// At once on arrival, before any token: a trap for who takes the first event for the first token.
    Early,
    /// Together with the first content of each choice, as vLLM does.
    #[default]
    First,
    /// Never.
    None,
}

/// How an answer is dressed; the same for all answers of a server.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dress {
    pub(super) role: Role,
    /// The head waits for the first event.
    pub(super) late_head: bool,
    /// Usage is given where it is asked for.
    pub(super) usage: bool,
    pub(super) tokens_per_chunk: u32,
}

/// An answer in the making.
#[derive(Debug)]
pub(super) struct Generation {
    face: Face,
    ask: Ask,
    dress: Dress,
    manner: Manner,
    cut: Option<Cut>,
    choices: Vec<Choice>,
    /// Choices that have not ended.
    open: u32,
    head_written: bool,
    /// Content events so far.
    events: u64,
}

#[derive(Debug)]
struct Choice {
    /// Tokens so far.
    sent: u32,
    /// Absent where no event is like another: whole answers and continuous usage.
    template: Option<Template>,
}

/// Bytes to send; cleared by the caller.
#[derive(Debug, Default)]
pub(super) struct Bytes {
    /// The event.
    pub(super) event: Vec<u8>,
    /// What follows it in a write of its own: usage and the end of the stream.
    pub(super) after: Vec<u8>,
    /// Tokens whose text is in `event`; 0 if there is no content in it.
    pub(super) tokens: u32,
}

impl Bytes {
    pub(super) fn clear(&mut self) {
        self.event.clear();
        self.after.clear();
        self.tokens = 0;
    }
}

/// How far an answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// It breaks off: the connection ends once the bytes are sent.
    Close,
    /// It is whole.
    Done,
    /// More will come.
    More,
    /// It breaks off: the connection is reset.
    Reset,
    /// Nothing more will come, and the connection stays open.
    Stall,
}

impl Generation {
    pub(super) fn new(face: Face, ask: Ask, dress: Dress, manner: Manner) -> Generation {
        let framing = framing(manner);
        let patched = ask.stream && !(dress.usage && ask.continuous_usage);
        let tokens = dress.tokens_per_chunk.max(1);
        let choice = |index| Choice {
            sent: 0,
            template: patched.then(|| Template::new(&face, index, tokens, framing)),
        };
        let choices = (0..ask.choices).map(choice).collect();
        Generation {
            face,
            ask,
            dress,
            manner,
            cut: None,
            choices,
            open: ask.choices,
            head_written: false,
            events: 0,
        }
    }

    /// Lets it break off.
    pub(super) fn with_cut(mut self, cut: Option<Cut>) -> Generation {
        self.cut = cut;
        self
    }

    /// Number of the request.
    pub(super) fn number(&self) -> u64 {
        self.face.number
    }

    /// What was asked for.
    pub(super) fn ask(&self) -> Ask {
        self.ask
    }

    /// Whether the connection can be used again afterwards.
    pub(super) fn keeps_alive(&self) -> bool {
        self.manner.keep_alive && (self.manner.chunks || !self.ask.stream)
    }

    /// Appends what is sent on arrival, before any token.
    pub(super) fn on_start(&mut self, out: &mut Vec<u8>) {
        if !self.ask.stream {
            return;
        }
        let early_role = self.dress.role == Role::Early && self.ask.dialect == Dialect::OpenaiChat;
        if early_role || !self.dress.late_head {
            self.write_head(out);
        }
        if early_role {
            for choice in 0..self.ask.choices {
                self.write_role(choice, out);
            }
        }
    }

    /// Appends what `tokens` new tokens of a choice give. `last`: the choice ends with them.
    pub(super) fn on_tokens(&mut self, choice: u32, tokens: u32, last: bool, out: &mut Bytes) -> Progress {
        let from = match self.choices.get(choice as usize) {
            Some(choice) => choice.sent,
            None => return Progress::More,
        };
        if self.ask.stream {
            let at = self.events;
            if let Some(Cut { how, .. }) = self.cut.filter(|cut| cut.after_events == at) {
                return self.break_stream(how, Piece { choice, from, tokens, end: last }, out);
            }
            self.write_event(Piece { choice, from, tokens, end: last }, &mut out.event);
            out.tokens = tokens;
        }
        self.choices[choice as usize].sent = from + tokens;
        self.events += 1;
        self.open -= u32::from(last);
        if self.open > 0 {
            return Progress::More;
        }
        if self.ask.stream {
            self.write_tail(&mut out.after);
            return Progress::Done;
        }
        self.write_whole(out)
    }

    fn write_event(&mut self, piece: Piece, out: &mut Vec<u8>) {
        self.write_head(out);
        // Text completions have no roles.
        if piece.from == 0 && self.dress.role == Role::First && self.ask.dialect == Dialect::OpenaiChat {
            self.write_role(piece.choice, out);
        }
        let template = self.choices[piece.choice as usize].template.as_mut();
        match template.filter(|template| !piece.end && template.tokens() == piece.tokens) {
            Some(template) => out.extend_from_slice(template.patched(piece.from)),
            None => {
                let usage = self.continuous(piece.choice, piece.from + piece.tokens);
                let mut payload = Vec::new();
                self.face.content(piece, usage, &mut payload);
                event::frame(framing(self.manner), &payload, out);
            }
        }
    }

    fn write_head(&mut self, out: &mut Vec<u8>) {
        if !self.head_written {
            let manner = Manner { keep_alive: self.keeps_alive(), ..self.manner };
            reply::write_stream_head(manner, out);
            self.head_written = true;
        }
    }

    fn write_role(&self, choice: u32, out: &mut Vec<u8>) {
        let mut payload = Vec::new();
        self.face.role(choice, self.continuous(choice, 0), &mut payload);
        event::frame(framing(self.manner), &payload, out);
    }

    fn write_tail(&self, out: &mut Vec<u8>) {
        let framing = framing(self.manner);
        if self.dress.usage && self.ask.include_usage {
            let mut payload = Vec::new();
            self.face.usage(self.counts(), &mut payload);
            event::frame(framing, &payload, out);
        }
        event::write_end(framing, out);
    }

    fn write_whole(&self, out: &mut Bytes) -> Progress {
        let counts = self.counts();
        let mut body = Vec::new();
        self.face.whole(self.ask.choices, self.ask.tokens, self.dress.usage.then_some(counts), &mut body);
        if let Some(Cut { how: Break::ErrorEvent, .. }) = self.cut {
            Reply::status(500, None).write(self.manner, &mut out.event);
            return Progress::Done;
        }
        Reply::json(200, body).write(self.manner, &mut out.event);
        let progress = match self.cut.map(|cut| cut.how) {
            None | Some(Break::ErrorEvent) => {
                out.tokens = counts.completion;
                return Progress::Done;
            }
            Some(Break::Close | Break::Half) => Progress::Close,
            Some(Break::Reset) => Progress::Reset,
            Some(Break::Stall) => Progress::Stall,
        };
        out.event.truncate(out.event.len() / 2);
        progress
    }

    /// Appends what stands in the place of an event at which the stream breaks off.
    fn break_stream(&mut self, how: Break, piece: Piece, out: &mut Bytes) -> Progress {
        match how {
            Break::Close => Progress::Close,
            Break::ErrorEvent => {
                self.write_head(&mut out.event);
                let denial = Denial {
                    status: 500,
                    kind: "InternalServerError",
                    param: None,
                    message: "The engine has died.".to_owned(),
                };
                let mut payload = b"data: ".to_vec();
                payload.extend_from_slice(&reply::error_body(&denial));
                payload.extend_from_slice(b"\n\n");
                event::frame(framing(self.manner), &payload, &mut out.event);
                event::write_end(framing(self.manner), &mut out.after);
                Progress::Done
            }
            Break::Half => {
                let mut whole = Vec::new();
                self.write_event(piece, &mut whole);
                out.event.extend_from_slice(&whole[..whole.len() / 2]);
                Progress::Close
            }
            Break::Reset => Progress::Reset,
            Break::Stall => Progress::Stall,
        }
    }

    /// The usage so far in one choice, where each event is to carry it.
    fn continuous(&self, choice: u32, completion: u32) -> Option<Counts> {
        debug_assert!(choice < self.ask.choices);
        let wanted = self.dress.usage && self.ask.continuous_usage;
        wanted.then_some(Counts { prompt: self.ask.prompt_tokens, completion })
    }

    fn counts(&self) -> Counts {
        let completion = self.choices.iter().map(|choice| choice.sent).sum();
        Counts { prompt: self.ask.prompt_tokens, completion }
    }
}

fn framing(manner: Manner) -> Framing {
    if manner.chunks { Framing::Chunked } else { Framing::UntilClose }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASK: Ask = Ask {
        dialect: Dialect::OpenaiChat,
        stream: true,
        choices: 1,
        tokens: 3,
        prompt_tokens: 5,
        include_usage: true,
        continuous_usage: false,
    };
    const DRESS: Dress = Dress { role: Role::First, late_head: false, usage: true, tokens_per_chunk: 1 };
    /// Closed by the end of the connection: the bytes are the events.
    const PLAIN: Manner = Manner { chunks: false, keep_alive: false, head_only: false };

    fn generation(ask: Ask, dress: Dress) -> Generation {
        let face = Face { dialect: ask.dialect, number: 0, created: 0, model: "\"m\"".into() };
        Generation::new(face, ask, dress, PLAIN)
    }

    /// The bytes on arrival, of each event and of what follows it, and the progress of the last event.
    fn run(mut generation: Generation) -> (Vec<String>, Progress) {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let mut start = Vec::new();
        generation.on_start(&mut start);
        let mut writes = vec![text(&start)];
        let Ask { choices, tokens, .. } = generation.ask;
        let step = generation.dress.tokens_per_chunk;
        let mut from = 0;
        while from < tokens {
            let count = step.min(tokens - from);
            for choice in 0..choices {
                let mut out = Bytes::default();
                let last = from + count == tokens;
                let progress = generation.on_tokens(choice, count, last, &mut out);
                writes.push(text(&out.event));
                writes.push(text(&out.after));
                if progress != Progress::More {
                    writes.retain(|write| !write.is_empty());
                    return (writes, progress);
                }
            }
            from += count;
        }
        panic!("the answer did not end");
    }

    /// What matters of each event of a write: role, content, finish reason, usage.
    fn events(write: &str) -> Vec<String> {
        write
            .split("\n\n")
            .filter_map(|event| Some(event.split_once("data: ")?.1))
            .map(|data| match serde_json::from_str::<serde_json::Value>(data) {
                Err(_) => data.to_owned(),
                Ok(event) => {
                    let choice = &event["choices"][0];
                    let part = |name: &str, value: &serde_json::Value| {
                        if value.is_null() { String::new() } else { format!("{name}{value} ") }
                    };
                    let text = part("#", &choice["index"])
                        + &part("role ", &choice["delta"]["role"])
                        + &part("", &choice["delta"]["content"])
                        + &part("", &choice["text"])
                        + &part("finish ", &choice["finish_reason"])
                        + &part("usage ", &event["usage"]["completion_tokens"])
                        + &part("error ", &event["error"]["code"]);
                    text.trim_end().to_owned()
                }
            })
            .collect()
    }

    #[test]
    fn a_stream_opens_with_its_role_and_ends_with_usage_and_done() {
        let (writes, progress) = run(generation(ASK, DRESS));
        assert_eq!(progress, Progress::Done);
        assert!(writes[0].starts_with("HTTP/1.0 200 OK\r\n") && writes[0].ends_with("\r\n\r\n"));
        assert_eq!(events(&writes[1]), [r##"#0 role "assistant" """##, r##"#0 " apple""##]);
        assert_eq!(events(&writes[2]), [r##"#0 " bread""##]);
        assert_eq!(events(&writes[3]), [r##"#0 " cloud" finish "length""##]);
        assert_eq!(events(&writes[4]), ["usage 3", "[DONE]"]);
        assert_eq!(writes.len(), 5);
    }

    #[test]
    fn an_early_role_comes_with_the_head_and_none_not_at_all() {
        let (writes, _) = run(generation(ASK, Dress { role: Role::Early, ..DRESS }));
        assert_eq!(events(&writes[0]), [r##"#0 role "assistant" """##]);
        assert_eq!(events(&writes[1]).len(), 1);
        let (writes, _) = run(generation(ASK, Dress { role: Role::None, ..DRESS }));
        assert_eq!(events(&writes.concat()).len(), 5);
    }

    #[test]
    fn a_late_head_comes_with_the_first_event() {
        let (writes, _) = run(generation(ASK, Dress { late_head: true, ..DRESS }));
        assert!(writes[0].starts_with("HTTP/1.0 200 OK\r\n"));
        assert_eq!(events(&writes[0]).len(), 2);
    }

    #[test]
    fn usage_comes_only_where_it_is_asked_for_and_allowed() {
        let count = |ask: Ask, dress: Dress| run(generation(ask, dress)).0.concat().matches("usage").count();
        assert_eq!(count(ASK, DRESS), 1);
        assert_eq!(count(Ask { include_usage: false, ..ASK }, DRESS), 0);
        assert_eq!(count(ASK, Dress { usage: false, ..DRESS }), 0);
        assert_eq!(count(Ask { stream: false, ..ASK }, DRESS), 1);
        assert_eq!(count(Ask { stream: false, ..ASK }, Dress { usage: false, ..DRESS }), 0);
    }

    #[test]
    fn continuous_usage_counts_up_in_every_event() {
        let (writes, _) = run(generation(Ask { continuous_usage: true, ..ASK }, DRESS));
        assert_eq!(
            events(&writes.concat()),
            [
                r##"#0 role "assistant" "" usage 0"##,
                r##"#0 " apple" usage 1"##,
                r##"#0 " bread" usage 2"##,
                r##"#0 " cloud" finish "length" usage 3"##,
                "usage 3",
                "[DONE]"
            ]
        );
    }

    #[test]
    fn choices_are_interleaved_and_end_each_for_itself() {
        let (writes, _) = run(generation(Ask { choices: 2, tokens: 2, ..ASK }, DRESS));
        assert_eq!(
            events(&writes.concat()),
            [
                r##"#0 role "assistant" """##,
                r##"#0 " apple""##,
                r##"#1 role "assistant" """##,
                r##"#1 " field""##,
                r##"#0 " bread" finish "length""##,
                r##"#1 " grass" finish "length""##,
                "usage 4",
                "[DONE]"
            ]
        );
    }

    #[test]
    fn text_completions_have_no_role_and_chunks_hold_several_tokens() {
        let ask = Ask { dialect: Dialect::Openai, tokens: 5, include_usage: false, ..ASK };
        let (writes, _) = run(generation(ask, Dress { tokens_per_chunk: 2, ..DRESS }));
        assert_eq!(
            events(&writes.concat()),
            [
                r##"#0 " apple bread""##,
                r##"#0 " cloud dance""##,
                r##"#0 " eagle" finish "length""##,
                "[DONE]"
            ]
        );
    }

    #[test]
    fn a_whole_answer_is_one_write() {
        let (writes, progress) = run(generation(Ask { stream: false, choices: 2, ..ASK }, DRESS));
        assert_eq!((writes.len(), progress), (1, Progress::Done));
        let body = writes[0].split_once("\r\n\r\n").unwrap().1;
        let value: serde_json::Value = serde_json::from_str(body).unwrap();
        assert_eq!(value["choices"][0]["message"]["content"], " apple bread cloud");
        assert_eq!(value["choices"][1]["message"]["content"], " field grass house");
        assert_eq!(value["usage"]["completion_tokens"], 6);
    }

    #[test]
    fn a_cut_stands_in_the_place_of_its_event() {
        let cut = |how, after_events| run(generation(ASK, DRESS).with_cut(Some(Cut { after_events, how })));
        let (writes, progress) = cut(Break::Close, 2);
        assert_eq!((events(&writes.concat()).len(), progress), (3, Progress::Close));
        assert_eq!(cut(Break::Reset, 0).1, Progress::Reset);
        assert_eq!(cut(Break::Stall, 1).1, Progress::Stall);
        let (writes, progress) = cut(Break::ErrorEvent, 1);
        assert_eq!(progress, Progress::Done);
        assert_eq!(events(&writes.concat())[2..], ["error 500", "[DONE]"]);
        let (writes, progress) = cut(Break::Half, 1);
        assert_eq!(progress, Progress::Close);
        assert!(writes[2].starts_with("data: {") && !writes[2].ends_with('\n'));
        assert_eq!(cut(Break::Close, 3).1, Progress::Done, "there is no such event");
    }

    #[test]
    fn a_cut_whole_answer_lacks_its_second_half() {
        let whole = Ask { stream: false, ..ASK };
        let cut = |how| run(generation(whole, DRESS).with_cut(Some(Cut { after_events: 0, how })));
        let length = run(generation(whole, DRESS)).0[0].len();
        let (writes, progress) = cut(Break::Close);
        assert_eq!((writes[0].len(), progress), (length / 2, Progress::Close));
        let (writes, progress) = cut(Break::ErrorEvent);
        assert!(writes[0].starts_with("HTTP/1.0 500 ") && progress == Progress::Done);
    }
}
