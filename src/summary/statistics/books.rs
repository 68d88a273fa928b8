//! Whether the records agree with what was counted while the level ran: Little's law.

use crate::metrics::Record;
use crate::stats::{Little, sort};
use crate::summary::Users;
use crate::summary::statistics::{Level, LittleStatistics, stretch};

/// Little's law over the window that the engine had, for whose edges it counted.
pub(super) fn little(level: &Level<'_>) -> Option<LittleStatistics> {
    let window = stretch(&level.cut.fixed);
    // Who was never taken in hand has no life, and would count as an end.
    let little = Little::of(level.lives.iter().copied().filter(|life| life.nanos() > 0), window)?;
    let counted = level.input.counted;
    // While users are still coming in there are fewer than their number.
    let all_in_ns = level.input.steady_from_s.map(|s| level.input.span.t0.as_nanos() as f64 + s * 1e9);
    let all_in = all_in_ns.is_some_and(|ns| window.start as f64 >= ns);
    let users = level.input.users.filter(|_| all_in && !level.cut.fixed.whole_level);
    let of_turns = level.input.users.filter(|_| level.has_turns);
    let pause_s = of_turns.and_then(|users| mean_pause_s(users, level.measured));
    Some(LittleStatistics {
        start_ns: window.start,
        end_ns: window.end,
        in_flight: little.mean_in_flight(),
        ended_s: little.ended_per_second(),
        life_s: little.mean_life_s(),
        gap: little.gap(),
        gap_bound: little.gap_bound(counted),
        counted,
        counter_gap: counted.map(|counted| little.counter_gap(counted)),
        verdict: little.verdict(counted),
        pause_s,
        turnaround_s: users.and_then(|users| turnaround_s(users, pause_s, &little)),
    })
}

/// What of a user's cycle is neither an answer nor a pause.
fn turnaround_s(users: Users, pause_s: Option<f64>, little: &Little) -> Option<f64> {
    let ended_s = little.ended_per_second();
    let pause_s = pause_s.unwrap_or(users.think_s);
    (ended_s > 0.0).then(|| f64::from(users.n) / ended_s - little.mean_life_s() - pause_s)
}

/// The mean pause before a request of sessions: between the turns of one as it was planned, else its user's think time.
/// `None` where no session has a second turn.
fn mean_pause_s(users: Users, measured: &[&Record]) -> Option<f64> {
    let mut sessions: Vec<u64> = measured.iter().map(|record| record.session).collect();
    sort::by_key(&mut sessions, |session| *session);
    if sessions.windows(2).all(|pair| pair[0] != pair[1]) {
        return None;
    }
    drop(sessions);
    let mut turns: Vec<&Record> = measured.to_vec();
    turns.sort_unstable_by_key(|record| (record.session, record.turn));
    let later = turns.windows(2).filter(|pair| pair[0].session == pair[1].session);
    let (count, sum_s) = later.fold((0_u64, 0.0), |(count, sum_s), pair| {
        (count + 1, sum_s + pair[1].plan.nanos_since(pair[0].end) as f64 / 1e9)
    });
    let first = measured.len() as u64 - count;
    (count > 0).then(|| (sum_s + first as f64 * users.think_s) / measured.len() as f64)
}
