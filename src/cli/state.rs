//! What this machine has sent to which server: a small file by which a seed that comes again is noticed.
//!
//! A server with a prefix cache answers prompts that it has seen faster than new ones, so a run that repeats a seed may
//! measure the cache. The file holds hashes and seeds, no prompt and no secret. It is a convenience: whatever is wrong
//! with it, a run goes on as if there were none, and two runs at once may forget one of them.

use serde::{Deserialize, Serialize};

use crate::cli::state_dir::StateDir;
use crate::plan::Plan;
use crate::run_file::WallTime;
use crate::run_file::schema::SeenBlock;

/// The memory of earlier runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Memory {
    /// Where its file lies; `None`: nothing is remembered.
    directory: Option<StateDir>,
}

/// The file.
#[derive(Debug, Deserialize, Serialize)]
struct Stored {
    version: u32,
    /// The last sent stands last.
    sent: Vec<Sent>,
}

/// Prompts that were sent to a server.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
struct Sent {
    endpoint: String,
    models: Vec<String>,
    /// Hash of what decides the prompts beside the seed.
    prompts: String,
    seed: u64,
    /// In how many runs.
    runs: u32,
    /// When the last of these began, s since 1970.
    last_s: u64,
}

impl Memory {
    /// The user's own, where there is a place for it.
    pub(super) fn of_user() -> Memory {
        Memory { directory: StateDir::find() }
    }

    /// Whether prompts of `plan` were sent to one of its servers in the days before `now`.
    pub(super) fn recall(&self, plan: &Plan, now: WallTime) -> Option<SeenBlock> {
        let all = self.read(now);
        let of_plan = sent_by(plan, now);
        let known = of_plan.iter().filter_map(|new| all.iter().find(|old| old.same_as(new)));
        let last = known.max_by_key(|old| old.last_s)?;
        Some(SeenBlock { runs: last.runs, last: WallTime::from_unix_nanos(last.last_s * NANOS).to_string() })
    }

    /// Remembers that the prompts of `plan` were sent in a run that began at `now`. What cannot be written is forgotten.
    pub(super) fn keep(&self, plan: &Plan, now: WallTime) {
        let Some(directory) = &self.directory else { return };
        let mut sent = self.read(now);
        for mut new in sent_by(plan, now) {
            if let Some(place) = sent.iter().position(|old| old.same_as(&new)) {
                new.runs += sent.remove(place).runs;
            }
            sent.push(new);
        }
        sent.drain(..sent.len().saturating_sub(SENT_MAX));
        let Ok(text) = serde_json::to_string(&Stored { version: VERSION, sent }) else { return };
        // Nothing depends on it: a read-only home is no reason to say anything.
        let _ = directory.replace(NAME, &text);
    }

    /// What is remembered from the days before `now`; nothing where the file is missing, damaged or of another version.
    fn read(&self, now: WallTime) -> Vec<Sent> {
        let Some(directory) = &self.directory else { return Vec::new() };
        let Ok(Some(text)) = directory.read(NAME) else { return Vec::new() };
        let Ok(stored) = serde_json::from_str::<Stored>(&text) else { return Vec::new() };
        let now_s = now.unix_nanos() / NANOS;
        let recent = |sent: &Sent| now_s.saturating_sub(sent.last_s) <= KEPT_S;
        stored.sent.into_iter().filter(|sent| stored.version == VERSION && recent(sent)).collect()
    }
}

impl Sent {
    fn same_as(&self, other: &Sent) -> bool {
        self.seed == other.seed
            && self.prompts == other.prompts
            && self.endpoint == other.endpoint
            && self.models == other.models
    }
}

/// What a run of `plan` sends: one entry for each of its servers.
fn sent_by(plan: &Plan, now: WallTime) -> Vec<Sent> {
    let entry = |url: &String| Sent {
        endpoint: url.clone(),
        models: plan.target.models.clone(),
        prompts: format!("{:016x}", prompts_of(plan)),
        seed: plan.seed,
        runs: 1,
        last_s: now.unix_nanos() / NANOS,
    };
    plan.target.endpoints.iter().map(|endpoint| entry(&endpoint.url)).collect()
}

/// A hash of what decides the prompts beside the seed. Which levels there are decides only how many are sent: plans that
/// differ in them alone share the prompts of their first levels.
fn prompts_of(plan: &Plan) -> u64 {
    let workload = &plan.workload;
    let parts = (
        plan.target.dialect,
        &workload.input_words,
        workload.distinct,
        workload.prefix,
        workload.system_words,
    );
    // Values of our own types, none of which can fail to be written.
    let mut text = serde_json::to_vec(&parts).unwrap_or_default();
    if let Some(words) = workload.system_words {
        text.extend(words.to_le_bytes());
    }
    if let Some(words) = workload.context_words {
        text.push(b'c');
        text.extend(words.to_le_bytes());
    }
    if let Some(shares) = workload.conversation.as_ref().and_then(|conversation| conversation.shares) {
        text.extend(serde_json::to_vec(&shares).unwrap_or_default());
    }
    if let Some(tokens) = &workload.tokens {
        text.extend(serde_json::to_vec(tokens).unwrap_or_default());
    }
    if let Some(trace) = &workload.trace {
        text.extend(serde_json::to_vec(trace).unwrap_or_default());
    }
    if let Some(data) = &workload.data {
        text.extend(serde_json::to_vec(data).unwrap_or_default());
    }
    // Shares of one plan send different prompts of it.
    if let Some(share) = &plan.share {
        text.extend(serde_json::to_vec(share).unwrap_or_default());
    }
    // FNV-1a: the same in every version of the program, and no adversary chooses prompts to collide.
    text.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

const NAME: &str = "sent.json";
const VERSION: u32 = 1;
/// Entries kept, the newest.
const SENT_MAX: usize = 500;
/// How long an entry is kept: a server that has run for longer has seen other prompts since.
const KEPT_S: u64 = 7 * 86_400;
const NANOS: u64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::plan::{Endpoint, Prefix};

    const DAY: u64 = 86_400;

    fn at(s: u64) -> WallTime {
        WallTime::from_unix_nanos(s * NANOS)
    }

    fn plan(seed: u64) -> Plan {
        let mut plan = Plan::new(seed);
        plan.target.endpoints = vec![Endpoint { url: "http://h:8000".to_owned() }];
        plan.target.models = vec!["m".to_owned()];
        plan
    }

    fn memory(test: impl FnOnce(&Path, &Memory)) {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("deep").join("tokload");
        test(&place, &Memory { directory: Some(StateDir::at(&place)) });
    }

    #[test]
    fn a_seed_that_comes_again_is_recalled_with_its_last_time() {
        memory(|_, memory| {
            assert_eq!(memory.recall(&plan(7), at(100)), None);
            memory.keep(&plan(7), at(100));
            memory.keep(&plan(8), at(150));
            memory.keep(&plan(7), at(200));
            let seen = memory.recall(&plan(7), at(300)).unwrap();
            assert_eq!((seen.runs, seen.last.as_str()), (2, "1970-01-01T00:03:20.000000000Z"));
            assert_eq!(memory.recall(&plan(9), at(300)), None);
        });
    }

    #[test]
    fn other_prompts_models_and_servers_are_others() {
        memory(|_, memory| {
            memory.keep(&plan(7), at(100));
            let changed = |change: fn(&mut Plan)| {
                let mut plan = plan(7);
                change(&mut plan);
                memory.recall(&plan, at(101))
            };
            assert_eq!(changed(|plan| plan.workload.input_words = 64.into()), None);
            assert_eq!(changed(|plan| plan.workload.prefix = Some(Prefix::new(9, 1))), None);
            assert_eq!(changed(|plan| plan.target.models = vec!["n".to_owned()]), None);
            assert_eq!(changed(|plan| plan.target.endpoints[0].url = "http://h:8001".to_owned()), None);
            // Neither the load nor the length of answers is part of a prompt.
            assert!(changed(|plan| plan.workload.output_tokens = 9.into()).is_some());
            assert!(changed(|plan| plan.runs = 5).is_some());
            // One of several servers is enough.
            assert!(
                changed(|plan| plan.target.endpoints.push(Endpoint { url: "http://g:1".into() })).is_some()
            );
        });
    }

    #[test]
    fn what_is_old_is_forgotten_and_the_file_stays_small() {
        memory(|place, memory| {
            memory.keep(&plan(7), at(100));
            assert!(memory.recall(&plan(7), at(100 + 7 * DAY)).is_some());
            assert_eq!(memory.recall(&plan(7), at(101 + 7 * DAY)), None);
            for seed in 0..SENT_MAX as u64 + 20 {
                memory.keep(&plan(1000 + seed), at(200 + seed));
            }
            assert_eq!(memory.recall(&plan(7), at(300)), None);
            assert!(memory.recall(&plan(1000 + SENT_MAX as u64), at(900)).is_some());
            let names: Vec<_> =
                fs::read_dir(place).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            assert_eq!(names, [NAME], "no part is left");
            assert!(fs::metadata(place.join(NAME)).unwrap().len() < (1 << 18));
        });
    }

    #[test]
    fn a_damaged_file_is_no_file_and_is_replaced() {
        let damaged: [&[u8]; 6] =
            [b"", b"{", b"[]", b"\xff\xfe", b"{\"version\":2,\"sent\":[]}", b"{\"version\":1,\"sent\":[{}]}"];
        for bytes in damaged {
            memory(|place, memory| {
                fs::create_dir_all(place).unwrap();
                fs::write(place.join(NAME), bytes).unwrap();
                assert_eq!(memory.recall(&plan(7), at(100)), None);
                memory.keep(&plan(7), at(100));
                assert!(memory.recall(&plan(7), at(101)).is_some());
            });
        }
    }

    #[test]
    fn a_place_that_cannot_be_written_is_no_reason_to_fail() {
        memory(|place, memory| {
            fs::create_dir_all(place.parent().unwrap()).unwrap();
            fs::write(place, "a file where the directory should be").unwrap();
            memory.keep(&plan(7), at(100));
            assert_eq!(memory.recall(&plan(7), at(101)), None);
        });
    }
}
