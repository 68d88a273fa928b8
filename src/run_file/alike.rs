//! Whether two processes have the plan of one run, and where it first differs: asked before they begin, and when what they
//! have measured is merged.

use serde_json::Value;

use crate::plan::{Client, Keep, Plan, json_of};

/// Where two values first differ, and both of them, cut short.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Difference {
    /// The way there: `plan.levels[0].warmups`.
    pub(super) what: String,
    pub(super) one: String,
    pub(super) other: String,
}

/// A plan without what may differ between processes of one run: which share it is, how its client runs, what it keeps.
pub(super) fn comparable(plan: &Plan) -> Value {
    let mut plan = plan.clone();
    let Client { workers, affinity, driver, .. } = Client::default();
    plan.share = None;
    plan.client = Client { workers, affinity, driver, ..plan.client };
    plan.keep = Keep::default();
    json_of(&plan)
}

/// Where two values that are called `path` first differ; `None` if they do not.
pub(super) fn difference(path: &str, a: &Value, b: &Value) -> Option<Difference> {
    match (a, b) {
        _ if a == b => None,
        (Value::Object(x), Value::Object(y)) => {
            let mut keys: Vec<&String> = x.keys().chain(y.keys()).collect();
            keys.sort_unstable();
            keys.dedup();
            let of = |map: &serde_json::Map<String, Value>, key: &String| {
                map.get(key).cloned().unwrap_or_default()
            };
            keys.into_iter().find_map(|key| difference(&format!("{path}.{key}"), &of(x, key), &of(y, key)))
        }
        (Value::Array(x), Value::Array(y)) if x.len() == y.len() => x
            .iter()
            .zip(y)
            .enumerate()
            .find_map(|(place, (x, y))| difference(&format!("{path}[{place}]"), x, y)),
        _ => Some(Difference { what: path.to_owned(), one: short(a), other: short(b) }),
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_first_difference_is_named_with_both_values() {
        let of = |a: Value, b: Value| {
            difference("plan", &a, &b).map(|found| format!("{}: {} {}", found.what, found.one, found.other))
        };
        assert_eq!(of(json!({"a": [1, {"b": 2}]}), json!({"a": [1, {"b": 2}]})), None);
        assert_eq!(of(json!({"a": [1, {"b": 2}]}), json!({"a": [1, {"b": 3}]})).unwrap(), "plan.a[1].b: 2 3");
        let said = of(json!({"a": 1}), json!({"a": 1, "z": "x".repeat(200)})).unwrap();
        assert!(said.starts_with("plan.z: not given \"xxx") && said.len() < 120, "{said}");
        assert_eq!(of(json!([1]), json!([1, 2])).unwrap(), "plan: [1] [1,2]");
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
