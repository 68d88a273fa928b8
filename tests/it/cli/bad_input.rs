//! Whatever is wrong, in the command line or at the other end: one clear sentence, the right exit code, no table.

use std::net::TcpListener;
use std::time::Duration;

use tokload::mock::{Answer, Fault, Faults, Identity, Mock, Settings, When};
use tokload::sys::clock::RunClock;

use super::canned::{Canned, error, http, models, stream};
use super::{Dir, mock, run, url};

/// A port where nobody listens.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// The mock answers the list of models well and every request so.
fn answering(answer: Answer) -> Mock {
    mock(Faults { requests: vec![(When::Always, Fault::Answer(answer))], ..Faults::default() })
}

fn status(status: u16) -> Mock {
    answering(Answer::Status { status, retry_after_s: None })
}

#[test]
fn a_url_that_is_none_is_refused() {
    let dir = Dir::new();
    let said = dir.tokload("run --base-url http://a_b:99999");
    said.refuses(2, &["--base-url"]);
    dir.tokload("run --base-url ftp://127.0.0.1").refuses(2, &["--base-url", "http"]);
    dir.tokload("run").refuses(2, &["--base-url"]);
    assert!(dir.names().is_empty());
}

#[test]
fn a_path_that_is_not_served_is_named() {
    let (dir, mock) = (Dir::new(), mock(Faults::default()));
    let base = format!("{}/wrong", url(&mock));
    dir.tokload(&run(&base, "")).refuses(2, &["/wrong/v1/models", "HTTP 404", "--base-url", "--model"]);
    dir.tokload(&run(&base, "--model m")).refuses(2, &["HTTP 404", "--base-url", "--model m"]);
    assert!(dir.names().is_empty());
}

#[test]
fn a_refused_port_is_unreachable() {
    let base = format!("http://127.0.0.1:{}", free_port());
    Dir::new().tokload(&run(&base, "")).refuses(3, &[&base, "refused", "is the server up"]);
}

#[test]
fn a_port_that_is_taken_is_a_bad_argument() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let said = Dir::new().tokload(&format!("mock-server --port {port}"));
    said.refuses(2, &[&format!("127.0.0.1:{port}"), "in use", "choose another --port"]);
}

#[test]
fn a_server_that_says_nothing_is_waited_for_no_longer_than_a_request_may_take() {
    // Connections are accepted by the kernel and never served.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    for limit in ["--request-timeout-seconds 0.2", "--first-token-timeout 0.2"] {
        let clock = RunClock::start();
        Dir::new().tokload(&run(&base, limit)).refuses(3, &[&base, "no answer in time"]);
        // The questions alone would have ten seconds.
        assert!(clock.now().as_secs_f64() < 5.0, "{limit}");
    }
    let silent = answering(Answer::Silence);
    for (limit, label) in
        [("--request-timeout-seconds", "timeout_total"), ("--first-token-timeout", "timeout_first")]
    {
        Dir::new()
            .tokload(&run(&url(&silent), &format!("{limit} 0.5")))
            .refuses(3, &["short request", label]);
    }
}

#[test]
fn a_name_without_address_is_unreachable() {
    let said = Dir::new().tokload("run --base-url http://no-such-host.invalid:8000 --model m");
    said.refuses(3, &["no-such-host.invalid", "cannot be resolved", "--base-url"]);
}

#[test]
fn a_status_at_every_path_is_explained() {
    for (status, code, remedy) in
        [(401, 2, "--api-key"), (404, 2, "--base-url"), (429, 3, "429"), (500, 3, "500"), (503, 3, "503")]
    {
        let canned = Canned::start(move |_| error(status, "what the server says"));
        let said = Dir::new().tokload(&run(&canned.url(), ""));
        said.refuses(code, &[&status.to_string(), remedy]);
        if status != 404 {
            said.refuses(code, &["what the server says"]);
        }
    }
}

#[test]
fn a_status_of_the_request_alone_is_explained() {
    for (code, number, remedy) in [
        (2, 401, "--api-key"),
        (2, 403, "--api-key"),
        (2, 404, "--model m"),
        (3, 429, "--ready-check"),
        (3, 500, "--ready-check"),
    ] {
        let (dir, mock) = (Dir::new(), status(number));
        dir.tokload(&run(&url(&mock), "")).refuses(code, &[&number.to_string(), remedy]);
        assert!(dir.names().is_empty());
    }
}

#[test]
fn a_page_of_html_is_not_taken_for_an_answer() {
    let page = "<!doctype html><html><head><title>Welcome</title></head><body>hello</body></html>";
    let canned = Canned::start(move |_| http(200, "text/html", page));
    let dir = Dir::new();
    dir.tokload(&run(&canned.url(), "")).refuses(2, &["lists no model", "--base-url"]);
    dir.tokload(&run(&canned.url(), "--model m"))
        .refuses(3, &["not a stream of the API openai-chat", "--base-url"]);
    let mock = answering(Answer::Html);
    dir.tokload(&run(&url(&mock), "")).refuses(3, &["not a stream of the API openai-chat", "--base-url"]);
    assert!(dir.names().is_empty());
}

#[test]
fn a_whole_json_answer_to_a_streamed_request_is_told() {
    let (dir, mock) = (Dir::new(), answering(Answer::PlainJson));
    dir.tokload(&run(&url(&mock), "")).refuses(3, &["--no-streaming"]);
}

#[test]
fn json_that_is_no_completion_is_told() {
    let canned = Canned::start(|asked| {
        if asked.is_post() { http(200, "application/json", r#"{"hello":"world"}"#) } else { models() }
    });
    Dir::new().tokload(&run(&canned.url(), "")).refuses(3, &["not a stream of the API openai-chat"]);
}

#[test]
fn a_model_that_does_not_exist_is_refused_with_those_that_do() {
    let (dir, mock) = (Dir::new(), mock(Faults::default()));
    dir.tokload(&run(&url(&mock), "--model nonesuch")).refuses(2, &["404", "nonesuch", "it lists: m"]);
}

#[test]
fn several_models_are_listed_to_choose_from() {
    let list = r#"{"object":"list","data":[{"id":"one"},{"id":"two"}]}"#;
    let canned = Canned::start(move |_| http(200, "application/json", list));
    Dir::new().tokload(&run(&canned.url(), "")).refuses(2, &["--model", "one, two"]);
}

#[test]
fn tls_to_a_plain_port_and_the_reverse_are_told_apart() {
    let (dir, plain) = (Dir::new(), mock(Faults::default()));
    let base = url(&plain).replace("http://", "https://");
    dir.tokload(&run(&base, "--insecure")).refuses(3, &["TLS", "http://"]);

    let key = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    let identity = Identity {
        certificate_pem: key.cert.pem().into_bytes(),
        key_pem: key.signing_key.serialize_pem().into_bytes(),
    };
    let tls = Mock::start(Settings { tls: Some(identity), ..Settings::default() }).unwrap();
    dir.tokload(&run(&url(&tls), "")).refuses(3, &["https://"]);
    let base = url(&tls).replace("http://", "https://");
    dir.tokload(&run(&base, "")).refuses(3, &["certificate", "--cacert", "--insecure"]);
    assert!(dir.names().is_empty());

    dir.tokload(&run(&base, "--insecure -c 2 --num-prompts 4 --no-save")).shows(0);
    std::fs::write(dir.path("root.pem"), key.cert.pem()).unwrap();
    dir.tokload(&run(&base, "--cacert root.pem -c 2 --num-prompts 4 --no-save")).shows(0);
    dir.tokload(&run(&base, "--cacert none.pem")).refuses(2, &["--cacert", "none.pem"]);
}

#[test]
fn a_server_that_says_nothing_or_goes_away_is_told() {
    let dir = Dir::new();
    for answer in [Answer::Close, Answer::Reset] {
        let mock = answering(answer);
        dir.tokload(&run(&url(&mock), "")).refuses(3, &["does not answer a short request"]);
    }
    let canned = Canned::start(|_| Vec::new());
    let said = dir.tokload(&run(&canned.url(), ""));
    assert_eq!(said.code, 3, "{said:?}");
}

#[test]
fn a_server_that_becomes_ready_is_waited_for() {
    let port = free_port();
    let dir = Dir::new();
    let line = run(
        &format!("http://127.0.0.1:{port}"),
        "-c 1 --num-prompts 2 --no-save --ready-check-timeout-sec 30",
    );
    let waiting = dir.start(&line);
    std::thread::sleep(Duration::from_millis(300));
    let _mock = super::mock_at(port, Faults::default());
    waiting.end().shows(0);
}

#[test]
fn a_server_that_lists_its_model_and_still_loads_it_is_waited_for() {
    let canned = Canned::start(|asked| match (asked.is_post(), asked.posts) {
        (false, _) => models(),
        (true, 0..2) => error(503, "Loading model"),
        _ => stream(),
    });
    let line =
        |more: &str| run(&canned.url(), &format!("-c 1 --num-prompts 2 --no-save --format json {more}"));
    let dir = Dir::new();
    // The first of the two refusals.
    dir.tokload(&line("")).refuses(3, &["Loading model", "--ready-check-timeout-sec"]);
    let said = dir.tokload(&line("--ready-check-timeout-sec 30"));
    assert_eq!(said.code, 0);
    let result: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    let counts = &result["levels"][0]["counts"];
    assert_eq!((&counts["ok"], &counts["failed"]), (&2.into(), &0.into()));
}

#[test]
fn options_that_make_no_sense_are_named_with_what_to_do() {
    let dir = Dir::new();
    for (line, parts) in [
        ("--max-concurrency 0", ["--max-concurrency", "at least 1"]),
        ("--max-concurrency many", ["--max-concurrency", "'many'"]),
        ("--request-rate -1", ["--request-rate", "rate"]),
        ("--request-rate 1,2 -c 1,2", ["--request-rate", "--max-concurrency"]),
        ("--request-rte 1", ["--request-rte", "--request-rate"]),
        ("--num-prompts 0", ["--num-prompts", "at least 1"]),
        ("--duration 0", ["--duration", "seconds"]),
        ("--goodput fast:3", ["--goodput", "ttft"]),
        ("--goodput ttft:soon", ["--goodput", "ttft"]),
        ("--backend smtp", ["--backend", "openai-chat"]),
        ("--extra-body {", ["--extra-body", "JSON"]),
        ("--header nonsense", ["--header", "Name: value"]),
        ("--workers 0", ["--workers", "1"]),
        ("--driver magic", ["--driver", "epoll"]),
        ("--steady-cut magic", ["--steady-cut", "mser5"]),
        ("--stress", ["--stress", "--request-rate"]),
        ("--stress-to 5", ["--stress-to", "--stress"]),
        ("--stress --request-rate 5 --stress-to 4", ["--stress-to", "more requests per second"]),
        ("--stress --request-rate 5 --stress-hold 0", ["--stress-hold", "seconds"]),
        ("--stress --request-rate 5 --stress-bad 1", ["--stress-bad", "share"]),
        ("--stress --request-rate 5 --duration 60", ["--duration", "--stress-before"]),
        ("--stress --request-rate 5,6", ["--stress", "one --request-rate"]),
        ("--stress --request-rate 5 --num-runs 3", ["--stress", "--num-runs"]),
        ("--stress --request-rate 5 --share 1/2", ["--stress", "--stress-to"]),
        ("--slice-duration 0", ["--slice-duration", "seconds"]),
        ("--slice-duration often", ["--slice-duration", "seconds"]),
        ("--format xml", ["--format", "json"]),
        ("--n 0", ["--n", "1"]),
        ("--ignore-eos --no-ignore-eos", ["--ignore-eos", "--no-ignore-eos"]),
        ("--no-save --save-chunks", ["--save-chunks", "--no-save"]),
        ("--no-records --save-chunks", ["--save-chunks", "--no-records"]),
        ("--no-records --save-detailed", ["--save-detailed", "--no-records"]),
        ("--failed-request-threshold 2", ["--failed-request-threshold", "0 to 1"]),
        ("--config none.toml", ["--config", "none.toml"]),
        ("--seed", ["--seed", "value"]),
    ] {
        // Nothing is asked of the server before the command line is understood: there is none.
        dir.tokload(&run("http://127.0.0.1:9", line)).refuses(2, &parts);
    }
    assert!(dir.names().is_empty());
}

#[test]
fn commands_that_do_not_exist_are_refused_with_those_that_do() {
    let dir = Dir::new();
    dir.tokload("rum").refuses(2, &["'rum'", "run"]);
    dir.tokload("report").refuses(2, &["tokload report"]);
    dir.tokload("report none.json").refuses(2, &["none.json"]);
    std::fs::write(dir.path("other.json"), "{}").unwrap();
    dir.tokload("report other.json").refuses(2, &["other.json", "not a tokload run file"]);
}

#[test]
fn a_core_that_is_not_there_is_refused() {
    let (dir, mock) = (Dir::new(), mock(Faults::default()));
    dir.tokload(&run(&url(&mock), "--cpu-affinity 4000")).refuses(2, &["--cpu-affinity", "4000"]);
    assert!(dir.names().is_empty());
}

#[test]
fn a_plan_beyond_the_descriptor_limit_is_refused_with_the_number_needed() {
    let (dir, mock) = (Dir::new(), mock(Faults::default()));
    let line = run(&url(&mock), "-c 100000000 --num-prompts 100000000");
    dir.tokload(&line).refuses(2, &["100000064 open files", "limit", "--max-concurrency"]);
}

#[test]
fn an_output_that_cannot_be_written_is_refused_before_the_run() {
    let canned = Canned::start(|asked| if asked.is_post() { stream() } else { models() });
    let dir = Dir::new();
    let line = |more: &str| run(&canned.url(), more);
    dir.tokload(&line("--output-file none/run.json")).refuses(2, &["none/run.json", "directory"]);
    dir.tokload(&line("--output-file /dev/null")).refuses(2, &["/dev/null", "--output-file"]);
    for taken in ["run.json", "run.records", "run.jsonl"] {
        std::fs::write(dir.path(taken), "mine").unwrap();
        let said = dir.tokload(&line("--output-file run.json --save-detailed"));
        said.refuses(2, &[taken, "--force"]);
        std::fs::remove_file(dir.path(taken)).unwrap();
    }
    assert_eq!(canned.posts(), 0, "no request was sent");
    assert!(dir.names().is_empty());

    std::fs::write(dir.path("run.json"), "mine").unwrap();
    dir.tokload(&line("--output-file run.json -c 1 --num-prompts 2 --force")).shows(0);
    assert_eq!(super::json(&dir.path("run.json"))["schema"], "tokload.run");
}

#[test]
fn a_run_in_which_every_request_failed_says_so_and_ends_with_one() {
    // The request before the run and the warm-up are answered well.
    let canned = Canned::start(|asked| match (asked.is_post(), asked.posts) {
        (false, _) => models(),
        (true, 0..2) => stream(),
        _ => error(500, "the engine is dead"),
    });
    let dir = Dir::new();
    let said = dir.tokload(&run(&canned.url(), "-c 2 --num-prompts 8"));
    let table = said.shows(1);
    for part in ["no request ended well", "http_500", "the engine is dead"] {
        assert!(table.contains(part), "{table}");
    }
    assert!(said.err.contains("every request failed"), "{said:?}");
    // Where nothing was measured there is no number that looks like a measurement.
    assert!(!said.numbers().contains(" 0.00 0.00"), "{table}");
}

#[test]
fn failures_beyond_the_threshold_end_with_one() {
    // Not the request before the run and the warm-up; of the twelve after them every third.
    let canned = Canned::start(|asked| match (asked.is_post(), asked.posts % 14) {
        (false, _) => models(),
        (true, 4 | 7 | 10 | 13) => error(503, "busy"),
        _ => stream(),
    });
    let dir = Dir::new();
    let line = |more: &str| run(&canned.url(), &format!("-c 1 --num-prompts 12 --no-save {more}"));
    dir.tokload(&line("")).shows(0);
    let said = dir.tokload(&line("--failed-request-threshold 0.3"));
    said.shows(1);
    assert!(said.err.contains("33.3 %") && said.err.contains("--failed-request-threshold"), "{said:?}");
    dir.tokload(&line("--failed-request-threshold 0.4")).shows(0);
}
