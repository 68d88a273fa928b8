//! What differs between two runs besides the server: said, never passed over.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::Value;

use super::sample::{LoadOf, Sample};
use crate::plan::{Grade, Slo, json_of};
use crate::run_file::RunFile;
use crate::stats::sort;
use crate::verdict::Verdict;

/// Something that a comparison rests on or stumbles over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Remark {
    /// `warn`: the numbers may differ for another reason than the server. `info`: worth knowing.
    pub grade: Grade,
    /// What it is about: `plan`, `definitions`, `client`, `server`, `tool`, `records`, `verdict`, `loads`, `run`.
    pub about: &'static str,
    /// The words.
    pub text: String,
}

impl Remark {
    pub(crate) fn warn(about: &'static str, text: String) -> Remark {
        Remark { grade: Grade::Warn, about, text }
    }

    pub(crate) fn info(about: &'static str, text: String) -> Remark {
        Remark { grade: Grade::Info, about, text }
    }
}

/// What differs between `base` and `other`.
#[must_use]
pub fn between(base: &Sample, other: &Sample) -> Vec<Remark> {
    let mut remarks = Vec::new();
    definitions(&base.run, &other.run, &mut remarks);
    plans(&base.run, &other.run, &mut remarks);
    surroundings(&base.run, &other.run, &mut remarks);
    loads(&base.loads(), &other.loads(), &mut remarks);
    for remark in &mut remarks {
        remark.text = format!("{} ({} to {})", remark.text, base.name, other.name);
    }
    remarks
}

/// What a run lacks by itself.
#[must_use]
pub(crate) fn alone(sample: &Sample) -> Vec<Remark> {
    let Sample { name, run, .. } = sample;
    let mut remarks = Vec::new();
    if run.verdict == Some(Verdict::Invalid) {
        let invalid = run.levels.iter().filter(|level| level.verdict == Some(Verdict::Invalid));
        let levels: Vec<&str> = invalid.map(|level| level.label.as_str()).collect();
        let of = if levels.is_empty() { String::new() } else { format!(" ({})", levels.join(", ")) };
        remarks
            .push(Remark::warn("verdict", format!("{name} is invalid{of}: tokload report {name} says why")));
    }
    if run.interrupted || run.levels.iter().any(|level| level.interrupted) {
        let text = format!("{name} was interrupted: levels are cut short or missing");
        remarks.push(Remark::warn("run", text));
    }
    if !sample.has_records() && !run.levels.is_empty() {
        let known = run.levels.iter().all(|level| level.statistics.is_some());
        let what = match known {
            true => "its intervals come from the statistics that it kept",
            false => "a load without five rounds has no interval in it",
        };
        remarks.push(Remark::warn("records", format!("the records of {name} are not there: {what}")));
    }
    if run.is_simulated() {
        remarks.push(Remark::info("run", format!("{name} is simulated")));
    }
    remarks
}

/// What is to be said of all `samples`, the others being compared with the first.
#[must_use]
pub(crate) fn of_all(samples: &[Sample]) -> Vec<Remark> {
    let mut remarks: Vec<Remark> = samples.iter().flat_map(alone).collect();
    if let Some((first, others)) = samples.split_first() {
        remarks.extend(others.iter().flat_map(|other| between(first, other)));
    }
    in_order(remarks)
}

/// The gravest first; else in the order in which they were found. Each stands once: of a run that is named twice the same is
/// to be said.
#[must_use]
pub(crate) fn in_order(mut remarks: Vec<Remark>) -> Vec<Remark> {
    sort::few_by_key(&mut remarks, |remark| std::cmp::Reverse(remark.grade));
    let mut said = BTreeSet::new();
    remarks.retain(|remark| said.insert(remark.text.clone()));
    remarks
}

/// Numbers that mean something else in the other run, or that only one of them explains.
fn definitions(base: &RunFile, other: &RunFile, remarks: &mut Vec<Remark>) {
    let of = |run: &RunFile, name: &str| {
        run.definitions.iter().find(|definition| definition.name == name).cloned()
    };
    let (mut changed, mut missing) = (Vec::new(), Vec::new());
    let names: BTreeSet<&str> = base
        .definitions
        .iter()
        .chain(&other.definitions)
        .map(|definition| definition.name.as_str())
        .collect();
    for name in names {
        match (of(base, name), of(other, name)) {
            (Some(a), Some(b)) if a != b => changed.push(name),
            (Some(_), None) | (None, Some(_)) => missing.push(name),
            _ => {}
        }
    }
    if !changed.is_empty() {
        let text = format!("other definitions of {}: their values are not comparable", listed(&changed));
        remarks.push(Remark::warn("definitions", text));
    }
    if !missing.is_empty() {
        remarks.push(Remark::warn("definitions", format!("only one run defines {}", listed(&missing))));
    }
}

/// What was asked in another way. Seeds, lengths, and where the server is are what two runs may differ in.
fn plans(base: &RunFile, other: &RunFile, remarks: &mut Vec<Remark>) {
    let plan = |run: &RunFile| json_of(&run.plan);
    let mut differences = Vec::new();
    differing("", &plan(base), &plan(other), &mut differences);
    let (mut warned, mut noted) = (Vec::new(), Vec::new());
    for (path, before, after) in differences {
        if FREE.iter().any(|free| path.starts_with(free)) {
            continue;
        }
        let text = format!("{path} {before} -> {after}");
        if NOTED.iter().any(|free| path.starts_with(free)) { noted.push(text) } else { warned.push(text) }
    }
    if !warned.is_empty() {
        remarks.push(Remark::warn("plan", format!("another plan: {}", warned.join(", "))));
    }
    if !noted.is_empty() {
        remarks.push(Remark::info("plan", format!("not the same: {}", noted.join(", "))));
    }
}

/// Parts of a plan that make no difference to what is measured, or that are looked at elsewhere.
const FREE: [&str; 7] = ["seed", "runs", "until", "levels", "keep", "slo", "target.endpoints"];
/// Parts in which builds that are compared usually differ.
const NOTED: [&str; 3] = ["target.models", "declared", "target.headers"];

/// Machines, tools and servers.
fn surroundings(base: &RunFile, other: &RunFile, remarks: &mut Vec<Remark>) {
    let text = |value: Option<String>| value.unwrap_or_else(|| "unknown".to_owned());
    let number = |value: Option<u64>| value.map(|number| number.to_string());
    let mut compare = |grade: Grade, about, what: &str, a: Option<String>, b: Option<String>| {
        if a != b {
            let text = format!("another {what}: {} -> {}", text(a), text(b));
            remarks.push(Remark { grade, about, text });
        }
    };
    let (a, b) = (&base.environment, &other.environment);
    let warn = Grade::Warn;
    compare(warn, "client", "CPU", a.cpu_model.clone(), b.cpu_model.clone());
    compare(warn, "client", "number of cores", cores(base), cores(other));
    compare(warn, "client", "memory", number(a.memory_bytes), number(b.memory_bytes));
    compare(warn, "client", "platform", a.platform.clone(), b.platform.clone());
    compare(warn, "client", "kernel", a.kernel.clone(), b.kernel.clone());
    compare(warn, "client", "kernel interface", a.driver.clone(), b.driver.clone());
    compare(warn, "client", "clock", clock(base), clock(other));
    compare(warn, "tool", "tool", Some(tool(base)), Some(tool(other)));
    compare(warn, "server", "kind of server", base.target.kind.clone(), other.target.kind.clone());
    // This is what builds are compared for.
    compare(
        Grade::Info,
        "server",
        "version of the server",
        base.target.version.clone(),
        other.target.version.clone(),
    );
    let reset = |run: &RunFile| run.target.prefix_cache_reset.map(|reset| reset.to_string());
    compare(
        warn,
        "server",
        "state of the prefix cache (emptied before each level)",
        reset(base),
        reset(other),
    );
    for name in base.metadata.keys().chain(other.metadata.keys()).collect::<BTreeSet<_>>() {
        let cut = |text: &String| text.chars().take(VALUE_CHARS_MAX).collect::<String>();
        let of = |run: &RunFile| run.metadata.get(name).map(cut);
        compare(Grade::Info, "server", &format!("--metadata {name}"), of(base), of(other));
    }
}

fn cores(run: &RunFile) -> Option<String> {
    let of = |cores: Option<u32>| cores.map_or_else(|| "?".to_owned(), |cores| cores.to_string());
    let environment = &run.environment;
    Some(format!("{} of {}", of(environment.cores_usable), of(environment.cores_machine)))
}

/// Measured or simulated: whichever counter is read makes no difference.
fn clock(run: &RunFile) -> Option<String> {
    Some(if run.is_simulated() { "simulated" } else { "real" }.to_owned())
}

fn tool(run: &RunFile) -> String {
    let tool = &run.tool;
    let git = tool.git.as_ref().map_or_else(String::new, |git| format!(" {git}"));
    format!("{} {}{git}", tool.name, tool.version)
}

/// Loads that only one run has, and what differs in those that both have.
fn loads(base: &[LoadOf<'_>], other: &[LoadOf<'_>], remarks: &mut Vec<Remark>) {
    let of = |loads: &[LoadOf<'_>], key: &str| loads.iter().position(|load| load.key == key);
    let only = |some: &[LoadOf<'_>], others: &[LoadOf<'_>]| -> Vec<String> {
        some.iter().filter(|load| of(others, &load.key).is_none()).map(|load| load.label.clone()).collect()
    };
    let (gone, new) = (only(base, other), only(other, base));
    if !gone.is_empty() {
        remarks.push(Remark::warn("loads", format!("not in the second run: {}", gone.join(", "))));
    }
    if !new.is_empty() {
        remarks.push(Remark::warn("loads", format!("not in the first run: {}", new.join(", "))));
    }
    for load in base {
        let Some(place) = of(other, &load.key) else { continue };
        let twin = &other[place];
        let mut differ = |about, what: &str, a: String, b: String| {
            if a != b {
                remarks.push(Remark::warn(about, format!("{}: {what}: {a} -> {b}", load.label)));
            }
        };
        differ("client", "stamps", stamps(load), stamps(twin));
        differ("definitions", "window", windows(load), windows(twin));
        differ("definitions", "output tokens counted by", sources(load), sources(twin));
        differ("plan", "warm-up requests", warmups(load), warmups(twin));
    }
}

/// What is said of each round, once each.
fn of_rounds(
    load: &LoadOf<'_>,
    word: impl Fn(&crate::run_file::schema::LevelBlock) -> Option<String>,
) -> String {
    let words: BTreeSet<String> = load.rounds.iter().filter_map(|round| word(round.block)).collect();
    if words.is_empty() { "unknown".to_owned() } else { Vec::from_iter(words).join(" and ") }
}

fn stamps(load: &LoadOf<'_>) -> String {
    of_rounds(load, |level| {
        let stamps = json_of(&level.self_check.timestamps?);
        stamps.as_str().map(str::to_owned)
    })
}

fn windows(load: &LoadOf<'_>) -> String {
    let word = |whole| if whole { "whole level" } else { "without ramp and drain" };
    of_rounds(load, |level| Some(word(level.window.whole_level).to_owned()))
}

fn sources(load: &LoadOf<'_>) -> String {
    const NAMES: [&str; 4] = ["usage", "tokenizer", "events", "nobody"];
    of_rounds(load, |level| {
        let sources = NAMES.iter().zip(level.tokens.sources).filter(|(_, n)| *n > 0);
        let names: Vec<&str> = sources.map(|(name, _)| *name).collect();
        (!names.is_empty()).then(|| names.join(" and "))
    })
}

fn warmups(load: &LoadOf<'_>) -> String {
    of_rounds(load, |level| Some(level.setting.read().ok()?.warmups.to_string()))
}

/// The limits by which goodput is judged in either, where they differ.
pub(crate) fn limits(base: &Sample, other: &Sample) -> Option<Remark> {
    let (a, b) = (base.slo()?, other.slo()?);
    if a == b {
        return None;
    }
    let words = |slo: &Slo| serde_json::to_string(slo).unwrap_or_default();
    let text = format!(
        "goodput: limits {} of {} hold for both, not {} of {}",
        words(&b),
        other.name,
        words(&a),
        base.name
    );
    Some(Remark::warn("plan", text))
}

/// The leaves in which two JSON values differ, as paths with both values.
fn differing(path: &str, a: &Value, b: &Value, out: &mut Vec<(String, String, String)>) {
    if a == b {
        return;
    }
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            let nothing = Value::Null;
            for key in a.keys().chain(b.keys()).collect::<BTreeSet<_>>() {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                differing(&path, a.get(key).unwrap_or(&nothing), b.get(key).unwrap_or(&nothing), out);
            }
        }
        _ => {
            let short = |value: &Value| match value {
                Value::Null => "not set".to_owned(),
                other => other.to_string().chars().take(VALUE_CHARS_MAX).collect(),
            };
            out.push((path.to_owned(), short(a), short(b)));
        }
    }
}

fn listed(names: &[&str]) -> String {
    match names.len() {
        n if n > NAMES_MAX => format!("{} and {} more", names[..NAMES_MAX].join(", "), n - NAMES_MAX),
        _ => names.join(", "),
    }
}

const VALUE_CHARS_MAX: usize = 60;
const NAMES_MAX: usize = 8;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn plans_differ_where_their_leaves_do() {
        let (a, b) = (json!({"x": {"y": 1, "z": [1]}, "u": 2}), json!({"x": {"y": 1, "z": [2]}, "v": 3}));
        let mut found = Vec::new();
        differing("", &a, &b, &mut found);
        let found: Vec<String> = found.iter().map(|(path, a, b)| format!("{path} {a} {b}")).collect();
        assert_eq!(found, ["u 2 not set", "v not set 3", "x.z [1] [2]"]);
        differing("", &a, &a, &mut Vec::new());
    }
}
