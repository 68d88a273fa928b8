//! Whether files are the shares of one run, and all of them.

use std::path::PathBuf;

use serde_json::Value;

use super::{Member, MergeError};
use crate::plan::{Client, Plan, json_of};
use crate::run_file::gathering::{self, Sign};

/// The shares in `files`, in their order.
pub(super) fn members(files: &[PathBuf], allow_missing: bool) -> Result<Vec<Member>, MergeError> {
    let mut members = files.iter().map(|path| Member::at(path)).collect::<Result<Vec<_>, _>>()?;
    let Some(first) = members.first() else { return Err(MergeError::Nothing) };
    for other in &members[1..] {
        if let Some(what) = difference(first, other) {
            let (first, other) = (first.path.clone(), other.path.clone());
            return Err(MergeError::Differ { first, other, what });
        }
    }
    let of = first.share.of;
    members.sort_by_key(|member| member.share.index);
    for pair in members.windows(2) {
        if pair[0].share == pair[1].share {
            let (first, second) = (pair[0].path.clone(), pair[1].path.clone());
            return Err(MergeError::Twice { share: pair[0].share.index, first, second });
        }
    }
    let missing: Vec<u32> =
        (1..=of).filter(|index| members.iter().all(|member| member.share.index != *index)).collect();
    if !missing.is_empty() && !allow_missing {
        let last_signs = last_signs(&members);
        return Err(MergeError::Missing { missing, of, last_signs });
    }
    Ok(members)
}

/// The last signs of life of the shares that are missing, as far as they have left any.
pub(super) fn last_signs(members: &[Member]) -> Vec<Sign> {
    let of = members[0].share.of;
    let missing: Vec<u32> =
        (1..=of).filter(|index| members.iter().all(|member| member.share.index != *index)).collect();
    if missing.is_empty() {
        return Vec::new();
    }
    gathering::last_signs(&members[0].path, &missing, of)
}

/// In what two files are not of one run, with both values.
fn difference(a: &Member, b: &Member) -> Option<String> {
    let (one, other) = (&a.loaded.run, &b.loaded.run);
    let named = |what: &str, x: String, y: String| format!("{what} is {x} in one and {y} in the other");
    let built = |tool: &crate::run_file::schema::ToolBlock| {
        let git = tool.git.as_deref().map_or_else(String::new, |git| format!(" ({git})"));
        format!("{} {}{git}", tool.name, tool.version)
    };
    if one.tool != other.tool {
        return Some(named("the program", built(&one.tool), built(&other.tool)));
    }
    if one.is_simulated() != other.is_simulated() {
        return Some("one is simulated and the other is not".to_owned());
    }
    if a.share.of != b.share.of {
        return Some(named("the number of shares", a.share.of.to_string(), b.share.of.to_string()));
    }
    if let Some(what) = first_difference("plan", &comparable(&a.plan), &comparable(&b.plan)) {
        return Some(what);
    }
    for (what, x, y) in [
        ("the trace", json_of(&one.trace), json_of(&other.trace)),
        ("the data set", json_of(&one.data), json_of(&other.data)),
        // Only a simulated run has it: the server that it was run against.
        ("the server", server(&one.metadata), server(&other.metadata)),
    ] {
        if let Some(what) = first_difference(what, &x, &y) {
            return Some(what);
        }
    }
    None
}

/// The modelled server of a simulated run.
fn server(metadata: &std::collections::BTreeMap<String, String>) -> Value {
    metadata.get(crate::run_file::schema::SIMULATED_SERVER).cloned().into()
}

/// A plan without what may differ between processes of one run: which share it is, how its client runs, what it keeps.
fn comparable(plan: &Plan) -> Value {
    let mut plan = plan.clone();
    let Client { workers, affinity, driver, .. } = Client::default();
    plan.share = None;
    plan.client = Client { workers, affinity, driver, ..plan.client };
    plan.keep = crate::plan::Keep::default();
    json_of(&plan)
}

/// Where two values first differ, and how: `plan.seed is 1 in one and 2 in the other`.
fn first_difference(path: &str, a: &Value, b: &Value) -> Option<String> {
    match (a, b) {
        _ if a == b => None,
        (Value::Object(x), Value::Object(y)) => {
            let mut keys: Vec<&String> = x.keys().chain(y.keys()).collect();
            keys.sort_unstable();
            keys.dedup();
            let of = |map: &serde_json::Map<String, Value>, key: &String| {
                map.get(key).cloned().unwrap_or_default()
            };
            keys.into_iter()
                .find_map(|key| first_difference(&format!("{path}.{key}"), &of(x, key), &of(y, key)))
        }
        (Value::Array(x), Value::Array(y)) if x.len() == y.len() => x
            .iter()
            .zip(y)
            .enumerate()
            .find_map(|(place, (x, y))| first_difference(&format!("{path}[{place}]"), x, y)),
        _ => Some(format!("{path} is {} in one and {} in the other", short(a), short(b))),
    }
}

fn short(value: &Value) -> String {
    let text = match value {
        Value::Null => "not given".to_owned(),
        other => other.to_string(),
    };
    if text.chars().count() <= SHOWN { text } else { text.chars().take(SHOWN).collect::<String>() + "..." }
}

const SHOWN: usize = 80;

/// In what shares of one run differ that need not be alike, but had better be.
pub(super) fn notes(members: &[Member]) -> Vec<String> {
    let mut notes = Vec::new();
    let target = |member: &Member| {
        let target = &member.loaded.run.target;
        let said = [target.kind.as_deref(), target.version.as_deref()];
        said.into_iter().flatten().collect::<Vec<_>>().join(" ")
    };
    let cpu = |member: &Member| member.loaded.run.environment.cpu_model.clone().unwrap_or_default();
    for (what, of) in [("server", &target as &dyn Fn(&Member) -> String), ("client CPU", &cpu)] {
        let mut all: Vec<String> = members.iter().map(of).collect();
        all.sort_unstable();
        all.dedup();
        if all.len() > 1 {
            notes.push(format!("the shares do not have one {what}: {}", all.join("; ")));
        }
    }
    for member in members.iter().filter(|member| member.loaded.run.interrupted) {
        notes.push(format!("share {} was interrupted", member.share.index));
    }
    notes
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_first_difference_is_named_with_both_values() {
        let of = |a: Value, b: Value| first_difference("plan", &a, &b);
        assert_eq!(of(json!({"a": [1, {"b": 2}]}), json!({"a": [1, {"b": 2}]})), None);
        let said = of(json!({"a": [1, {"b": 2}]}), json!({"a": [1, {"b": 3}]})).unwrap();
        assert_eq!(said, "plan.a[1].b is 2 in one and 3 in the other");
        let said = of(json!({"a": 1}), json!({"a": 1, "z": "x".repeat(200)})).unwrap();
        assert!(said.starts_with("plan.z is not given in one and \"xxx") && said.len() < 160, "{said}");
        assert_eq!(of(json!([1]), json!([1, 2])).unwrap(), "plan is [1] in one and [1,2] in the other");
    }

    #[test]
    fn hosts_may_have_other_cores_but_not_another_load() {
        let (mut a, mut b) = (Plan::new(1), Plan::new(1));
        b.client.workers = Some(3);
        (b.client.affinity, b.keep.records) = (Some(vec![1, 2, 3]), false);
        b.share = Some(crate::plan::Share { index: 2, of: 2 });
        assert_eq!(comparable(&a), comparable(&b));
        a.client.start_spread_us += 1.0;
        assert_ne!(comparable(&a), comparable(&b));
    }
}
