//! Where servers are and who they are: sockets, detours, certificates. What is wrong with one is said by its name.

use std::fs;
use std::net::TcpListener;
use std::os::unix::net::UnixListener;

use tokload::mock::{Faults, Identity, Mock, Settings};

use super::{Dir, json, mock, run, url};

/// An address that nobody listens on.
fn nobody() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

#[test]
fn a_failed_connection_names_where_it_really_went() {
    let (dir, nobody) = (Dir::new(), nobody());
    let said = dir.tokload(&run("http://api.example", &format!("--connect-to ::{nobody}")));
    said.refuses(3, &["http://api.example", &format!("(connecting to {nobody}): no connection")]);
    let said = dir.tokload(&run("http://api.example", "--unix-socket none.sock"));
    said.refuses(3, &["(over unix:none.sock): no connection", "does it listen on that socket?"]);
    // Of several servers one that is silent is named in a note.
    let mock = mock(Faults::default());
    let line = format!(
        "--base-url http://api.example --connect-to api.example:80:{nobody} -c 2 --num-prompts 4 --no-save"
    );
    let said = dir.tokload(&run(&url(&mock), &line));
    assert!(said.err.contains(&format!("(connecting to {nobody}): no connection")), "{said:?}");
}

#[test]
fn a_socket_of_a_mock_server_takes_no_others_place() {
    let dir = Dir::new();
    let mock = |path: &str| dir.tokload(&format!("mock-server --port 0 --unix-socket {path}"));
    fs::write(dir.path("file"), "kept").unwrap();
    mock("file").refuses(2, &["--unix-socket file: a file that is no socket is there already"]);
    assert_eq!(fs::read_to_string(dir.path("file")).unwrap(), "kept");
    let _listens = UnixListener::bind(dir.path("s.sock")).unwrap();
    mock("s.sock").refuses(2, &["--unix-socket s.sock: a server listens there already"]);
    mock(&"x".repeat(120)).refuses(2, &["the path has 120 bytes", "at most 107"]);
    mock("none/s.sock").refuses(2, &["--unix-socket none/s.sock", "its folder must exist"]);
}

#[test]
fn a_page_of_metrics_is_trusted_by_the_roots_that_were_named() {
    let (dir, server) = (Dir::new(), mock(Faults::default()));
    let identity = Identity::self_signed(&["127.0.0.1".to_owned()]).unwrap();
    let roots = String::from_utf8(identity.certificate_pem.clone()).unwrap();
    let exporter = Mock::start(Settings { tls: Some(identity), ..Settings::default() }).unwrap();
    let line = |cacert: &str| {
        let page = format!("--server-metrics https://{}/metrics", exporter.address());
        run(&url(&server), &format!("{page} --cacert {cacert} -c 1 --num-prompts 4 --output-file run.json"))
    };
    let by_name = |text: &str| {
        let text = text.to_owned();
        dir.start_with(&line("env:TOKLOAD_ROOTS"), |command| _ = command.env("TOKLOAD_ROOTS", text)).end()
    };
    by_name(&roots).shows(0);
    let exporters = json(&dir.path("run.json"))["telemetry"]["exporters"].clone();
    let page =
        exporters.as_array().unwrap().iter().find(|one| one["name"].as_str().unwrap().starts_with("https"));
    let page = page.unwrap();
    assert!(page["answered"].as_u64() > Some(0) && page["troubles"].is_null(), "{page}");
    fs::remove_file(dir.path("run.json")).unwrap();
    fs::remove_file(dir.path("run.records")).unwrap();
    // Nobody else is spoken to by https: a certificate that is missing or torn is an error all the same.
    by_name("").refuses(2, &["--cacert env:TOKLOAD_ROOTS: ", "set it"]);
    dir.tokload(&line("none.pem")).refuses(2, &["--cacert none.pem: ", "a readable PEM file"]);
    by_name("hello").refuses(2, &["--cacert env:TOKLOAD_ROOTS: ", "BEGIN CERTIFICATE"]);
    assert_eq!(dir.names(), [""; 0]);
}

#[test]
fn what_is_wrong_with_a_certificate_is_said_by_its_name() {
    let dir = Dir::new();
    let made = Identity::self_signed(&["h".to_owned()]).unwrap();
    fs::write(dir.path("cert.pem"), &made.certificate_pem).unwrap();
    fs::write(dir.path("key.pem"), &made.key_pem).unwrap();
    fs::write(dir.path("text.pem"), "hello").unwrap();
    let over_tls = |more: &str| dir.tokload(&run("https://127.0.0.1:9", &format!("--insecure {more}")));
    over_tls("--cert cert.pem").refuses(2, &["--key is missing", "--cert cert.pem has no private key"]);
    over_tls("--key key.pem").refuses(2, &["--key", "give --cert as well"]);
    over_tls("--cert text.pem --key key.pem")
        .refuses(2, &["--cert text.pem: no certificate", "BEGIN CERTIFICATE"]);
    over_tls("--cert cert.pem --key text.pem")
        .refuses(2, &["--key text.pem: no private key", "BEGIN PRIVATE KEY"]);

    let serve = |more: &str| dir.tokload(&format!("mock-server --port 0 {more}"));
    serve("--cert cert.pem").refuses(2, &["--cert: needs its private key", "--key"]);
    serve("--cert text.pem --key key.pem").refuses(2, &["--cert text.pem: ", "BEGIN CERTIFICATE"]);
    serve("--cert cert.pem --key text.pem").refuses(2, &["--key text.pem: ", "BEGIN PRIVATE KEY"]);
    let other = Identity::self_signed(&["h".to_owned()]).unwrap();
    fs::write(dir.path("other.pem"), &other.key_pem).unwrap();
    serve("--cert cert.pem --key other.pem").refuses(2, &["--key other.pem: ", "the certificate in --cert"]);
    serve("--tls --tls-client-ca text.pem").refuses(2, &["--tls-client-ca text.pem: ", "BEGIN CERTIFICATE"]);
}

#[test]
fn what_is_asked_of_tls_is_not_passed_over_where_none_is_spoken() {
    let dir = Dir::new();
    let plain = |more: &str| dir.tokload(&run("http://127.0.0.1:9", more));
    plain("--tls-session-resumption off")
        .refuses(2, &["--tls-session-resumption off: is for TLS", "https://"]);
    let said = plain("--model m --insecure --dry-run");
    let note = "--insecure is for TLS, and no server is spoken to by https: it changes nothing";
    assert!(said.code == 0 && said.err.contains(note), "{said:?}");
}
