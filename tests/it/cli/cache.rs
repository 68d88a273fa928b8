//! A server that remembers prompts: what is noticed of it, and how it is emptied.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;
use tokload::mock::{Mock, Settings};
use tokload::model::{self, Batching, Cost, PrefixCache, Serving};

use super::canned::{Canned, error, http, models, stream};
use super::{Dir, json, run, url};

/// A quick server with a prefix cache.
fn remembering() -> Mock {
    let cost = Cost { base_ms: 1.0, per_sequence_ms: 0.0, per_prefill_token_ms: 0.0 };
    let batching = Batching { cost, prefix_cache: Some(PrefixCache::default()), ..Batching::default() };
    let serving = model::Settings::serving(Serving::Batching(batching));
    Mock::start(Settings { model: "m".to_owned(), serving, ..Settings::default() }).unwrap()
}

/// What a run with `options` stores of the server, its cached tokens, and what it shows.
fn ran(dir: &Dir, base: &str, options: &str) -> (Value, u64, String) {
    let line =
        run(base, &format!("{options} --num-prompts 6 --random-input-len 64 --force --output-file run.json"));
    let line = line.replacen("--random-input-len 8 ", "", 1);
    let said = dir.tokload(&line);
    said.shows(0);
    let stored = json(&dir.path("run.json"));
    let cached =
        stored["levels"].as_array().unwrap().iter().filter_map(|l| l["tokens"]["cached"].as_u64()).sum();
    (stored["target"].clone(), cached, said.numbers())
}

const WARNING: &str = "the same prompts went to this server before";

#[test]
fn a_seed_that_comes_again_is_noticed_and_a_reset_empties_the_cache() {
    let (dir, mock) = (Dir::new(), remembering());
    let base = url(&mock);
    let (target, cached, text) = ran(&dir, &base, "-c 1,2 --seed 7");
    assert_eq!((&target["seen_before"], cached), (&Value::Null, 0), "levels share no block");
    assert!(!text.contains(WARNING));
    // Of 64 words only the last token is computed anew.
    let (target, cached, text) = ran(&dir, &base, "-c 1,2 --seed 7");
    assert_eq!((&target["seen_before"]["runs"], cached), (&1.into(), 12 * 63));
    assert!(text.contains(WARNING) && text.contains("same_seed_rerun"), "{text}");
    let (target, cached, text) = ran(&dir, &base, "-c 1,2 --seed 7 --reset-prefix-cache");
    assert_eq!(
        (&target["seen_before"]["runs"], &target["prefix_cache_reset"], cached),
        (&2.into(), &true.into(), 0)
    );
    assert!(!text.contains(WARNING) && text.contains("asked to empty its prefix cache"), "{text}");
    let (target, cached, _) = ran(&dir, &base, "-c 1");
    assert_eq!((&target["seen_before"], cached), (&Value::Null, 0), "a fresh seed has fresh prompts");
}

#[test]
fn repeats_of_a_level_share_no_prompt() {
    let (dir, mock) = (Dir::new(), remembering());
    let prefix = "--num-prefix-prompts 1 --prefix-prompt-length 64";
    let (_, cached, _) = ran(&dir, &url(&mock), &format!("-c 1 --num-runs 3 --seed 7 {prefix}"));
    // The first request of each round computes the prefix, the five after it find its four blocks.
    assert_eq!(cached, 3 * 5 * 64);
}

#[test]
fn a_server_without_an_endpoint_for_it_is_measured_all_the_same() {
    let dir = Dir::new();
    let plain = Canned::start(|asked| match asked.head.split(' ').nth(1).unwrap() {
        "/reset_prefix_cache" | "/flush_cache" => error(404, "Not Found"),
        _ if asked.is_post() => stream(),
        _ => models(),
    });
    let line = run(&plain.url(), "-c 1,2 --num-prompts 2 --reset-prefix-cache --output-file run.json");
    let said = dir.tokload(&line);
    said.shows(0);
    let told = "has no endpoint that empties its prefix cache";
    assert_eq!(said.err.matches(told).count(), 1, "{said:?}");
    assert_eq!(json(&dir.path("run.json"))["target"]["prefix_cache_reset"], false);
    assert!(said.numbers().contains("did not empty its prefix cache before every level"), "{said:?}");
}

#[test]
fn sglangs_endpoint_is_found_and_its_refusal_waited_out() {
    let dir = Dir::new();
    let flushes = AtomicUsize::new(0);
    let sglang = Canned::start(move |asked| match asked.head.split(' ').nth(1).unwrap() {
        "/reset_prefix_cache" => error(404, "Not Found"),
        "/flush_cache" if flushes.fetch_add(1, Ordering::SeqCst) == 0 => {
            http(400, "text/plain", "requests are still running")
        }
        "/flush_cache" => http(200, "text/plain", "Cache flushed."),
        _ if asked.is_post() => stream(),
        _ => models(),
    });
    let line = run(&sglang.url(), "-c 1 --num-prompts 2 --reset-prefix-cache --output-file run.json");
    dir.tokload(&line).shows(0);
    assert_eq!(json(&dir.path("run.json"))["target"]["prefix_cache_reset"], true);
}
