//! SGLang's own `/generate`: each event repeats all the text so far, with counts that run.
//!
//! A stream ends with `[DONE]`. A server that was told to send pieces instead (`--incremental-streaming-output`) is
//! noticed by a text that becomes shorter, and such an answer fails: what its pieces add up to cannot be told from what
//! a prefix of them would.

use serde_json::json;

use super::request::{Fields, Order, Part};
use super::{Channel, Finish, NotAnObject, Reader, Usage, count_of, failure, read_object, text_of};
use crate::wire::json::{Json, Value};

/// The fields of a request. There is no model: a server has one.
pub(super) fn fields(order: &Order<'_>) -> Fields {
    let options = order.options;
    let mut sampling = Fields::default();
    sampling.put("max_new_tokens", vec![Part::Limit]);
    if options.min_tokens {
        sampling.put("min_new_tokens", vec![Part::Limit]);
    }
    if options.ignore_eos {
        sampling.fixed("ignore_eos", &json!(true));
    }
    sampling.fixed_all(&options.sampling);
    let mut fields = Fields::default();
    fields.put(if options.prompt_ids { "input_ids" } else { "text" }, vec![order.prompt()]);
    fields.object("sampling_params", sampling);
    fields.fixed("stream", &json!(order.stream));
    fields
}

/// Reads one event, or a whole answer, which looks the same.
pub(super) fn read<R: Reader>(json: &mut Json, data: &[u8], to: &mut R) -> Result<(), NotAnObject> {
    read_object(json, data, to, |answer, to| {
        let meta = answer.field("meta_info");
        if let Some(reason) = meta.and_then(|meta| meta.field("finish_reason")) {
            report_reason(reason, to);
        }
        to.grown(0, Channel::Content, text_of(answer, "text"));
        let Some(meta) = meta else { return };
        let counts = Usage {
            prompt: count_of(meta, "prompt_tokens"),
            completion: count_of(meta, "completion_tokens"),
            cached: count_of(meta, "cached_tokens"),
            reasoning: None,
        };
        if let Some(counts) = counts.told() {
            to.usage(counts, 1);
        }
    })
}

/// An object with a type, or null while the answer goes on.
fn report_reason<R: Reader>(reason: Value<'_>, to: &mut R) {
    let finish = match text_of(reason, "type") {
        "" => return,
        "stop" => Finish::Stop,
        "length" => Finish::Length,
        "abort" => return to.error(failure::words(reason).unwrap_or("abort")),
        _ => Finish::Other,
    };
    to.finish(0, finish);
}
