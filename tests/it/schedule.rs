//! The same plan gives the same requests at the same planned times, for any number of shards.

use std::collections::BTreeMap;

use tokload::metrics::Phase;
use tokload::plan::{Arrivals, Distribution, Lengths, Level, Load, Plan, Prefix, Share, Stop};
use tokload::workload::{Content, Dealt, Item, Schedule, arrival};

/// Index to planned time, prompt and length of the answer, as `shards` shards would send them together.
fn requests(plan: &Plan, ordinal: usize, shards: u32) -> BTreeMap<u64, (u64, String, u32)> {
    let level = &plan.levels[ordinal];
    let seed = plan.level_seed(ordinal);
    let content = Content::new(plan);
    let mut all = BTreeMap::new();
    for shard in 0..shards {
        for due in Dealt::new(Schedule::new(&level.load.arrivals, seed, &level.stop), shard, shards) {
            let mut prompt = String::new();
            let item = Item { seed, phase: Phase::Measured, index: due.index };
            content.write_prompt(&mut prompt, item);
            let request = (due.offset_ns, prompt, content.output_tokens(item));
            assert!(all.insert(due.index, request).is_none(), "{} sent twice", due.index);
        }
    }
    all
}

fn plan() -> Plan {
    let mut plan = Plan::new(2024);
    plan.workload.input_words =
        Lengths::Drawn(Distribution::Lognormal { median: 20.0, sigma: 0.5, min: None, max: None });
    plan.workload.output_tokens =
        Lengths::Drawn(Distribution::Normal { mean: 20.0, stddev: 5.0, min: None, max: None });
    plan.workload.prefix = Some(Prefix::new(3, 4));
    let arrivals = [
        Arrivals::Burst,
        Arrivals::Constant { rate: 30.0 },
        Arrivals::Gamma { rate: 30.0, burstiness: 0.5 },
        Arrivals::Poisson { rate: 30.0 },
    ];
    plan.levels.extend(arrivals.map(|arrivals| Level {
        load: Load { arrivals, cap: None, users: None, think_s: 0.0 },
        stop: Stop { units: Some(300), ..Stop::default() },
        ..Level::default()
    }));
    plan
}

#[test]
fn any_number_of_shards_sends_the_same_requests() {
    let plan = plan();
    for ordinal in 0..plan.levels.len() {
        let one = requests(&plan, ordinal, 1);
        assert_eq!(one.len(), 300);
        assert_eq!(requests(&plan, ordinal, 2), one);
        assert_eq!(requests(&plan, ordinal, 7), one);
    }
}

/// What each of `shares` processes of `shards` shards sends of a level, dealt by the rule of [`Share::part`].
#[test]
fn any_number_of_processes_of_any_number_of_shards_sends_the_same_requests() {
    let plan = plan();
    for (ordinal, (of, shards)) in
        (0..plan.levels.len()).flat_map(|o| [(1, 3), (2, 1), (3, 4), (7, 2), (16, 16)].map(|by| (o, by)))
    {
        let level = &plan.levels[ordinal];
        let whole: Vec<_> =
            Schedule::new(&level.load.arrivals, plan.level_seed(ordinal), &level.stop).collect();
        let mut all = Vec::new();
        for index in 1..=of {
            let share = Share { index, of };
            let mut own = Vec::new();
            for shard in 0..shards {
                let (place, parts) = share.part((shard, shards));
                let schedule = Schedule::new(&level.load.arrivals, plan.level_seed(ordinal), &level.stop);
                own.extend(Dealt::new(schedule, place, parts));
            }
            // Its number of shards changes nothing of what a share has.
            own.sort_unstable();
            let expected: Vec<_> = whole
                .iter()
                .copied()
                .filter(|due| due.index % u64::from(of) == u64::from(index - 1))
                .collect();
            assert_eq!(own, expected);
            assert_eq!(own.len() as u64, share.count(whole.len() as u64));
            all.extend(own);
        }
        all.sort_unstable();
        assert_eq!(all, whole);
    }
}

#[test]
fn users_are_dealt_to_processes_and_their_shards() {
    for (users, of, shards) in [(5, 2, 3), (64, 7, 4), (3, 3, 16)] {
        let mut indices = Vec::new();
        for (index, shard) in (1..=of).flat_map(|index| (0..shards).map(move |shard| (index, shard))) {
            let (place, parts) = Share { index, of }.part((shard, shards));
            for user in arrival::users_of(place, parts, users) {
                assert_eq!(user % of, index - 1);
                indices.extend((0..10).map(|k| arrival::closed_index(user, k, users)));
            }
        }
        indices.sort_unstable();
        assert_eq!(indices, (0..u64::from(users) * 10).collect::<Vec<_>>());
    }
}

#[test]
fn no_two_levels_share_a_prompt() {
    let plan = plan();
    let mut prompts = std::collections::HashSet::new();
    for ordinal in 0..plan.levels.len() {
        for (_, prompt, _) in requests(&plan, ordinal, 1).into_values() {
            assert!(prompts.insert(prompt));
        }
    }
}

#[test]
fn a_plan_that_was_stored_sends_the_same_requests() {
    let plan = plan();
    let stored = Plan::from_toml(&plan.to_toml(), 0).unwrap();
    assert_eq!(requests(&stored, 2, 3), requests(&plan, 2, 1));
}

#[test]
fn users_of_any_number_of_shards_send_every_index_once() {
    for shards in [1, 2, 7] {
        let users = 5;
        let mut indices: Vec<u64> = (0..shards)
            .flat_map(|shard| arrival::users_of(shard, shards, users))
            .flat_map(|user| (0..10).map(move |k| arrival::closed_index(user, k, users)))
            .collect();
        indices.sort_unstable();
        assert_eq!(indices, (0..50).collect::<Vec<_>>());
    }
}
