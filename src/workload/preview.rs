//! What a plan would send first, without sending it.
//!
//! Values only; printing them is the command line's business.

use super::arrival::{Schedule, closed_index};
use super::prompts::write_prompt;
use crate::plan::Plan;
use crate::rng::Purpose;

/// One request that a plan would send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preview {
    /// Place of its level in the plan, from 0.
    pub ordinal: usize,
    /// Its index within the level.
    pub index: u64,
    /// Planned send after the start of the level, ns; `None` in a closed loop after a user's first request, whose
    /// time depends on the answer before.
    pub offset_ns: Option<u64>,
    /// The first words of its prompt, followed by ` ...` where there are more.
    pub prompt: String,
    /// Its `max_tokens`.
    pub max_tokens: u32,
}

impl Preview {
    /// The first `count` requests of level `ordinal` of a complete plan; none if there is no such level.
    #[must_use]
    pub fn of_level(plan: &Plan, ordinal: usize, count: usize) -> Vec<Preview> {
        let Some(level) = plan.levels.get(ordinal) else {
            return Vec::new();
        };
        let seed = plan.level_seed(ordinal);
        let preview = |index, offset_ns| Preview {
            ordinal,
            index,
            offset_ns,
            prompt: beginning(seed, index, plan.workload.input_words),
            max_tokens: plan.workload.output_tokens,
        };
        let Some(users) = level.load.users else {
            let schedule = Schedule::new(level.load.arrivals, seed, &level.stop);
            return schedule.take(count).map(|due| preview(due.index, Some(due.offset_ns))).collect();
        };
        let units = level.stop.units.unwrap_or(u64::MAX);
        let last_first = closed_index(0, 1, users);
        // Users start within microseconds of each other, which is no part of the plan's arrivals.
        (0..units).take(count).map(|index| preview(index, (index < last_first).then_some(0))).collect()
    }
}

fn beginning(seed: u64, index: u64, words: u32) -> String {
    let mut prompt = String::new();
    write_prompt(&mut prompt, seed, Purpose::Prompt, index, words.min(WORDS_SHOWN));
    if words > WORDS_SHOWN {
        prompt.push_str(" ...");
    }
    prompt
}

/// Words of a prompt that are shown.
const WORDS_SHOWN: u32 = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Arrivals, Level, Load};

    fn plan(load: Load) -> Plan {
        let mut plan = Plan::new(5);
        plan.levels.push(Level { load, ..Level::default() });
        plan.complete();
        plan
    }

    #[test]
    fn an_open_loop_shows_its_schedule() {
        let arrivals = Arrivals::Constant { rate: 4.0 };
        let plan = plan(Load { arrivals, cap: None, users: None, think_s: 0.0 });
        let shown = Preview::of_level(&plan, 0, 3);
        assert_eq!(
            shown.iter().map(|p| p.offset_ns).collect::<Vec<_>>(),
            [Some(0), Some(250_000_000), Some(500_000_000)]
        );
        let mut whole = String::new();
        write_prompt(&mut whole, plan.level_seed(0), Purpose::Prompt, 2, 128);
        assert!(whole.starts_with(shown[2].prompt.strip_suffix(" ...").unwrap()));
        assert_eq!(shown[0].max_tokens, 64);
        assert_eq!(Preview::of_level(&plan, 0, 1000).len(), 64);
        assert_eq!(Preview::of_level(&plan, 1, 3), []);
    }

    #[test]
    fn a_closed_loop_knows_the_time_of_first_requests_only() {
        let shown = Preview::of_level(&plan(Load::closed(2)), 0, 4);
        assert_eq!(shown.iter().map(|p| p.offset_ns).collect::<Vec<_>>(), [Some(0), Some(0), None, None]);
    }
}
