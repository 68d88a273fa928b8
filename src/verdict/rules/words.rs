//! Numbers in evidence: three digits that mean something, and a unit.

/// `0.042 ms`, `1.25 ms`, `312 ms`, `4.2 s`.
pub(super) fn time(ns: f64) -> String {
    let ms = ns / 1e6;
    match ms.abs() {
        x if x < 1.0 => format!("{ms:.3} ms"),
        x if x < 10.0 => format!("{ms:.2} ms"),
        x if x < 100.0 => format!("{ms:.1} ms"),
        x if x < 10_000.0 => format!("{ms:.0} ms"),
        _ => format!("{:.1} s", ms / 1000.0),
    }
}

/// `0.43 s`, `12.5 s`, `300 s`.
pub(super) fn seconds(s: f64) -> String {
    match s.abs() {
        x if x < 10.0 => format!("{s:.2} s"),
        x if x < 100.0 => format!("{s:.1} s"),
        _ => format!("{s:.0} s"),
    }
}

/// `0.13 %`, `12.5 %`; never a zero for what is none.
pub(super) fn percent(part: f64, whole: f64) -> String {
    let percent = 100.0 * part / whole;
    match percent {
        x if x > 0.0 && x < 0.01 => "less than 0.01 %".to_owned(),
        x if x < 1.0 => format!("{percent:.2} %"),
        _ => format!("{percent:.1} %"),
    }
}

/// `1 request`, `12 requests`.
pub(super) fn count(n: u64, one: &str) -> String {
    if n == 1 { format!("1 {one}") } else { format!("{n} {one}s") }
}
