//! What a process is about to run, so that one that is about to run something else is found before anything is sent.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::plan::Plan;
use crate::run_file::alike;
use crate::run_file::schema::{ToolBlock, without_secrets};

/// What a process is about to run, for the others to hold against theirs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Told {
    /// Whose it is.
    pub token: String,
    /// The program.
    pub tool: String,
    /// The plan as it is compared, without secrets.
    pub plan: Value,
}

impl Told {
    /// That of the process which drew `token`.
    #[must_use]
    pub fn of(plan: &Plan, token: &str) -> Told {
        Told {
            token: token.to_owned(),
            tool: ToolBlock::this().in_words(),
            plan: alike::comparable(&without_secrets(plan)),
        }
    }

    /// The same for equal programs and plans, and hardly for others.
    #[must_use]
    pub fn mark(&self) -> String {
        let text = format!("{} {}", self.tool, self.plan);
        format!("{:016x}", text.bytes().fold(0_u64, |hash, byte| crate::rng::mixed(hash ^ u64::from(byte))))
    }

    /// In what another process is about to run something else; `names` are what to call both.
    #[must_use]
    pub fn difference(&self, other: &Told, names: [&str; 2]) -> Option<String> {
        let [one, two] = names;
        if self.tool != other.tool {
            return Some(format!("the program is {} in {one} and {} in {two}", self.tool, other.tool));
        }
        let found = alike::difference("plan", &self.plan, &other.plan)?;
        Some(format!("{} is {} in {one} and {} in {two}", found.what, found.one, found.other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_two_are_about_to_run_is_told_apart_with_both_values() {
        let told = |seed| Told::of(&Plan::new(seed), "t");
        let (one, same, other) = (told(1), told(1), Told { token: "u".to_owned(), ..told(2) });
        assert_eq!((one.mark(), one.difference(&same, ["a", "b"])), (same.mark(), None));
        assert_ne!(one.mark(), other.mark());
        let said = one.difference(&other, ["share 1", "share 2"]);
        assert_eq!(said.as_deref(), Some("plan.seed is 1 in share 1 and 2 in share 2"));
        let newer = Told { tool: "tokload 9".to_owned(), ..told(1) };
        assert!(one.difference(&newer, ["a", "b"]).is_some_and(|said| said.contains("tokload 9 in b")));
    }
}
