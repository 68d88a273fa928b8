//! `mock-server`: a server with known times and known faults, until it is told to stop.

mod faults;
mod files;

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::cli::args::{MockServerArgs, MockServerWords};
use crate::cli::exit::Exit;
use crate::cli::failure::Failure;
use crate::cli::{print, say, value};
use crate::mock::{
    Asks, Identity, Mock, NoSocket, ReasoningField, Role, ServedBy, Settings, Spread, Truth, Unusable, Usage,
    Version,
};
use crate::pace::Mode;
use crate::plan::Error;
use crate::sys::signals::Interrupts;
use files::Output;

/// How often the wish to stop is looked for.
const LOOK: Duration = Duration::from_millis(50);
/// Most requests of a thread that a dump lists.
const DUMPED_MAX: usize = 1_000_000;

pub(super) fn main(words: &MockServerWords) -> Result<Exit, Failure> {
    let args = &words.own;
    let mut settings = settings(words).map_err(Failure::bad)?;
    settings.tls = identity(args, &settings.host)?;
    settings.tls_asks = asks(args, settings.tls.is_some())?;
    settings.unix_socket = args.unix_socket.as_ref().map(PathBuf::from);
    let outputs = [args.truth_out.as_deref(), args.dump.as_deref()].map(Output::open);
    let [truth_out, dump] = outputs;
    let (truth_out, dump) = (truth_out?, dump?);
    let interrupts = Interrupts::listen().map_err(Failure::own)?;
    if args.until_stdin_closes {
        stop_at_end_of_input(interrupts.clone()).map_err(Failure::own)?;
    }
    let place = format!("{}:{}", settings.host, settings.port);
    let given = Given { place: &place, args };
    let scheme = if settings.tls.is_some() { "https" } else { "http" };
    let beside = settings
        .unix_socket
        .as_ref()
        .map_or_else(String::new, |path| format!(" and unix://{}", path.display()));
    let mock = Mock::start(settings).map_err(|error| given.cannot_start(&error))?;
    say(&format!("mock server on {scheme}://{}{beside}, stop it with Ctrl-C", mock.address()));
    while interrupts.count() == 0 {
        std::thread::sleep(LOOK);
    }
    let truth = mock.stop().map_err(Failure::own)?;
    remarks(&truth, dump.is_some()).iter().for_each(|remark| say(remark));
    let text = serde_json::to_string_pretty(&truth.to_json()).map_err(Failure::own)?;
    if let Some(file) = truth_out {
        file.write(format!("{text}\n").as_bytes())?;
    }
    if let Some(file) = dump {
        file.write(files::csv(&truth.accounts).as_bytes())?;
    }
    print(&text)?;
    Ok(Exit::Done)
}

/// Raises an interrupt once standard input ends.
///
/// The kernel closes a pipe with the last process that holds its other end, however that dies. A signal at the parent's
/// death would be that of its thread, and would be missed by a child that asks for it too late.
fn stop_at_end_of_input(interrupts: Interrupts) -> io::Result<()> {
    let wait = move || {
        // An input that cannot be read is at its end, too.
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        interrupts.raise();
    };
    std::thread::Builder::new().name("stdin".to_owned()).spawn(wait).map(drop)
}

/// What was asked for, for whoever has to say that it cannot be had.
struct Given<'a> {
    /// Host and port.
    place: &'a str,
    args: &'a MockServerArgs,
}

impl Given<'_> {
    fn cannot_start(&self, error: &io::Error) -> Failure {
        use io::ErrorKind::{AddrInUse, AddrNotAvailable, PermissionDenied};
        let inner = error.get_ref();
        if let Some(unusable) = inner.and_then(|inner| inner.downcast_ref::<Unusable>()) {
            return Failure::bad(self.unusable(unusable));
        }
        if let Some(NoSocket(error)) = inner.and_then(|inner| inner.downcast_ref()) {
            let path = self.args.unix_socket.as_deref().unwrap_or_default();
            return Failure::bad(format!("--unix-socket {path}: {error}"));
        }
        let place = self.place;
        match error.kind() {
            // Another address cures it, and nothing else.
            AddrInUse | AddrNotAvailable | PermissionDenied => Failure::bad(format!(
                "cannot listen on {place}: {error}; choose another --port, or 0 for a free one"
            )),
            _ => Failure::own(format!("the mock server cannot start on {place}: {error}")),
        }
    }

    /// Which file it was, and what should be in it.
    fn unusable(&self, unusable: &Unusable) -> String {
        let args = self.args;
        let (option, path, remedy) = match unusable {
            Unusable::Certificate(_) => ("--cert", &args.cert, CERTIFICATE_PEM),
            Unusable::Key(_) => {
                ("--key", &args.key, "give a PEM file that begins with -----BEGIN PRIVATE KEY-----")
            }
            Unusable::Pair(_) => ("--key", &args.key, "give the key of the certificate in --cert"),
            Unusable::ClientCa(_) => ("--tls-client-ca", &args.tls_client_ca, CERTIFICATE_PEM),
        };
        format!("{option} {}: {unusable}; {remedy}", path.as_deref().unwrap_or("(made at the start)"))
    }
}

const CERTIFICATE_PEM: &str = "give a PEM file whose parts begin with -----BEGIN CERTIFICATE-----";

/// What the bounds of memory have kept out of the truth.
fn remarks(truth: &Truth, dumps: bool) -> Vec<String> {
    let mut remarks = Vec::new();
    let spreads: [(&str, Spread); 5] = [
        ("ttft", truth.ttft()),
        ("itl", truth.itl()),
        ("tpot", truth.tpot()),
        ("e2e", truth.e2e()),
        ("lateness", truth.lateness()),
    ];
    for (name, spread) in spreads.into_iter().filter(|(_, spread)| spread.count > 0 && !spread.exact) {
        let count = spread.count;
        remarks.push(format!(
            "{count} values of {name} are more than are kept: its percentiles have four digits"
        ));
    }
    if dumps && truth.accounts_left_out > 0 {
        remarks.push(format!("{} requests are left out of the dump", truth.accounts_left_out));
    }
    remarks
}

fn settings(MockServerWords { own: args, server }: &MockServerWords) -> Result<Settings, Error> {
    let mut settings = Settings {
        port: 8000,
        model: "mock".to_owned(),
        max_tokens: 64,
        faults: faults::read(&args.fault)?,
        ..Settings::default()
    };
    if let Some(host) = &args.host {
        settings.host.clone_from(host);
    }
    if let Some(model) = &args.model {
        settings.model.clone_from(model);
    }
    settings.adapters.clone_from(&args.lora_modules);
    value::set(&mut settings.port, "--port", &args.port, value::integer)?;
    value::set(&mut settings.max_model_len, "--max-model-len", &args.max_model_len, positive)?;
    value::set(&mut settings.bos_tokens, "--bos-tokens", &args.bos_tokens, value::integer)?;
    value::set(&mut settings.template_tokens, "--template-tokens", &args.template_tokens, value::integer)?;
    settings.tokenize = !args.no_tokenize;
    value::set(&mut settings.max_tokens, "--max-tokens", &args.max_tokens, positive)?;
    set_some(&mut settings.eos_after, "--eos-after", &args.eos_after, positive)?;
    value::set(&mut settings.reasoning, "--reasoning", &args.reasoning, value::integer)?;
    value::set(&mut settings.reasoning_field, "--reasoning-field", &args.reasoning_field, reasoning_field)?;
    value::set(&mut settings.role, "--role", &args.role, role)?;
    set_some(&mut settings.keep_alive, "--keep-alive", &args.keep_alive, span)?;
    value::set(&mut settings.seed, "--seed", &args.seed, value::integer)?;
    set_some(&mut settings.cores, "--cpu-affinity", &args.cpu_affinity, value::cores)?;
    settings.workers = settings.cores.as_ref().map_or(1, |cores| cores.len() as u32);
    value::set(&mut settings.workers, "--workers", &args.workers, workers)?;
    value::set(&mut settings.driver, "--driver", &args.driver, value::driver)?;
    value::set(&mut settings.timer, "--timer", &args.timer, timer)?;
    if let Some(name) = &args.served_by {
        let remedy = "give 1 to 63 visible ASCII characters";
        let wrong = || Error::new("--served-by", format!("'{name}' is no name for a header"), remedy);
        settings.served_by = ServedBy::new(name).ok_or_else(wrong)?;
    }
    settings.tool_call = args.tool_call;
    settings.usage = match (args.usage, args.no_usage) {
        (true, true) => return Err(Error::new("--usage", "contradicts --no-usage", "give one of them")),
        (true, false) => Usage::Always,
        (false, true) => Usage::Never,
        (false, false) => Usage::Asked,
    };
    settings.serving = server.settings(settings.seed, &settings.serving)?;
    settings.accounts_max = if args.dump.is_some() || args.keep_accounts { DUMPED_MAX } else { 0 };
    Ok(settings)
}

/// Certificate and key, given or made.
fn identity(args: &MockServerArgs, host: &str) -> Result<Option<Identity>, Failure> {
    let wrong = |option, wrong, remedy| Err(Failure::bad(Error::new(option, wrong, remedy)));
    let identity = match (&args.cert, &args.key) {
        (None, Some(_)) => {
            return wrong("--key", "needs the certificate that it belongs to", "give --cert, too");
        }
        (Some(_), None) => return wrong("--cert", "needs its private key", "give --key, too"),
        (Some(_), Some(_)) if args.tls => {
            return wrong("--tls", "makes a certificate, and --cert gives one", "give one of them");
        }
        (Some(cert), Some(key)) => {
            Identity { certificate_pem: files::read("--cert", cert)?, key_pem: files::read("--key", key)? }
        }
        (None, None) if args.tls => {
            let mut names = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
            if !names.iter().any(|name| name == host) {
                names.push(host.to_owned());
            }
            Identity::self_signed(&names).map_err(Failure::own)?
        }
        (None, None) if args.tls_cert_out.is_some() => {
            return wrong("--tls-cert-out", "there is no certificate to write", "give --tls, too");
        }
        (None, None) => return Ok(None),
    };
    if let Some(file) = Output::open(args.tls_cert_out.as_deref())? {
        file.write(&identity.certificate_pem)?;
    }
    Ok(Some(identity))
}

/// What is asked of clients that speak TLS.
fn asks(args: &MockServerArgs, speaks_tls: bool) -> Result<Asks, Failure> {
    let given = [
        ("--tls-client-ca", args.tls_client_ca.is_some()),
        ("--tls-version", args.tls_version.is_some()),
        ("--tls-handshake-delay", args.tls_handshake_delay.is_some()),
    ];
    if let Some((option, _)) = given.into_iter().find(|(_, given)| *given && !speaks_tls) {
        return Err(Failure::bad(Error::new(option, "is about TLS, which is not spoken", "give --tls, too")));
    }
    let client_ca =
        args.tls_client_ca.as_ref().map(|path| files::read("--tls-client-ca", path)).transpose()?;
    let mut asks = Asks { client_ca, ..Asks::default() };
    set_some(&mut asks.version, "--tls-version", &args.tls_version, tls_version).map_err(Failure::bad)?;
    value::set(&mut asks.hold, "--tls-handshake-delay", &args.tls_handshake_delay, span)
        .map_err(Failure::bad)?;
    Ok(asks)
}

fn tls_version(option: &str, text: &str) -> Result<Version, Error> {
    match text {
        "1.2" => Ok(Version::Tls12),
        "1.3" => Ok(Version::Tls13),
        _ => Err(Error::new(option, format!("{text} is unknown"), "give 1.2 or 1.3")),
    }
}

fn set_some<T>(
    to: &mut Option<T>,
    option: &str,
    text: &Option<String>,
    read: impl FnOnce(&str, &str) -> Result<T, Error>,
) -> Result<(), Error> {
    value::set(to, option, text, |option, text| read(option, text).map(Some))
}

/// Seconds, or with a unit.
fn span(option: &str, text: &str) -> Result<Duration, Error> {
    let span = Duration::try_from_secs_f64(value::seconds(option, text)?);
    span.map_err(|_| Error::new(option, format!("'{text}' is too long"), "give seconds, or as 500ms, 90s"))
}

fn positive(option: &str, text: &str) -> Result<u32, Error> {
    match value::integer(option, text)? {
        0 => Err(Error::new(option, "0 is none at all", "give 1 or more")),
        number => Ok(number),
    }
}

fn workers(option: &str, text: &str) -> Result<u32, Error> {
    match positive(option, text)? {
        number if number > WORKERS_MAX => Err(Error::new(
            option,
            format!("{number} threads are more than any machine has cores"),
            "give fewer",
        )),
        number => Ok(number),
    }
}

const WORKERS_MAX: u32 = 1024;

fn reasoning_field(option: &str, text: &str) -> Result<ReasoningField, Error> {
    match text {
        "reasoning" => Ok(ReasoningField::Reasoning),
        "reasoning_content" => Ok(ReasoningField::ReasoningContent),
        _ => Err(Error::new(option, format!("{text} is unknown"), "give reasoning_content or reasoning")),
    }
}

fn role(option: &str, text: &str) -> Result<Role, Error> {
    match text {
        "first" => Ok(Role::First),
        "early" => Ok(Role::Early),
        "none" => Ok(Role::None),
        _ => Err(Error::new(option, format!("{text} is unknown"), "give first, early or none")),
    }
}

fn timer(option: &str, text: &str) -> Result<Mode, Error> {
    match text {
        "fd" => Ok(Mode::Sleep),
        "busy" => Ok(Mode::Busy),
        _ => Err(Error::new(option, format!("{text} is unknown"), "give fd or busy")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{self, Serving};

    fn of(change: impl FnOnce(&mut MockServerArgs)) -> Result<Settings, Error> {
        let mut words = MockServerWords::default();
        change(&mut words.own);
        settings(&words)
    }

    #[test]
    fn settings_are_those_of_the_help_unless_told_otherwise() {
        let plain = of(|_| {}).unwrap();
        assert_eq!((plain.port, plain.workers, plain.usage), (8000, 1, Usage::Asked));
        assert_eq!((plain.max_tokens, plain.eos_after, plain.accounts_max), (64, None, 0));
        let set = of(|args| {
            args.cpu_affinity = Some("0,2-3".to_owned());
            args.usage = true;
            args.keep_alive = Some("500ms".to_owned());
            args.dump = Some("x".to_owned());
        })
        .unwrap();
        assert_eq!((set.workers, set.cores), (3, Some(vec![0, 2, 3])));
        assert_eq!(set.usage, Usage::Always);
        assert_eq!((set.keep_alive, set.accounts_max), (Some(Duration::from_millis(500)), DUMPED_MAX));
        let fewer = of(|args| {
            args.cpu_affinity = Some("0,1".to_owned());
            args.workers = Some("1".to_owned());
        });
        assert_eq!(fewer.unwrap().workers, 1);
    }

    #[test]
    fn bad_settings_are_named() {
        let wrong = |change: fn(&mut MockServerArgs)| of(change).unwrap_err().to_string();
        assert!(wrong(|args| args.workers = Some("0".to_owned())).contains("--workers: 0 is none at all"));
        assert!(wrong(|args| args.workers = Some("5000".to_owned())).contains("more than any machine"));
        assert!(wrong(|args| args.port = Some("70000".to_owned())).contains("--port"));
        assert!(wrong(|args| args.role = Some("late".to_owned())).contains("first, early or none"));
        assert!(wrong(|args| (args.usage, args.no_usage) = (true, true)).contains("contradicts --no-usage"));
        assert!(wrong(|args| args.fault = vec!["stal".to_owned()]).contains("did you mean stall?"));
    }

    #[test]
    fn the_server_is_of_fixed_times_unless_it_is_described() {
        let serving = |change: fn(&mut MockServerWords)| {
            let mut words = MockServerWords::default();
            change(&mut words);
            settings(&words).map(|settings| settings.serving)
        };
        let Serving::Fixed(fixed) = serving(|_| {}).unwrap().serving else { panic!("not fixed") };
        assert_eq!((fixed.ttft_ms, fixed.itl_ms), (200.0, 20.0));
        let course = serving(|words| words.server.model_preset = Some("course".to_owned())).unwrap();
        assert_eq!(course, model::Settings::course());
        let error = |change| serving(change).unwrap_err().to_string();
        assert!(error(|words| words.server.ttft = Some("-1".to_owned())).contains("--ttft"));
        assert!(error(|words| words.server.slots = Some("0".to_owned())).contains("--slots"));
    }

    #[test]
    fn threads_may_share_one_modelled_server() {
        let mut words = MockServerWords::default();
        words.server.slots = Some("4".to_owned());
        words.own.workers = Some("2".to_owned());
        let settings = settings(&words).unwrap();
        assert!(settings.serving.is_shared() && settings.workers == 2);
    }

    #[test]
    fn certificate_and_key_belong_together() {
        let wrong = |change: fn(&mut MockServerArgs)| {
            let mut args = MockServerArgs::default();
            change(&mut args);
            identity(&args, "127.0.0.1").unwrap_err().to_string()
        };
        assert!(wrong(|args| args.key = Some("k".to_owned())).contains("--cert"));
        assert!(wrong(|args| args.cert = Some("c".to_owned())).contains("--key"));
        let idle = MockServerArgs { tls_version: Some("1.3".to_owned()), ..MockServerArgs::default() };
        assert!(asks(&idle, false).unwrap_err().to_string().contains("--tls-version"));
        assert_eq!(asks(&idle, true).unwrap().version, Some(Version::Tls13));
        let bad = MockServerArgs { tls_version: Some("1.1".to_owned()), ..MockServerArgs::default() };
        assert!(asks(&bad, true).unwrap_err().to_string().contains("give 1.2 or 1.3"));
        assert!(wrong(|args| args.tls_cert_out = Some("c".to_owned())).contains("--tls"));
        let args = MockServerArgs { tls: true, ..MockServerArgs::default() };
        assert!(identity(&args, "mock.test").unwrap().is_some());
    }
}
