//! The thread beside a run: it writes signs of life, and agrees with the other shares on when a level starts.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::{BEAT, First, Inner, LOST, first, in_words};
use crate::cli::value::{StartAt, waiting};
use crate::load::agreed::Start;
use crate::run_file::WallTime;
use crate::run_file::gathering::{Sign, Stage};
use crate::time::Stamp;

/// How often is looked whether a level is ready.
const LOOK: Duration = Duration::from_millis(5);

/// Goes on from the start of the process until its run is over.
pub(super) fn agree(inner: &Inner) {
    let is_first = inner.share.index == 1;
    let mut written = inner.wall.run.now();
    let mut told = None;
    let mut lives = Lives::default();
    while !inner.over.load(Ordering::Relaxed) {
        let now = inner.wall.run.now();
        // One that waits is watched by whoever comes to make the same share.
        let beat = if inner.sign().stage == Stage::Waiting { BEAT / 2 } else { BEAT };
        if now - written >= beat {
            written = now;
            inner.write(|_| {});
            if is_first {
                inner.tell(|_| {});
            }
            // Watched while a level goes on, too: who dies in it is not waited for anew before each one that follows.
            lives.look(inner, now);
        }
        if let Some(ordinal) = inner.agreed.waited_for() {
            if told != Some(ordinal) {
                told = Some(ordinal);
                inner.write(|sign| sign.ready = Some(ordinal));
            }
            let start = if is_first {
                decided(inner, ordinal, &mut lives)
            } else {
                heard(inner, ordinal, &mut lives)
            };
            if let Some(start) = start {
                inner.agreed.set(ordinal, start);
            }
        }
        std::thread::park_timeout(LOOK);
    }
}

/// When others were last seen to have written anything.
#[derive(Default)]
struct Lives(BTreeMap<u32, (u64, Stamp)>);

impl Lives {
    /// Whether a share lives, whose beat is now this one.
    fn has(&mut self, share: u32, beat: u64, now: Stamp) -> bool {
        let (last, since) = self.0.entry(share).or_insert((beat, now));
        if *last != beat {
            (*last, *since) = (beat, now);
        }
        now - *since < LOST
    }

    /// Looks at all whom this process may have to wait for.
    fn look(&mut self, inner: &Inner, now: Stamp) {
        if inner.share.index != 1 {
            if let Some(first) = first_share(inner) {
                self.has(1, first.beat, now);
            }
        } else if let Some((_, tokens)) = inner.together() {
            for sign in signs_of(inner, &tokens).iter().filter(|sign| sign.share != 1) {
                self.has(sign.share, sign.beat, now);
            }
        }
    }
}

/// The signs of those who are in this run.
fn signs_of(inner: &Inner, tokens: &BTreeMap<u32, String>) -> Vec<Sign> {
    let mut signs: Vec<Sign> = inner.folder.signs(inner.share.of);
    signs.retain(|sign| tokens.get(&sign.share) == Some(&sign.token));
    signs
}

/// What the first share of this run tells; `None` before it has told anything.
fn first_share(inner: &Inner) -> Option<First> {
    let token = inner.sign().first.clone();
    inner.folder.first().filter(|first| Some(&first.token) == token.as_ref())
}

/// The first share decides, when all that live are ready.
fn decided(inner: &Inner, ordinal: usize, lives: &mut Lives) -> Option<Start> {
    let (_, tokens) = inner.together()?;
    let now = inner.wall.run.now();
    let signs = signs_of(inner, &tokens);
    let mut lost = Vec::new();
    for (share, _) in tokens.iter().filter(|(share, _)| **share != 1) {
        let sign = signs.iter().find(|sign| sign.share == *share);
        let is_over = sign.is_some_and(|sign| matches!(sign.stage, Stage::Done | Stage::Failed));
        let is_ready = sign.is_some_and(|sign| sign.ready.is_some_and(|ready| ready >= ordinal));
        let lives = lives.has(*share, sign.map_or(0, |sign| sign.beat), now);
        if is_over || !lives && !is_ready {
            lost.push(share.to_string());
        } else if !is_ready {
            return None;
        }
    }
    let wall_ns = inner.wall.now_ns();
    let lead = first::lead(&signs);
    let soonest = wall_ns.saturating_add(lead.as_nanos() as u64);
    let (start_ns, note) = match inner.start_at {
        StartAt::Wall(at) if ordinal == 0 && at.unix_nanos() < soonest => (
            soonest,
            Some(format!(
                "not all were ready at {at} (--start-at): the run starts {} later",
                in_words(soonest - at.unix_nanos())
            )),
        ),
        StartAt::Wall(at) if ordinal == 0 => (at.unix_nanos(), None),
        StartAt::After(after) if ordinal == 0 => {
            (soonest.max(wall_ns.saturating_add(u64::try_from(after.as_nanos()).unwrap_or(u64::MAX))), None)
        }
        _ => (soonest, None),
    };
    let ahead = Duration::from_nanos(start_ns.saturating_sub(wall_ns));
    let note = note.or_else(|| waiting(WallTime::from_unix_nanos(start_ns), ahead));
    inner.tell(|first| {
        first.starts.resize(ordinal, 0);
        first.starts.push(start_ns);
    });
    let without = (!lost.is_empty())
        .then(|| format!("level {} starts without shares {}", ordinal + 1, lost.join(", ")));
    let note = [without, note].into_iter().flatten().reduce(|a, b| format!("{a}; {b}"));
    Some(Start { at: inner.wall.stamp(start_ns).0, note })
}

/// The others hear of it.
fn heard(inner: &Inner, ordinal: usize, lives: &mut Lives) -> Option<Start> {
    let now = inner.wall.run.now();
    let (token, clock) = {
        let sign = inner.sign();
        (sign.first.clone(), sign.clock)
    };
    let first = first_share(inner);
    let start = first.as_ref().and_then(|first| first.starts.get(ordinal)).filter(|start| **start > 0);
    if let Some(start) = start {
        let own = start.saturating_add_signed(-clock.map_or(0, |clock| clock.correction_ns()));
        let (at, late_ns) = inner.wall.stamp(own);
        let note = (late_ns > 0).then(|| {
            format!(
                "share {} heard of the start {} too late: it starts at once",
                inner.share.index,
                in_words(late_ns)
            )
        });
        return Some(Start { at, note });
    }
    let is_over = || {
        let signs = inner.folder.signs(inner.share.of);
        let of_first = signs.iter().find(|sign| sign.share == 1 && Some(&sign.token) == token.as_ref());
        of_first.is_some_and(|sign| matches!(sign.stage, Stage::Done | Stage::Failed))
    };
    let lives = lives.has(1, first.map_or(0, |first| first.beat), now);
    (!lives || is_over()).then(|| Start {
        at: now,
        note: Some(format!(
            "share 1 is gone: share {} starts level {} on its own",
            inner.share.index,
            ordinal + 1
        )),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_written_nothing_for_so_long_is_lost_until_it_writes_again() {
        let mut lives = Lives::default();
        let at = |s: u64| Stamp::ZERO + Duration::from_secs(s);
        let seen = [(0, 5), (19, 5), (19, 6), (38, 6), (39, 6), (60, 6), (61, 7)];
        let lived: Vec<bool> = seen.into_iter().map(|(s, beat)| lives.has(2, beat, at(s))).collect();
        assert_eq!(lived, [true, true, true, true, false, false, true]);
        // Another share is another matter.
        assert!(lives.has(3, 0, at(61)));
    }
}
