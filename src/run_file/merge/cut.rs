//! The part of a level that a process had when it was cut: killed before it could save.
//!
//! Its records are those of requests that had ended. What was in flight is in none, so that near its end the requests that
//! took long are missing, and behind it its load was not there. The level is therefore looked at up to the moment until
//! which everything that the process had planned is known to have ended.

use std::collections::BTreeMap;
use std::time::Duration;

use super::MergeError;
use super::level::PartOf;
use crate::metrics::{Phase, Record};
use crate::plan::{Load, Share};
use crate::time::Stamp;

/// From the part's first planned send until where all that it had planned has a record; `None` of a part that was not
/// cut.
pub(super) fn known_for(part: &PartOf<'_>, load: &Load) -> Result<Option<Duration>, MergeError> {
    let Some(range) = part.block.records.filter(|_| part.is_cut()) else { return Ok(None) };
    let stored = part.member.loaded.records().map_err(MergeError::Read)?;
    let records = stored.read(range.into()).map_err(MergeError::Read)?;
    let measured: Vec<&Record> = records.iter().filter(|record| record.phase == Phase::Measured).collect();
    let until = match load.users {
        Some(users) => of_users(&measured, users, part.member.share),
        None => of_schedule(&measured, part.member.share),
    };
    Ok(Some(until.map_or(Duration::ZERO, |until| until - part.t0())))
}

/// Each user has one request at a time: until its last one ended, all of it is known. `None` where one has no record.
fn of_users(measured: &[&Record], users: u32, share: Share) -> Option<Stamp> {
    let mut last: BTreeMap<u64, Stamp> = BTreeMap::new();
    for record in measured {
        let user = record.session % u64::from(users.max(1));
        let end = last.entry(user).or_insert(record.end);
        *end = record.end.max(*end);
    }
    let all_there = last.len() >= share.count_u32(users) as usize;
    last.into_values().min().filter(|_| all_there)
}

/// Sends are planned in the order of their indices, of which a share has every so manieth: the first without a record was
/// planned no earlier than the one before it. Later turns of sessions have no place in that order: none of them that is
/// missing was in flight longer than the longest of those that are there, as far as is known.
fn of_schedule(measured: &[&Record], share: Share) -> Option<Stamp> {
    let mut firsts: Vec<(u64, Stamp)> = measured
        .iter()
        .filter(|record| record.turn == 0)
        .map(|record| (record.session, record.plan))
        .collect();
    firsts.sort_unstable();
    let expected = (u64::from(share.index) - 1..).step_by(share.of as usize);
    let known = firsts.iter().zip(expected).take_while(|((index, _), expected)| index == expected);
    let until = known.last().map(|((_, plan), _)| *plan)?;
    if measured.iter().all(|record| record.turn == 0) {
        return Some(until);
    }
    let end = measured.iter().map(|record| record.end).max()?;
    let longest = measured.iter().map(|record| record.end - record.start).max()?;
    Some(until.min(end - longest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(index: u64, plan_ms: u64, end_ms: u64) -> Record {
        let [plan, end] = [plan_ms, end_ms].map(Stamp::from_millis);
        Record { start: plan, end, ..Record::planned(index, plan) }
    }

    fn until_ms(records: &[Record], of: impl Fn(&[&Record]) -> Option<Stamp>) -> Option<u64> {
        let all: Vec<&Record> = records.iter().collect();
        of(&all).map(|at| at.as_nanos() / 1_000_000)
    }

    #[test]
    fn a_schedule_is_known_up_to_the_first_request_that_has_not_ended() {
        let share = Share { index: 2, of: 3 };
        let of = |records: &[Record]| until_ms(records, |all| of_schedule(all, share));
        let all = [record(4, 40, 90), record(1, 10, 20), record(7, 70, 85), record(10, 100, 110)];
        assert_eq!(of(&all), Some(100));
        // Request 7 was in flight: what was planned from 40 ms on is not known to be whole.
        assert_eq!(of(&[all[0], all[1], all[3]]), Some(40));
        assert_eq!(of(&all[2..]), None);
        // A second turn that took 60 ms: others like it may have been in flight at the end.
        let later = Record { turn: 1, ..record(4, 60, 120) };
        assert_eq!(of(&[all[0], all[1], all[2], later]), Some(60));
    }

    #[test]
    fn users_are_known_until_the_first_of_them_has_ended_its_last_request() {
        // Users 0 and 2 of four are of share 1 of 2.
        let share = Share { index: 1, of: 2 };
        let of = |records: &[Record]| until_ms(records, |all| of_users(all, 4, share));
        let all = [record(0, 0, 30), record(2, 0, 50), record(4, 30, 80), record(6, 50, 60)];
        assert_eq!(of(&all), Some(60));
        assert_eq!(of(&all[..3]), Some(50));
        assert_eq!(of(&[all[0], all[2]]), None, "nothing is known of a user");
    }
}
