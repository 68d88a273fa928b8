//! What the client added to what it measured: the probes of its own lateness.

use super::words::{percent, time};
use crate::metrics::Metric;
use crate::plan::{Finding, Grade, Plan, Rule, Timestamps};
use crate::verdict::Facts;
use crate::verdict::facts::Delay;

/// Busy share of a thread above which its own work makes events wait.
const CPU_SHARE_MAX: f64 = 0.7;
/// Lateness that never matters less, however slow the server.
const LATE_NS: f64 = 1e6;
/// Share of the median TTFT below which lateness is lost in it.
const OF_TTFT: f64 = 0.01;
/// The same of the median TPOT.
const OF_TPOT: f64 = 0.1;
/// Median lateness from which a client did not send the load that was planned.
const LOST_NS: f64 = 10e6;
/// Share of events read together with an earlier one that is not worth a word.
const COALESCED_SHARE_MAX: f64 = 0.05;
/// Width of the interval of a percentile, as a share of it, above which shared reads have made it doubtful.
const INTERVAL_MAX: f64 = 0.1;

pub(super) fn look(_: &Plan, facts: &Facts, found: &mut Vec<Finding>) {
    found.extend(client_cpu(facts));
    found.extend(late_client(facts));
    found.extend(receive_lag(facts));
    found.extend(loop_lag(facts));
    found.extend(coalesced(facts));
    found.extend(clock_step(facts));
}

fn client_cpu(facts: &Facts) -> Option<Finding> {
    let share = facts.client.cpu_share_max.filter(|share| *share > CPU_SHARE_MAX)?;
    let evidence = format!(
        "the busiest thread used {} of a core, more than {:.0} %",
        percent(share, 1.0),
        100.0 * CPU_SHARE_MAX
    );
    Some(Finding::new(
        Rule::ClientCpu,
        Grade::Warn,
        evidence,
        "give it more cores with --workers, or split the load",
    ))
}

fn late_client(facts: &Facts) -> Option<Finding> {
    let delay = facts.client.schedule_delay?;
    let ttft = facts.p50_ns(Metric::Ttft).unwrap_or(0.0);
    if delay.p99_ns <= bearable(facts) {
        return None;
    }
    let lost = delay.p50_ns > ttft.max(LOST_NS);
    let grade = if lost { Grade::Invalid } else { Grade::Warn };
    let mut evidence = format!("sends were late by {}", spread(delay));
    if lost {
        evidence.push_str(": this is not the load that was planned");
    }
    Some(Finding::new(
        Rule::LateClient,
        grade,
        evidence,
        "ask for less of one process, or give it more cores",
    ))
}

/// Lateness that is lost in the server's own time.
fn bearable(facts: &Facts) -> f64 {
    facts.p50_ns(Metric::Ttft).map_or(LATE_NS, |ttft| LATE_NS.max(OF_TTFT * ttft))
}

fn receive_lag(facts: &Facts) -> Option<Finding> {
    let lag = facts.client.receive_lag?;
    let beyond =
        |metric, share: f64| facts.p50_ns(metric).is_some_and(|ns| ns > 0.0 && lag.p99_ns > share * ns);
    let (of_ttft, of_tpot) = (beyond(Metric::Ttft, OF_TTFT), beyond(Metric::Tpot, OF_TPOT));
    if lag.p99_ns <= LATE_NS && !of_ttft && !of_tpot {
        return None;
    }
    // Kernel stamps are not late with us. A hundredth of a quick TTFT is less than any percentile can tell.
    let matters = by_user_stamps(facts) && (lag.p99_ns > bearable(facts) || of_tpot);
    let grade = if matters { Grade::Warn } else { Grade::Info };
    let mut evidence = format!("reads were late by {}", spread(lag));
    if let Some(error) = facts.client.ttft_error_ns.filter(|_| by_user_stamps(facts)) {
        evidence.push_str(&format!("; TTFT p99 is off by at most {}", time(error)));
    }
    Some(Finding::new(Rule::ReceiveLag, grade, evidence, "give --timestamps kernel, or more cores"))
}

/// Where the kernel stamps each read, its own lag says what a late loop has cost; a late tick then is only a sign.
fn loop_lag(facts: &Facts) -> Option<Finding> {
    let lag = facts.client.loop_lag.filter(|lag| lag.p99_ns > LATE_NS)?;
    let measured = facts.client.receive_lag.is_some();
    let grade = if measured { Grade::Info } else { Grade::Warn };
    let evidence = format!("ticks were seen late by {}", spread(lag));
    Some(Finding::new(Rule::LoopLag, grade, evidence, "keep other work off the client's cores"))
}

/// Events that share a read although the client was in time were sent together, by the server or the network: that is
/// their own doing.
fn coalesced(facts: &Facts) -> Option<Finding> {
    let client = &facts.client;
    let itl = facts.latencies.get(&Metric::Itl)?;
    let doubtful = |(low, high): (f64, f64)| high - low > INTERVAL_MAX * itl.p99_ns;
    let bounds = itl.p99_bounds_ns.filter(|bounds| doubtful(*bounds));
    let many = |events: u64| events as f64 > COALESCED_SHARE_MAX * client.events as f64;
    let late = client.joined > 0 && (many(client.joined) || bounds.is_some());
    if !late && !many(client.coalesced) {
        return None;
    }
    let (share, grade, remedy) = match late {
        true => (client.joined, Grade::Warn, "give the client more cores, and judge by TPOT"),
        false => (client.coalesced, Grade::Info, "judge by TPOT"),
    };
    let mut evidence = format!(
        "{} of the events shared a read with an earlier one",
        percent(share as f64, client.events as f64)
    );
    if late {
        evidence.push_str(" because the client was late");
    } else {
        evidence.push_str("; the client was in time, so they were sent together");
    }
    if let Some((low, high)) = itl.p99_bounds_ns.filter(|_| late) {
        evidence.push_str(&format!("; ITL p99 lies between {} and {}", time(low), time(high)));
    }
    Some(Finding::new(Rule::Coalesced, grade, evidence, remedy))
}

fn clock_step(facts: &Facts) -> Option<Finding> {
    let step = facts.client.wall_step_ns?;
    let evidence =
        format!("the wall clock was set by {} in the level: its kernel stamps are void", time(step as f64));
    Some(Finding::new(
        Rule::ClockStep,
        Grade::Warn,
        evidence,
        "let the clock be slewed, not set, during a run",
    ))
}

fn by_user_stamps(facts: &Facts) -> bool {
    facts.client.timestamps != Some(Timestamps::Kernel)
}

fn spread(delay: Delay) -> String {
    format!("{} p50, {} p99, {} at most", time(delay.p50_ns), time(delay.p99_ns), time(delay.max_ns))
}
