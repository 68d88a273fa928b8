//! Connections and TLS: how long they last, how many there may be, where they go, what is shown to the server.

use crate::cli::args::RunArgs;
use crate::cli::value;
use crate::plan::{Error, Plan, Reuse, Target};

/// Sets what the options give.
pub(super) fn set(args: &RunArgs, target: &mut Target) -> Result<(), Error> {
    let connections = &mut target.connections;
    value::set(
        &mut connections.reuse,
        "--connection-reuse-strategy",
        &args.connection_reuse_strategy,
        reuse,
    )?;
    let some = |option: &str, text: &str| value::integer(option, text).map(Some);
    value::set(&mut connections.max, "--max-connections", &args.max_connections, some)?;
    let requests = &args.max_requests_per_connection;
    value::set(&mut connections.max_requests, "--max-requests-per-connection", requests, some)?;
    let age = |option: &str, text: &str| value::seconds(option, text).map(Some);
    value::set(&mut connections.max_age_s, "--max-connection-age", &args.max_connection_age, age)?;
    value::set(&mut connections.prewarm, "--prewarm-connections", &args.prewarm_connections, value::integer)?;
    if !args.connect_to.is_empty() {
        connections.connect_to.clone_from(&args.connect_to);
    }
    let tls = &mut target.tls;
    tls.insecure |= args.insecure;
    value::set(&mut tls.resumption, "--tls-session-resumption", &args.tls_session_resumption, on_or_off)?;
    for (place, given) in [
        (&mut connections.unix_socket, &args.unix_socket),
        (&mut tls.cacert, &args.cacert),
        (&mut tls.cert, &args.cert),
        (&mut tls.key, &args.key),
        (&mut tls.sni, &args.tls_sni),
    ] {
        if given.is_some() {
            place.clone_from(given);
        }
    }
    Ok(())
}

/// Which of what was asked of TLS changes nothing, because nobody is spoken to by https: neither a server nor a page of metrics.
pub(in crate::cli::plan_from_args) fn idle_tls(plan: &Plan) -> Option<String> {
    let (tls, pages) = (&plan.target.tls, &plan.telemetry);
    let urls = plan.target.endpoints.iter().map(|endpoint| &endpoint.url);
    let is_spoken = urls.chain(&pages.server_metrics).chain(&pages.dcgm).any(|url| url.starts_with("https:"));
    let given = [("--insecure", tls.insecure), ("--cacert", tls.cacert.is_some())];
    let given: Vec<&str> = given.into_iter().filter(|(_, given)| *given).map(|(option, _)| option).collect();
    let (verb, pronoun) = if given.len() > 1 { ("are", "they change") } else { ("is", "it changes") };
    (!given.is_empty() && !is_spoken).then(|| {
        format!(
            "{} {verb} for TLS, and no server is spoken to by https: {pronoun} nothing",
            given.join(" and ")
        )
    })
}

fn reuse(option: &str, text: &str) -> Result<Reuse, Error> {
    let name = text.trim().replace('_', "-");
    Reuse::ALL.iter().find(|(_, own)| *own == name).map(|(reuse, _)| *reuse).ok_or_else(|| {
        let names: Vec<&str> = Reuse::ALL.iter().map(|(_, name)| *name).collect();
        Error::new(option, format!("'{text}' is none"), format!("give one of {}", names.join(", ")))
    })
}

fn on_or_off(option: &str, text: &str) -> Result<bool, Error> {
    match text.trim() {
        "on" => Ok(true),
        "off" => Ok(false),
        other => Err(Error::new(option, format!("'{other}' is neither"), "give on or off")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Connections, Endpoint, Secrets, Tls};

    fn of(change: impl FnOnce(&mut RunArgs)) -> Result<Target, String> {
        let (mut args, mut target) = (RunArgs::default(), Target::default());
        change(&mut args);
        set(&args, &mut target).map(|()| target).map_err(|error| error.to_string())
    }

    #[test]
    fn a_socket_alone_is_a_server() {
        let args = RunArgs { unix_socket: Some("/run/s".to_owned()), ..RunArgs::default() };
        let url = |mut target: Target| {
            super::super::set(&args, &mut target, &mut Secrets::default()).unwrap();
            target.endpoints.into_iter().map(|endpoint| endpoint.url).collect::<Vec<_>>()
        };
        assert_eq!(url(Target::default()), [Endpoint::parse("http://localhost").unwrap().endpoint().url]);
        // What a plan names stays.
        let named = Endpoint { url: "http://named:1".to_owned() };
        assert_eq!(url(Target { endpoints: vec![named], ..Target::default() }), ["http://named:1"]);
    }

    #[test]
    fn what_is_given_is_set_and_what_is_not_stays() {
        let some = |text: &str| Some(text.to_owned());
        let target = of(|args| {
            args.connection_reuse_strategy = some("sticky_user_sessions");
            args.max_connections = some("8");
            args.max_connection_age = some("1m");
            args.max_requests_per_connection = some("100");
            args.prewarm_connections = some("4");
            args.connect_to = vec!["a:1:b:2".to_owned()];
            args.tls_session_resumption = some("off");
            (args.cert, args.key, args.tls_sni) = (some("c"), some("env:K"), some("n"));
        })
        .unwrap();
        let expected = Connections {
            reuse: Reuse::StickyUserSessions,
            max: Some(8),
            max_age_s: Some(60.0),
            max_requests: Some(100),
            prewarm: 4,
            connect_to: vec!["a:1:b:2".to_owned()],
            unix_socket: None,
        };
        assert_eq!(target.connections, expected);
        let tls =
            Tls { cert: some("c"), key: some("env:K"), sni: some("n"), resumption: false, ..Tls::default() };
        assert_eq!(target.tls, tls);
        assert_eq!(of(|_| {}).unwrap(), Target::default());
    }

    #[test]
    fn what_tls_is_asked_for_in_vain_is_said() {
        let said = |url: &str, tls: Tls, page: &str| {
            let mut plan = Plan::new(1);
            plan.target.endpoints = vec![Endpoint { url: url.to_owned() }];
            plan.target.tls = tls;
            plan.telemetry.server_metrics = vec![page.to_owned()];
            idle_tls(&plan)
        };
        let both = || Tls { insecure: true, cacert: Some("c".to_owned()), ..Tls::default() };
        let plain = "http://h/metrics";
        assert_eq!(
            said("http://h", both(), plain).unwrap(),
            "--insecure and --cacert are for TLS, and no server is spoken to by https: they change nothing"
        );
        let one = said("http://h", Tls { insecure: true, ..Tls::default() }, plain).unwrap();
        assert!(one.starts_with("--insecure is for TLS") && one.ends_with("it changes nothing"), "{one}");
        assert_eq!(said("https://h", both(), plain), None);
        assert_eq!(said("http://h", both(), "https://h/metrics"), None);
        assert_eq!(said("http://h", Tls::default(), plain), None);
    }

    #[test]
    fn unknown_words_are_refused_with_those_that_are_known() {
        let wrong = of(|args| args.connection_reuse_strategy = Some("always".to_owned())).unwrap_err();
        assert!(wrong.contains("pooled, never, sticky-user-sessions"), "{wrong}");
        let wrong = of(|args| args.tls_session_resumption = Some("maybe".to_owned())).unwrap_err();
        assert!(wrong.contains("give on or off"), "{wrong}");
    }
}
