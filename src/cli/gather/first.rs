//! The first share: it answers questions about the time, and says when all are there.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Inner, Unmet, in_words};
use crate::run_file::gathering::{Answer, Sign, Stage, Told};
use crate::sys::signals::Interrupts;

/// Waits for the others, who are to run what was `told` as well.
pub(super) fn meet(inner: &Inner, told: &Told, user: &Interrupts) -> Result<Vec<String>, Unmet> {
    let began = inner.wall.run.now();
    let of = inner.share.of;
    // Failures that were there before us are somebody else's, unless nobody else has the name of our job, and they are
    // still there when their processes have had time to start again.
    let is_old = |sign: &Sign| {
        inner.before.signs.iter().any(|(token, beat)| (token, *beat) == (&sign.token, sign.beat))
    };
    let own = inner.sign().token.clone();
    inner.tell(|_| {});
    let mut news = began;
    loop {
        inner.look(user)?;
        let signs: Vec<Sign> = inner.folder.everybody().into_iter().filter(|sign| sign.share != 1).collect();
        if answer(inner, &signs) {
            news = inner.wall.run.now();
        }
        let now = inner.wall.run.now();
        let with_us = |sign: &&Sign| sign.first.as_ref() == Some(&own);
        let counts = |sign: &&Sign| with_us(sign) || !is_old(sign) || inner.is_believed(sign, now - began);
        let failed = signs.iter().find(|sign| sign.stage == Stage::Failed && counts(sign));
        if let Some(failed) = failed {
            let why = failed.said.as_deref().unwrap_or("it did not say why");
            return Err(give_up(inner, Unmet::Absent(format!("share {} has failed: {why}", failed.share))));
        }
        let unlike = signs.iter().filter(with_us).find_map(|sign| difference(inner, told, sign));
        if let Some(unlike) = unlike {
            return Err(give_up(inner, Unmet::Refused(unlike)));
        }
        let there: Vec<&Sign> = signs.iter().filter(with_us).filter(|sign| sign.clock.is_some()).collect();
        if there.len() + 1 == of as usize {
            let tokens = there.iter().map(|sign| (sign.share, sign.token.clone()));
            let tokens: BTreeMap<u32, String> = tokens.chain([(1, own.clone())]).collect();
            inner.tell(|first| first.together = Some(tokens));
            return Ok(clocks(&there));
        }
        if now - began > inner.timeout {
            let there: Vec<u32> = there.iter().map(|sign| sign.share).collect();
            return Err(give_up(inner, Unmet::Absent(absent(inner, &there, &signs))));
        }
        std::thread::sleep(Inner::pause(now - news));
    }
}

/// What is said of those that did not come while those `there` waited.
fn absent(inner: &Inner, there: &[u32], signs: &[Sign]) -> String {
    let of = inner.share.of;
    let absent: Vec<u32> = (2..=of).filter(|share| !there.contains(share)).collect();
    let last = signs.iter().filter(|sign| absent.contains(&sign.share)).take(LISTED);
    let last: String = last.map(|sign| format!("; {}", sign.in_words())).collect();
    let absent: Vec<String> = absent.iter().map(u32::to_string).collect();
    format!(
        "of {of} shares these did not come within {} s (--share-timeout): {}; if they run, {} is not the same folder on \
         their hosts: name an --output-file in a folder that all hosts share{last}",
        inner.asked_s(),
        absent.join(", "),
        inner.folder.path().display()
    )
}

/// Signs that are shown of those that did not come.
const LISTED: usize = 8;

/// In what a share that has come is one of another run; `None` if it is one of this.
fn difference(inner: &Inner, told: &Told, sign: &Sign) -> Option<String> {
    let of = inner.share.of;
    let what = if sign.of != of {
        format!("the number of shares is {of} in share 1 and {} in share {}", sign.of, sign.share)
    } else {
        if sign.plan.as_ref()? == &told.mark() {
            return None;
        }
        let other = inner.folder.told(sign)?;
        told.difference(&other, ["share 1", &format!("share {}", sign.share)])?
    };
    Some(format!(
        "share {} ({}) is not of the run of share 1 ({}): {what}; start all of them with the same options and the same \
         --seed, and other runs with another --output-file",
        sign.share,
        sign.whose(),
        inner.sign().whose()
    ))
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
fn give_up(inner: &Inner, why: Unmet) -> Unmet {
    inner.tell(|first| match &why {
        Unmet::Absent(said) => first.failed = Some(said.clone()),
        Unmet::Refused(said) => (first.failed, first.refused) = (Some(said.clone()), true),
        // It says so when it ends.
        Unmet::Stopped => {}
    });
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
