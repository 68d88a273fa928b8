//! Little's law for one level, each factor and what remains.
//!
//! Of all requests in a span, as many are in flight on average as end per second times the time that each is in
//! flight. The users of a closed loop are in flight or think. What remains has two parts: requests that count in
//! flight but not, or only in part, among those that end; and users who neither wait nor think.

use super::facts::{Facts, ms, number, plain, tenths};
use crate::report::format;

/// The lines of a level.
pub(super) fn lines(level: &Facts<'_>) -> Vec<String> {
    let flow = level.req_s * level.stay_ms / 1e3;
    let mut lines = vec![product(level, flow)];
    if let Some(users) = level.users {
        lines.push(of_users(level, users, flow));
    }
    if let Some((waiting, receiving)) = level.waiting_and_receiving() {
        lines.push(format!(
            "X TTFT = {} wait for their first token, X (E2E - TTFT) = {} receive the others.",
            number(waiting),
            number(receiving)
        ));
    }
    lines.extend(remainder(level, flow));
    lines
}

fn product(level: &Facts<'_>, flow: f64) -> String {
    let (rate, stay) = (number(level.req_s), ms(level.stay_ms));
    let counted = level.in_flight.map_or_else(String::new, |in_flight| {
        format!(" Counted: L = {} on average, {} at most.", number(in_flight.mean), in_flight.max)
    });
    format!("X W = {rate}/s * {stay} ms = {}.{counted}", number(flow))
}

fn of_users(level: &Facts<'_>, users: f64, flow: f64) -> String {
    let thinking = level.req_s * level.think_s;
    let (law, law_value) = match level.think_s > 0.0 {
        true => ("N = X (W + Z)", format!("{} + {} who think = ", number(flow), number(thinking))),
        false => ("N = X W", String::new()),
    };
    let think = match level.think_s > 0.0 {
        true => format!(", Z = {} s", plain(level.think_s)),
        false => String::new(),
    };
    let all = format!("{law}{think}: {law_value}{} of {}", number(flow + thinking), number(users));
    let rest = users - flow - thinking;
    let share = tenths((rest / users * 100.0).abs());
    match rest {
        // What is not seen in two decimals would have a share that belongs to nothing.
        rest if rest.abs() < 0.005 => format!("{all}; nothing remains."),
        rest if rest < 0.0 => format!("{all}; {} too many ({share} %).", number(-rest)),
        rest => format!("{all}; {} remain ({share} %).", number(rest)),
    }
}

/// What the remainder is, where it is more than the client's turn-around may take.
fn remainder(level: &Facts<'_>, flow: f64) -> Option<String> {
    let in_flight = level.in_flight?;
    let whole = level.users.unwrap_or(in_flight.mean);
    let matters = |part: f64| part.abs() > REMAINDER_SHARE_MAX * whole;
    let uncounted = in_flight.mean - flow;
    let idle = level.users.map(|users| users - in_flight.mean - level.req_s * level.think_s);
    let mut reasons = Vec::new();
    if matters(uncounted) {
        let failed = (level.not_ok > 0).then(|| format!("X leaves out {}", not_ok(level)));
        let edges = (!level.whole_level).then(|| {
            format!(
                "requests in flight at the edges, {} at the start of the window and {} at its end, count in L with the \
                 part of their time that lies inside",
                in_flight.at_start, in_flight.at_end
            )
        });
        let causes: Vec<String> = failed.into_iter().chain(edges).collect();
        if !causes.is_empty() {
            reasons.push(format!("L - X W = {}: {}", number(uncounted), causes.join(", and ")));
        }
    }
    if let Some(idle) = idle.filter(|idle| matters(*idle)) {
        let idle = format::rate(idle);
        reasons.push(if level.whole_level {
            let pauses = if level.not_ok > 0 { ", or in the pause after one that failed at once" } else { "" };
            format!(
                "{idle} users had nothing in flight: before their first request, or after their last while the others \
                 still waited{pauses}"
            )
        } else if level.not_ok > 0 && level.think_s == 0.0 {
            format!(
                "{idle} users had nothing in flight: there are {}, and after one that fails at once its user pauses",
                not_ok(level)
            )
        } else if level.think_s > 0.0 {
            format!(
                "N - L - X Z = {idle} users: pauses at the edges, which lie in the window in part, and the client's \
                 turn-around"
            )
        } else {
            format!("{idle} users were between an answer and the next request: the client's turn-around")
        });
    }
    (!reasons.is_empty()).then(|| format!("What remains: {}.", reasons.join("; ")))
}

/// `5 requests that did not end well`.
fn not_ok(level: &Facts<'_>) -> String {
    let requests = if level.not_ok == 1 { "request" } else { "requests" };
    format!("{} {requests} that did not end well", level.not_ok)
}

/// Above this share of the users a remainder is explained.
const REMAINDER_SHARE_MAX: f64 = 0.01;
