//! The README's commands on a single server, on Little's law and on a standstill: each shows its golden's numbers.
//!
//! The sweep is not here: its golden draws lengths from java.util.Random, and there the user whose answer has just ended
//! is in time for the next step. `goldens_model` gives the model both.

use tokload::metrics::Record;

use crate::goldens::values;
use crate::goldens_model::number;
use crate::prompt_mix::{ON_THE_WAY_NS, documented, levels};

/// The golden's length of time in nanoseconds; all of them are whole.
fn nanos(milliseconds: f64) -> u64 {
    (milliseconds * 1e6).round() as u64
}

/// What each of `records` took in all, as the server counts it.
fn e2e_ns(record: &Record) -> u64 {
    assert!(record.outcome.is_ok());
    record.e2e_ns().unwrap() - ON_THE_WAY_NS
}

#[test]
fn throughput_against_the_speed_of_one_user() {
    let (_, levels) = levels(&documented("speed of one user against throughput of all"), |_| {});
    let golden = values("ThroughputVsUser");
    let curve = golden["curve"].as_array().unwrap();
    assert_eq!(levels.len(), curve.len());
    for (records, row) in levels.iter().zip(curve) {
        let step_ns = nanos(number(row, "step_ms"));
        // 64 tokens each; prompts cost nothing here.
        assert!(records.iter().all(|record| record.tpot_ns() == Some(step_ns as f64)), "{row}");
        assert!(records.iter().all(|record| e2e_ns(record) == 64 * step_ns), "{row}");
    }
}

#[test]
fn littles_law_with_and_without_pauses() {
    let command = documented("Little's law, without and with pauses");
    for (think_s, clients) in [(0.0, &[1, 4, 16][..]), (2.0, &[4, 16])] {
        let golden = values("LittleClosedLoop");
        let line = if think_s > 0.0 { format!("{command} --think-time {think_s}") } else { command.clone() };
        let (ordered, levels) = levels(&line, |_| {});
        for (level, records) in ordered.order.plan.levels.iter().zip(&levels) {
            let users = level.load.users.unwrap();
            let of = |row: &&serde_json::Value| {
                number(row, "clients") == f64::from(users) && number(row, "think_s") == think_s
            };
            let Some(row) = golden.as_array().unwrap().iter().find(of) else {
                assert!(!clients.contains(&users));
                continue;
            };
            let w_ns = nanos(number(row, "w_s") * 1e3);
            let ends: Vec<u64> = records.iter().map(e2e_ns).collect();
            assert!(ends.iter().all(|&end| end == w_ns), "{row}: {ends:?}");
        }
    }
}

#[test]
fn a_standstill_under_an_open_loop() {
    let (_, levels) = levels(&documented("a standstill under an open loop"), |_| {});
    let mut e2e: Vec<u64> = levels[0].iter().map(|record| record.e2e_plan_ns().unwrap()).collect();
    e2e.sort_unstable();
    let golden = values("OpenVsClosed");
    let row =
        golden.as_array().unwrap().iter().find(|row| row["name"] == "open loop, from intended send").unwrap();
    assert_eq!(e2e.len() as u64, row["n"].as_u64().unwrap());
    for (key, rank) in [("p50", 150), ("p90", 270), ("p99", 297), ("max", 300)] {
        // The golden is the upper end of a histogram's bucket of a thousandth.
        let (ms, upper) = ((e2e[rank - 1] - ON_THE_WAY_NS) as f64 / 1e6, number(row, key));
        assert!(ms <= upper && upper <= ms * 1.001, "{key}: {ms} ms against {upper}");
    }
}
