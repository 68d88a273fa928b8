//! What servers and GPUs said of a level, beside what the client saw.

use super::facts::{ms, number, tenths};
use crate::run_file::schema::LevelBlock;
use crate::summary::telemetry::{Gauge, LevelTelemetry, Network};

/// Sentences about a level; empty where nobody said anything.
pub(super) fn lines(level: &LevelBlock) -> Vec<String> {
    let Some(told) = &level.telemetry else { return Vec::new() };
    [network(told), inside(level, told), cache(told), energy(told)].into_iter().flatten().collect()
}

fn network(told: &LevelTelemetry) -> Option<String> {
    let Network { server_ttft_ms, client_ttft_ms, difference_ms, .. } = told.network?;
    let between = difference_ms?;
    let queue = told.all_servers().and_then(|all| all.queue);
    let waited =
        queue.map_or_else(String::new, |queue| format!(", {} ms of them in its queue", ms(queue.mean_ms)));
    Some(format!(
        "TTFT is {} ms on average, of which the server counts {} ms{waited}; {} ms are the network, gateways and its way \
         in and out.",
        ms(client_ttft_ms),
        ms(server_ttft_ms),
        ms(between)
    ))
}

fn inside(level: &LevelBlock, told: &LevelTelemetry) -> Option<String> {
    let all = told.all_servers()?;
    let running = all.running?.mean;
    let waiting = all.waiting.map_or(0.0, |waiting| waiting.mean);
    let ours = level.in_flight.as_ref()?.mean;
    let others = match running + waiting - ours {
        more if more > 1.0 + ours / 2.0 => ": others use it as well",
        _ => "",
    };
    Some(format!(
        "It says that it runs {} requests and lets {} wait, {} of ours being in flight{others}.",
        tenths(running),
        tenths(waiting),
        tenths(ours)
    ))
}

fn cache(told: &LevelTelemetry) -> Option<String> {
    let all = told.all_servers()?;
    let Gauge { max, .. } = all.kv_cache_use?;
    let full = if max >= FULL { ": there is no room for more requests at once" } else { "" };
    let put_aside = match all.preemptions.filter(|n| *n > 0.0) {
        Some(n) => {
            format!("; it put requests aside {} times for want of memory, and computed them again", number(n))
        }
        None => String::new(),
    };
    Some(format!("Its KV cache is {} % full at most{full}{put_aside}.", number(max * 100.0)))
}

fn energy(told: &LevelTelemetry) -> Option<String> {
    let efficiency = told.efficiency?;
    let (power, per_joule) = (efficiency.power_w?, efficiency.tok_per_joule?);
    let gpus = if efficiency.gpus == 1 {
        "The GPU draws".to_owned()
    } else {
        format!("{} GPUs draw", efficiency.gpus)
    };
    Some(format!(
        "{gpus} {} W: {per_joule:.3} output tokens per joule, and {} per second and GPU.",
        number(power),
        number(efficiency.tok_s_per_gpu)
    ))
}

/// A cache that is fuller has no room for a request more.
const FULL: f64 = 0.95;
