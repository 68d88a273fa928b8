//! Remarks without which the numbers would mislead: how they were measured. What to distrust in them is the findings'
//! business.

use super::Note;
use super::rows::{GROWS, UNSUPPORTED};
use crate::metrics::metric::Metric;
use crate::plan::{Axis, Plan, Share, Slo, in_label};
use crate::report::{format, selftest};
use crate::run_file::RunFile;
use crate::run_file::schema::{ImportedBlock, LevelBlock, MergedBlock};
use crate::stats::{Confidence, Quantile, order};
use crate::workload::trace::Format;

/// The remarks on `run`, the most general first.
pub(super) fn of(run: &RunFile) -> Vec<Note> {
    let plan = run.plan.read().ok();
    let mut notes = Notes { levels: &run.levels, notes: Vec::new() };
    notes.outcome();
    notes.latencies();
    notes.windows();
    notes.marks();
    notes.goodput();
    if let Some(imported) = &run.imported {
        notes.imported(run, imported);
        return notes.notes;
    }
    if let Some(merged) = &run.merged {
        notes.merged(merged);
    }
    let share = plan.as_ref().map(Plan::own_share).unwrap_or_default();
    notes.arrivals(share, plan.as_ref().and_then(|plan| plan.target.connections.max));
    notes.trace(run, share);
    notes.data(run);
    notes.prompt_tokens(plan.as_ref());
    notes.output_tokens(plan.as_ref());
    notes.selftest(run);
    if let Some(plan) = &plan {
        notes.plan(plan);
    }
    if let Some(reason) = &run.records_absent {
        notes.say(format!("no records were kept: {}", format::one_line(reason, 120)));
    }
    notes.notes
}

struct Notes<'a> {
    levels: &'a [LevelBlock],
    notes: Vec<Note>,
}

impl Notes<'_> {
    fn say(&mut self, text: String) {
        self.notes.push(Note { warning: false, text });
    }

    fn warn(&mut self, text: String) {
        self.notes.push(Note { warning: true, text });
    }

    fn outcome(&mut self) {
        if !self.levels.is_empty() && self.levels.iter().all(|level| level.counts.ok == 0) {
            self.warn("no request ended well: there is nothing to measure".to_owned());
        }
    }

    fn imported(&mut self, run: &RunFile, imported: &ImportedBlock) {
        let files = format::one_line(&imported.files.join(", "), 200);
        let tool = &run.tool.name;
        self.say(format!(
            "imported from {files}: the numbers are by {tool}'s definitions, which stand in the run file, and are not \
             comparable with others without care"
        ));
        if imported.printed.is_empty() && run.levels.iter().any(|level| !level.rates.window.span_s.eq(&0.0)) {
            self.say(match imported.detailed {
                true => {
                    format!("percentiles are ours over {tool}'s values (nearest rank); rates are its own")
                }
                false => format!("percentiles and rates are {tool}'s own"),
            });
        }
        imported.notes.iter().for_each(|note| self.say(format::one_line(note, 300)));
    }

    fn merged(&mut self, merged: &MergedBlock) {
        let of = merged.of;
        self.say(match merged.missing.len() {
            0 => format!("merged of {of} shares"),
            missing => format!("merged of {} of {of} shares", of as usize - missing),
        });
        merged.notes.iter().for_each(|note| self.say(format::one_line(note, 300)));
    }

    fn latencies(&mut self) {
        let fails = |level: &LevelBlock| {
            level.distributions.values().any(|d| d.fails(Quantile::P50) || d.fails(Quantile::P99))
        };
        if self.levels.iter().any(fails) {
            self.warn(
                "`failed`: with failed requests counted as infinitely slow the percentile falls on one of them; \
                 `ok only` leaves them out"
                    .to_owned(),
            );
        } else if self.levels.iter().any(|level| level.counts.failed > 0 && level.counts.ok > 0) {
            self.say("latencies are those of the ok requests".to_owned());
        }
    }

    fn windows(&mut self) {
        if let Some(who) = self.who(|level| level.window.whole_level) {
            self.say(format!("window: whole level, with ramp and drain{who}"));
        }
        // Levels with the same window are named together.
        let mut alike: Vec<(String, Vec<&str>)> = Vec::new();
        for level in self.levels.iter().filter(|level| !level.window.whole_level) {
            let text = window_of(level);
            match alike.iter_mut().find(|(other, _)| *other == text) {
                Some((_, labels)) => labels.push(&level.label),
                None => alike.push((text, vec![&level.label])),
            }
        }
        for (text, labels) in alike {
            let who = match labels.as_slice() {
                several if several.len() > 1 && several.len() == self.levels.len() => "all levels".to_owned(),
                some => some.join(", "),
            };
            self.say(format!("{who}: {text}"));
        }
    }

    /// What the marks of the table mean; their numbers are with the findings.
    fn marks(&mut self) {
        let grows = |level: &LevelBlock| {
            level.statistics.as_ref().is_some_and(|statistics| statistics.steady.latency_grows)
        };
        if self.levels.iter().any(grows) {
            self.say(format!(
                "`{GROWS}`: a latency that grows with run length: the queue grew all the while"
            ));
        }
        if self.levels.iter().any(|level| !grows(level) && is_marked(level)) {
            let needed = |quantile| order::n_for_upper_end(quantile, Confidence::C95).unwrap_or(0);
            self.say(format!(
                "`{UNSUPPORTED}`: not known well: too few independent requests (n_eff) behind it; p50 takes {}, p99 {}",
                needed(Quantile::P50),
                needed(Quantile::P99)
            ));
        }
    }

    fn goodput(&mut self) {
        for origin in ORIGINS {
            let judged =
                |level: &LevelBlock| level.goodput.filter(|g| judged_from(level, g.from_plan) == origin);
            let Some(goodput) = self.levels.iter().find_map(judged) else { continue };
            let who = self.who(|level| judged(level).is_some()).unwrap_or_default();
            self.say(format!("goodput{who}: {}, judged from the {origin}", slo(&goodput.slo)));
        }
    }

    /// Asked against realised rates, latencies from the planned send where there is a plan, and what kept requests from
    /// it.
    fn arrivals(&mut self, share: Share, limit: Option<u32>) {
        for level in self.levels {
            let Ok(setting) = level.setting.read() else { continue };
            let whole = level.shares_there().is_empty();
            let asked = level.asked_s().map(|asked| {
                // What was planned are requests, and conversations have several.
                let (unit, planned) = match level.sessions {
                    Some(_) => ("sessions/s", None),
                    None => ("req/s", planned_rate(level)),
                };
                let asked = match setting.load.rate() {
                    Some(rate) if share.of > 1 => format!("asked {} {unit}", format::rate(share.rate(rate))),
                    Some(_) if !whole => format!("asked {} {unit}", format::rate(asked)),
                    Some(rate) => format!("asked {} {unit}", in_label(rate)),
                    None => format!("asked {} {unit} on average", format::rate(share.rate(asked))),
                };
                match planned {
                    Some(planned) => format!("{asked}, planned {}", format::rate(planned)),
                    None => asked,
                }
            });
            if !setting.load.judged_from_plan() || level.counts.ok == 0 {
                asked.into_iter().for_each(|asked| self.say(format!("{}: {asked}", level.label)));
                continue;
            }
            let planned = from_plan(level);
            if level.distributions.get(&Metric::CapWait).is_some_and(|wait| wait.max > Some(0.0)) {
                asked.into_iter().for_each(|asked| self.say(format!("{}: {asked}", level.label)));
                let held = match setting.load.users {
                    None if setting.load.cap.is_none() && limit.is_some() => "all connections were in use",
                    None => "the cap was reached",
                    Some(_) => "users were not free when they were to send",
                };
                self.warn(format!("{}: {held}; {planned}", level.label));
            } else {
                let all: Vec<String> = asked.into_iter().chain([planned]).collect();
                self.say(format!("{}: {}", level.label, all.join("; ")));
            }
        }
    }

    fn trace(&mut self, run: &RunFile, share: Share) {
        let Some(trace) = &run.trace else { return };
        let left_out = [
            (trace.malformed, "malformed"),
            (trace.failed, "failed calls"),
            (trace.other_model, "to other models"),
            (trace.outside, "outside of the slice"),
            (trace.turns, "later turns of conversations"),
        ];
        let said: Vec<String> =
            left_out.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
        let mut text = match trace.format == Format::Weka.name() {
            false => format!("trace: {} of {} records are sent", trace.requests, trace.records),
            true => {
                let all = trace.requests + trace.later_turns;
                format!("trace: {} sessions of agents with {all} requests are sent", trace.requests)
            }
        };
        if share.of > 1 {
            text += &format!(", {} of them by share {share}", share.count(trace.requests));
        }
        if !said.is_empty() {
            text += &format!("; left out: {}", said.join(", "));
        }
        self.say(text);
    }

    fn data(&mut self, run: &RunFile) {
        let Some(data) = &run.data else { return };
        let left_out = data.malformed + data.unanswered + data.failed + data.turns + data.other_paths;
        let mut text = match data.later_turns {
            0 => format!("data set: {} prompts", data.prompts),
            later => format!("data set: {} sessions of {} turns", data.prompts, data.prompts + later),
        };
        if left_out > 0 {
            text += &format!(", {left_out} entries left out");
        }
        if data.lengths_estimated > 0 {
            text += &format!("; {} recorded answers have no length, only a text", data.lengths_estimated);
        }
        self.say(text);
        let taken =
            |level: &LevelBlock| level.sessions.map_or(level.counts.planned, |sessions| sessions.begun);
        let most = self.levels.iter().map(taken).max().unwrap_or(0);
        // A session of agents that comes again has other words.
        if most > data.prompts && data.prompts > 0 && data.format != Format::Weka.name() {
            let (what, of_what) =
                if data.later_turns > 0 { ("sessions", "conversations") } else { ("requests", "prompts") };
            self.warn(format!(
                "{of_what} came again: {most} {what} of a level took {}, each about {:.1} times; a prefix cache may have \
                 answered",
                data.prompts,
                most as f64 / data.prompts as f64
            ));
        }
    }

    fn prompt_tokens(&mut self, plan: Option<&Plan>) {
        let sum = |field: fn(&LevelBlock) -> u64| self.levels.iter().map(field).sum::<u64>();
        let (tokens, known) = (sum(|l| l.tokens.prompt), sum(|l| l.tokens.prompt_known));
        let (ok, cached) = (sum(|l| l.counts.ok), self.levels.iter().filter_map(|l| l.tokens.cached));
        let cached = cached.reduce(|a, b| a + b);
        if ok == 0 {
            return;
        }
        let asked = plan.map_or_else(String::new, |plan| {
            let template = plan.workload.template_tokens();
            let template = template.map_or_else(String::new, |tokens| format!(" + {tokens} of the template"));
            let words = self.own_lengths().unwrap_or_else(|| plan.workload.prompt_words_text());
            format!("asked {words}{template}, ")
        });
        let mut text = if known == 0 {
            format!("prompt tokens: {asked}none reported")
        } else {
            format!("prompt tokens: {asked}reported {:.1} per request", tokens as f64 / known as f64)
        };
        if known > 0 && known < ok {
            text += &format!(" by {known} of {ok}");
        }
        if let Some(cached) = cached.filter(|_| tokens > 0) {
            text += &format!(", {} % of them from the cache", format::percent(cached as f64 / tokens as f64));
        }
        self.say(text);
    }

    /// The lengths of prompts that levels have in place of the workload's.
    fn own_lengths(&self) -> Option<String> {
        let own = self.levels.iter().map(|level| level.amount(Axis::InputLen));
        let own: Vec<f64> = own.collect::<Option<_>>()?;
        let (least, most) = (own.iter().copied().reduce(f64::min)?, own.iter().copied().reduce(f64::max)?);
        Some(if least < most { format!("{least} to {most}") } else { least.to_string() })
    }

    /// Where nothing is generated, what is worked through are prompts.
    fn prompt_rates(&mut self) {
        for level in self.levels {
            let rate = format::rate(level.rates.window.in_tok_s);
            self.say(format!("{}: {rate} prompt tokens/s, and no output", level.label));
        }
    }

    fn output_tokens(&mut self, plan: Option<&Plan>) {
        let sum = |field: fn(&LevelBlock) -> u64| self.levels.iter().map(field).sum::<u64>();
        let ok = sum(|level| level.counts.ok);
        if ok == 0 {
            return;
        }
        if plan.is_some_and(|plan| !plan.target.dialect.generates()) {
            return self.prompt_rates();
        }
        let [_, tokenizer, events, unknown] =
            [0, 1, 2, 3].map(|source| self.levels.iter().map(|l| l.tokens.sources[source]).sum::<u64>());
        // What is mixed or counted in events is a finding.
        if self.levels.iter().any(|level| level.tokens.mixed_sources) || events > 0 {
            return;
        }
        if unknown > 0 {
            self.warn("output tokens are not known: no TPOT and no token rate".to_owned());
        } else if tokenizer > 0 {
            self.say("output tokens: from the tokenizer".to_owned());
        } else {
            self.say("output tokens: from the server's usage".to_owned());
        }
    }

    /// Up to which load the client is known to be exact, and who went beyond it.
    fn selftest(&mut self, run: &RunFile) {
        if let Some(block) = &run.environment.selftest {
            self.say(selftest::line(block));
        }
        selftest::levels_beyond(run).into_iter().for_each(|text| self.warn(text));
    }

    fn plan(&mut self, plan: &Plan) {
        let dropped = &plan.workload.options.dropped;
        if !dropped.is_empty() {
            self.warn(format!(
                "the server refused these fields, which were left out: {}",
                dropped.join(", ")
            ));
        }
        self.say(format!("seed {}", plan.seed));
    }

    /// Which levels: nothing where all are meant, else their labels; `None` if there are none.
    fn who(&self, meant: impl Fn(&LevelBlock) -> bool) -> Option<String> {
        let labels: Vec<&str> =
            self.levels.iter().filter(|level| meant(level)).map(|level| level.label.as_str()).collect();
        match labels.len() {
            0 => None,
            n if n == self.levels.len() => Some(String::new()),
            _ => Some(format!(" ({})", labels.join(", "))),
        }
    }
}

/// The measurement window of a level, and how it came about.
fn window_of(level: &LevelBlock) -> String {
    let seconds = |from: u64, to: u64| to.saturating_sub(from) as f64 / 1e9;
    let (start, end) = (level.window.start_ns, level.window.end_ns);
    let text = format!(
        "window of {:.1} s, from {:.1} s after the first planned send",
        seconds(start, end),
        seconds(level.span.t0_ns, start)
    );
    let steady = level.statistics.as_ref().map(|statistics| statistics.steady);
    match steady.and_then(|steady| Some((steady.found?, steady.fixed_start_ns))) {
        Some((true, fixed)) => format!(
            "{text} (MSER-5; ITL is of requests planned from {:.1} s on, as it is pooled meanwhile)",
            seconds(level.span.t0_ns, fixed)
        ),
        Some((false, _)) => format!("{text}, as MSER-5 found no steady state"),
        None => text,
    }
}

const ORIGINS: [&str; 4] = [
    "start (closed loop)",
    "start (when it was planned is not known)",
    "planned send (open loop)",
    "planned send (paced users)",
];

/// From when on latencies are judged, in words.
fn judged_from(level: &LevelBlock, from_plan: bool) -> &'static str {
    let open = || level.setting.read().is_ok_and(|setting| setting.load.judged_from_plan());
    let paced = || level.setting.read().is_ok_and(|setting| setting.load.users.is_some());
    match from_plan {
        false if open() => "start (when it was planned is not known)",
        false => "start (closed loop)",
        true if paced() => "planned send (paced users)",
        true => "planned send (open loop)",
    }
}

/// Planned sends per second of the time that they were planned for, which a drain is no part of.
fn planned_rate(level: &LevelBlock) -> Option<f64> {
    let (window, span) = (level.window, level.span);
    let (from, to) =
        if window.whole_level { (span.t0_ns, span.t1_ns) } else { (window.start_ns, window.end_ns) };
    let nanos = to.checked_sub(from).filter(|nanos| *nanos > 0)?;
    Some(level.counts.planned as f64 * 1e9 / nanos as f64)
}

/// What users see who came when they had planned to, those who got no answer among them.
fn from_plan(level: &LevelBlock) -> String {
    let quantiles = |metric| {
        let shown = |quantile| match level.distributions.get(&metric) {
            Some(block) if block.fails(quantile) => "failed".to_owned(),
            Some(block) => block.quantile(quantile).map_or_else(|| "–".to_owned(), format::ms),
            None => "–".to_owned(),
        };
        format!("{} / {}", shown(Quantile::P50), shown(Quantile::P99))
    };
    let (ttft, e2e) = (quantiles(Metric::TtftPlan), quantiles(Metric::E2ePlan));
    format!("from the planned send TTFT p50 / p99 is {ttft} ms, E2E {e2e} ms")
}

/// Whether a percentile of the table is unsupported.
fn is_marked(level: &LevelBlock) -> bool {
    let known = |metric| level.statistics.as_ref()?.latency(metric);
    [Metric::Ttft, Metric::Tpot, Metric::E2e].into_iter().filter_map(known).any(|latency| {
        let shown = [Quantile::P50, Quantile::P99].into_iter().filter_map(|q| latency.quantile(q));
        shown.into_iter().any(|known| !known.supported)
    })
}

/// The limits in words: `TTFT <= 500 ms, TPOT <= 50 ms`.
pub(super) fn slo(slo: &Slo) -> String {
    let limits = [
        ("TTFT", slo.ttft_ms),
        ("TTFA", slo.ttfa_ms),
        ("TPOT", slo.tpot_ms),
        ("largest ITL", slo.itl_max_ms),
        ("E2E", slo.e2e_ms),
    ];
    let words =
        limits.iter().filter_map(|(name, limit)| Some(format!("{name} <= {} ms", format::typed((*limit)?))));
    words.collect::<Vec<_>>().join(", ")
}
