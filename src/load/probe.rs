//! What is asked of a server before it is loaded: is it there, which models has it, does it take our requests.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::api::request::Texts;
use crate::api::{Filling, error_message, names_field};
use crate::exchange::{Ask, Exchange};
use crate::load::fetch::{self, FetchError, Fetched, Patience, is_silence};
use crate::load::target::{Desk, Route, Target};
use crate::metrics::{Class, Record};
use crate::plan::{Limits, Plan, RequestOptions};
use crate::sys::clock::RunClock;
use crate::sys::socket::Peer;
use crate::wire::json::Json;
use crate::workload::Item;

/// What a server says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerFacts {
    /// Value of its `Server` header; empty if there is none.
    pub header: String,
    /// Value of the `Via` header; empty if nobody passed the answer on, or said so.
    pub via: String,
    /// Who it says owns its models (`vllm`, `llamacpp`, `library`); empty if it does not say.
    pub owner: String,
    /// Its version, where `/version` or `/api/version` tells.
    pub version: Option<String>,
    /// The models that it lists, in its order.
    pub models: Vec<String>,
    /// Tokens of a prompt and its answer that each of these takes, where the server says (`max_model_len`).
    pub context_tokens: Vec<Option<u32>>,
    /// HTTP status of its answer to the question for them.
    pub models_status: u16,
}

/// Why a run cannot begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProbeError {
    /// Nothing answers, or not yet, or not like a server of this kind.
    NotReady(String),
    /// The server refuses what the plan asks; a sentence with the remedy.
    Refused(String),
}

/// How a probe request fared.
#[derive(Debug)]
pub struct Probed {
    /// Options after dropping what the server refused.
    pub options: RequestOptions,
    /// The answer to the request that was accepted.
    pub exchange: Exchange,
}

/// A server has at most this long to answer a question about itself, and no longer than the plan gives its requests.
const QUESTION: Duration = Duration::from_secs(10);
/// The same for each step of a short request: a model may have to be loaded for it.
const STEP: Duration = Duration::from_secs(120);
/// And for the whole of it.
const REQUEST: Duration = Duration::from_secs(600);
/// Pause between two looks at a server that is not ready.
const LOOK_AGAIN: Duration = Duration::from_millis(500);
/// The probe's answer is this long: enough to be an answer, too short to matter.
const PROBE_TOKENS: u32 = 2;

impl ServerFacts {
    /// A short name for the kind of server, as far as it can be told.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        let says = |what: &str| self.owner.contains(what) || self.header.to_ascii_lowercase().contains(what);
        match () {
            () if says("vllm") => "vLLM",
            () if says("llama") => "llama.cpp",
            () if says("sglang") => "SGLang",
            () if says("tokload") => "tokload mock",
            () if says("library") || says("ollama") => "Ollama",
            () if says("organization_owner") || says("lm studio") => "LM Studio",
            () => "unknown server",
        }
    }
}

impl ServerFacts {
    /// The fewest tokens that one of `models` takes, as far as the server says.
    #[must_use]
    pub fn context_of(&self, models: &[String]) -> Option<u32> {
        let of = self.models.iter().zip(&self.context_tokens);
        of.filter(|(model, _)| models.contains(model)).filter_map(|(_, most)| *most).min()
    }

    /// Takes the names from a list of models, OpenAI's (`data[].id`) or Ollama's (`models[].name`).
    fn read_models(&mut self, body: &[u8]) {
        let mut json = Json::new();
        let Ok(document) = json.parse(body) else { return };
        // llama.cpp gives both, with the same names.
        let lists = [("data", "id"), ("models", "name")];
        let list = lists.into_iter().find_map(|(list, name)| Some((document.root().field(list)?, name)));
        let Some((list, name)) = list else { return };
        if name == "name" {
            "library".clone_into(&mut self.owner);
        }
        for model in list.items() {
            if let Some(id) = model.field(name).and_then(|id| id.as_str()) {
                self.models.push(id.to_owned());
                let most = model.field("max_model_len").and_then(|most| most.as_u32());
                self.context_tokens.push(most.filter(|most| *most > 0));
            }
            if let Some(owner) = model.field("owned_by").and_then(|owner| owner.as_str()) {
                owner.clone_into(&mut self.owner);
            }
        }
    }

    /// Whether it is of a kind that answers `/tokenize`.
    #[must_use]
    pub fn tells_tokens(&self) -> bool {
        matches!(self.kind(), "vLLM" | "llama.cpp" | "SGLang" | "tokload mock")
    }
}

/// Asks for the list of models at `path` until there is an answer that is not a 5xx, for at most `wait`. An answer has
/// 10 s, or less where `limits` leave a request less until its first token or its end.
///
/// # Errors
/// [`ProbeError::NotReady`] if nothing answers in time, [`ProbeError::Refused`] if the key is refused.
pub fn server(route: &Route, path: &str, limits: &Limits, wait: Duration) -> Result<ServerFacts, ProbeError> {
    let limit = within(within(QUESTION, limits.first_s), limits.total_s);
    let clock = RunClock::start();
    loop {
        let problem = match fetch::get(route, path, limit) {
            Ok(answer) if answer.status < 500 && answer.status != 429 => return facts(route, &answer, limit),
            Ok(answer) => said(&answer),
            Err(error) => explain(route, &error),
        };
        if clock.now().as_secs_f64() + LOOK_AGAIN.as_secs_f64() > wait.as_secs_f64() {
            return Err(ProbeError::NotReady(problem));
        }
        std::thread::sleep(LOOK_AGAIN);
    }
}

fn facts(route: &Route, answer: &Fetched, limit: Duration) -> Result<ServerFacts, ProbeError> {
    if matches!(answer.status, 401 | 403) {
        let said = said(answer);
        return Err(ProbeError::Refused(format!("{said}; give the key with --api-key or in OPENAI_API_KEY")));
    }
    let mut facts = ServerFacts {
        header: answer.server.clone(),
        via: answer.via.clone(),
        models_status: answer.status,
        ..ServerFacts::default()
    };
    // A server without a list of models may still serve one by name.
    facts.read_models(&answer.body);
    facts.version = version(route, facts.kind(), limit);
    Ok(facts)
}

/// The version of a server of `kind`, where one of the usual places tells it.
fn version(route: &Route, kind: &str, limit: Duration) -> Option<String> {
    let mut json = Json::new();
    // Each names the build of its kind of server.
    let own = match kind {
        "llama.cpp" => Some(("/props", "build_info")),
        "SGLang" => Some(("/get_server_info", "version")),
        _ => None,
    };
    let places = [("/version", "version"), ("/api/version", "version")].into_iter().chain(own);
    places.into_iter().find_map(|(path, field)| {
        let answer = fetch::get(route, path, limit).ok().filter(|answer| answer.status == 200)?;
        let document = json.parse(&answer.body).ok()?;
        Some(document.root().field(field)?.as_str()?.to_owned())
    })
}

/// Sends one short request as the plan would; what the server names as unknown among the optional fields is dropped
/// and the request sent again. It has what the plan's limits give a request, but at most 120 s for each step and 10
/// minutes as a whole. A server that says that it is not ready, by 429 or a 5xx, is asked again for at most `wait`.
///
/// # Errors
/// [`ProbeError`]: the server does not answer, or refuses the request for another reason.
pub fn request(route: &Route, plan: &Plan, model: &str, wait: Duration) -> Result<Probed, ProbeError> {
    let clock = RunClock::start();
    let mut options = plan.workload.options.clone();
    let patience = patience(&plan.limits);
    let prompt = hello(plan);
    loop {
        let mut plan = plan.clone();
        plan.workload.options = options.clone();
        let template = plan.template(model).map_err(|error| ProbeError::Refused(error.to_string()))?;
        let mut body = Vec::new();
        let tokens = PROBE_TOKENS.min(plan.workload.output_tokens.bounds().1);
        let texts = Texts { system: "Answer.", prompt };
        template.write(&mut body, texts, tokens, &Filling::default());
        let exchange = fetch::ask(route, &body, ask_of(&plan), &patience)
            .map_err(|error| ProbeError::NotReady(explain(route, &error)))?;
        let outcome = exchange.record().outcome;
        match outcome.class {
            // An empty answer is an answer: the model may have nothing to say to two tokens.
            Class::Ok | Class::Empty => return Ok(Probed { options, exchange }),
            Class::Http if matches!(outcome.status, 400 | 422) => {
                let Some(field) = drop_refused(&mut options, exchange.body()) else {
                    return Err(refused(&exchange, &plan, model));
                };
                options.dropped.push(field.to_owned());
            }
            Class::Http
                if matches!(outcome.status, 429 | 500..)
                    && clock.now().as_secs_f64() + LOOK_AGAIN.as_secs_f64() <= wait.as_secs_f64() =>
            {
                std::thread::sleep(LOOK_AGAIN);
            }
            _ => return Err(refused(&exchange, &plan, model)),
        }
    }
}

/// The prompt of the short request: a text, or of ids the one that every vocabulary has.
#[must_use]
pub fn hello(plan: &Plan) -> &'static str {
    if plan.workload.tokens.as_ref().is_some_and(|tokens| tokens.ids) { "0" } else { "Hello" }
}

/// The tokens of `prompt` as the server counts them in its answer to a request that is otherwise as the plan's, but
/// short; `None` where it answers with something else.
#[must_use]
pub fn prompt_tokens(route: &Route, plan: &Plan, model: &str, prompt: &str) -> Option<u32> {
    let mut body = Vec::new();
    let limit = PROBE_TOKENS.min(plan.workload.output_tokens.bounds().1);
    plan.template(model).ok()?.write(&mut body, prompt, limit, &Filling::default());
    let exchange = fetch::ask(route, &body, ask_of(plan), &patience(&plan.limits)).ok()?;
    let is_answer = matches!(exchange.record().outcome.class, Class::Ok | Class::Empty);
    exchange.record().prompt_tokens.filter(|_| is_answer)
}

/// The record of one request as `target` has it for `item`, sent by itself with the patience of the plan's limits.
///
/// # Errors
/// [`ProbeError`]: the server does not answer, or refuses the request.
pub fn one(target: &Target, plan: &Plan, item: Item) -> Result<Record, ProbeError> {
    let none = || ProbeError::Refused("the plan has no endpoint".to_owned());
    let route = target.routes.first().ok_or_else(none)?;
    let mut desk = Desk::default();
    target.write_prompt(item, &mut desk);
    target.write_body(item, &mut desk);
    let exchange = fetch::ask(route, desk.body(), ask_of(plan), &patience(&plan.limits))
        .map_err(|error| ProbeError::NotReady(explain(route, &error)))?;
    match exchange.record().outcome.class {
        Class::Ok | Class::Empty => Ok(*exchange.record()),
        _ => Err(refused(&exchange, plan, plan.target.models.first().map_or("", String::as_str))),
    }
}

/// The names of the models in the list at `path`; none where there is no such list.
#[must_use]
pub fn models(route: &Route, path: &str, limits: &Limits) -> Vec<String> {
    let limit = within(within(QUESTION, limits.first_s), limits.total_s);
    let answer = fetch::get(route, path, limit).ok().filter(|answer| answer.status == 200);
    let mut facts = ServerFacts::default();
    if let Some(answer) = answer {
        facts.read_models(&answer.body);
    }
    facts.models
}

/// How answers to the plan's requests are read. The length that each asks for is its own, and 0 here unless it is the
/// same for all, or where answers have no length.
#[must_use]
pub fn ask_of(plan: &Plan) -> Ask {
    let length = plan.workload.output_tokens.fixed().filter(|_| plan.target.dialect.generates());
    Ask {
        dialect: plan.target.dialect,
        // A valid plan has it where it is needed.
        raw: plan.target.raw.as_ref().and_then(|raw| raw.shape().ok()).map(Arc::new),
        stream: plan.target.stream,
        answers: plan.workload.choices.max(1),
        prompts: 1,
        max_tokens: length.unwrap_or(0),
        leaves_with: 0,
        replica_header: plan.target.replica_header.as_deref().map(Arc::from),
    }
}

/// How long the parts of a short request may take.
fn patience(limits: &Limits) -> Patience {
    Patience {
        connect: within(STEP, limits.connect_s),
        first: within(STEP, limits.first_s),
        gap: within(STEP, limits.gap_s),
        total: within(REQUEST, limits.total_s),
    }
}

/// The shorter of `most` and a limit of the plan, of which 0 is none.
fn within(most: Duration, limit_s: f64) -> Duration {
    match Duration::try_from_secs_f64(limit_s) {
        // The system takes no time of 0.
        Ok(limit) if limit_s > 0.0 => limit.clamp(Duration::from_micros(1), most),
        _ => most,
    }
}

/// Switches off the first optional field that a refusal names.
fn drop_refused(options: &mut RequestOptions, body: &[u8]) -> Option<&'static str> {
    let fields: [(&'static str, &mut bool); 4] = [
        ("continuous_usage_stats", &mut options.continuous_usage),
        ("stream_options", &mut options.include_usage),
        ("min_tokens", &mut options.min_tokens),
        ("ignore_eos", &mut options.ignore_eos),
    ];
    let (name, on) = fields.into_iter().find(|(name, on)| **on && names_field(body, name))?;
    *on = false;
    // Running usage is a wish inside the stream options.
    options.continuous_usage &= options.include_usage;
    Some(name)
}

fn refused(exchange: &Exchange, plan: &Plan, model: &str) -> ProbeError {
    let outcome = exchange.record().outcome;
    let said = match exchange.message() {
        "" => String::new(),
        message => format!(": {message}"),
    };
    let label = outcome.label();
    match (outcome.class, outcome.status) {
        (Class::Http, 401 | 403) => ProbeError::Refused(format!(
            "the server refuses the key (HTTP {}{said}); give one with --api-key or in OPENAI_API_KEY",
            outcome.status
        )),
        (Class::Http, 404) => ProbeError::Refused(format!(
            "the server knows no such model or path (HTTP 404{said}); check --model {model} against its /v1/models and --base-url"
        )),
        (Class::Http, 429 | 500..) => ProbeError::NotReady(format!(
            "the server is not ready (HTTP {}{said}); wait for it with --ready-check-timeout-sec",
            outcome.status
        )),
        (Class::Http, status) => {
            ProbeError::Refused(format!("the server refuses the request (HTTP {status}{said})"))
        }
        (Class::Malformed, _) => ProbeError::NotReady(format!(
            "what answers is not a stream of the API {} ({}{said}); check --base-url and --backend, or try --no-streaming",
            plan.target.dialect.name(),
            outcome.kind.name()
        )),
        _ => ProbeError::NotReady(format!("the server does not answer a short request ({label}{said})")),
    }
}

fn said(answer: &Fetched) -> String {
    let message = error_message(&mut Json::new(), &answer.body);
    let message = message.map_or_else(String::new, |message| format!(": {message}"));
    format!("the server answers HTTP {}{message}", answer.status)
}

/// How a server says that it does not take the client's certificate, or wants one.
const REFUSALS: [&str; 7] = [
    "alert: CertificateRequired",
    "alert: BadCertificate",
    "alert: UnknownCA",
    "alert: CertificateUnknown",
    "alert: CertificateExpired",
    "alert: CertificateRevoked",
    "alert: AccessDenied",
];

/// The error with its remedy.
fn explain(route: &Route, error: &FetchError) -> String {
    let text = error.to_string();
    let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
    let remedy = match error {
        // With TLS 1.3 the server's answer to our certificate comes behind the handshake.
        _ if REFUSALS.iter().any(|alert| text.contains(alert)) => {
            "the server wants a certificate of the client that it trusts: --cert and --key"
        }
        FetchError::Tls(_) if says(&["NotValidForName"]) => {
            "the certificate is for another name: --tls-sni says which one is meant"
        }
        FetchError::Connect(_) if route.addresses.iter().any(|peer| matches!(peer, Peer::Unix(_))) => {
            "is the server up, and does it listen on that socket?"
        }
        FetchError::Connect(_) => "is the server up, and are host and port right?",
        FetchError::Tls(error) if is_silence(error) => "is the server up, and does it speak TLS there?",
        FetchError::Tls(_) => "a plain server wants http://, a private certificate --cacert or --insecure",
        FetchError::NotHttp => "a TLS server wants https://",
        FetchError::Broken(_) | FetchError::Request(_) => "check --base-url",
    };
    format!("{text} ({remedy})")
}

impl fmt::Display for ProbeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProbeError::NotReady(sentence) | ProbeError::Refused(sentence) => f.write_str(sentence),
        }
    }
}

impl std::error::Error for ProbeError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_request_has_no_more_time_than_the_requests_of_the_plan() {
        let [long, short] = [STEP, Duration::from_millis(1500)];
        let none = Limits { connect_s: 0.0, first_s: 0.0, gap_s: 0.0, total_s: 0.0 };
        assert_eq!(patience(&none), Patience { connect: long, first: long, gap: long, total: REQUEST });
        assert_eq!(patience(&Limits { total_s: 1.5, ..none }).total, short);
        assert_eq!(patience(&Limits { first_s: 1.5, ..none }).first, short);
        assert_eq!(patience(&Limits { gap_s: 1.5, ..none }).gap, short);
        assert_eq!(patience(&Limits { connect_s: 1.5, ..none }).connect, short);
        // A limit longer than a duration can be is none; one shorter than the system's is its shortest.
        assert_eq!(within(QUESTION, 1e300), QUESTION);
        assert_eq!(within(QUESTION, 1e-12), Duration::from_micros(1));
    }
}
