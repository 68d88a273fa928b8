//! The values of options: text in, numbers with a unit or enums out, or an error that names the option.

mod lengths;
mod live;
mod series;
mod together;

use std::str::FromStr;

use serde_json::{Map, Value as Json};

use crate::api::Dialect;
use crate::plan::{Burn, Driver, Error, Figure, Slo, SteadyCut, Timestamps, nearest};

pub use lengths::lengths;
pub use live::{listen, ui};
pub use series::{bursts, is_exponential, is_series_file, series};
pub use together::{StartAt, share, start_at, waiting};

/// Sets `place` to what `read` makes of an option's text, if the option was given.
pub(super) fn set<T>(
    place: &mut T,
    option: &str,
    text: &Option<String>,
    read: impl FnOnce(&str, &str) -> Result<T, Error>,
) -> Result<(), Error> {
    if let Some(text) = text {
        *place = read(option, text)?;
    }
    Ok(())
}

/// What a command writes on standard output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// JSON.
    Json,
    /// A table for reading.
    #[default]
    Table,
}

/// A whole number, 0 or more.
///
/// # Errors
/// Whatever else, and what does not fit `T`.
pub fn integer<T: FromStr>(option: &str, text: &str) -> Result<T, Error> {
    let digits = text.trim();
    // `parse` would take a sign.
    match digits.bytes().all(|b| b.is_ascii_digit()) {
        true => digits.parse().map_err(|_| not(option, text, "a number in range", "64")),
        false => Err(not(option, text, "a whole number", "64")),
    }
}

/// A share as in `1%` or `0.01`.
///
/// # Errors
/// Whatever is no number.
pub fn share_of(option: &str, text: &str) -> Result<f64, Error> {
    let (digits, whole) = text.trim().strip_suffix('%').map_or((text, 1.0), |digits| (digits, 100.0));
    number(option, digits).map(|share| share / whole).map_err(|_| not(option, text, "a share", "1% or 0.01"))
}

/// A finite number, with or without sign.
///
/// # Errors
/// Whatever else, `inf` and `nan` included.
pub fn number(option: &str, text: &str) -> Result<f64, Error> {
    match text.trim().parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(number),
        _ => Err(not(option, text, "a number", "0.7")),
    }
}

/// Seconds: a number, or one with `ms`, `s`, `m` or `h` after it.
///
/// # Errors
/// Whatever else, and what is negative.
pub fn seconds(option: &str, text: &str) -> Result<f64, Error> {
    let plain = text.trim();
    let (digits, factor) = [("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3600.0)]
        .into_iter()
        .find_map(|(unit, factor)| plain.strip_suffix(unit).map(|digits| (digits, factor)))
        .unwrap_or((plain, 1.0));
    match digits.trim().parse::<f64>() {
        Ok(number) if number.is_finite() && number >= 0.0 => Ok(number * factor),
        _ => Err(Error::new(
            option,
            format!("'{text}' is not a time"),
            "give seconds, or as 500ms, 90s, 5m, 1h",
        )),
    }
}

/// A share: `90%`, or 0.9.
///
/// # Errors
/// Whatever else; the range is the plan's business.
pub fn portion(option: &str, text: &str) -> Result<f64, Error> {
    let plain = text.trim();
    let (digits, factor) = plain.strip_suffix('%').map_or((plain, 1.0), |digits| (digits, 0.01));
    match digits.trim().parse::<f64>() {
        // To the fifteenth digit: 90 % is 0.9.
        Ok(number) if number.is_finite() => Ok((number * factor * 1e15).round() / 1e15),
        _ => Err(not(option, text, "a share", "90% or 0.9")),
    }
}

/// A comma list, each item read by `read`.
///
/// # Errors
/// Those of `read`, and empty items.
pub fn list<T>(
    option: &str,
    text: &str,
    read: impl Fn(&str, &str) -> Result<T, Error>,
) -> Result<Vec<T>, Error> {
    text.split(',').map(|item| read(option, item)).collect()
}

/// Core numbers, as in `0,2,4-7`.
///
/// # Errors
/// Whatever else, and ranges that run backwards or are longer than any machine.
pub fn cores(option: &str, text: &str) -> Result<Vec<u32>, Error> {
    let mut cores = Vec::new();
    for item in text.split(',') {
        let (first, last) = item.split_once('-').unwrap_or((item, item));
        let range = integer::<u32>(option, first)?..=integer::<u32>(option, last)?;
        if range.is_empty() || range.end() - range.start() >= CORES_MAX {
            return Err(Error::new(option, format!("'{item}' is no range of cores"), "write as in 0,2,4-7"));
        }
        cores.extend(range);
    }
    Ok(cores)
}

/// A JSON object.
///
/// # Errors
/// Whatever else.
pub fn json_object(option: &str, text: &str) -> Result<Map<String, Json>, Error> {
    serde_json::from_str(text).map_err(|error| {
        let remedy = r#"give an object in single quotes, as in '{"top_k": 20}'"#;
        Error::new(option, format!("not a JSON object: {error}"), remedy)
    })
}

/// The name and value of a header, `Name: value` or `Name=value`, whichever sign comes first.
///
/// # Errors
/// Text without either. The error does not repeat it: it may be a secret.
pub fn header(option: &str, text: &str) -> Result<(String, String), Error> {
    let place = text.find([':', '=']).filter(|&place| place > 0);
    let place = place.ok_or_else(|| Error::new(option, "is not a header", "give 'Name: value' in quotes"))?;
    Ok((text[..place].trim().to_owned(), text[place + 1..].trim().to_owned()))
}

/// A fact `key=value`.
///
/// # Errors
/// Text without `=` or without a key.
pub fn fact(option: &str, text: &str) -> Result<(String, String), Error> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err(not(option, text, "key=value", "gpu=h200")),
    }
}

/// The API to speak, under the names that any tool gives it.
///
/// # Errors
/// APIs that are not spoken, with the reason where there is one, and unknown names.
pub fn backend(option: &str, text: &str) -> Result<Dialect, Error> {
    if let Some((_, dialect)) = BACKENDS.iter().find(|(name, _)| *name == text) {
        return Ok(*dialect);
    }
    let wrong = match UNSPOKEN_BACKENDS.iter().find(|(name, _)| *name == text) {
        Some((_, reason)) => format!("'{text}' is not supported: {reason}"),
        None => format!("'{text}' is not an API"),
    };
    let names: Vec<&str> = Dialect::ALL.iter().map(|dialect| dialect.name()).collect();
    Err(Error::new(option, wrong, format!("give one of {}, raw", names.join(", "))))
}

/// The kernel interface of the runtime.
///
/// # Errors
/// Unknown names.
pub fn driver(option: &str, text: &str) -> Result<Driver, Error> {
    match text {
        "auto" => Ok(Driver::Auto),
        "epoll" => Ok(Driver::Epoll),
        "io-uring" | "io_uring" | "uring" => Ok(Driver::IoUring),
        _ => Err(Error::new(option, format!("'{text}' is not a driver"), "give auto, io_uring or epoll")),
    }
}

/// Which stamps are taken.
///
/// # Errors
/// Unknown names.
pub fn timestamps(option: &str, text: &str) -> Result<Timestamps, Error> {
    match text {
        "both" => Ok(Timestamps::Both),
        "kernel" => Ok(Timestamps::Kernel),
        "user" => Ok(Timestamps::User),
        _ => {
            Err(Error::new(option, format!("'{text}' is not a kind of stamps"), "give user, kernel or both"))
        }
    }
}

/// How well a figure is to be known: `figure:share` or a share alone, which is `5%` or `0.05`.
///
/// # Errors
/// Figures that have no interval, and what is no share.
pub fn until(option: &str, text: &str) -> Result<(Option<Figure>, f64), Error> {
    let (figure, share) = match text.split_once([':', '=']) {
        None => (None, text),
        Some((figure, share)) => {
            let unknown = |remedy| Error::new(option, format!("'{figure}' is no figure"), remedy);
            (Some(figure.trim().parse().map_err(unknown)?), share)
        }
    };
    let share = share.trim();
    let (digits, whole) = share.strip_suffix('%').map_or((share, 1.0), |percent| (percent, 100.0));
    match digits.trim().parse::<f64>() {
        Ok(number) if number.is_finite() => Ok((figure, number / whole)),
        _ => Err(Error::new(option, format!("'{share}' is no share"), "give one as in 5% or 0.05")),
    }
}

/// Where the steady state begins.
///
/// # Errors
/// Unknown names.
pub fn steady_cut(option: &str, text: &str) -> Result<SteadyCut, Error> {
    match text {
        "default" => Ok(SteadyCut::Default),
        "mser5" => Ok(SteadyCut::Mser5),
        "none" => Ok(SteadyCut::None),
        _ => Err(Error::new(option, format!("'{text}' is not a rule"), "give default, mser5 or none")),
    }
}

/// Time to waste: `MS` in every turn, `MS@S` every `S` seconds.
///
/// # Errors
/// Not numbers, negative ones, or more than 10 s at a time.
pub fn burn(option: &str, text: &str) -> Result<Burn, Error> {
    let (ms, every) = text.split_once('@').unwrap_or((text, "0"));
    let ms = number(option, ms)?;
    // A turn that goes on for longer could not be left by a signal either.
    if !(0.0..=10_000.0).contains(&ms) {
        return Err(Error::new(option, format!("{ms} ms is out of range"), "give 0 to 10000 ms"));
    }
    Ok(Burn { ms, every_s: seconds(option, every)? })
}

/// The format of standard output.
///
/// # Errors
/// Unknown names.
pub fn format(option: &str, text: &str) -> Result<Format, Error> {
    match text {
        "json" => Ok(Format::Json),
        "table" => Ok(Format::Table),
        _ => Err(Error::new(option, format!("'{text}' is not a format"), "give table or json")),
    }
}

/// Limits of a good request, `key:ms` each, several to a text where spaces or commas part them; `none` for no limit.
/// aiperf's long names are read too. A key that stands twice counts with its last value.
///
/// # Errors
/// Unknown keys, and values that are not positive milliseconds.
pub fn goodput(option: &str, texts: &[String]) -> Result<Slo, Error> {
    let mut slo = Slo::default();
    let items = texts.iter().flat_map(|text| text.split([' ', ','])).filter(|item| !item.is_empty());
    for item in items.filter(|item| *item != "none") {
        let Some((key, text)) = item.split_once(':') else {
            return Err(not(option, item, "key:milliseconds", "ttft:500"));
        };
        let limit = match number(option, text) {
            Ok(ms) if ms > 0.0 => ms,
            _ => {
                let remedy = "give positive milliseconds, as in ttft:500";
                return Err(Error::new(option, format!("'{text}' is no limit for {key}"), remedy));
            }
        };
        let place = match key {
            "ttft" | "time_to_first_token" => &mut slo.ttft_ms,
            "ttfa" | "time_to_first_output_token" => &mut slo.ttfa_ms,
            // aiperf's inter-token latency is one value per request, which is TPOT.
            "tpot" | "inter_token_latency" => &mut slo.tpot_ms,
            "itl_max" => &mut slo.itl_max_ms,
            "e2e" | "e2el" | "request_latency" => &mut slo.e2e_ms,
            _ => return Err(bad_key(option, key)),
        };
        *place = Some(limit);
    }
    Ok(slo)
}

fn bad_key(option: &str, key: &str) -> Error {
    let remedy = match key {
        "itl" => "give itl_max for the largest gap of a request, or tpot for its mean".to_owned(),
        "output_token_throughput_per_user" => "give tpot: 1000 divided by the speed".to_owned(),
        _ => {
            let near =
                nearest(key, SLO_KEYS).map_or_else(String::new, |near| format!("did you mean {near}? "));
            format!("{near}there are {}", SLO_KEYS.join(", "))
        }
    };
    Error::new(option, format!("'{key}' is no limit of a request"), remedy)
}

fn not(option: &str, text: &str, what: &str, example: &str) -> Error {
    Error::new(option, format!("'{text}' is not {what}"), format!("write as in {option} {example}"))
}

const SLO_KEYS: [&str; 5] = ["ttft", "ttfa", "tpot", "itl_max", "e2e"];
/// Names of APIs in this program, vLLM's and SGLang's clients, aiperf, GuideLLM and servebench.
const BACKENDS: [(&str, Dialect); 30] = [
    ("anthropic", Dialect::Messages),
    ("chat", Dialect::OpenaiChat),
    ("chat_completions", Dialect::OpenaiChat),
    ("completions", Dialect::Openai),
    ("embeddings", Dialect::Embeddings),
    ("llama-cpp", Dialect::LlamaCpp),
    ("llama.cpp", Dialect::LlamaCpp),
    ("llamacpp", Dialect::LlamaCpp),
    ("lmdeploy", Dialect::Openai),
    ("messages", Dialect::Messages),
    ("ollama", Dialect::OllamaChat),
    ("ollama-chat", Dialect::OllamaChat),
    ("ollama-generate", Dialect::OllamaGenerate),
    ("openai", Dialect::Openai),
    ("openai-chat", Dialect::OpenaiChat),
    ("openai-completions", Dialect::Openai),
    ("openai-embeddings", Dialect::Embeddings),
    ("openai-responses", Dialect::Responses),
    ("raw", Dialect::Raw),
    ("responses", Dialect::Responses),
    ("scalellm", Dialect::Openai),
    ("sglang", Dialect::Sglang),
    ("sglang-embedding", Dialect::Embeddings),
    ("sglang-native", Dialect::Sglang),
    ("sglang-oai", Dialect::Openai),
    ("sglang-oai-chat", Dialect::OpenaiChat),
    ("template", Dialect::Raw),
    ("text_completions", Dialect::Openai),
    ("vllm", Dialect::Openai),
    ("vllm-chat", Dialect::OpenaiChat),
];
/// Names of APIs that are not spoken, and why.
const UNSPOKEN_BACKENDS: [(&str, &str); 15] = [
    ("deepspeed-mii", "its servers speak openai too"),
    ("huggingface_generate", TGI),
    ("infinity-embeddings", PLAIN),
    ("infinity-embeddings-clip", PLAIN),
    ("openai-audio", "audio is not sent"),
    ("image_generation", "images are not measured"),
    ("openai-embeddings-chat", PLAIN),
    ("openai-embeddings-clip", PLAIN),
    ("openai-embeddings-vlm2vec", PLAIN),
    ("rankings", "rankings are not measured"),
    ("tensorrt-llm", "trtllm-serve speaks openai-chat and openai"),
    ("tgi", TGI),
    ("trt", "trtllm-serve speaks openai-chat and openai"),
    ("vllm-pooling", "pooling is not measured"),
    ("vllm-rerank", "rankings are not measured"),
];
const PLAIN: &str = "only text is embedded, by openai-embeddings";
const TGI: &str =
    "its generate_stream counts no tokens until the end; text-generation-inference speaks openai-chat too";
/// Longest range of cores.
const CORES_MAX: u32 = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_wasted_only_where_a_signal_still_ends_it() {
        let of = |text| burn("--client-burn", text);
        assert_eq!(of("2").unwrap(), Burn { ms: 2.0, every_s: 0.0 });
        assert_eq!(of("10000@1").unwrap(), Burn { ms: 10_000.0, every_s: 1.0 });
        for bad in ["10001", "1e9", "-1", "nan", "", "2@", "@1"] {
            assert!(of(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn times_have_units() {
        let s = |text| seconds("--x", text).unwrap();
        assert_eq!(
            [s("90"), s("1.5s"), s("500ms"), s("5m"), s("2h"), s("0")],
            [90.0, 1.5, 0.5, 300.0, 7200.0, 0.0]
        );
        for bad in ["", "s", "-1", "1d", "inf", "nan", "1 2"] {
            assert!(seconds("--x", bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn integers_have_no_sign_and_no_fraction() {
        assert_eq!(integer::<u32>("--x", " 7 "), Ok(7));
        for bad in ["", "+1", "-1", "1.0", "1e3", "4294967296", "x"] {
            assert!(integer::<u32>("--x", bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn limits_are_read_in_every_spelling() {
        let read =
            |texts: &[&str]| goodput("--goodput", &texts.iter().map(|t| (*t).to_owned()).collect::<Vec<_>>());
        let both = Slo { ttft_ms: Some(500.0), tpot_ms: Some(50.0), ..Slo::default() };
        assert_eq!(read(&["ttft:500", "tpot:50"]), Ok(both));
        assert_eq!(read(&["ttft:500 tpot:50"]), Ok(both));
        assert_eq!(read(&["ttft:500,tpot:50"]), Ok(both));
        assert_eq!(read(&["time_to_first_token:500 inter_token_latency:50"]), Ok(both));
        assert_eq!(read(&["e2el:1e3"]), Ok(Slo { e2e_ms: Some(1000.0), ..Slo::default() }));
        assert_eq!(
            read(&["itl_max:9", "ttfa:8"]).map(|s| (s.itl_max_ms, s.ttfa_ms)),
            Ok((Some(9.0), Some(8.0)))
        );
        assert_eq!(read(&["none"]), Ok(Slo::default()));
        for bad in ["ttft", "ttft:", "ttft:0", "ttft:-1", "ttft:inf", "itl:5", "ttfx:5"] {
            assert_eq!(read(&[bad]).expect_err(bad).subject, "--goodput");
        }
        assert!(read(&["tpto:5"]).unwrap_err().remedy.starts_with("did you mean tpot?"));
    }

    #[test]
    fn headers_are_split_at_the_first_sign() {
        let read = |text| header("--header", text).unwrap();
        assert_eq!(read("X-A: b=c"), ("X-A".into(), "b=c".into()));
        assert_eq!(read("X-A=http://h"), ("X-A".into(), "http://h".into()));
        assert!(!header("--header", "sk-secret").unwrap_err().to_string().contains("sk-"));
        assert!(header("--header", ": x").is_err());
    }

    #[test]
    fn cores_are_lists_of_ranges() {
        assert_eq!(cores("--x", "0,2,4-7"), Ok(vec![0, 2, 4, 5, 6, 7]));
        for bad in ["", "7-4", "a", "0-", "0-99999999"] {
            assert!(cores("--x", bad).is_err(), "{bad}");
        }
    }
}
