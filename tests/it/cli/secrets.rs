//! Keys, cookies and passwords reach the server and nothing else: no file, no output.

use std::sync::{Arc, Mutex};

use super::canned::{Canned, error, models, stream};
use super::{Dir, run};

const KEY: &str = "sk-very-secret-0123456789";
const COOKIE: &str = "session-3141592653";
const PASSWORD: &str = "pass-2718281828";

/// All that was written under `dir` and said.
fn everything(dir: &Dir, said: &super::Said) -> Vec<u8> {
    let mut all = [said.out.as_bytes(), said.err.as_bytes()].concat();
    for name in dir.names() {
        all.extend(std::fs::read(dir.path(&name)).unwrap());
    }
    all
}

#[track_caller]
fn no_secret_in(all: &[u8]) {
    for secret in [KEY, COOKIE, PASSWORD] {
        assert!(!all.windows(secret.len()).any(|part| part == secret.as_bytes()), "{secret} was written");
    }
}

#[test]
fn they_are_sent_but_never_stored() {
    let heads = Arc::new(Mutex::new(String::new()));
    let seen = Arc::clone(&heads);
    let canned = Canned::start(move |asked| {
        seen.lock().unwrap().push_str(&asked.head);
        if asked.is_post() { stream() } else { models() }
    });
    let dir = Dir::new();
    let base = canned.url().replace("http://", &format!("http://user:{PASSWORD}@"));
    let line = run(
        &base,
        &format!("-H X-Api-Key={KEY} -H Cookie={COOKIE} -c 2 --num-prompts 6 --save-detailed --save-chunks"),
    );
    let said = dir.tokload(&line);
    said.shows(0);
    let names = dir.names();
    assert_eq!(names.len(), 4, "{names:?}");
    no_secret_in(&everything(&dir, &said));
    let heads = heads.lock().unwrap();
    assert!(
        heads.contains(COOKIE) && heads.contains(KEY) && heads.contains("Authorization: Basic "),
        "{heads}"
    );
}

#[test]
fn a_key_from_the_environment_is_sent_but_never_stored() {
    let canned = Canned::start(|asked| match asked.head.contains(KEY) {
        false => error(401, "no key"),
        true if asked.is_post() => stream(),
        true => models(),
    });
    let dir = Dir::new();
    let line = run(&canned.url(), "-c 1 --num-prompts 4");
    dir.tokload(&line).refuses(2, &["no key", "OPENAI_API_KEY"]);
    let said = dir.start_with(&line, |command| _ = command.env("OPENAI_API_KEY", KEY)).end();
    said.shows(0);
    no_secret_in(&everything(&dir, &said));
    let said = dir
        .start_with(&run(&canned.url(), "-c 1 --num-prompts 4 --api-key MY_KEY"), |command| {
            _ = command.env("MY_KEY", KEY);
        })
        .end();
    said.shows(0);
    no_secret_in(&everything(&dir, &said));
}

#[test]
fn a_server_that_repeats_them_does_not_get_them_written() {
    let dir = Dir::new();
    let canned = Canned::start(|_| error(401, &format!("incorrect API key provided: {KEY}")));
    let said = dir.tokload(&run(&canned.url(), &format!("--api-key {KEY}")));
    assert_eq!(said.code, 2, "{said:?}");
    no_secret_in(&everything(&dir, &said));

    // During the run: examples of failures are stored with the server's words.
    let canned = Canned::start(|asked| match (asked.is_post(), asked.posts) {
        (false, _) => models(),
        (true, 0..2) => stream(),
        _ => error(403, &format!("key {KEY} with cookie {COOKIE} is blocked")),
    });
    let line = format!("--api-key {KEY} -H Cookie={COOKIE} -c 1 --num-prompts 4 --save-detailed");
    let said = dir.tokload(&run(&canned.url(), &line));
    said.shows(1);
    no_secret_in(&everything(&dir, &said));

    let plan = dir.tokload(&run(
        &canned.url().replace("http://", &format!("http://user:{PASSWORD}@")),
        &format!("-H X-Api-Key={KEY} -H Cookie={COOKIE} --print-config"),
    ));
    assert_eq!(plan.code, 0, "{plan:?}");
    no_secret_in(plan.out.as_bytes());
}
