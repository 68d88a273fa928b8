//! A selftest for reading: a row per load, and what follows from them in words.

use super::errors::Off;
use super::outcome::{Selftest, StepBlock};
use crate::report::format;
use crate::report::selftest::OTHERS_PERCENT_MAX;
use crate::report::view::{Cell, Column, Note, Row, Table, View};

const fn column(group: &'static str, name: &'static str) -> Column {
    Column { group, name }
}

const COLUMNS: [Column; 13] = [
    column("", "events/s"),
    column("TTFT off by, ms", "p50"),
    column("TTFT off by, ms", "p99"),
    column("TTFT off by, ms", "max"),
    column("ITL off by, ms", "p50"),
    column("ITL off by, ms", "p99"),
    column("ITL off by, ms", "max"),
    column("last event", "p99"),
    column("p99 by the kernel", "TTFT"),
    column("p99 by the kernel", "ITL"),
    column("", "CPU us/event"),
    column("not ours, p99 ms", "server late"),
    column("not ours, p99 ms", "to server"),
];

/// `selftest` in words and numbers; `saved` is where it is stored.
pub(super) fn view(selftest: &Selftest, saved: Option<&str>) -> View {
    View {
        title: vec![title(selftest)],
        table: Table {
            whole_labels: false,
            head: "streams",
            columns: COLUMNS.to_vec(),
            rows: selftest.steps.iter().map(|step| row(step, selftest.error_max_ns)).collect(),
        },
        notes: notes(selftest),
        saved: saved.map(str::to_owned),
        ..View::default()
    }
}

fn title(selftest: &Selftest) -> String {
    let machine = &selftest.machine;
    let cpu = machine.cpu_model.as_deref().unwrap_or("unknown CPU");
    let kernel = machine.kernel.as_deref().unwrap_or("unknown");
    let text = format!(
        "tokload {} · selftest · {} × {cpu} · kernel {kernel} · {}",
        machine.tokload,
        machine.cores,
        selftest.created.split('.').next().unwrap_or_default().replace('T', " ") + " UTC"
    );
    format::one_line(&text, 300)
}

fn row(step: &StepBlock, error_max_ns: i64) -> Row {
    let ms = |off: Option<Off>, of: fn(Off) -> i64| match off.map(of) {
        None => Cell::Absent,
        Some(ns) if ns.abs() > error_max_ns => Cell::Suspect(format::ms(ns as f64)),
        Some(ns) => Cell::Number(format::ms(ns as f64)),
    };
    // The largest of many is not what a load is judged by.
    let plain = |off: Option<Off>, of: fn(Off) -> i64| {
        off.map_or(Cell::Absent, |off| Cell::Number(format::ms(of(off) as f64)))
    };
    let (ttft, itl) = (step.ttft, step.itl);
    let kernel = step.by_kernel;
    let cpu_us = (step.events > 0).then(|| step.cpu_ns as f64 / step.events as f64 / 1e3);
    let cells = vec![
        Cell::Number(step.events_s.to_string()),
        ms(ttft, |off| off.p50_ns),
        ms(ttft, |off| off.p99_ns),
        plain(ttft, |off| off.max_ns),
        ms(itl, |off| off.p50_ns),
        ms(itl, |off| off.p99_ns),
        plain(itl, |off| off.max_ns),
        ms(step.last, |off| off.p99_ns),
        ms(kernel.and_then(|kernel| kernel.ttft), |off| off.p99_ns),
        ms(kernel.and_then(|kernel| kernel.itl), |off| off.p99_ns),
        cpu_us.map_or(Cell::Absent, |us| Cell::Number(format!("{us:.1}"))),
        plain(Some(step.server_late), |off| off.p99_ns),
        plain(step.to_server, |off| off.p99_ns),
    ];
    Row { label: step.step.streams.to_string(), cells, second: false }
}

/// A core that does more reads late now and then.
const CORE_PERCENT: u64 = 70;
/// What a stream of a quick server sends.
const STREAM_EVENTS_S: u64 = 50;

fn notes(selftest: &Selftest) -> Vec<Note> {
    let say = |text| Note { warning: false, text };
    let warn = |text| Note { warning: true, text };
    let mut notes = vec![limit(selftest)];
    if let Some(step) = selftest.busiest()
        && let Some(events) = step.events_s_core()
    {
        let share = 100.0 * step.events_s as f64 / events as f64;
        notes.push(say(format!(
            "client: {events} events per second and core, by its CPU time at {} streams ({share:.0} % of a core)",
            step.step.streams
        )));
        let (cores, total) = (selftest.machine.cores, events * u64::from(selftest.machine.cores));
        let kept = total * CORE_PERCENT / 100;
        notes.push(say(format!(
            "this machine: {kept} events per second with its {cores} cores at {CORE_PERCENT} %, as {} streams of \
             {STREAM_EVENTS_S} events per second each would send",
            kept / STREAM_EVENTS_S
        )));
    }
    let tolerated = f64::from(OTHERS_PERCENT_MAX) / 100.0;
    if let Some(share) = selftest.others_share().filter(|share| *share > tolerated) {
        let share = format::percent(share);
        notes.push(warn(format!(
            "other programs keep {share} % of the machine busy: what they take from the client is in its errors"
        )));
    }
    if let Some(sends) = selftest.sends {
        let ms = |ns: i64| format::ms(ns as f64);
        notes.push(say(format!(
            "sends: {} at {} per second, late by {} ms p50, {} p99, {} max",
            sends.sends,
            format::typed(sends.rate),
            ms(sends.delay.p50_ns),
            ms(sends.delay.p99_ns),
            ms(sends.delay.max_ns)
        )));
    }
    for step in &selftest.steps {
        let streams = step.step.streams;
        if step.failed > 0 {
            notes.push(warn(format!("{streams} streams: {} requests failed", step.failed)));
        }
        if step.unknown > 0 {
            notes.push(warn(format!(
                "{streams} streams: {} requests are in no account of the server",
                step.unknown
            )));
        }
    }
    let slower: Vec<String> = selftest
        .steps
        .iter()
        .filter(|step| step.step.itl_ms > selftest.steps[0].step.itl_ms)
        .map(|step| format!("{} with {} streams", format::typed(step.step.itl_ms.round()), step.step.streams))
        .collect();
    if let Some(first) = selftest.steps.first().map(|step| step.step) {
        let mut text = format!(
            "the server sends its first event after {} ms and one every {} ms",
            format::typed(first.ttft_ms),
            format::typed(first.itl_ms)
        );
        if !slower.is_empty() {
            text += &format!("; every {}, since it keeps no more", slower.join(", "));
        }
        notes.push(say(text));
    }
    notes.push(match selftest.cores.shared {
        true => warn("client and server share the cores: a client alone would be better".to_owned()),
        false => say(format!(
            "cores: {} of the client, {} of the server",
            selftest.cores.shards(),
            selftest.cores.workers()
        )),
    });
    notes.extend(selftest.remarks.iter().cloned().map(warn));
    notes
}

fn limit(selftest: &Selftest) -> Note {
    let bound = format::typed(selftest.error_max_ns as f64 / 1e6);
    let (warning, text) = match selftest.limit {
        None if selftest.steps.is_empty() => {
            (true, "no load was tried: nothing is known of the error".to_owned())
        }
        None => (true, format!("the error's p99 is above {bound} ms at every load")),
        Some(limit) => {
            let up_to = format!(
                "the error's p99 stays within {bound} ms up to {} stream{} and {} events per second",
                limit.streams,
                if limit.streams == 1 { "" } else { "s" },
                limit.events_s
            );
            let beyond = match limit.fails_at {
                Some(streams) => format!(", not at {streams}"),
                None => ", the largest load that was tried".to_owned(),
            };
            (false, up_to + &beyond)
        }
    };
    Note { warning, text }
}

#[cfg(test)]
mod tests {
    use super::super::outcome::tests::selftest;
    use super::*;
    use crate::report::terminal;

    fn shown(selftest: &Selftest) -> String {
        let mut out = Vec::new();
        terminal::write(&view(selftest, Some("s.json")), terminal::Style::PLAIN, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_largest_load_is_said_with_what_lies_beyond() {
        let text = shown(&selftest());
        assert!(
            text.contains("within 1 ms up to 1000 streams and 48000 events per second, not at 10000"),
            "{text}"
        );
        assert!(
            text.contains(
                "200000 events per second and core, by its CPU time at 1000 streams (24 % of a core)"
            )
        );
        assert!(
            text.contains("280000 events per second with its 2 cores at 70 %, as 5600 streams of 50 events"),
            "{text}"
        );
        assert!(text.contains("sends: 1500 at 500 per second, late by 0.001 ms p50, 0.009 p99, 0.080 max"));
        assert!(text.contains("one every 20 ms; every 200 with 10000 streams"), "{text}");
        assert!(text.contains("saved s.json"));
    }

    #[test]
    fn errors_stand_in_their_rows_and_large_ones_are_marked() {
        let view = view(&selftest(), None);
        assert_eq!(view.table.rows.len(), 3);
        assert_eq!(view.table.rows[1].label, "1000");
        assert_eq!(view.table.rows[1].cells[2], Cell::Number("0.400".to_owned()));
        assert_eq!(view.table.rows[2].cells[2], Cell::Suspect("3.00".to_owned()));
        assert_eq!(view.table.rows[2].cells[10], Cell::Number("5.0".to_owned()));
        assert!(view.table.rows.iter().all(|row| row.cells.len() == view.table.columns.len()));
    }

    #[test]
    fn what_is_missing_or_wrong_is_a_warning() {
        let mut selftest = selftest();
        selftest.limit = None;
        selftest.cores.shared = true;
        selftest.steps[0].failed = 2;
        selftest.steps[0].busy_share = Some(0.9);
        selftest.steps[1].unknown = 3;
        selftest.remarks.push("10000 streams: no time was left".to_owned());
        let warnings: Vec<String> = view(&selftest, None)
            .notes
            .into_iter()
            .filter(|note| note.warning)
            .map(|note| note.text)
            .collect();
        assert_eq!(warnings.len(), 6, "{warnings:?}");
        assert!(warnings[1].starts_with("other programs keep 90.0 %"), "{warnings:?}");
        let everything = shown(&Selftest { steps: Vec::new(), ..selftest });
        assert!(everything.contains("no level was run"), "{everything}");
        assert!(everything.contains("! no load was tried: nothing is known of the error"), "{everything}");
        assert!(!everything.contains("at every load"), "{everything}");
    }
}
