//! The first share: it answers questions about the time, and says when all are there.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Inner, in_words};
use crate::run_file::gathering::{Answer, Sign, Stage};

/// Waits for the others.
pub(super) fn meet(inner: &Inner) -> Result<Vec<String>, String> {
    let began = inner.wall.run.now();
    let of = inner.share.of;
    // Failures that were there before us are somebody else's, unless nobody else has the name of our job.
    let old: Vec<String> = inner.folder.signs(of).into_iter().map(|sign| sign.token).collect();
    let is_fresh = |sign: &Sign| inner.is_named || !old.contains(&sign.token);
    let own = inner.sign().token.clone();
    inner.tell(|_| {});
    let mut news = began;
    loop {
        let signs: Vec<Sign> = inner.folder.signs(of).into_iter().filter(|sign| sign.share != 1).collect();
        if answer(inner, &signs) {
            news = inner.wall.run.now();
        }
        let with_us = |sign: &&Sign| sign.first.as_ref() == Some(&own);
        let failed =
            signs.iter().find(|sign| sign.stage == Stage::Failed && (with_us(sign) || is_fresh(sign)));
        if let Some(failed) = failed {
            return Err(give_up(
                inner,
                format!(
                    "share {} has failed: {}",
                    failed.share,
                    failed.said.as_deref().unwrap_or("it did not say why")
                ),
            ));
        }
        let there: Vec<&Sign> = signs.iter().filter(with_us).filter(|sign| sign.clock.is_some()).collect();
        if there.len() + 1 == of as usize {
            let tokens = there.iter().map(|sign| (sign.share, sign.token.clone()));
            let tokens: BTreeMap<u32, String> = tokens.chain([(1, own.clone())]).collect();
            inner.tell(|first| first.together = Some(tokens));
            return Ok(clocks(&there));
        }
        let now = inner.wall.run.now();
        if now - began > inner.timeout {
            let absent = (2..=of).filter(|share| there.iter().all(|sign| sign.share != *share));
            let absent: Vec<String> = absent.map(|share| share.to_string()).collect();
            return Err(give_up(
                inner,
                format!(
                    "of {of} shares these did not come within {} s (--share-timeout): {}; if they run, {} is not the same \
                 folder on their hosts: name an --output-file in a folder that all hosts share",
                    inner.asked_s(),
                    absent.join(", "),
                    inner.folder.path().display()
                ),
            ));
        }
        std::thread::sleep(Inner::pause(now - news));
    }
}

/// Answers the questions that have no answer yet; whether there were any.
fn answer(inner: &Inner, signs: &[Sign]) -> bool {
    let seen_ns = inner.wall.now_ns();
    let answers = inner.first.lock().map(|first| first.answers.clone()).unwrap_or_default();
    let is_open = |sign: &&Sign| {
        let last = answers.get(&sign.share);
        sign.asked > 0 && last.is_none_or(|last| last.token != sign.token || last.asked != sign.asked)
    };
    let open: Vec<&Sign> = signs.iter().filter(is_open).collect();
    if open.is_empty() {
        return false;
    }
    inner.tell(|first| {
        let told_ns = inner.wall.now_ns();
        for sign in open {
            let answer = Answer { token: sign.token.clone(), asked: sign.asked, seen_ns, told_ns };
            first.answers.insert(sign.share, answer);
        }
    });
    true
}

/// Tells the others that the run does not take place.
fn give_up(inner: &Inner, why: String) -> String {
    inner.tell(|first| first.failed = Some(why.clone()));
    why
}

/// What is said of the clocks.
fn clocks(there: &[&Sign]) -> Vec<String> {
    let of = there.len() + 1;
    let clocks: Vec<_> = there.iter().filter_map(|sign| Some((sign, sign.clock?))).collect();
    let Some((_, most)) = clocks.iter().max_by_key(|(_, clock)| clock.offset_ns.unsigned_abs()) else {
        return Vec::new();
    };
    let bound = clocks.iter().map(|(_, clock)| clock.bound_ns).max().unwrap_or(0);
    let mut notes = vec![format!(
        "all {of} shares are there; their clocks are within {} of that of share 1, known to {}",
        in_words(most.offset_ns.unsigned_abs()),
        in_words(bound)
    )];
    for (sign, clock) in clocks.iter().filter(|(_, clock)| clock.is_large()) {
        notes.push(format!(
            "the clock of share {} on {} is {} {} that of share 1: starts are corrected for it",
            sign.share,
            sign.host.as_deref().unwrap_or("its host"),
            in_words(clock.offset_ns.unsigned_abs()),
            if clock.offset_ns > 0 { "behind" } else { "ahead of" }
        ));
    }
    notes
}

/// From the word to start to the start: several times what a file takes to be seen by the others.
pub(super) fn lead(signs: &[Sign]) -> Duration {
    let bounds = signs.iter().filter_map(|sign| sign.clock).map(|clock| clock.bound_ns);
    let way = Duration::from_nanos(bounds.max().unwrap_or(0).saturating_mul(2));
    (LEAD_MIN + way * 4).min(LEAD_MAX)
}

const LEAD_MIN: Duration = Duration::from_millis(200);
const LEAD_MAX: Duration = Duration::from_secs(10);
