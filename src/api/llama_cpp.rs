//! llama.cpp's own `/completion`: events with a piece of text and running counts, the last of them with `stop`, and no
//! `[DONE]`.

use serde_json::json;

use super::request::{Fields, Order, Part};
use super::{Channel, Finish, NotAnObject, Reader, Report, Usage, count_of, read_object, text_of};
use crate::wire::json::{Json, Value};

/// The fields of a request.
pub(super) fn fields(order: &Order<'_>) -> Fields {
    let mut fields = Fields::default();
    // Only a server of several models looks at it.
    fields.fixed("model", &json!(order.model));
    fields.put("prompt", vec![order.prompt()]);
    fields.put("n_predict", vec![Part::Limit]);
    if order.options.ignore_eos {
        fields.fixed("ignore_eos", &json!(true));
    }
    fields.sampling(&order.options.sampling, "repeat_penalty");
    fields.fixed("stream", &json!(order.stream));
    fields
}

/// Reads one event, or a whole answer, which looks like the last one.
pub(super) fn read<R: Reader>(json: &mut Json, data: &[u8], to: &mut R) -> Result<(), NotAnObject> {
    read_object(json, data, to, |event, to| {
        to.text(0, Channel::Content, text_of(event, "content"));
        let is_last = is_true(event, "stop");
        if is_last {
            report_reason(event, to);
        }
        // What `tokens_cached` counts is the room taken in the cache afterwards.
        let counts = Usage {
            prompt: count_of(event, "tokens_evaluated"),
            completion: count_of(event, "tokens_predicted"),
            cached: event.field("timings").and_then(|timings| count_of(timings, "cache_n")),
            reasoning: None,
        };
        if let Some(counts) = counts.told() {
            to.usage(counts, 1);
        }
        if is_last {
            to.end();
        }
    })
}

/// A word in new versions, one of three flags in old ones.
fn report_reason<R: Reader>(event: Value<'_>, to: &mut R) {
    let finish = match text_of(event, "stop_type") {
        "limit" => Finish::Length,
        "eos" | "word" => Finish::Stop,
        _ if is_true(event, "stopped_limit") => Finish::Length,
        _ if is_true(event, "stopped_eos") || is_true(event, "stopped_word") => Finish::Stop,
        _ => Finish::Other,
    };
    to.finish(0, finish);
}

fn is_true(event: Value<'_>, name: &str) -> bool {
    event.field(name).and_then(Value::as_bool) == Some(true)
}
