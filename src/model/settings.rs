//! How a modelled server behaves, as plans and run files store it.
//!
//! Inert data with its defaults and presets; what is impossible is found in `check`. The presets state no hardware:
//! `course` are the numbers of a worked example, and those of a real server come from [`fit`](super::fit).

use serde::{Deserialize, Serialize};

/// A modelled server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Seed of noise and jitter, at most 2^63 - 1. Default: 0.
    pub seed: u64,
    /// Tokens of a sequence that come out together, its last ones excepted; at least 1, the default.
    pub tokens_per_step: u32,
    /// Seconds after the start in which everything is refused as [cold](super::Refusal::Cold). Default: 0.
    pub cold_start_s: f64,
    /// When the server stands still. Windows that overlap are one. Default: never.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub freezes: Vec<Freeze>,
    /// By how much longer everything takes for each minute since the start, a share: with 0.01 twice as long after 100
    /// minutes. From 0, the default, to 10.
    #[serde(skip_serializing_if = "is_zero")]
    pub slowing_per_minute: f64,
    /// How it spends its time.
    pub serving: Serving,
}

/// A window in which a server stands still: what would begin in it begins at its end, what is under way at its
/// beginning ends that much later.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Freeze {
    /// Seconds from the server's start to the beginning of the window; at least 0.
    pub at_s: f64,
    /// Its length in seconds; above 0.
    pub for_s: f64,
}

/// How a server spends its time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Serving {
    /// Sequences take steps together and wait for each other.
    Batching(Batching),
    /// Each job has the set times to itself.
    Fixed(Fixed),
}

/// Sequences take steps together.
///
/// A step holds all sequences that have a slot of the replica. It begins when the one before it ends, or when a job
/// comes to an idle replica; jobs that have come by then take the free slots in order of arrival, and whoever comes
/// later waits for the next one. It lasts as long as [`Cost::step_ms`] says and yields
/// [`tokens_per_step`](Settings::tokens_per_step) for each sequence whose prompt it has computed, in the order in
/// which they got their slots.
///
/// A service of one job at a time that takes 80 ms for each is `slots: 1, cost.base_ms: 80` with answers of one token:
/// TTFT is then 80 ms times the requests in flight.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Batching {
    /// Sequences that one replica runs at once; at least 1. Default: 16.
    pub slots: u32,
    /// Jobs that wait at one replica while all its slots are taken; further ones are refused. Default: any number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_max: Option<u32>,
    /// Chunked prefill: tokens that one step computes at most, [`tokens_per_step`](Settings::tokens_per_step) for each
    /// sequence that has its first token and the rest for prompts, which then take as many steps as they need. At
    /// least `slots * tokens_per_step`. Default: none, a prompt is computed in one step together with whatever else
    /// is in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_tokens_max: Option<u32>,
    /// Relative standard deviation of what a step costs, from 0, the default, to 1: each step's cost is multiplied
    /// by a log-normal number of mean 1.
    pub noise: f64,
    /// Servers of the kind behind one router; at least 1, the default.
    pub replicas: u32,
    /// How fast each replica is: a step of one of speed 2 takes half the time. One above 0 for each replica; empty,
    /// the default, for all alike.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub speeds: Vec<f64>,
    /// Which replica gets a job.
    pub router: Router,
    /// What a step costs.
    pub cost: Cost,
    /// Prompts that begin like earlier ones are computed in part. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix_cache: Option<PrefixCache>,
}

/// What a step costs, ms. Each at least 0, and a step of one sequence more than nothing.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cost {
    /// Of every step.
    pub base_ms: f64,
    /// Of each sequence in it.
    pub per_sequence_ms: f64,
    /// Of each token of a prompt that it computes.
    pub per_prefill_token_ms: f64,
}

impl Cost {
    /// What a step of `sequences` sequences costs that computes `prefill_tokens` tokens of prompts, ms:
    /// base + per sequence * sequences + per prefill token * prefill tokens.
    ///
    /// The model rounds it to whole nanoseconds.
    #[must_use]
    pub fn step_ms(&self, sequences: usize, prefill_tokens: u64) -> f64 {
        let Cost { base_ms, per_sequence_ms, per_prefill_token_ms } = *self;
        base_ms + per_sequence_ms * sequences as f64 + per_prefill_token_ms * prefill_tokens as f64
    }
}

/// Which replica gets a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Router {
    /// The one with the fewest jobs in flight; among equals the next one after the last choice.
    LeastLoaded,
    /// One after the other.
    #[default]
    RoundRobin,
}

/// A cache of computed prompts, one per replica.
///
/// A prompt's blocks enter it at the end of the step that has computed the last of the prompt, and those of its
/// blocks that are in it when it gets its slot need not be computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PrefixCache {
    /// Tokens of one block; only whole blocks are found again. Default: 16.
    pub block_tokens: u32,
    /// Blocks that it holds at most; the ones unused for longest go first, of a prompt its end before its beginning.
    /// Default: any number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocks_max: Option<u32>,
    /// What is computed of a prompt that is in it as a whole.
    pub full_hit: FullHit,
}

/// What is computed of a prompt that is in the prefix cache as a whole: something must be, or there is no next token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FullHit {
    /// Its last block: 1008 of 1024 tokens are cached with blocks of 16. vLLM does so.
    LastBlock,
    /// Its last token: 1023 of 1024 tokens are cached.
    #[default]
    OneToken,
}

/// Each job has the set times to itself: its first tokens come `ttft_ms` after it was submitted, and each further
/// chunk `itl_ms` after the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Fixed {
    /// From the submission to the first tokens. Default: 200.
    pub ttft_ms: f64,
    /// Added to `ttft_ms` once for each job that is in flight at the submission, the new one included. Default: 0.
    ///
    /// With 80 and a `ttft_ms` of 0, TTFT is 80 ms times the requests in flight.
    pub ttft_per_in_flight_ms: f64,
    /// Between chunks. Default: 20.
    pub itl_ms: f64,
    /// Each TTFT is drawn evenly from its value plus or minus this, cut off at zero. Default: 0.
    pub ttft_jitter_ms: f64,
    /// Each gap is drawn evenly from `itl_ms` plus or minus this, cut off at zero. Default: 0.
    pub itl_jitter_ms: f64,
}

/// Names of the presets, for [`Settings::preset`].
pub const PRESETS: [&str; 1] = ["course"];

impl Settings {
    /// The server of the worked example: 16 slots, steps of 10 ms and 0.5 ms per sequence, 0.05 ms per token of a
    /// prompt. Also the default.
    #[must_use]
    pub fn course() -> Settings {
        Settings {
            seed: 0,
            tokens_per_step: 1,
            cold_start_s: 0.0,
            freezes: Vec::new(),
            slowing_per_minute: 0.0,
            serving: Serving::Batching(Batching::default()),
        }
    }

    /// A server with nothing special but its way of serving.
    #[must_use]
    pub fn serving(serving: Serving) -> Settings {
        Settings { serving, ..Settings::course() }
    }

    /// A server of fixed times, ms: to the first tokens and from one to the next.
    #[must_use]
    pub fn fixed(ttft_ms: f64, itl_ms: f64) -> Settings {
        Settings::serving(Serving::Fixed(Fixed { ttft_ms, itl_ms, ..Fixed::default() }))
    }

    /// Tokens of a block of its prefix cache; 0 without one.
    #[must_use]
    pub fn block_tokens(&self) -> u32 {
        match &self.serving {
            Serving::Batching(batching) => batching.prefix_cache.map_or(0, |cache| cache.block_tokens),
            Serving::Fixed(_) => 0,
        }
    }

    /// Whether the jobs of one client matter to those of another, so that one server must see them all.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        match &self.serving {
            Serving::Batching(_) => true,
            Serving::Fixed(fixed) => fixed.ttft_per_in_flight_ms > 0.0,
        }
    }

    /// The preset called `name`; `None` if there is none.
    #[must_use]
    pub fn preset(name: &str) -> Option<Settings> {
        (name == PRESETS[0]).then(Settings::course)
    }
}

impl Default for Settings {
    fn default() -> Settings {
        Settings::course()
    }
}

impl Default for Serving {
    fn default() -> Serving {
        Serving::Batching(Batching::default())
    }
}

impl Default for Batching {
    fn default() -> Batching {
        Batching {
            slots: 16,
            queue_max: None,
            step_tokens_max: None,
            noise: 0.0,
            replicas: 1,
            speeds: Vec::new(),
            router: Router::default(),
            cost: Cost::default(),
            prefix_cache: None,
        }
    }
}

impl Default for Cost {
    fn default() -> Cost {
        Cost { base_ms: 10.0, per_sequence_ms: 0.5, per_prefill_token_ms: 0.05 }
    }
}

impl Default for PrefixCache {
    fn default() -> PrefixCache {
        PrefixCache { block_tokens: 16, blocks_max: None, full_hit: FullHit::default() }
    }
}

impl Default for Fixed {
    fn default() -> Fixed {
        Fixed {
            ttft_ms: 200.0,
            ttft_per_in_flight_ms: 0.0,
            itl_ms: 20.0,
            ttft_jitter_ms: 0.0,
            itl_jitter_ms: 0.0,
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(share: &f64) -> bool {
    *share == 0.0
}

/// Milliseconds as whole nanoseconds; below zero and not a number give 0.
pub(super) fn nanos(ms: f64) -> u64 {
    // `as` saturates.
    (ms * 1e6).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_are_found_by_name() {
        assert!(PRESETS.iter().all(|name| Settings::preset(name).is_some()));
        assert_eq!(Settings::preset("course"), Some(Settings::default()));
        assert_eq!(Settings::preset("h100"), None);
    }

    #[test]
    fn a_step_of_the_course_server() {
        let cost = Cost::default();
        assert_eq!(nanos(cost.step_ms(16, 0)), 18_000_000);
        assert_eq!(nanos(cost.step_ms(3, 400)), 31_500_000);
        assert_eq!(nanos(-1.0), 0);
        assert_eq!(nanos(f64::NAN), 0);
    }

    #[test]
    fn settings_come_back_from_what_is_stored() {
        let mut settings = Settings::course();
        settings.freezes.push(Freeze { at_s: 10.0, for_s: 2.0 });
        if let Serving::Batching(batching) = &mut settings.serving {
            batching.prefix_cache = Some(PrefixCache { blocks_max: Some(100), ..PrefixCache::default() });
            batching.step_tokens_max = Some(512);
            batching.speeds = vec![1.0];
        }
        let fixed = Settings::serving(Serving::Fixed(Fixed::default()));
        for settings in [settings, fixed, Settings::course()] {
            let json = serde_json::to_string(&settings).unwrap();
            assert_eq!(serde_json::from_str::<Settings>(&json).unwrap(), settings);
            let toml = toml::to_string(&settings).unwrap();
            assert_eq!(toml::from_str::<Settings>(&toml).unwrap(), settings);
        }
    }

    #[test]
    fn what_is_left_out_of_a_file_has_its_default_and_unknown_keys_are_refused() {
        let text = "seed = 3\n[serving.batching]\nslots = 4\n";
        let settings: Settings = toml::from_str(text).unwrap();
        let batching = Batching { slots: 4, ..Batching::default() };
        assert_eq!(settings, Settings { seed: 3, ..Settings::serving(Serving::Batching(batching)) });
        assert!(toml::from_str::<Settings>("[serving.batching]\nslot = 4\n").is_err());
        assert!(toml::from_str::<Settings>("[serving.magic]\n").is_err());
    }
}
