//! The options that describe a modelled server, the same wherever a command takes them, and what they mean.
//!
//! Which server there is when none of them is given is the command's to say, and its seed too. What no server can be
//! is found by the model itself.

use argh::{ArgsInfo, FromArgs};

use super::value;
use crate::model::{Batching, Fixed, Freeze, FullHit, PRESETS, PrefixCache, Router, Serving, Settings};
use crate::plan::Error;

/// A modelled server.
#[derive(ArgsInfo, Clone, Debug, Default, FromArgs, PartialEq)]
pub struct ModelArgs {
    /// server to start from, which the other options change: course, 16 slots with steps of 10 ms and 0.5 ms per
    /// sequence and 0.05 ms per token of a prompt (default: course)
    #[argh(option, arg_name = "name")]
    pub model_preset: Option<String>,
    /// sequences that one replica runs at once, or inf (default: 16)
    #[argh(option, arg_name = "n")]
    pub slots: Option<String>,
    /// what every step costs, in milliseconds (default: 10)
    #[argh(option, arg_name = "ms")]
    pub base_ms: Option<String>,
    /// what each sequence adds to a step, in milliseconds (default: 0.5)
    #[argh(option, arg_name = "ms")]
    pub per_sequence_ms: Option<String>,
    /// what each token of a prompt adds to the step that computes it, in milliseconds (default: 0.05)
    #[argh(option, arg_name = "ms")]
    pub per_prefill_token_ms: Option<String>,
    /// relative standard deviation of what a step costs, a share from 0 to 1 (default: 0)
    #[argh(option, arg_name = "share")]
    pub noise: Option<String>,
    /// chunked prefill: tokens that one step computes at most (default: no limit, a prompt is computed in one step)
    #[argh(option, arg_name = "n")]
    pub step_tokens_max: Option<String>,
    /// tokens of a sequence that come out together (default: 1)
    #[argh(option, arg_name = "n")]
    pub tokens_per_step: Option<String>,
    /// requests that wait at one replica, further ones being refused (default: any number)
    #[argh(option, arg_name = "n")]
    pub queue_max: Option<String>,
    /// servers of the kind behind one router (default: 1)
    #[argh(option, arg_name = "n")]
    pub replicas: Option<String>,
    /// how fast each replica is, a number without unit for each: 2 takes half the time of 1 (default: 1 for all)
    #[argh(option, arg_name = "x,...")]
    pub speeds: Option<String>,
    /// which replica gets a request: round-robin or least-loaded (default: round-robin)
    #[argh(option, arg_name = "rule")]
    pub router: Option<String>,
    /// find prompts again that begin like earlier ones (default: off, on with any other option of the cache)
    #[argh(switch)]
    pub prefix_cache: bool,
    /// tokens of one block of the prefix cache (default: 16)
    #[argh(option, arg_name = "n")]
    pub cache_block_tokens: Option<String>,
    /// blocks that the prefix cache holds at most (default: any number)
    #[argh(option, arg_name = "n")]
    pub cache_blocks_max: Option<String>,
    /// what is computed of a prompt that is cached as a whole: one-token, or last-block as vLLM does (default:
    /// one-token)
    #[argh(option, arg_name = "rule")]
    pub cache_full_hit: Option<String>,
    /// how long everything is refused after the start of the server, in seconds; warm-ups count (default: 0)
    #[argh(option, arg_name = "s")]
    pub cold_start: Option<String>,
    /// standstill, AT:FOR in seconds from the start of the server, warm-ups and earlier levels included, as in 10:2;
    /// repeatable (default: none)
    #[argh(option, arg_name = "at:for")]
    pub freeze: Vec<String>,
    /// by how much longer everything takes for each minute since the start of the server, a share, as in 1% (default: 0)
    #[argh(option, arg_name = "share")]
    pub slowing: Option<String>,
    /// instead of slots and steps: time to the first token of every request, in milliseconds (default: 200 where
    /// other fixed times are given)
    #[argh(option, arg_name = "ms")]
    pub ttft: Option<String>,
    /// added to --ttft once for each request in flight, the new one included, in milliseconds (default: 0)
    #[argh(option, arg_name = "ms")]
    pub ttft_per_in_flight: Option<String>,
    /// time between events, in milliseconds (default: 20 where other fixed times are given)
    #[argh(option, arg_name = "ms")]
    pub itl: Option<String>,
    /// the time to the first token varies evenly by plus or minus this, in milliseconds (default: 0)
    #[argh(option, arg_name = "ms")]
    pub ttft_jitter: Option<String>,
    /// the time between events varies evenly by plus or minus this, in milliseconds (default: 0)
    #[argh(option, arg_name = "ms")]
    pub itl_jitter: Option<String>,
}

impl ModelArgs {
    /// The server that the options describe.
    ///
    /// Options of slots and steps make it a batching server, those of set times one of fixed times; `otherwise` is
    /// the one where neither are given, and what an option of its kind changes.
    ///
    /// # Errors
    /// Values that cannot be read, options of both kinds, and whatever [`Settings::validate`] refuses.
    pub fn settings(&self, seed: u64, otherwise: &Settings) -> Result<Settings, Error> {
        let mut settings = self.base(otherwise)?;
        settings.seed = seed;
        match &mut settings.serving {
            Serving::Batching(batching) => self.set_batching(batching)?,
            Serving::Fixed(fixed) => self.set_fixed(fixed)?,
        }
        value::set(
            &mut settings.tokens_per_step,
            "--tokens-per-step",
            &self.tokens_per_step,
            value::integer,
        )?;
        value::set(&mut settings.cold_start_s, "--cold-start", &self.cold_start, value::seconds)?;
        if !self.freeze.is_empty() {
            settings.freezes = self.freeze.iter().map(|text| freeze(text)).collect::<Result<_, _>>()?;
        }
        value::set(&mut settings.slowing_per_minute, "--slowing", &self.slowing, value::share_of)?;
        settings.validate()?;
        Ok(settings)
    }

    /// The server before its numbers: the preset, or one of the kind that the options are of.
    fn base(&self, otherwise: &Settings) -> Result<Settings, Error> {
        let batching = first_given(&self.of_batching());
        let fixed = first_given(&self.of_fixed());
        if let (Some(batching), Some(fixed)) = (batching, fixed) {
            let wrong = format!(
                "sets the times of every request, but {batching} describes a server that shares its time"
            );
            return Err(Error::new(fixed, wrong, "give options of one kind"));
        }
        if let Some(name) = &self.model_preset {
            return Settings::preset(name).ok_or_else(|| {
                let remedy = format!(
                    "give {}, or the costs one by one, which tokload simulate --fit finds in a saved run",
                    PRESETS.join(", ")
                );
                Error::new("--model-preset", format!("there is no preset '{name}'"), remedy)
            });
        }
        Ok(match (&otherwise.serving, batching, fixed) {
            (Serving::Fixed(_), Some(_), _) => Settings::serving(Serving::Batching(Batching::default())),
            (Serving::Batching(_), _, Some(_)) => Settings::serving(Serving::Fixed(Fixed::default())),
            _ => otherwise.clone(),
        })
    }

    fn set_batching(&self, batching: &mut Batching) -> Result<(), Error> {
        value::set(&mut batching.slots, "--slots", &self.slots, slots)?;
        let cost = &mut batching.cost;
        value::set(&mut cost.base_ms, "--base-ms", &self.base_ms, value::number)?;
        value::set(&mut cost.per_sequence_ms, "--per-sequence-ms", &self.per_sequence_ms, value::number)?;
        value::set(
            &mut cost.per_prefill_token_ms,
            "--per-prefill-token-ms",
            &self.per_prefill_token_ms,
            value::number,
        )?;
        value::set(&mut batching.noise, "--noise", &self.noise, value::number)?;
        set_some(&mut batching.step_tokens_max, "--step-tokens-max", &self.step_tokens_max)?;
        set_some(&mut batching.queue_max, "--queue-max", &self.queue_max)?;
        value::set(&mut batching.replicas, "--replicas", &self.replicas, value::integer)?;
        let speeds = |option: &str, text: &str| value::list(option, text, value::number);
        value::set(&mut batching.speeds, "--speeds", &self.speeds, speeds)?;
        value::set(&mut batching.router, "--router", &self.router, router)?;
        self.set_cache(&mut batching.prefix_cache)
    }

    fn set_cache(&self, cache: &mut Option<PrefixCache>) -> Result<(), Error> {
        let of_cache = [&self.cache_block_tokens, &self.cache_blocks_max, &self.cache_full_hit];
        if !self.prefix_cache && of_cache.iter().all(|text| text.is_none()) {
            return Ok(());
        }
        let cache = cache.get_or_insert_default();
        value::set(
            &mut cache.block_tokens,
            "--cache-block-tokens",
            &self.cache_block_tokens,
            value::integer,
        )?;
        set_some(&mut cache.blocks_max, "--cache-blocks-max", &self.cache_blocks_max)?;
        value::set(&mut cache.full_hit, "--cache-full-hit", &self.cache_full_hit, full_hit)
    }

    fn set_fixed(&self, fixed: &mut Fixed) -> Result<(), Error> {
        value::set(&mut fixed.ttft_ms, "--ttft", &self.ttft, value::number)?;
        value::set(
            &mut fixed.ttft_per_in_flight_ms,
            "--ttft-per-in-flight",
            &self.ttft_per_in_flight,
            value::number,
        )?;
        value::set(&mut fixed.itl_ms, "--itl", &self.itl, value::number)?;
        value::set(&mut fixed.ttft_jitter_ms, "--ttft-jitter", &self.ttft_jitter, value::number)?;
        value::set(&mut fixed.itl_jitter_ms, "--itl-jitter", &self.itl_jitter, value::number)
    }

    /// The options of a batching server, and whether they are given.
    fn of_batching(&self) -> [(&'static str, bool); 15] {
        [
            ("--model-preset", self.model_preset.is_some()),
            ("--slots", self.slots.is_some()),
            ("--base-ms", self.base_ms.is_some()),
            ("--per-sequence-ms", self.per_sequence_ms.is_some()),
            ("--per-prefill-token-ms", self.per_prefill_token_ms.is_some()),
            ("--noise", self.noise.is_some()),
            ("--step-tokens-max", self.step_tokens_max.is_some()),
            ("--queue-max", self.queue_max.is_some()),
            ("--replicas", self.replicas.is_some()),
            ("--speeds", self.speeds.is_some()),
            ("--router", self.router.is_some()),
            ("--prefix-cache", self.prefix_cache),
            ("--cache-block-tokens", self.cache_block_tokens.is_some()),
            ("--cache-blocks-max", self.cache_blocks_max.is_some()),
            ("--cache-full-hit", self.cache_full_hit.is_some()),
        ]
    }

    /// The options of a server of set times, and whether they are given.
    fn of_fixed(&self) -> [(&'static str, bool); 5] {
        [
            ("--ttft", self.ttft.is_some()),
            ("--ttft-per-in-flight", self.ttft_per_in_flight.is_some()),
            ("--itl", self.itl.is_some()),
            ("--ttft-jitter", self.ttft_jitter.is_some()),
            ("--itl-jitter", self.itl_jitter.is_some()),
        ]
    }
}

fn first_given(options: &[(&'static str, bool)]) -> Option<&'static str> {
    options.iter().find(|(_, given)| *given).map(|(option, _)| *option)
}

fn set_some(place: &mut Option<u32>, option: &str, text: &Option<String>) -> Result<(), Error> {
    value::set(place, option, text, |option, text| value::integer(option, text).map(Some))
}

fn slots(option: &str, text: &str) -> Result<u32, Error> {
    match text.trim() {
        "inf" => Ok(u32::MAX),
        text => value::integer(option, text),
    }
}

fn router(option: &str, text: &str) -> Result<Router, Error> {
    match text.replace('_', "-").as_str() {
        "least-loaded" => Ok(Router::LeastLoaded),
        "round-robin" => Ok(Router::RoundRobin),
        _ => Err(Error::new(option, format!("'{text}' is no rule"), "give round-robin or least-loaded")),
    }
}

fn full_hit(option: &str, text: &str) -> Result<FullHit, Error> {
    match text.replace('_', "-").as_str() {
        "last-block" => Ok(FullHit::LastBlock),
        "one-token" => Ok(FullHit::OneToken),
        _ => Err(Error::new(option, format!("'{text}' is no rule"), "give one-token or last-block")),
    }
}

/// A standstill, `AT:FOR`.
fn freeze(text: &str) -> Result<Freeze, Error> {
    let option = "--freeze";
    let Some((at, length)) = text.split_once(':') else {
        let remedy = "give its begin and its length in seconds, as in 10:2";
        return Err(Error::new(option, format!("'{text}' is no standstill"), remedy));
    };
    Ok(Freeze { at_s: value::seconds(option, at)?, for_s: value::seconds(option, length)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str]) -> Result<Settings, Error> {
        let args = ModelArgs::from_args(&["tokload"], words).map_err(|exit| panic!("{}", exit.output));
        args.and_then(|args: ModelArgs| args.settings(7, &Settings::course()))
    }

    fn batching(words: &[&str]) -> Batching {
        match read(words).unwrap().serving {
            Serving::Batching(batching) => batching,
            Serving::Fixed(fixed) => panic!("{words:?}: {fixed:?}"),
        }
    }

    #[test]
    fn without_options_it_is_the_commands_server_with_the_commands_seed() {
        assert_eq!(read(&[]), Ok(Settings { seed: 7, ..Settings::course() }));
        assert_eq!(read(&["--model-preset", "course"]), read(&[]));
        let fixed = Settings::serving(Serving::Fixed(Fixed { itl_ms: 5.0, ..Fixed::default() }));
        assert_eq!(ModelArgs::default().settings(0, &fixed), Ok(fixed.clone()));
        // An option of its kind changes it, one of the other kind replaces it.
        let args = ModelArgs { ttft: Some("80".to_owned()), ..ModelArgs::default() };
        let changed = Fixed { ttft_ms: 80.0, itl_ms: 5.0, ..Fixed::default() };
        assert_eq!(args.settings(0, &fixed).unwrap().serving, Serving::Fixed(changed));
        let args = ModelArgs { slots: Some("4".to_owned()), ..ModelArgs::default() };
        let other = Batching { slots: 4, ..Batching::default() };
        assert_eq!(args.settings(0, &fixed).unwrap().serving, Serving::Batching(other));
    }

    #[test]
    fn every_option_of_a_batching_server_reaches_its_setting() {
        let words = "--slots 4 --base-ms 7 --per-sequence-ms 0.25 --per-prefill-token-ms 0.02 --noise 0.1 \
                     --step-tokens-max 512 --queue-max 0 --replicas 2 --speeds 1,0.5 --router least_loaded \
                     --cache-block-tokens 32 --cache-blocks-max 100 --cache-full-hit last-block --tokens-per-step 2 \
                     --cold-start 500ms --freeze 10:2 --freeze 1m:1.5";
        let settings = read(&words.split_whitespace().collect::<Vec<_>>()).unwrap();
        let expected = Batching {
            slots: 4,
            queue_max: Some(0),
            step_tokens_max: Some(512),
            noise: 0.1,
            replicas: 2,
            speeds: vec![1.0, 0.5],
            router: Router::LeastLoaded,
            cost: crate::model::Cost { base_ms: 7.0, per_sequence_ms: 0.25, per_prefill_token_ms: 0.02 },
            prefix_cache: Some(PrefixCache {
                block_tokens: 32,
                blocks_max: Some(100),
                full_hit: FullHit::LastBlock,
            }),
        };
        let expected = Settings {
            serving: Serving::Batching(expected),
            seed: 7,
            tokens_per_step: 2,
            cold_start_s: 0.5,
            freezes: vec![Freeze { at_s: 10.0, for_s: 2.0 }, Freeze { at_s: 60.0, for_s: 1.5 }],
            slowing_per_minute: 0.0,
        };
        assert_eq!(settings, expected);
        assert_eq!(batching(&["--prefix-cache"]).prefix_cache, Some(PrefixCache::default()));
        assert_eq!(batching(&[]).prefix_cache, None);
        assert_eq!(batching(&["--slots", "inf"]).slots, u32::MAX);
    }

    #[test]
    fn every_option_of_set_times_reaches_its_setting() {
        let words = "--ttft 100 --ttft-per-in-flight 80 --itl 5 --ttft-jitter 3 --itl-jitter 1";
        let settings = read(&words.split_whitespace().collect::<Vec<_>>()).unwrap();
        let fixed = Fixed {
            ttft_ms: 100.0,
            ttft_per_in_flight_ms: 80.0,
            itl_ms: 5.0,
            ttft_jitter_ms: 3.0,
            itl_jitter_ms: 1.0,
        };
        assert_eq!(settings.serving, Serving::Fixed(fixed));
        let settings = read(&["--itl", "5"]).unwrap();
        assert_eq!(settings.serving, Serving::Fixed(Fixed { itl_ms: 5.0, ..Fixed::default() }));
    }

    #[test]
    fn refusals_name_the_option_and_the_remedy() {
        for (words, sentence) in [
            (
                &["--model-preset", "h100"][..],
                "--model-preset: there is no preset 'h100'; give course, or the costs one by one, which tokload \
                 simulate --fit finds in a saved run",
            ),
            (
                &["--ttft", "80", "--slots", "4"],
                "--ttft: sets the times of every request, but --slots describes a server that shares its time; give \
                 options of one kind",
            ),
            (&["--slots", "0"], "--slots: 0 serves nobody; give at least 1"),
            (&["--base-ms", "-1"], "--base-ms: -1 is out of range; give milliseconds, at least 0"),
            (&["--router", "random"], "--router: 'random' is no rule; give round-robin or least-loaded"),
            (&["--cache-full-hit", "x"], "--cache-full-hit: 'x' is no rule; give one-token or last-block"),
            (
                &["--freeze", "10"],
                "--freeze: '10' is no standstill; give its begin and its length in seconds, as in 10:2",
            ),
            (&["--freeze", "10:0"], "--freeze: 0 s is no length of a standstill; give seconds above 0"),
            (&["--speeds", "1,x"], "--speeds: 'x' is not a number; write as in --speeds 0.7"),
        ] {
            assert_eq!(read(words).expect_err(sentence).to_string(), sentence);
        }
    }
}
