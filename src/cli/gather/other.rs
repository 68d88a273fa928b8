//! Any share but the first: it asks for the time until it knows it well enough, then waits for the word to begin.

use std::time::Duration;

use super::{Inner, Unmet};
use crate::run_file::gathering::First;
use crate::run_file::schema::ClockOffset;
use crate::sys::signals::Interrupts;

/// Questions to the first share; the best of their answers counts.
const QUESTIONS: u64 = 5;

/// Waits for the first share, and through it for all.
pub(super) fn meet(inner: &Inner, user: &Interrupts) -> Result<Vec<String>, Unmet> {
    let began = inner.wall.run.now();
    let own = inner.sign().token.clone();
    // Whoever was there before us may be of an earlier run.
    let old = &inner.before.first;
    let mut heard: Option<String> = None;
    let mut best: Option<ClockOffset> = None;
    let mut asked = 1;
    let mut asked_ns = ask(inner, asked);
    let mut news = began;
    loop {
        inner.look(user)?;
        let first = inner.folder.first();
        let now = inner.wall.run.now();
        if let Some(first) = &first {
            let answer = first.answers.get(&inner.share.index).filter(|answer| answer.token == own);
            // Whoever has written since we are here is of our time.
            let is_new = old.as_ref().is_none_or(|(token, beat)| *token != first.token || *beat < first.beat);
            if let Some(failed) = &first.failed
                && (answer.is_some() || is_new || is_believed(inner, first, now - began))
            {
                return Err(match first.refused {
                    true => Unmet::Refused(failed.clone()),
                    false => Unmet::Absent(failed.clone()),
                });
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
            if let Some(tokens) = &first.together {
                if tokens.get(&inner.share.index) == Some(&own) {
                    return Ok(Vec::new());
                }
                // It goes on writing, so that its run goes on.
                if is_new {
                    return Err(Unmet::Refused(without_us(inner, first)));
                }
            }
        }
        if now - began > inner.timeout {
            let waited = inner.asked_s();
            let path = inner.folder.path().display();
            return Err(Unmet::Absent(if heard.is_some() {
                format!("not all of {} shares came within {waited} s (--share-timeout)", inner.share.of)
            } else {
                format!(
                    "nothing was heard of share 1 within {waited} s (--share-timeout): if it runs, {path} is not the same \
                     folder on its host; name an --output-file in a folder that all hosts share, or give each process \
                     --share I/N and one --start-at TIME"
                )
            }));
        }
        std::thread::sleep(Inner::pause(now - news));
    }
}

/// Whether a failure of the first share that was there before us is one of our run.
fn is_believed(inner: &Inner, first: &First, waited: Duration) -> bool {
    let sign = inner.folder.sign(1).filter(|sign| sign.token == first.token);
    sign.is_some_and(|sign| inner.is_believed(&sign, waited))
}

/// What is said where the others have begun with another process in our place.
fn without_us(inner: &Inner, first: &First) -> String {
    let whose = inner.folder.sign(1).filter(|sign| sign.token == first.token);
    let whose = whose.map_or_else(|| "its process".to_owned(), |sign| sign.whose());
    format!(
        "the run of share 1 ({whose}) has begun with another process in the place of share {}: wait until it is over, or \
         name another --output-file; what a lost share has left can be merged",
        inner.share
    )
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
