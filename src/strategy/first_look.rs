//! What a quick look asks for, by what one request has shown.
//!
//! Answers are as long as fits the time: a load takes 30 requests at least to be decided. Limits are the usual ones where
//! a user who is alone keeps them with room to spare, and else the next wider ones, so that the question is still one:
//! how many users have it nearly as good as one.

use crate::plan::{Axis, Level, Load, Plan, Search, Slo, Stop};

/// What one request that was alone has shown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Glance {
    /// Its TTFT, ms, at least 0.
    pub ttft_ms: f64,
    /// Time of a token after the first, ms, at least 0; `None` where there was no second one.
    pub tpot_ms: Option<f64>,
}

/// Tokens of an answer, from [`TOKENS_MIN`] to [`TOKENS_MAX`]: as many as let it take half a second, or less in a look that
/// is to end within `within_s`: a load takes thirty answers, one after the other if the server has it so.
#[must_use]
pub fn answer_tokens(glance: Glance, within_s: f64) -> u32 {
    let left_ms = (within_s * 1e3 / ANSWERS).min(ANSWER_MS) - glance.ttft_ms;
    match glance.tpot_ms {
        // `as` saturates, and what is no number gives 0.
        Some(tpot_ms) => ((left_ms / tpot_ms) as u32).clamp(TOKENS_MIN, TOKENS_MAX),
        None => TOKENS_MIN,
    }
}

/// How long such an answer takes, ms.
#[must_use]
pub fn answer_ms(glance: Glance, tokens: u32) -> f64 {
    glance.ttft_ms + glance.tpot_ms.unwrap_or(0.0) * f64::from(tokens.saturating_sub(1))
}

/// Requests of a load at least, and at most before there are many users: three seconds of one who is alone.
#[must_use]
pub fn requests(answer_ms: f64) -> u64 {
    // `as` saturates.
    ((LOAD_MS / answer_ms) as u64).clamp(REQUESTS_MIN, REQUESTS_MAX)
}

/// The limits of a good request: TTFT and TPOT of `usual`, each widened where one user alone does not keep it easily.
#[must_use]
pub fn limits(glance: Glance, usual: Slo) -> Slo {
    Slo {
        ttft_ms: usual.ttft_ms.map(|limit| wide_enough(limit, glance.ttft_ms)),
        tpot_ms: usual.tpot_ms.map(|limit| wide_enough(limit, glance.tpot_ms.unwrap_or(0.0))),
        ..usual
    }
}

/// Makes `plan` a quick look that ends within `within_s` of its first request, at a server whose answers to one user take
/// `answer_ms`.
pub fn set(plan: &mut Plan, answer_ms: f64, within_s: f64) {
    let alone_s = (answer_ms / 1e3 * ALONE_REQUESTS).max(ALONE_S_MIN).min(within_s * ALONE_SHARE);
    let stop = Stop {
        units: Some(requests(answer_ms)),
        duration_s: Some(alone_s),
        grace_s: (answer_ms / 1e3 * ALONE_REQUESTS).clamp(1.0, within_s * ALONE_SHARE),
    };
    plan.levels = vec![Level { load: Load::closed(1), stop, warmups: 1, decide: None, ..Level::default() }];
    plan.search = Some(Search {
        start: START,
        max: USERS_MAX,
        tolerance: TOLERANCE,
        times_max: TIMES_MAX,
        within_s: Some(within_s),
        ..Search::along(Axis::Concurrency)
    });
}

/// `limit` if `seen` is well below it; else the next of 1, 2 and 5 times a power of ten that is twice as much.
fn wide_enough(limit: f64, seen: f64) -> f64 {
    if !(seen.is_finite() && seen * ROOM > limit) {
        return limit;
    }
    let wished = seen * TWICE;
    let digit = 10f64.powf(wished.log10().floor());
    let next = [1.0, 2.0, 5.0, 10.0].into_iter().map(|times| times * digit).find(|next| *next >= wished);
    next.unwrap_or(10.0 * digit).round().max(limit)
}

/// An answer of one user takes so long where it can.
const ANSWER_MS: f64 = 500.0;
/// A look has the time of so many answers of one user, at least.
const ANSWERS: f64 = 60.0;
/// Fewer tokens tell no TPOT.
pub const TOKENS_MIN: u32 = 16;
/// More tell nothing new.
pub const TOKENS_MAX: u32 = 128;
/// Good requests that show 90 % with 95 % confidence, and one.
const REQUESTS_MIN: u64 = 30;
const REQUESTS_MAX: u64 = 100;
const LOAD_MS: f64 = 3000.0;
/// One user alone has so many requests, and so many seconds, at least, but no more than that share of the time.
const ALONE_REQUESTS: f64 = 3.0;
const ALONE_S_MIN: f64 = 4.0;
pub(super) const ALONE_SHARE: f64 = 0.2;
/// Users of the first load: few servers that anybody measures bear less, and a load of four is decided four times as soon.
const START: f64 = 4.0;
/// More users belong to a search that takes its time.
const USERS_MAX: f64 = 1024.0;
/// How near the ends of the answer are to be, as a share.
const TOLERANCE: f64 = 0.2;
/// How far a load that is not decided is lengthened.
const TIMES_MAX: u32 = 4;
/// A single request may have been a quick one.
const ROOM: f64 = 1.25;
const TWICE: f64 = 2.0;

#[cfg(test)]
mod tests {
    use super::*;

    fn glance(ttft_ms: f64, tpot_ms: f64) -> Glance {
        Glance { ttft_ms, tpot_ms: Some(tpot_ms) }
    }

    #[test]
    fn answers_take_half_a_second_where_they_can() {
        let tokens = |ttft_ms, tpot_ms| answer_tokens(glance(ttft_ms, tpot_ms), 75.0);
        assert_eq!(tokens(20.0, 8.0), 60);
        assert_eq!((tokens(3.0, 0.2), tokens(2000.0, 100.0), tokens(0.0, 0.0)), (128, 16, 128));
        assert_eq!(answer_tokens(Glance { ttft_ms: 5.0, tpot_ms: None }, 75.0), 16);
        assert_eq!(answer_ms(glance(20.0, 8.0), 60), 492.0);
        let in_time = |within_s| answer_tokens(glance(20.0, 8.0), within_s);
        assert_eq!([75.0, 30.0, 15.0, 1.0].map(in_time), [60, 60, 28, 16], "a short look has short answers");
    }

    #[test]
    fn a_load_has_enough_requests_to_be_decided() {
        assert_eq!([0.0, 25.0, 50.0, 492.0, 1e9].map(requests), [100, 100, 60, 30, 30]);
    }

    #[test]
    fn limits_are_widened_only_where_one_user_does_not_keep_them_easily() {
        let usual = Slo { ttft_ms: Some(500.0), tpot_ms: Some(50.0), ..Slo::default() };
        let limits = |ttft_ms, tpot_ms| {
            let slo = super::limits(glance(ttft_ms, tpot_ms), usual);
            (slo.ttft_ms.unwrap(), slo.tpot_ms.unwrap())
        };
        assert_eq!(limits(20.0, 8.0), (500.0, 50.0));
        assert_eq!(limits(399.0, 39.9), (500.0, 50.0));
        assert_eq!(limits(401.0, 40.1), (1000.0, 100.0));
        assert_eq!(limits(1500.0, 99.0), (5000.0, 200.0));
        assert_eq!(limits(f64::INFINITY, f64::NAN), (500.0, 50.0));
        let e2e = Slo { e2e_ms: Some(1.0), ..Slo::default() };
        assert_eq!(super::limits(glance(1.0, 1.0), e2e), e2e, "what is not limited stays so");
    }
}
