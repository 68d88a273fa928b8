//! What cannot be run: the checks of a complete plan.
//!
//! Each refusal names the option of the command line, whose help states the same rule; the key of a plan file bears
//! the same word. Advice on plans that can be run but should not be is not given here.

use super::body::raw_error;
use super::{
    Arrivals, Distribution, Endpoint, Error, Header, Lengths, Level, Load, Plan, Sampling, Secrets, Stop,
    Target, Workload,
};
use crate::api::{Dialect, Extra};

impl Plan {
    /// Checks a [complete](Plan::complete) plan. Models may still be missing: the server knows them.
    ///
    /// # Errors
    /// The first thing that makes the plan impossible, contradictory or unsafe to store.
    pub fn validate(&self) -> Result<(), Error> {
        if self.seed > Plan::SEED_MAX {
            return Err(Error::new(
                "--seed",
                format!("{} is above 2^63 - 1", self.seed),
                "take a smaller seed",
            ));
        }
        check_target(&self.target)?;
        if self.levels.is_empty() {
            return Err(Error::new("--request-rate", "there is no level", "give a rate or a concurrency"));
        }
        self.levels.iter().try_for_each(check_level)?;
        check_workload(&self.workload, self.target.dialect)?;
        self.check_raw()?;
        self.check_numbers()?;
        self.check_client()
    }

    /// Bodies of the user's own API are theirs alone.
    fn check_raw(&self) -> Result<(), Error> {
        let Target { dialect, raw, path, .. } = &self.target;
        match raw {
            None if *dialect == Dialect::Raw => {
                let wrong = "is missing: the API raw has no body of its own";
                return Err(Error::new(
                    "--raw-body",
                    wrong,
                    "give the body as a JSON object or a file of it",
                ));
            }
            Some(_) if *dialect != Dialect::Raw => {
                let wrong = format!("means nothing to the API {}", dialect.name());
                return Err(Error::new("--raw-body", wrong, "give --backend raw"));
            }
            None => return Ok(()),
            Some(raw) => raw.check().map_err(raw_error)?,
        }
        if path.is_none() {
            return Err(Error::new(
                "--endpoint",
                "is missing: the API raw has no path of its own",
                "give it",
            ));
        }
        let workload = &self.workload;
        for (option, given) in [
            ("--extra-body", !workload.extra_body.is_empty()),
            ("--temperature and the like", workload.sampling != Sampling::default()),
        ] {
            if given {
                return Err(Error::new(option, "would not be sent", "put it into the body of --raw-body"));
            }
        }
        Ok(())
    }

    fn check_numbers(&self) -> Result<(), Error> {
        let slo = &self.slo;
        for limit in [slo.ttft_ms, slo.ttfa_ms, slo.tpot_ms, slo.itl_max_ms, slo.e2e_ms].into_iter().flatten()
        {
            if !(limit.is_finite() && limit > 0.0) {
                let remedy = "give positive milliseconds, as in ttft:500 tpot:50";
                return Err(Error::new("--goodput", format!("{limit} ms is no limit"), remedy));
            }
        }
        let limits = &self.limits;
        for (option, seconds) in [
            ("--connect-timeout", limits.connect_s),
            ("--first-token-timeout", limits.first_s),
            ("--no-progress-timeout", limits.gap_s),
            ("--request-timeout-seconds", limits.total_s),
        ] {
            not_negative(option, seconds, "give seconds, 0 for no limit")?;
        }
        let spread = self.client.start_spread_us;
        if spread > START_SPREAD_MAX_US {
            let remedy = format!("give microseconds, at most {START_SPREAD_MAX_US}");
            return Err(Error::new("--start-spread", format!("{spread} is out of range"), remedy));
        }
        not_negative("--start-spread", spread, "give microseconds, 0 for all at once")
    }

    fn check_client(&self) -> Result<(), Error> {
        let client = &self.client;
        if client.workers.is_some_and(|n| n == 0 || n > WORKERS_MAX) {
            let remedy = format!("give a number of threads from 1 to {WORKERS_MAX}, or leave it out");
            return Err(Error::new("--workers", "is out of range", remedy));
        }
        let Some(cores) = client.affinity.as_deref().filter(|cores| !cores.is_empty()) else {
            return Ok(());
        };
        if let Some((_, twice)) =
            cores.iter().enumerate().find(|&(place, core)| cores.iter().take(place).any(|c| c == core))
        {
            let remedy = "name each core once: two threads on one core delay each other's stamps";
            return Err(Error::new("--cpu-affinity", format!("core {twice} stands twice"), remedy));
        }
        if let Some(workers) = client.workers
            && workers as usize > cores.len()
        {
            let wrong = format!("{} cores are too few for {workers} threads", cores.len());
            return Err(Error::new("--cpu-affinity", wrong, "name a core for each of --workers"));
        }
        Ok(())
    }
}

fn check_target(target: &Target) -> Result<(), Error> {
    if target.endpoints.is_empty() {
        let remedy = "give --base-url http://host:port (tokload quick looks for a local server by itself)";
        return Err(Error::new("--base-url", "no server is named", remedy));
    }
    target.endpoints.iter().try_for_each(check_endpoint)?;
    if target.models.iter().any(String::is_empty) {
        return Err(Error::new(
            "--model",
            "a model's name is empty",
            "leave the option out to ask the server",
        ));
    }
    if let Some(path) = &target.path {
        let plain = path.starts_with('/') && path.bytes().all(|b| b.is_ascii_graphic() && b != b'#');
        if !plain {
            let remedy = "give a path as in /v1/chat/completions";
            return Err(Error::new("--endpoint", format!("'{path}' is not a path"), remedy));
        }
    }
    target.headers.iter().try_for_each(check_header)
}

fn check_endpoint(endpoint: &Endpoint) -> Result<(), Error> {
    let address = endpoint.address()?;
    if address.userinfo.is_some() {
        let remedy = "leave it out of the plan, which is stored, and give it by --base-url or --header";
        return Err(Error::new("--base-url", "a URL in the plan holds a password", remedy));
    }
    if address.endpoint() != *endpoint {
        let remedy = format!("write {}", address.endpoint().url);
        return Err(Error::new("--base-url", format!("'{}' is not a bare base URL", endpoint.url), remedy));
    }
    Ok(())
}

fn check_header(header: &Header) -> Result<(), Error> {
    let Header { name, value } = header;
    let wrong = |wrong: String, remedy: &str| Err(Error::new("--header", wrong, remedy));
    if name.is_empty() || !name.bytes().all(is_token) {
        return wrong(format!("'{name}' is not a field name"), "give it as 'Name: value'");
    }
    if OWN_HEADERS.iter().any(|own| name.eq_ignore_ascii_case(own)) {
        return wrong(format!("{name} is set by tokload itself"), "leave it out");
    }
    if Secrets::covers(name) {
        let remedy = "leave it out of the plan, which is stored, and give it by --header or --api-key";
        return wrong(format!("{name} is a secret"), remedy);
    }
    // RFC 9110 section 5.5: visible characters, spaces and tabs; above all no line ends.
    if !value.bytes().all(|b| b == b'\t' || (b >= b' ' && b != 0x7f)) {
        return wrong(format!("the value of {name} has a control character"), "leave it out");
    }
    Ok(())
}

/// RFC 9110 section 5.6.2.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

fn check_level(level: &Level) -> Result<(), Error> {
    check_load(&level.load)?;
    check_stop(&level.load, &level.stop)?;
    check_length(&level.load, &level.stop)
}

/// A rate so small that nothing, or not what was asked for, would ever be sent.
fn check_length(load: &Load, stop: &Stop) -> Result<(), Error> {
    let Some(rate) = load.rate() else { return Ok(()) };
    let (wrong, remedy) = match (stop.duration_s, stop.units) {
        (Some(seconds), _) if rate * seconds < 1.0 => (
            format!("{rate:?} a second is less than one request in {seconds} s"),
            "give a larger one, or a longer level",
        ),
        (None, Some(units)) if units as f64 / rate > LEVEL_S_MAX => (
            format!("at {rate:?} a second {units} requests take more than a year"),
            "give a larger one, or fewer requests",
        ),
        _ => return Ok(()),
    };
    Err(Error::new("--request-rate", wrong, remedy))
}

fn check_load(load: &Load) -> Result<(), Error> {
    if load.users == Some(0) || load.cap == Some(0) {
        return Err(Error::new("--max-concurrency", "0 lets nothing through", "give at least 1"));
    }
    match (load.arrivals, load.users, load.cap) {
        (Arrivals::Closed, None, _) => {
            let remedy = "give the number of users by --max-concurrency";
            return Err(Error::new("--max-concurrency", "a closed loop has no users", remedy));
        }
        (Arrivals::Closed, Some(_), None) => {}
        (Arrivals::Closed, Some(_), Some(_)) => {
            let remedy = "leave the cap out: N users never have more than N requests in flight";
            return Err(Error::new("--max-concurrency", "a closed loop has a cap besides its users", remedy));
        }
        (_, Some(_), _) => {
            let remedy = "keep either users (a closed loop) or an arrival process (an open one)";
            return Err(Error::new("--arrival-pattern", "users send without a schedule", remedy));
        }
        (Arrivals::Burst, None, Some(_)) => {
            let remedy = "leave out the cap for a burst, or the burst for a closed loop of that many users";
            return Err(Error::new("--max-concurrency", "a burst with a cap is a closed loop", remedy));
        }
        (_, None, _) => {}
    }
    if let Some(rate) = load.rate()
        && !(rate.is_finite() && rate > 0.0 && rate <= RATE_MAX)
    {
        let remedy = format!("give requests per second above 0, at most {RATE_MAX}, or inf");
        return Err(Error::new("--request-rate", format!("{rate:?} is not a rate"), remedy));
    }
    if let Arrivals::Gamma { burstiness, .. } = load.arrivals
        && !(burstiness.is_finite() && burstiness > 0.0)
    {
        let remedy = "give the shape of the gaps, above 0; 1 is Poisson";
        return Err(Error::new("--burstiness", format!("{burstiness} is not a shape"), remedy));
    }
    not_negative("--think-time", load.think_s, "give seconds, 0 for none")?;
    if load.think_s > 0.0 && load.users.is_none() {
        let remedy = "leave it out, or give --max-concurrency without a finite --request-rate";
        return Err(Error::new("--think-time", "only the users of a closed loop think", remedy));
    }
    Ok(())
}

fn check_stop(load: &Load, stop: &Stop) -> Result<(), Error> {
    if stop.units == Some(0) {
        return Err(Error::new("--num-prompts", "0 requests measure nothing", "give at least 1"));
    }
    if let Some(seconds) = stop.duration_s
        && !(seconds.is_finite() && seconds > 0.0)
    {
        let remedy = "give seconds above 0, or 5m, 1h";
        return Err(Error::new("--duration", format!("{seconds} s is not a duration"), remedy));
    }
    let endless = stop.duration_s.is_none() || load.arrivals == Arrivals::Burst;
    if stop.units.is_none() && endless {
        return Err(Error::new("--num-prompts", "a level has no end", "give --num-prompts or --duration"));
    }
    not_negative("--benchmark-grace-period", stop.grace_s, "give a number of seconds")
}

fn check_workload(workload: &Workload, dialect: Dialect) -> Result<(), Error> {
    check_prompts(workload)?;
    check_lengths("--random-output-len", &workload.output_tokens, 1)?;
    match workload.choices {
        0 => return Err(Error::new("--n", "0 asks for nothing", "give at least 1")),
        2.. if !dialect.has(Extra::Choices) => {
            let wrong = format!("the API {} gives one answer to a request", dialect.name());
            return Err(Error::new("--n", wrong, "leave it out"));
        }
        1..=CHOICES_MAX => {}
        more => return Err(too_large("--n", u64::from(more), CHOICES_MAX)),
    }
    let sampling = &workload.sampling;
    for (option, value) in [
        ("--temperature", sampling.temperature),
        ("--top-p", sampling.top_p),
        ("--min-p", sampling.min_p),
        ("--frequency-penalty", sampling.frequency_penalty),
        ("--presence-penalty", sampling.presence_penalty),
        ("--repetition-penalty", sampling.repetition_penalty),
    ] {
        // Which range a server takes is the server's to say; JSON has no infinity.
        if value.is_some_and(|v| !v.is_finite()) {
            return Err(Error::new(option, "is not a finite number", "give a number"));
        }
    }
    for (field, remedy) in OWN_FIELDS {
        if workload.extra_body.contains_key(field) {
            return Err(Error::new(
                "--extra-body",
                format!("'{field}' decides how answers are read"),
                remedy,
            ));
        }
    }
    Ok(())
}

fn check_prompts(workload: &Workload) -> Result<(), Error> {
    // What is shared may be all there is.
    let least = u32::from(workload.prefix.is_none());
    check_lengths("--random-input-len", &workload.input_words, least)?;
    let longest = workload.input_words.bounds().1;
    if longest > Lengths::MAX {
        return Err(too_large("--random-input-len", u64::from(longest), Lengths::MAX));
    }
    if let Some(prefix) = workload.prefix {
        // One shared prefix has an option of its own.
        let option = if prefix.pool == 1 { "--random-prefix-len" } else { "--prefix-prompt-length" };
        if prefix.words == 0 {
            return Err(Error::new(option, "0 shares nothing", "leave it out, or give at least 1"));
        }
        if prefix.pool == 0 {
            return Err(Error::new("--num-prefix-prompts", "0 are none", "leave it out, or give at least 1"));
        }
        if prefix.words > Lengths::MAX {
            return Err(too_large(option, u64::from(prefix.words), Lengths::MAX));
        }
    }
    if workload.distinct == Some(0) {
        let remedy = "give at least 1, or leave it out for a prompt of its own for each request";
        return Err(Error::new("--num-dataset-entries", "0 prompts ask for nothing", remedy));
    }
    Ok(())
}

/// Lengths that are distributions with bounds that leave something, and nothing below `least`.
fn check_lengths(option: &str, lengths: &Lengths, least: u32) -> Result<(), Error> {
    let wrong = |wrong: String, remedy: &str| Err(Error::new(option, wrong, remedy));
    match *lengths {
        Lengths::Drawn(Distribution::Lognormal { median, sigma, .. }) => {
            if !(median.is_finite() && median > 0.0) {
                return wrong(format!("{median} is no median of lengths"), "give a number above 0");
            }
            if !(sigma.is_finite() && (0.0..=SIGMA_MAX).contains(&sigma)) {
                let remedy = format!("give the standard deviation of the logarithm, from 0 to {SIGMA_MAX}");
                return wrong(format!("{sigma} is no sigma of lengths"), &remedy);
            }
        }
        Lengths::Drawn(Distribution::Normal { mean, stddev, .. }) => {
            if !(mean.is_finite() && mean > 0.0) {
                return wrong(format!("{mean} is no mean of lengths"), "give a number above 0");
            }
            if !(stddev.is_finite() && stddev >= 0.0) {
                let remedy = "give a number of tokens, 0 for none";
                return wrong(format!("{stddev} is no standard deviation"), remedy);
            }
        }
        Lengths::Drawn(Distribution::Uniform { .. }) | Lengths::Fixed(_) => {}
    }
    let (min, max) = lengths.bounds();
    if min > max {
        return wrong(format!("no length is from {min} to {max}"), "give the smaller bound as min");
    }
    if min < least {
        let remedy = if lengths.fixed().is_some() { "give at least 1" } else { "give lengths of at least 1" };
        return wrong("0 asks for nothing".to_owned(), remedy);
    }
    Ok(())
}

fn too_large(option: &str, value: u64, max: u32) -> Error {
    Error::new(option, format!("{value} is out of range"), format!("give at most {max}"))
}

fn not_negative(option: &str, value: f64, remedy: &str) -> Result<(), Error> {
    if value.is_finite() && value >= 0.0 {
        return Ok(());
    }
    Err(Error::new(option, format!("{value} is out of range"), remedy))
}

/// Fields that frame the request; a second one would change what the server reads.
const OWN_HEADERS: [&str; 5] = ["connection", "content-length", "host", "te", "transfer-encoding"];
/// Body fields that the reading of the answer depends on, and what sets them.
const OWN_FIELDS: [(&str, &str); 2] = [("n", "use --n"), ("stream", "use --no-streaming, or leave it out")];
/// Most shards: more than the cores of any machine.
const WORKERS_MAX: u32 = 4096;
/// Widest lognormal lengths: one in a thousand is then 2e-7 or 5e6 times the median.
const SIGMA_MAX: f64 = 5.0;
/// Most choices of a request: what the largest servers allow; each takes memory on each connection.
const CHOICES_MAX: u32 = 16_384;
/// Longest gap between the first sends of users, us: a minute. A user who never came would take requests along.
const START_SPREAD_MAX_US: f64 = 60e6;
/// Longest level whose end is a number of requests, s: a year.
const LEVEL_S_MAX: f64 = 365.0 * 86_400.0;
/// Largest rate, requests per second: gaps below a microsecond cannot be kept by any client.
const RATE_MAX: f64 = 1e6;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Prefix;

    fn plan() -> Plan {
        let mut plan = Plan::new(1);
        plan.target.endpoints.push(Endpoint { url: "http://h:8000".into() });
        plan.complete();
        plan
    }

    /// The option named by the refusal of the plan that `change` makes of a good one.
    fn refused(change: impl FnOnce(&mut Plan)) -> String {
        let mut plan = plan();
        change(&mut plan);
        let error = plan.validate().expect_err("a bad plan");
        assert!(!error.wrong.is_empty() && !error.remedy.is_empty());
        error.subject
    }

    #[test]
    fn a_completed_default_plan_with_an_endpoint_is_valid() {
        assert_eq!(plan().validate(), Ok(()));
    }

    #[test]
    fn targets() {
        let endpoint = |url: &str| vec![Endpoint { url: url.into() }];
        let header = |name: &str, value: &str| vec![Header { name: name.into(), value: value.into() }];
        assert_eq!(refused(|p| p.target.endpoints.clear()), "--base-url");
        assert_eq!(refused(|p| p.target.endpoints = endpoint("http://u:p@h:80")), "--base-url");
        assert_eq!(refused(|p| p.target.endpoints = endpoint("http://h:80/v1")), "--base-url");
        assert_eq!(refused(|p| p.target.endpoints = endpoint("ftp://h")), "--base-url");
        assert_eq!(refused(|p| p.target.models = vec![String::new()]), "--model");
        assert_eq!(refused(|p| p.target.path = Some("v1".into())), "--endpoint");
        assert_eq!(refused(|p| p.target.path = Some("/v1 x".into())), "--endpoint");
        assert_eq!(refused(|p| p.target.headers = header("X Y", "z")), "--header");
        assert_eq!(refused(|p| p.target.headers = header("X", "a\r\nY: b")), "--header");
        assert_eq!(refused(|p| p.target.headers = header("Authorization", "Bearer x")), "--header");
        assert_eq!(refused(|p| p.target.headers = header("content-Length", "1")), "--header");
    }

    #[test]
    fn loads() {
        let set = |load: Load| refused(move |p| p.levels[0].load = load);
        let open = |arrivals| Load { arrivals, cap: None, users: None, think_s: 0.0 };
        assert_eq!(set(Load::closed(0)), "--max-concurrency");
        assert_eq!(set(open(Arrivals::Closed)), "--max-concurrency");
        assert_eq!(set(Load { cap: Some(3), ..Load::closed(2) }), "--max-concurrency");
        assert_eq!(set(Load { arrivals: Arrivals::Burst, ..Load::closed(2) }), "--arrival-pattern");
        assert_eq!(set(Load { cap: Some(3), ..open(Arrivals::Burst) }), "--max-concurrency");
        assert_eq!(set(Load { think_s: 1.0, ..open(Arrivals::Burst) }), "--think-time");
        assert_eq!(set(Load { think_s: f64::NAN, ..Load::closed(2) }), "--think-time");
        for rate in [0.0, -1.0, f64::NAN, f64::INFINITY, 2e6] {
            assert_eq!(set(open(Arrivals::Poisson { rate })), "--request-rate");
        }
        assert_eq!(set(open(Arrivals::Gamma { rate: 1.0, burstiness: 0.0 })), "--burstiness");
    }

    #[test]
    fn a_rate_must_send_a_request_within_the_level_and_its_requests_within_a_year() {
        let of = |rate, duration_s, units| {
            let mut plan = plan();
            let load = Load { arrivals: Arrivals::Poisson { rate }, cap: None, users: None, think_s: 0.0 };
            plan.levels =
                vec![Level { load, stop: Stop { duration_s, units, ..Stop::default() }, warmups: 0 }];
            plan.validate().map_err(|error| error.to_string())
        };
        assert_eq!(of(0.5, Some(2.0), None), Ok(()));
        assert_eq!(of(1.0, None, Some(31_536_000)), Ok(()));
        assert_eq!(
            of(0.4, Some(2.0), Some(64)).unwrap_err(),
            "--request-rate: 0.4 a second is less than one request in 2 s; give a larger one, or a longer level"
        );
        assert_eq!(
            of(1e-300, None, Some(64)).unwrap_err(),
            "--request-rate: at 1e-300 a second 64 requests take more than a year; give a larger one, or fewer requests"
        );
        assert!(of(1.0, None, Some(31_536_001)).is_err());
        assert_eq!(
            of(1e300, None, Some(64)).unwrap_err(),
            "--request-rate: 1e300 is not a rate; give requests per second above 0, at most 1000000, or inf"
        );
    }

    #[test]
    fn stops() {
        assert_eq!(refused(|p| p.levels.clear()), "--request-rate");
        assert_eq!(refused(|p| p.levels[0].stop.units = Some(0)), "--num-prompts");
        assert_eq!(refused(|p| p.levels[0].stop.units = None), "--num-prompts");
        assert_eq!(refused(|p| p.levels[0].stop.duration_s = Some(0.0)), "--duration");
        assert_eq!(refused(|p| p.levels[0].stop.grace_s = f64::INFINITY), "--benchmark-grace-period");
        // A duration does not end a burst.
        assert_eq!(
            refused(|p| p.levels[0].stop = Stop { duration_s: Some(1.0), ..Stop::default() }),
            "--num-prompts"
        );
    }

    #[test]
    fn lengths_and_what_prompts_share() {
        let input = |d: Distribution| refused(move |p| p.workload.input_words = Lengths::Drawn(d));
        let output = |d: Distribution| refused(move |p| p.workload.output_tokens = Lengths::Drawn(d));
        let lognormal = |median, sigma| Distribution::Lognormal { median, sigma, min: None, max: None };
        let normal = |mean, stddev| Distribution::Normal { mean, stddev, min: None, max: None };
        for bad in [
            lognormal(0.0, 1.0),
            lognormal(f64::NAN, 1.0),
            lognormal(9.0, -1.0),
            lognormal(9.0, 5.5),
            normal(0.0, 1.0),
            normal(f64::INFINITY, 1.0),
            normal(9.0, -1.0),
            normal(9.0, f64::NAN),
            Distribution::Normal { mean: 9.0, stddev: 1.0, min: Some(5), max: Some(4) },
            Distribution::Uniform { min: 0, max: 4 },
            Distribution::Uniform { min: 5, max: 4 },
        ] {
            assert_eq!(input(bad), "--random-input-len", "{bad:?}");
            assert_eq!(output(bad), "--random-output-len", "{bad:?}");
        }
        assert_eq!(input(Distribution::Uniform { min: 1, max: u32::MAX }), "--random-input-len");
        let prefix = |words, pool| refused(move |p| p.workload.prefix = Some(Prefix { words, pool }));
        assert_eq!(prefix(0, 1), "--random-prefix-len");
        assert_eq!(prefix(0, 2), "--prefix-prompt-length");
        assert_eq!(prefix(u32::MAX, 1), "--random-prefix-len");
        assert_eq!(prefix(9, 0), "--num-prefix-prompts");
        assert_eq!(refused(|p| p.workload.distinct = Some(0)), "--num-dataset-entries");

        let mut plan = plan();
        plan.workload.prefix = Some(Prefix { words: 9, pool: 1 });
        plan.workload.input_words = 0.into();
        assert_eq!(plan.validate(), Ok(()), "a prefix may be all there is");
        plan.workload.input_words = Lengths::Drawn(lognormal(600.0, 1.0));
        plan.workload.output_tokens = Lengths::Drawn(normal(200.0, 0.0));
        assert_eq!(plan.validate(), Ok(()));
    }

    #[test]
    fn workload_limits_and_client() {
        assert_eq!(refused(|p| p.seed = u64::MAX), "--seed");
        assert_eq!(refused(|p| p.workload.input_words = 0.into()), "--random-input-len");
        assert_eq!(refused(|p| p.workload.output_tokens = 0.into()), "--random-output-len");
        assert_eq!(refused(|p| p.workload.choices = 0), "--n");
        assert_eq!(refused(|p| p.workload.input_words = u32::MAX.into()), "--random-input-len");
        assert_eq!(refused(|p| p.workload.choices = u32::MAX), "--n");
        assert_eq!(refused(|p| p.workload.sampling.top_p = Some(f64::NAN)), "--top-p");
        assert_eq!(
            refused(|p| drop(p.workload.extra_body.insert("stream".into(), false.into()))),
            "--extra-body"
        );
        assert_eq!(refused(|p| p.slo.tpot_ms = Some(0.0)), "--goodput");
        assert_eq!(refused(|p| p.limits.gap_s = -1.0), "--no-progress-timeout");
        assert_eq!(refused(|p| p.client.start_spread_us = -1.0), "--start-spread");
        assert_eq!(refused(|p| p.client.start_spread_us = 1e300), "--start-spread");
        assert_eq!(refused(|p| p.client.workers = Some(0)), "--workers");
        assert_eq!(refused(|p| p.client.affinity = Some(vec![1, 2, 1])), "--cpu-affinity");
        assert_eq!(
            refused(|p| {
                p.client.affinity = Some(vec![1]);
                p.client.workers = Some(2);
            }),
            "--cpu-affinity"
        );
    }
}
