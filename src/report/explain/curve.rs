//! Why throughput bends as load grows: from level to level, and at the end of the curve.
//!
//! Users of a closed loop obey X = N / (W + Z), so that throughput falls behind the users exactly as W grows; where W
//! grows, before the first token or after it, says why.

use super::facts::{Facts, ms, number};
use super::server;
use crate::model::Settings;
use crate::stats::knee::{Bend, Point, Sweep};

/// The sentences, one paragraph each.
pub(super) fn paragraphs(levels: &[Facts<'_>], model: Option<&Settings>) -> Vec<String> {
    let mut text: Vec<String> = levels.iter().filter_map(|level| open(level, model)).collect();
    let closed = comparable(levels);
    if closed.len() > 1 {
        text.push(law(closed[0]));
        text.extend(of_choices(closed[0]));
        text.extend(server::of_fixed_times(model));
        text.extend(closed.windows(2).map(|pair| step(pair[0], pair[1])));
        let knee = knee(&closed);
        if let (Some(knee), Some(last)) = (knee, closed.last()) {
            text.extend(limit(knee, last, model));
        }
        let busiest = knee.unwrap_or(closed[closed.len() - 1]);
        text.extend(speed(closed[0], busiest, model));
        text.extend(interference(closed[0], busiest, model));
    }
    text
}

/// The closed loops that one curve can be drawn through: one think time, users rising, all of whom sent.
fn comparable<'f, 'a>(levels: &'f [Facts<'a>]) -> Vec<&'f Facts<'a>> {
    let mut curve: Vec<&Facts<'_>> = Vec::new();
    for level in levels.iter().filter(|level| level.users.is_some() && level.all_came) {
        let follows = |last: &&Facts<'_>| level.users > last.users && level.think_s == last.think_s;
        if curve.last().is_none_or(follows) {
            curve.push(level);
        }
    }
    curve
}

/// Why there is a curve at all.
fn law(level: &Facts<'_>) -> String {
    match level.think_s > 0.0 {
        true => "Users divided by the time of an answer and the pause after it are the throughput, X = N / (W + Z): it \
                 bends where W grows."
            .to_owned(),
        false => {
            "Users divided by the time of an answer are the throughput, X = N / W: it bends where W grows.".to_owned()
        }
    }
}

/// What several answers to a request mean for all that follows.
fn of_choices(level: &Facts<'_>) -> Option<String> {
    (level.choices > 1.0).then(|| {
        format!(
            "Each request asks for {0} answers, {0} sequences of the server: N users are {0} N. Its E2E ends with the last \
             of them.",
            number(level.choices)
        )
    })
}

/// What more users brought from one level to the next.
fn step(a: &Facts<'_>, b: &Facts<'_>) -> String {
    let (users, gain) = (users(b) / users(a), b.req_s / a.req_s);
    let grown = b.e2e_ms / a.e2e_ms - 1.0;
    let head = format!(
        "{} to {}: {} times the users, {} times the throughput ({} to {} requests/s)",
        number(self::users(a)),
        name(b),
        number(users),
        times(gain),
        number(a.req_s),
        number(b.req_s)
    );
    if grown.abs() <= SAME {
        let room = if gain >= ROOM * users { ", there was room" } else { "" };
        return format!("{head}: an answer takes as long as before{room}.");
    }
    let (from, to) = (ms(a.e2e_ms), ms(b.e2e_ms));
    if grown < 0.0 {
        return format!("{head}: an answer is quicker, E2E {from} to {to} ms.");
    }
    format!("{head}: an answer takes longer, E2E {from} to {to} ms.{}", cause(a, b).unwrap_or_default())
}

/// Where the time of an answer grew.
fn cause(a: &Facts<'_>, b: &Facts<'_>) -> Option<String> {
    let (before, after) = (a.ttft_ms?, b.ttft_ms?);
    let waiting = (after - before) / (b.e2e_ms - a.e2e_ms);
    let ttft = format!("TTFT {} to {} ms", ms(before), ms(after));
    // Several answers to a request have none.
    let tpot = a.tpot_ms.zip(b.tpot_ms).map(|(a, b)| format!("TPOT {} to {} ms", ms(a), ms(b)));
    let both = |first: Option<String>, then: Option<String>| {
        first.into_iter().chain(then).collect::<Vec<_>>().join(", ")
    };
    Some(match waiting {
        share if share >= MOST => {
            format!(" Nearly all of that is the wait for the first token: {}.", both(Some(ttft), tpot))
        }
        share if share <= 1.0 - MOST => {
            format!(" Nearly all of that comes after the first token: {}.", both(tpot, Some(ttft)))
        }
        _ => format!(" It grew before the first token and after it: {}.", both(Some(ttft), tpot)),
    })
}

/// The first level behind which throughput does not grow, and answers take longer.
fn knee<'f, 'a>(closed: &[&'f Facts<'a>]) -> Option<&'f Facts<'a>> {
    let point =
        |level: &&Facts<'_>| Point { load: users(level), throughput: level.req_s, latency: level.e2e_ms };
    let sweep = Sweep::of(&closed.iter().map(point).collect::<Vec<_>>());
    let Some(Bend::Knee(place)) = sweep.bend() else { return None };
    let load = sweep.points().get(place)?.load;
    closed.iter().find(|level| users(level) == load).copied()
}

/// What happens to users beyond the knee.
fn limit(knee: &Facts<'_>, last: &Facts<'_>, model: Option<&Settings>) -> Vec<String> {
    let mut text = vec![format!(
        "From {} on throughput no longer grows: {} requests/s there, {} with {}.",
        name(knee),
        number(knee.req_s),
        number(last.req_s),
        name(last)
    )];
    if let (Some(a), Some(b)) = (knee.ttft_ms, last.ttft_ms)
        && b > a
    {
        text.push(queue((b - a) / (users(last) - users(knee)), last));
    }
    if let (Some((_, a)), Some((_, b))) = (knee.waiting_and_receiving(), last.waiting_and_receiving())
        && (b / a - 1.0).abs() <= FLAT_PLACES
    {
        text.push(format!(
            "X (E2E - TTFT) = {} {} are under way at once with {} and {} with {}: the places are taken.",
            number(a),
            if last.choices > 1.0 { "requests" } else { "answers" },
            name(knee),
            number(b),
            name(last)
        ));
    }
    if last.think_s == 0.0 {
        text.extend(server::slots(model, last));
    }
    if let Some((most, formula)) = server::most(model, last) {
        text.push(format!("In the long run at most {formula} = {} requests/s can end.", number(most)));
    }
    text
}

/// What each further user waits, beside what a queue in front of a full server takes.
fn queue(each_ms: f64, last: &Facts<'_>) -> String {
    let turn_ms = 1e3 / last.req_s;
    let mut text = format!(
        "Each further user adds {} ms to TTFT; 1/X, the time between two answers that end, is {} ms (E2E / N: {} ms).",
        ms(each_ms),
        ms(turn_ms),
        ms(last.e2e_ms / users(last))
    );
    let share = each_ms / turn_ms;
    if (share - 1.0).abs() <= SAME_TURN {
        text += " So a queue has formed: who comes waits for one more answer to end.";
    } else if share < 1.0 && last.whole_level {
        text +=
            " The level began with a free server, so that its first answers waited less than the later ones.";
    }
    text
}

/// What each user gets against what all get.
fn speed(few: &Facts<'_>, many: &Facts<'_>, model: Option<&Settings>) -> Vec<String> {
    let (Some(a), Some(b)) = (few.tpot_ms, many.tpot_ms) else { return Vec::new() };
    if users(many) <= users(few) || few.out_tok_s <= 0.0 {
        return Vec::new();
    }
    let first = format!(
        "The speed of one against the throughput of all: with {} each reads {} tokens/s (1000 / TPOT), with {} {}; all \
         together {} and {}. That is {} times the tokens at {} times the speed.",
        name(few),
        number(1e3 / a),
        name(many),
        number(1e3 / b),
        number(few.out_tok_s),
        number(many.out_tok_s),
        times(many.out_tok_s / few.out_tok_s),
        times(a / b)
    );
    std::iter::once(first).chain(server::batch(model, many)).collect()
}

/// What prompts of others do to those who receive tokens.
fn interference(few: &Facts<'_>, many: &Facts<'_>, model: Option<&Settings>) -> Option<String> {
    if model.is_some() {
        return server::prefill(model, many);
    }
    let ((p50, p99), (p50_many, p99_many)) = (few.itl_ms?, many.itl_ms?);
    let evenly = few.users == Some(1.0) && p99 <= p50 * EVEN;
    (evenly && p99_many >= p50_many * UNEVEN).then(|| {
        format!(
            "Some steps are longer than others: alone, ITL is {} ms at p50 and {} ms at p99; with {} {} and {}. Prompts \
             that are computed between the tokens of others do that, and there are {} of them a second.",
            ms(p50),
            ms(p99),
            name(many),
            ms(p50_many),
            ms(p99_many),
            number(many.req_s)
        )
    })
}

/// Whether an open loop is kept up with.
fn open(level: &Facts<'_>, model: Option<&Settings>) -> Option<String> {
    let asked = level.asked_s?;
    let most = server::most(model, level).map(|(most, formula)| {
        let all = format!(" In the long run at most {formula} = {} requests/s can end", number(most));
        match asked > most {
            true => format!(
                "{all}: {} come, {} more each second than can end.",
                number(asked),
                number(asked - most)
            ),
            false => format!("{all}; {} come, {:.0} % of that.", number(asked), asked / most * 100.0),
        }
    });
    let kept = kept_up(level);
    (kept.is_some() || most.is_some())
        .then(|| format!("{}:{}{}", level.label, kept.unwrap_or_default(), most.unwrap_or_default()))
}

/// Sent against ended, in a window that is not itself bent by the beginning and the end of a level.
fn kept_up(level: &Facts<'_>) -> Option<String> {
    let (offered, ended) = (number(level.offered_s), number(level.req_s));
    if level.whole_level {
        return None;
    }
    if level.req_s >= KEPT_UP * level.offered_s {
        return Some(format!(" {offered} requests/s are sent and {ended} end: the server keeps up."));
    }
    let in_flight = level.in_flight.filter(|in_flight| in_flight.at_end > in_flight.at_start)?;
    Some(format!(
        " {offered} requests/s are sent and {ended} end, so the queue grows: {} in flight at the start of the window, {} \
         at its end. Its latencies grow with its length and are no property of the server.",
        in_flight.at_start, in_flight.at_end
    ))
}

/// Its users in words; all of a curve think alike.
fn name(level: &Facts<'_>) -> String {
    let users = number(users(level));
    if users == "1" { "1 user".to_owned() } else { format!("{users} users") }
}

/// Users of a level of [`comparable`].
fn users(level: &Facts<'_>) -> f64 {
    level.users.unwrap_or(1.0)
}

/// A ratio: two decimals below 10, one below 100.
fn times(ratio: f64) -> String {
    match ratio {
        x if x < 10.0 => format!("{x:.2}"),
        x if x < 100.0 => format!("{x:.1}"),
        x => format!("{x:.0}"),
    }
}

/// Throughput that grows at least by this share of what users do had room to grow.
const ROOM: f64 = 0.9;
/// An answer takes as long as another within this share.
const SAME: f64 = 0.02;
/// Share of a growth that is nearly all of it.
const MOST: f64 = 0.8;
/// Answers under way are as many within this share; a short level has fewer at its beginning and end.
const FLAT_PLACES: f64 = 0.1;
/// What a user adds is the time of a turn within this share.
const SAME_TURN: f64 = 0.1;
/// Share of what is sent that must end.
const KEPT_UP: f64 = 0.95;
/// p99 over p50 of gaps that nobody interrupts, and of those that somebody does.
const EVEN: f64 = 1.1;
const UNEVEN: f64 = 1.25;
