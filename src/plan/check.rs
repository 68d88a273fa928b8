//! What cannot be run: the checks of a complete plan.
//!
//! Each refusal names the option of the command line, whose help states the same rule; the key of a plan file bears
//! the same word. Advice on plans that can be run but should not be is not given here.

mod rate;

use super::body::raw_error;
use super::{
    Arrivals, Distribution, Endpoint, Error, Figure, Gaps, Header, Lengths, Level, Load, Part, Plan, Prefix,
    Sampling, Secrets, Stop, Table, Target, Until, Workload,
};
use crate::api::{Dialect, Extra};
use crate::metrics::metric::Metric;

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
        if !(1..=RUNS_MAX).contains(&self.runs) {
            let wrong = format!("{} is out of range", self.runs);
            return Err(Error::new("--num-runs", wrong, format!("give a number from 1 to {RUNS_MAX}")));
        }
        check_target(&self.target)?;
        self.check_until()?;
        self.check_slices()?;
        self.check_stress()?;
        self.check_search()?;
        if self.levels.is_empty() {
            return Err(Error::new("--request-rate", "there is no level", "give a rate or a concurrency"));
        }
        self.levels.iter().try_for_each(check_level)?;
        self.check_share()?;
        check_workload(&self.workload, self.target.dialect)?;
        self.check_raw()?;
        self.check_trace()?;
        self.check_data()?;
        self.check_behaviour()?;
        self.check_sharing()?;
        self.check_sizes()?;
        self.check_conversation()?;
        self.check_session_header()?;
        self.check_tokens()?;
        self.check_numbers()?;
        self.check_telemetry()?;
        self.check_client()
    }

    fn check_slices(&self) -> Result<(), Error> {
        match self.slice_s {
            Some(length) if !(SLICE_MIN_S..=SLICE_MAX_S).contains(&length) => {
                let remedy = format!("give seconds from {SLICE_MIN_S} to {SLICE_MAX_S}, as in 60 or 5m");
                Err(Error::new("--slice-duration", format!("{length} s is no length of a slice"), remedy))
            }
            _ => Ok(()),
        }
    }

    fn check_until(&self) -> Result<(), Error> {
        let Some(Until { figure, half_width, times_max }) = self.until else { return Ok(()) };
        let wrong = |wrong: String, remedy: &str| Err(Error::new("--until-ci", wrong, remedy));
        if !(half_width > 0.0 && half_width < 1.0) {
            return wrong(format!("{half_width} is no share of the value"), "give one as in 5% or 0.05");
        }
        if !(1..=TIMES_MAX).contains(&times_max) {
            let remedy = format!("give a number of planned lengths from 1 to {TIMES_MAX}");
            return Err(Error::new("--until-ci-max", format!("{times_max} is out of range"), remedy));
        }
        if figure == Figure::Attainment && self.slo.is_empty() {
            return wrong("nothing can be attained without a limit".to_owned(), "give limits by --goodput");
        }
        let whole = [Metric::E2e, Metric::E2ePlan, Metric::Stream, Metric::StreamPlan, Metric::Ttfb];
        if let Figure::Quantile(metric, _) = figure
            && !self.target.stream
            && !whole.contains(&metric)
        {
            return wrong(format!("whole answers have no {metric}", metric = metric.name()), "give e2e_p50");
        }
        if self.levels.iter().any(|level| level.load.arrivals == Arrivals::Burst) {
            let burst =
                "all requests are sent at once, as where no load is given, so that a level cannot go on";
            return wrong(burst.to_owned(), "give --request-rate or --max-concurrency");
        }
        if let Some((impossible, remedy)) = self.levels.iter().find_map(rate::why_no_longer) {
            return wrong(impossible.to_owned(), remedy);
        }
        Ok(())
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

    /// One more header, under the rules of all others.
    fn check_session_header(&self) -> Result<(), Error> {
        let Some(name) = &self.workload.session_header else { return Ok(()) };
        check_header(&Header { name: name.clone(), value: String::new() })
            .map_err(|error| Error { subject: "--session-header".to_owned(), ..error })
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
    super::fleet::check(target)?;
    check_replicas(target)?;
    super::connections::check(target)?;
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

fn check_replicas(target: &Target) -> Result<(), Error> {
    let Some(name) = &target.replica_header else { return Ok(()) };
    if name.is_empty() || !name.bytes().all(is_token) {
        let wrong = format!("'{name}' is not a field name");
        return Err(Error::new("--replica-header", wrong, "give it as in x-served-by"));
    }
    if target.all_addresses {
        let wrong = "stands beside --all-addresses: a replica would have two names";
        return Err(Error::new("--replica-header", wrong, "leave out one of the two"));
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
    header.text().map(|_| ())
}

/// RFC 9110 section 5.6.2.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

fn check_level(level: &Level) -> Result<(), Error> {
    check_load(&level.load)?;
    check_stop(&level.load, &level.stop)?;
    rate::check_end(&level.load, &level.stop)?;
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
    use Arrivals::{Closed, Joining, Paced};
    if load.users == Some(0) || load.cap == Some(0) {
        return Err(Error::new("--max-concurrency", "0 lets nothing through", "give at least 1"));
    }
    match (&load.arrivals, load.users, load.cap) {
        (Closed | Joining { .. } | Paced { .. }, None, _) => {
            let remedy = "give the number of users by --max-concurrency";
            return Err(Error::new("--max-concurrency", "a closed loop has no users", remedy));
        }
        (Closed | Joining { .. } | Paced { .. }, Some(_), None) => {}
        (Closed | Joining { .. } | Paced { .. }, Some(_), Some(_)) => {
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
    check_pace(load)?;
    rate::check_arrivals(&load.arrivals)?;
    if let Some(rate) = load.rate()
        && !(rate.is_finite() && rate > 0.0 && rate <= RATE_MAX)
    {
        let remedy = format!("give requests per second above 0, at most {RATE_MAX}, or inf");
        return Err(Error::new("--request-rate", format!("{rate:?} is not a rate"), remedy));
    }
    if let Some(Gaps::Gamma { burstiness }) = load.arrivals.gaps()
        && !(burstiness.is_finite() && burstiness > 0.0)
    {
        let remedy = "give the shape of the gaps, above 0; 1 is Poisson";
        return Err(Error::new("--burstiness", format!("{burstiness} is not a shape"), remedy));
    }
    if let Some(speedup) = load.speedup()
        && !(speedup.is_finite() && speedup > 0.0)
    {
        let remedy = "give a factor above 0: 2 is twice as fast as recorded";
        return Err(Error::new("--trace-speedup", format!("{speedup} is not a factor"), remedy));
    }
    not_negative("--think-time", load.think_s, "give seconds, 0 for none")?;
    if load.think_s > 0.0 && load.users.is_none() {
        let remedy = "leave it out, or give --max-concurrency without a finite --request-rate";
        return Err(Error::new("--think-time", "only the users of a closed loop think", remedy));
    }
    if load.think_s > LEVEL_S_MAX {
        let wrong = format!("{:?} s are more than a year", load.think_s);
        return Err(Error::new("--think-time", wrong, "give seconds, at most a year of them"));
    }
    Ok(())
}

fn check_pace(load: &Load) -> Result<(), Error> {
    let Some(interval_s) = load.interval_s() else { return Ok(()) };
    let wrong = |wrong: String, remedy: &str| Err(Error::new("--pace", wrong, remedy));
    if !(interval_s.is_finite() && interval_s > 0.0 && interval_s <= INTERVAL_MAX_S) {
        let remedy = format!("give a rate above 0, and at least one request per user in {INTERVAL_MAX_S} s");
        return wrong(format!("{interval_s} s is no gap between the sends of a user"), &remedy);
    }
    if load.think_s > 0.0 {
        let remedy = "leave out one of the two";
        return wrong("users with a schedule have no --think-time".to_owned(), remedy);
    }
    if load.rate().is_some_and(|rate| rate > RATE_MAX) {
        return wrong("is out of range".to_owned(), &format!("give at most {RATE_MAX} requests per second"));
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
    if let Some(seconds) = stop.duration_s.filter(|seconds| *seconds > LEVEL_S_MAX) {
        let remedy = "give a shorter one, and --num-prompts for an end that does not depend on time";
        return Err(Error::new("--duration", format!("{seconds:?} s are more than a year"), remedy));
    }
    let endless = stop.duration_s.is_none() || load.arrivals == Arrivals::Burst;
    if stop.units.is_none() && endless && load.speedup().is_none() {
        return Err(Error::new("--num-prompts", "a level has no end", "give --num-prompts or --duration"));
    }
    not_negative("--benchmark-grace-period", stop.grace_s, "give a number of seconds")
}

fn check_workload(workload: &Workload, dialect: Dialect) -> Result<(), Error> {
    check_prompts(workload)?;
    check_lengths("--random-output-len", &workload.output_tokens, 1)?;
    check_pairs(workload)?;
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
        check_draw(&prefix)?;
    }
    match workload.system_words {
        Some(0) => {
            let remedy = "leave it out, or give at least 1";
            return Err(Error::new("--shared-system-prompt-length", "0 words say nothing", remedy));
        }
        Some(words) if words > Lengths::MAX => {
            return Err(too_large("--shared-system-prompt-length", u64::from(words), Lengths::MAX));
        }
        _ => {}
    }
    if workload.distinct == Some(0) {
        let remedy = "give at least 1, or leave it out for a prompt of its own for each request";
        return Err(Error::new("--num-dataset-entries", "0 prompts ask for nothing", remedy));
    }
    Ok(())
}

/// How a prefix is drawn from its pool.
fn check_draw(prefix: &Prefix) -> Result<(), Error> {
    let Prefix { pool, exponent, hit_fraction, .. } = *prefix;
    if let Some(exponent) = exponent
        && !(exponent.is_finite() && (0.0..=EXPONENT_MAX).contains(&exponent))
    {
        let remedy = format!("give a number from 0, where all are drawn alike, to {EXPONENT_MAX}");
        return Err(Error::new("--prefix-zipf", format!("{exponent} is no exponent"), remedy));
    }
    if let Some(fraction) = hit_fraction
        && !(fraction > 0.0 && fraction < 1.0)
    {
        let remedy = "give a share above 0 and below 1, or leave it out";
        return Err(Error::new("--prefix-hit-fraction", format!("{fraction} is no share to aim at"), remedy));
    }
    if (exponent.is_some() || hit_fraction.is_some()) && pool > Prefix::POOL_MAX {
        return Err(too_large("--num-prefix-prompts", u64::from(pool), Prefix::POOL_MAX));
    }
    Ok(())
}

/// Lengths that are distributions with bounds that leave something, and nothing below `least`.
pub(super) fn check_lengths(option: &str, lengths: &Lengths, least: u32) -> Result<(), Error> {
    let wrong = |wrong: String, remedy: &str| Err(Error::new(option, wrong, remedy));
    match lengths {
        Lengths::Drawn(Distribution::Empirical(table) | Distribution::Paired(table)) => {
            check_table(option, table)?;
        }
        Lengths::Drawn(Distribution::Gamma { mean, shape, .. }) => {
            if !(mean.is_finite() && *mean > 0.0) {
                return wrong(format!("{mean} is no mean of lengths"), "give a number above 0");
            }
            if !(shape.is_finite() && *shape > 0.0) {
                return wrong(format!("{shape} is no shape of lengths"), "give a number above 0");
            }
        }
        Lengths::Drawn(Distribution::Zipf { exponent, .. }) => {
            if !(exponent.is_finite() && (0.0..=EXPONENT_MAX).contains(exponent)) {
                let remedy = format!("give a number from 0 to {EXPONENT_MAX}");
                return wrong(format!("{exponent} is no exponent of lengths"), &remedy);
            }
        }
        Lengths::Drawn(Distribution::Lognormal { median, sigma, .. }) => {
            // First: a median may have been worked out from it.
            if !(sigma.is_finite() && (0.0..=SIGMA_MAX).contains(sigma)) {
                let remedy = format!("give the standard deviation of the logarithm, from 0 to {SIGMA_MAX}");
                return wrong(format!("{sigma} is no sigma of lengths"), &remedy);
            }
            if !(median.is_finite() && *median > 0.0) {
                return wrong(format!("{median} is no median of lengths"), "give a number above 0");
            }
        }
        Lengths::Drawn(Distribution::Normal { mean, stddev, .. }) => {
            if !(mean.is_finite() && *mean > 0.0) {
                return wrong(format!("{mean} is no mean of lengths"), "give a number above 0");
            }
            if !(stddev.is_finite() && *stddev >= 0.0) {
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

/// Parts of which some are drawn.
fn check_table(option: &str, table: &Table) -> Result<(), Error> {
    let wrong = |wrong: String, remedy: &str| Err(Error::new(option, wrong, remedy));
    let parts = table.parts();
    if parts.is_empty() || parts.len() > Table::PARTS_MAX {
        let remedy = format!("give a table of 1 to {} lengths", Table::PARTS_MAX);
        return wrong(format!("a table of {} lengths", parts.len()), &remedy);
    }
    for Part { stddev, weight, .. } in parts {
        if !(weight.is_finite() && *weight >= 0.0) {
            return wrong(format!("{weight} is no weight"), "give a number of at least 0");
        }
        if !(stddev.is_finite() && *stddev >= 0.0) {
            let remedy = "give a number of tokens, 0 for none";
            return wrong(format!("{stddev} is no standard deviation"), remedy);
        }
    }
    match parts.iter().map(|part| part.weight).sum::<f64>() {
        sum if sum.is_finite() && sum > 0.0 => Ok(()),
        sum => wrong(format!("the weights of the lengths are {sum} together"), "give one above 0"),
    }
}

/// Lengths of pairs stand on both sides, with the same weights.
fn check_pairs(workload: &Workload) -> Result<(), Error> {
    let wrong = |wrong: &str| {
        let remedy = "give both lengths of each pair, as --sequence-distribution does";
        Err(Error::new("--sequence-distribution", wrong, remedy))
    };
    match (workload.input_words.paired(), workload.output_tokens.paired()) {
        (None, None) => Ok(()),
        (Some(input), Some(output)) if input.has_weights_of(output) => Ok(()),
        (Some(_), Some(_)) => wrong("prompts and answers have other weights: they are no pairs"),
        _ => wrong("only one of the two lengths is of pairs"),
    }
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
/// Slices are at least so long, s: a shorter one holds no request.
const SLICE_MIN_S: f64 = 0.01;
/// And at most a year.
const SLICE_MAX_S: f64 = 31_536_000.0;
const OWN_HEADERS: [&str; 5] = ["connection", "content-length", "host", "te", "transfer-encoding"];
/// Body fields that the reading of the answer depends on, and what sets them.
const OWN_FIELDS: [(&str, &str); 2] = [("n", "use --n"), ("stream", "use --no-streaming, or leave it out")];
/// Most runs of each level: the interval of that many is a thirtieth of the spread between them.
const RUNS_MAX: u32 = 1000;
/// Longest level, in planned lengths.
const TIMES_MAX: u32 = 1 << 20;
/// Most shards: more than the cores of any machine.
const WORKERS_MAX: u32 = 4096;
/// Widest lognormal lengths: one in a thousand is then 2e-7 or 5e6 times the median.
const SIGMA_MAX: f64 = 5.0;
/// Steepest zipf lengths: all but one in a thousand are then 1.
const EXPONENT_MAX: f64 = 10.0;
/// Most choices of a request: what the largest servers allow; each takes memory on each connection.
const CHOICES_MAX: u32 = 16_384;
/// Longest gap between the first sends of users, us: a minute. A user who never came would take requests along.
const START_SPREAD_MAX_US: f64 = 60e6;
/// Longest level and longest pause, s: a year. Stamps end after 584 of them.
const LEVEL_S_MAX: f64 = 365.0 * 86_400.0;
/// Longest gap between the planned sends of a user, s: a day.
const INTERVAL_MAX_S: f64 = 86_400.0;
/// Largest rate, requests per second: gaps below a microsecond cannot be kept by any client.
const RATE_MAX: f64 = 1e6;

#[cfg(test)]
mod tests;
