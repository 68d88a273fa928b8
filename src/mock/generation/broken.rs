//! What a fault makes of an answer: what stands where a stream breaks off, and which answers are none.

use super::{Bytes, Generation, Progress};
use crate::mock::ask::Denial;
use crate::mock::event;
use crate::mock::face::Piece;
use crate::mock::faults::{Break, Fault, Flaw};
use crate::mock::reply;

impl Generation {
    /// Appends what stands in the place of an event at which the stream breaks off.
    pub(super) fn break_stream(&mut self, how: Break, piece: &Piece, out: &mut Bytes) -> Progress {
        match how {
            Break::BadJson => self.break_with("", b"{\"id\":\"chatcmpl-0\",\"choices\":[{\"index\":0,", out),
            Break::Close => Progress::Close,
            Break::ErrorEvent => {
                let message = "The engine has died.".to_owned();
                let denial = Denial { status: 500, kind: "InternalServerError", param: None, message };
                let name = if self.ask.surface.has_parts() { "event: error\n" } else { "" };
                let error = reply::error_event(self.ask.surface, &denial);
                self.break_with(name, &error, out)
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

    /// Appends an event of this data, with the line that names it, and the end of the stream.
    fn break_with(&mut self, name: &str, data: &[u8], out: &mut Bytes) -> Progress {
        self.write_head(&mut out.event);
        let framing = self.framing();
        let surface = self.ask.surface;
        let (before, after) = if surface.is_ollama() { ("", "\n") } else { ("data: ", "\n\n") };
        let event = [name.as_bytes(), before.as_bytes(), data, after.as_bytes()].concat();
        event::frame(framing, &event, &mut out.event);
        if surface.has_done() {
            event::frame(framing, b"data: [DONE]\n\n", &mut out.after);
        }
        event::write_end(framing, &mut out.after);
        Progress::Failed
    }

    /// Whether it comes to its end and yet is no proper answer.
    pub(super) fn is_spoiled(&self) -> bool {
        match self.fault {
            // A whole answer where a stream was asked for.
            Some(Fault::Answer(_)) | Some(Fault::Flaw(Flaw::Empty)) => true,
            Some(Fault::Flaw(Flaw::NoFinish | Flaw::WrongType)) => self.ask.stream,
            Some(Fault::Flaw(Flaw::NoDone)) => self.ask.stream && self.ask.surface.ends_in_one_event(),
            _ => false,
        }
    }
}
