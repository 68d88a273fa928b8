//! What a run says of the last selftest: up to which load this client is known to be exact, and whether the run went
//! beyond it.
//!
//! A selftest vouches for its own loads only. Beyond them nothing is known, which is a remark and no verdict: the run's
//! own error budget says what happened.

use crate::plan::{Level, Plan};
use crate::report::format;
use crate::run_file::RunFile;
use crate::run_file::schema::{LevelBlock, SelftestBlock};

/// What others may keep busy of a machine before it is worth a word: more than a system does in passing.
pub const OTHERS_PERCENT_MAX: u32 = 15;

/// The selftest in one line.
#[must_use]
pub fn line(selftest: &SelftestBlock) -> String {
    let day = format::one_line(selftest.created.split('T').next().unwrap_or_default(), 20);
    let bound = format::typed(selftest.error_max_us as f64 / 1e3);
    let mut line = match (selftest.streams, selftest.events_s) {
        (Some(streams), Some(events_s)) => {
            let streams = count(u64::from(streams), "stream");
            format!("selftest of {day}: error p99 within {bound} ms up to {streams} / {events_s} events/s")
        }
        _ => format!("selftest of {day}: error p99 above {bound} ms at every load"),
    };
    if let Some(busy) = selftest.others_percent.filter(|busy| *busy > OTHERS_PERCENT_MAX) {
        line += &format!("; made while other programs kept {busy} % of the machine busy");
    }
    if !selftest.differs.is_empty() {
        let facts: Vec<String> = selftest.differs.iter().map(|fact| format::one_line(fact, 40)).collect();
        line += &format!("; made with another {}: make a new one by tokload selftest", facts.join(" and "));
    }
    line
}

/// That `plan` asks for more than the selftest vouches for, if it does: more streams at once, or, in an open loop, more
/// events per second at a token each.
#[must_use]
pub fn plan_beyond(plan: &Plan, selftest: &SelftestBlock) -> Option<String> {
    let tokens = plan.workload.output_tokens.mean() * f64::from(plan.workload.choices.max(1));
    let share = plan.own_share();
    let of_level = |level: &Level| level.load.peak_rate().map_or(0.0, |rate| share.rate(rate) * tokens);
    let events_s = plan.levels.iter().map(of_level).fold(0.0, f64::max);
    let needed = plan.descriptors_needed();
    // An open loop without a cap has as many streams as the server's speed makes: a guess is no reason to warn.
    let streams = if needed.estimated { 0 } else { needed.connections };
    beyond("the plan asks for", (streams, events_s), selftest)
}

/// The levels of `run` that had more events per second than its selftest vouches for, or more requests in flight.
#[must_use]
pub fn levels_beyond(run: &RunFile) -> Vec<String> {
    let Some(selftest) = &run.environment.selftest else { return Vec::new() };
    let of_level = |level: &LevelBlock| {
        let seconds = level.span.t2_ns.saturating_sub(level.span.t0_ns) as f64 / 1e9;
        let events_s = if seconds > 0.0 { level.self_check.events as f64 / seconds } else { 0.0 };
        let streams = level.in_flight.map_or(0, |in_flight| in_flight.max);
        beyond(&format!("{}: it had", level.label), (streams, events_s), selftest)
    };
    run.levels.iter().filter_map(of_level).collect()
}

fn beyond(who: &str, load: (u64, f64), selftest: &SelftestBlock) -> Option<String> {
    let (streams, events_s) = load;
    let vouched = (u64::from(selftest.streams?), selftest.events_s? as f64);
    let much = match (streams > vouched.0, events_s > vouched.1) {
        (false, false) => return None,
        (true, false) => count(streams, "stream"),
        (false, true) => format!("{} events/s", format::rate(events_s)),
        (true, true) => format!("{} and {} events/s", count(streams, "stream"), format::rate(events_s)),
    };
    let known = format!("{} / {} events/s", count(vouched.0, "stream"), vouched.1);
    let why = if selftest.at_least { "the most that the selftest tried" } else { "the most that it kept" };
    Some(format!("{who} {much}, beyond {known}, {why}: see the client's own error"))
}

fn count(n: u64, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Arrivals, Load, Stop};

    fn selftest() -> SelftestBlock {
        SelftestBlock {
            created: "2026-12-01T08:00:00.000000000Z".to_owned(),
            error_max_us: 1_000,
            streams: Some(1_000),
            events_s: Some(48_000),
            ..SelftestBlock::default()
        }
    }

    #[test]
    fn a_selftest_is_a_line() {
        let text = "selftest of 2026-12-01: error p99 within 1 ms up to 1000 streams / 48000 events/s";
        assert_eq!(line(&selftest()), text);
        let differs = vec!["CPU".to_owned(), "kernel".to_owned()];
        let other = SelftestBlock { differs, ..selftest() };
        assert_eq!(
            line(&other),
            format!("{text}; made with another CPU and kernel: make a new one by tokload selftest")
        );
        let busy = |percent| line(&SelftestBlock { others_percent: Some(percent), ..selftest() });
        assert_eq!(busy(15), text);
        assert_eq!(busy(87), format!("{text}; made while other programs kept 87 % of the machine busy"));
        let none = SelftestBlock { streams: None, events_s: None, ..selftest() };
        assert_eq!(line(&none), "selftest of 2026-12-01: error p99 above 1 ms at every load");
    }

    fn plan(load: Load) -> Plan {
        let mut plan = Plan::new(1);
        plan.levels = vec![Level {
            load,
            stop: Stop { duration_s: Some(10.0), ..Stop::default() },
            warmups: 0,
            ..Level::default()
        }];
        plan
    }

    #[test]
    fn a_plan_beyond_the_selftest_is_said() {
        let users = |n| plan_beyond(&plan(Load::closed(n)), &selftest());
        assert_eq!(users(1_000), None);
        let said = users(1_001).unwrap();
        assert_eq!(
            said,
            "the plan asks for 1001 streams, beyond 1000 streams / 48000 events/s, the most that it kept: see the client's \
             own error"
        );
        let most = SelftestBlock { at_least: true, ..selftest() };
        assert!(
            plan_beyond(&plan(Load::closed(2_000)), &most)
                .unwrap()
                .contains("the most that the selftest tried")
        );
        // 64 tokens each.
        let open = |rate| {
            let load = Load { arrivals: Arrivals::Poisson { rate }, cap: None, users: None, think_s: 0.0 };
            plan_beyond(&plan(load), &selftest())
        };
        assert_eq!(open(750.0), None);
        assert!(
            open(751.0).unwrap().starts_with("the plan asks for 48064 events/s, beyond"),
            "{:?}",
            open(751.0)
        );
        let none = SelftestBlock { streams: None, events_s: None, ..selftest() };
        assert_eq!(plan_beyond(&plan(Load::closed(2_000)), &none), None);
    }
}
