//! What connections cost: how many were opened, what opening and TLS took, who had to wait for one.

use super::{Cell, Column, Note, Row};
use crate::metrics::metric::Metric;
use crate::plan::{Connections, Plan};
use crate::report::format;
use crate::run_file::RunFile;
use crate::run_file::schema::{ConnectionsBlock, LevelBlock};
use crate::stats::Quantile;

/// The columns behind the load, in the order of the cells.
pub(super) const COLUMNS: &[Column] = &[
    column("connections", "opened"),
    column("connections", "before"),
    column("connections", "races"),
    column("connect ms", "p50"),
    column("connect ms", "p99"),
    column("TLS ms", "p50"),
    column("TLS ms", "p99"),
    column("TLS", "full"),
    column("TLS", "resumed"),
    column("wait ms", "p50"),
    column("wait ms", "p99"),
];

/// Connections that were opened for requests from which on it is worth a row what they took.
const OPENED_MIN: u64 = 20;

/// One row for each level, where connections are a subject of the run.
pub(super) fn rows(run: &RunFile) -> Vec<Row> {
    let by_plan =
        run.plan.read().is_ok_and(|plan| !run.is_simulated() && is_subject(&plan.target.connections));
    if !by_plan && !run.levels.iter().any(has_something_to_say) {
        return Vec::new();
    }
    run.levels.iter().filter(|level| level.self_check.sent > 0).map(row).collect()
}

fn is_subject(settings: &Connections) -> bool {
    Connections { connect_to: Vec::new(), unix_socket: None, ..settings.clone() } != Connections::default()
}

fn has_something_to_say(level: &LevelBlock) -> bool {
    let fresh = level.distributions.get(&Metric::TcpConnect).map_or(0, |connect| connect.n);
    level.self_check.connections != ConnectionsBlock::default()
        || level.self_check.resent > 0
        || fresh >= OPENED_MIN
}

fn row(level: &LevelBlock) -> Row {
    let check = &level.self_check;
    let connections = &check.connections;
    let count = |n: u64| Cell::Number(n.to_string());
    let has_tls = connections.tls_full + connections.tls_resumed > 0;
    let of_tls = |n: u64| if has_tls { count(n) } else { Cell::Absent };
    let mut cells = vec![count(check.connects), count(connections.prewarmed), count(check.resent)];
    for metric in [Metric::TcpConnect, Metric::TlsHandshake] {
        let quantile = |quantile| {
            let ns = level.distributions.get(&metric).and_then(|found| found.quantile(quantile));
            ns.map_or(Cell::Absent, |ns| Cell::Number(format::ms(ns)))
        };
        cells.extend([Quantile::P50, Quantile::P99].map(quantile));
    }
    cells.extend([of_tls(connections.tls_full), of_tls(connections.tls_resumed)]);
    let wait = |ns: Option<f64>| ns.map_or(Cell::Absent, |ns| Cell::Number(format::ms(ns)));
    cells.extend([
        wait(connections.wait.and_then(|wait| wait.p50_ns)),
        wait(connections.wait.and_then(|wait| wait.p99_ns)),
    ]);
    Row { label: level.label.clone(), cells, second: false }
}

/// Who waited for a connection, which connections did not come about, and which were closed under a request.
pub(super) fn notes(run: &RunFile) -> Vec<Note> {
    let plan = run.plan.read().ok();
    let mut notes = Vec::new();
    for level in &run.levels {
        let (label, check) = (&level.label, &level.self_check);
        let mut say = |warning, text: String| notes.push(Note { warning, text: format!("{label}: {text}") });
        if let Some(wait) = check.connections.wait {
            let p50 = wait.p50_ns.map_or_else(String::new, |ns| format!("{} ms p50, ", format::ms(ns)));
            say(
                true,
                format!(
                    "{} of {} requests waited for a connection{}, {p50}{} ms at most; the wait is in the latencies from the \
                     planned send, not in those from the start",
                    wait.n,
                    check.sent,
                    limit(plan.as_ref()),
                    format::ms(wait.max_ns)
                ),
            );
        }
        if check.connections.prewarm_failed > 0 {
            let n = check.connections.prewarm_failed;
            say(true, format!("{n} connections that were to stand before the level did not come about"));
        }
        if check.resent > 0 {
            let (requests, their) =
                if check.resent == 1 { ("request", "its") } else { ("requests", "their") };
            say(
                false,
                format!(
                    "keep-alive races: {} {requests} met a connection that the server was closing, and went once more on a \
                     fresh one, {their} clock running on",
                    check.resent
                ),
            );
        }
        if check.connections.retired > 0 {
            say(
                false,
                format!("{} connections were closed as old or used enough", check.connections.retired),
            );
        }
    }
    notes
}

fn limit(plan: Option<&Plan>) -> String {
    let most = plan.and_then(|plan| plan.target.connections.max);
    most.map_or_else(String::new, |most| format!(" (at most {most} to a server)"))
}

const fn column(group: &'static str, name: &'static str) -> Column {
    Column { group, name }
}
