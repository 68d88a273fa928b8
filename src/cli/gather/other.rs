//! Any share but the first: it asks for the time until it knows it well enough, then waits for the word to begin.

use super::Inner;
use crate::run_file::schema::ClockOffset;

/// Questions to the first share; the best of their answers counts.
const QUESTIONS: u64 = 5;

/// Waits for the first share, and through it for all.
pub(super) fn meet(inner: &Inner) -> Result<Vec<String>, String> {
    let began = inner.wall.run.now();
    let own = inner.sign().token.clone();
    let mut heard: Option<String> = None;
    let mut best: Option<ClockOffset> = None;
    let mut asked = 1;
    let mut asked_ns = ask(inner, asked);
    let mut news = began;
    loop {
        let first = inner.folder.first();
        let now = inner.wall.run.now();
        if let Some(first) = &first {
            let answer = first.answers.get(&inner.share.index).filter(|answer| answer.token == own);
            if let Some(failed) = first.failed.as_ref().filter(|_| answer.is_some() || inner.is_named) {
                return Err(failed.clone());
            }
            if heard.as_ref().is_some_and(|heard| *heard != first.token) {
                // What was there before was of an earlier run.
                (heard, best) = (None, None);
            }
            if let Some(answer) = answer.filter(|answer| answer.asked == asked && asked <= QUESTIONS) {
                let answered_ns = inner.wall.now_ns();
                let clock = ClockOffset::of_question(asked_ns, (answer.seen_ns, answer.told_ns), answered_ns);
                best = best.into_iter().chain([clock]).min_by_key(|clock| clock.bound_ns);
                heard = Some(first.token.clone());
                news = now;
                if asked < QUESTIONS {
                    asked += 1;
                    asked_ns = ask(inner, asked);
                } else {
                    asked += 1;
                    let known = best;
                    inner.write(|sign| (sign.clock, sign.first) = (known, Some(first.token.clone())));
                }
            }
            let tokens = first.together.as_ref();
            if tokens.is_some_and(|tokens| tokens.get(&inner.share.index) == Some(&own)) {
                return Ok(Vec::new());
            }
        }
        if now - began > inner.timeout {
            let waited = inner.asked_s();
            let path = inner.folder.path().display();
            return Err(if heard.is_some() {
                format!("not all of {} shares came within {waited} s (--share-timeout)", inner.share.of)
            } else {
                format!(
                    "nothing was heard of share 1 within {waited} s (--share-timeout): if it runs, {path} is not the same \
                     folder on its host; name an --output-file in a folder that all hosts share, or give each process \
                     --share I/N and one --start-at TIME"
                )
            });
        }
        std::thread::sleep(Inner::pause(now - news));
    }
}

/// Asks the first share for the time; gives when, ns since 1970.
fn ask(inner: &Inner, asked: u64) -> u64 {
    let mut asked_ns = 0;
    inner.write(|sign| {
        sign.asked = asked;
        asked_ns = inner.wall.now_ns();
    });
    asked_ns
}
