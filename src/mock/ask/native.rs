//! Bodies of SGLang's and llama.cpp's own APIs, and of embeddings: other names for the same things.

use serde_json::{Map, Value};

use super::fields::{bad_request, flag, integer, invalid};
use super::{Ask, CHOICES_MAX, Denial, Surface, Terms, ending, prompt_tokens, room};

/// Reads the fields of `/generate`: limits stand in an object of their own.
pub(super) fn sglang(fields: &Map<String, Value>, terms: Terms<'_>) -> Result<Ask, Denial> {
    let nothing = Map::new();
    let sampling = match fields.get("sampling_params") {
        Some(Value::Object(sampling)) => sampling,
        None | Some(Value::Null) => &nothing,
        Some(_) => {
            let message = "Input should be a valid dictionary";
            return Err(invalid("dict_type", "body.sampling_params", message));
        }
    };
    let name = if fields.contains_key("input_ids") { "input_ids" } else { "text" };
    let prompt = only(name, prompt_tokens(fields, name)?)?;
    let most = room(integer(sampling, "max_new_tokens")?, prompt, terms)?;
    let least = integer(sampling, "min_new_tokens")?.unwrap_or(0);
    let ignores_eos = flag(sampling, "ignore_eos")?.unwrap_or(false);
    let eos = terms.eos_after.filter(|_| !ignores_eos).map(|eos| eos.max(least as u32).max(1));
    Ok(Ask { stream: flag(fields, "stream")?.unwrap_or(false), ..ask(Surface::Sglang, prompt, most, eos) })
}

/// Reads the fields of `/completion`. A negative limit is none.
pub(super) fn llama_cpp(fields: &Map<String, Value>, terms: Terms<'_>) -> Result<Ask, Denial> {
    let prompt = only("prompt", prompt_tokens(fields, "prompt")?)?;
    let is_endless = fields.get("n_predict").and_then(Value::as_i64).is_some_and(|most| most < 0);
    let limit = if is_endless { None } else { integer(fields, "n_predict")? };
    let most = room(limit, prompt, terms)?;
    let ignores_eos = flag(fields, "ignore_eos")?.unwrap_or(false);
    let eos = terms.eos_after.filter(|_| !ignores_eos).map(|eos| eos.max(1));
    Ok(Ask { stream: flag(fields, "stream")?.unwrap_or(false), ..ask(Surface::LlamaCpp, prompt, most, eos) })
}

/// Reads the fields of `/v1/embeddings`. To the model it is a prompt and one token.
pub(super) fn embeddings(fields: &Map<String, Value>, terms: Terms<'_>) -> Result<Ask, Denial> {
    let (inputs, tokens) = prompt_tokens(fields, "input")?;
    if inputs > u64::from(CHOICES_MAX) {
        return Err(bad_request("input", format!("at most {CHOICES_MAX} inputs, got {inputs}.")));
    }
    room(None, tokens, terms)?;
    Ok(Ask { choices: inputs as u32, ..ask(Surface::Embeddings, tokens, 1, None) })
}

/// One prompt a request.
fn only(field: &str, (prompts, tokens): (u64, u32)) -> Result<u32, Denial> {
    match prompts {
        1 => Ok(tokens),
        more => Err(bad_request(field, format!("one prompt a request, got {more}."))),
    }
}

/// Text without reasoning or tools, counted all along.
fn ask(surface: Surface, prompt_tokens: u32, most: u32, eos: Option<u32>) -> Ask {
    let (tokens, finish) = ending(most, eos);
    Ask {
        surface,
        stream: false,
        choices: 1,
        tokens,
        finish,
        reasoning: 0,
        tool: None,
        prompt_tokens,
        include_usage: true,
        continuous_usage: surface != Surface::Embeddings,
    }
}
