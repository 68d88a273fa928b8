//! What no server can be: the checks of the model's settings.
//!
//! A refusal names the setting; an option of the command line bears the same words.

use super::settings::{Batching, Cost, Fixed, Freeze, PrefixCache, Serving, Settings};
use crate::plan::{Error, Plan};

impl Settings {
    /// Checks that there can be such a server.
    ///
    /// # Errors
    /// The first setting that makes it impossible.
    pub fn validate(&self) -> Result<(), Error> {
        if self.seed > Plan::SEED_MAX {
            let wrong = format!("{} is above 2^63 - 1", self.seed);
            return Err(Error::new("--seed", wrong, "take a smaller seed"));
        }
        at_least_one("--tokens-per-step", self.tokens_per_step)?;
        not_negative("--cold-start", self.cold_start_s, "seconds")?;
        self.freezes.iter().try_for_each(check_freeze)?;
        if !(0.0..=10.0).contains(&self.slowing_per_minute) {
            let wrong = format!("{} is no share by which a server slows down", self.slowing_per_minute);
            return Err(Error::new(
                "--slowing",
                wrong,
                "give a share from 0 to 10 a minute, as in 1% or 0.01",
            ));
        }
        match &self.serving {
            Serving::Batching(batching) => check_batching(batching, self.tokens_per_step),
            Serving::Fixed(fixed) => check_fixed(fixed),
        }
    }
}

fn check_freeze(freeze: &Freeze) -> Result<(), Error> {
    not_negative("--freeze", freeze.at_s, "seconds from the start")?;
    if !(freeze.for_s.is_finite() && freeze.for_s > 0.0) {
        let wrong = format!("{} s is no length of a standstill", freeze.for_s);
        return Err(Error::new("--freeze", wrong, "give seconds above 0"));
    }
    Ok(())
}

fn check_batching(batching: &Batching, tokens_per_step: u32) -> Result<(), Error> {
    at_least_one("--slots", batching.slots)?;
    if let Some(most) = batching.step_tokens_max {
        check_chunks(most, batching.slots, tokens_per_step)?;
    }
    if !(0.0..=1.0).contains(&batching.noise) {
        let wrong = format!("{} is no relative deviation", batching.noise);
        return Err(Error::new("--noise", wrong, "give a number from 0 to 1, as in 0.05"));
    }
    check_cost(&batching.cost)?;
    check_replicas(batching)?;
    check_shortest_step(batching)?;
    batching.prefix_cache.as_ref().map_or(Ok(()), check_prefix_cache)
}

fn check_cost(cost: &Cost) -> Result<(), Error> {
    for (option, ms) in [
        ("--base-ms", cost.base_ms),
        ("--per-sequence-ms", cost.per_sequence_ms),
        ("--per-prefill-token-ms", cost.per_prefill_token_ms),
    ] {
        not_negative(option, ms, "milliseconds")?;
    }
    Ok(())
}

/// Chunked prefill must leave every sequence its tokens.
fn check_chunks(most: u32, slots: u32, tokens_per_step: u32) -> Result<(), Error> {
    let refused = |wrong, remedy| Err(Error::new("--step-tokens-max", wrong, remedy));
    let needed = u64::from(slots) * u64::from(tokens_per_step);
    match slots {
        // As many as it takes.
        u32::MAX => refused(
            format!("{most} tokens do not let any number of sequences go on"),
            "give a number of --slots, or leave chunked prefill out".to_owned(),
        ),
        _ if u64::from(most) < needed => refused(
            format!("{most} tokens do not let {slots} sequences go on"),
            format!("give at least {needed}, or leave chunked prefill out"),
        ),
        _ => Ok(()),
    }
}

/// A step of one sequence on the fastest replica, noise aside. With next to none, time would stand still: a simulated
/// second would take days.
fn check_shortest_step(batching: &Batching) -> Result<(), Error> {
    let Cost { base_ms, per_sequence_ms, .. } = batching.cost;
    let fastest = batching.speeds.iter().copied().reduce(f64::max).unwrap_or(1.0);
    if (base_ms + per_sequence_ms) / fastest >= STEP_MS_MIN {
        return Ok(());
    }
    let (subject, remedy) = match base_ms + per_sequence_ms >= STEP_MS_MIN {
        true => ("--speeds", "give smaller ones".to_owned()),
        false => {
            ("--base-ms", format!("give at least {STEP_MS_MIN} milliseconds here or for --per-sequence-ms"))
        }
    };
    Err(Error::new(subject, "a step of one sequence takes less than a microsecond", remedy))
}

fn check_replicas(batching: &Batching) -> Result<(), Error> {
    let Batching { replicas, speeds, .. } = batching;
    at_least_one("--replicas", *replicas)?;
    if *replicas > REPLICAS_MAX {
        let wrong = format!("{replicas} replicas are too many");
        return Err(Error::new("--replicas", wrong, format!("give at most {REPLICAS_MAX}")));
    }
    if !speeds.is_empty() && speeds.len() != *replicas as usize {
        let wrong = format!("{} speeds are given for {replicas} replicas", speeds.len());
        return Err(Error::new("--speeds", wrong, "give one for each, or none"));
    }
    match speeds.iter().find(|speed| !(speed.is_finite() && **speed > 0.0)) {
        Some(speed) => {
            let wrong = format!("{speed} is no speed");
            Err(Error::new("--speeds", wrong, "give numbers above 0; 2 is twice as fast as 1"))
        }
        None => Ok(()),
    }
}

fn check_prefix_cache(cache: &PrefixCache) -> Result<(), Error> {
    at_least_one("--cache-block-tokens", cache.block_tokens)?;
    if cache.blocks_max == Some(0) {
        let remedy = "give at least 1, or leave the prefix cache out";
        return Err(Error::new("--cache-blocks-max", "a cache of 0 blocks holds nothing", remedy));
    }
    Ok(())
}

fn check_fixed(fixed: &Fixed) -> Result<(), Error> {
    for (option, ms) in [
        ("--ttft", fixed.ttft_ms),
        ("--ttft-per-in-flight", fixed.ttft_per_in_flight_ms),
        ("--itl", fixed.itl_ms),
        ("--ttft-jitter", fixed.ttft_jitter_ms),
        ("--itl-jitter", fixed.itl_jitter_ms),
    ] {
        not_negative(option, ms, "milliseconds")?;
    }
    Ok(())
}

fn at_least_one(option: &str, count: u32) -> Result<(), Error> {
    if count == 0 {
        return Err(Error::new(option, "0 serves nobody", "give at least 1"));
    }
    Ok(())
}

fn not_negative(option: &str, value: f64, unit: &str) -> Result<(), Error> {
    if value.is_finite() && value >= 0.0 {
        return Ok(());
    }
    Err(Error::new(option, format!("{value} is out of range"), format!("give {unit}, at least 0")))
}

/// Shortest step, ms: a microsecond, far below any server's.
const STEP_MS_MIN: f64 = 1e-3;
/// More than any router has behind it; each takes a few hundred bytes.
const REPLICAS_MAX: u32 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(change: impl FnOnce(&mut Settings)) -> String {
        let mut settings = Settings::course();
        change(&mut settings);
        settings.validate().unwrap_err().to_string()
    }

    fn refusal_of_batching(change: impl FnOnce(&mut Batching)) -> String {
        let mut batching = Batching::default();
        change(&mut batching);
        refusal(|settings| settings.serving = Serving::Batching(batching))
    }

    #[test]
    fn presets_are_possible() {
        assert_eq!(Settings::course().validate(), Ok(()));
        assert_eq!(Settings::serving(Serving::Fixed(Fixed::default())).validate(), Ok(()));
    }

    #[test]
    fn refusals_say_what_is_wrong_and_what_to_do() {
        assert_eq!(
            refusal_of_batching(|batching| batching.slots = 0),
            "--slots: 0 serves nobody; give at least 1"
        );
        assert_eq!(
            refusal_of_batching(|batching| batching.cost.per_sequence_ms = -0.5),
            "--per-sequence-ms: -0.5 is out of range; give milliseconds, at least 0"
        );
        assert_eq!(
            refusal_of_batching(|batching| batching.step_tokens_max = Some(15)),
            "--step-tokens-max: 15 tokens do not let 16 sequences go on; give at least 16, or leave chunked \
             prefill out"
        );
        assert_eq!(
            refusal_of_batching(|batching| (batching.slots, batching.step_tokens_max) = (u32::MAX, Some(100))),
            "--step-tokens-max: 100 tokens do not let any number of sequences go on; give a number of --slots, or leave \
             chunked prefill out"
        );
        assert_eq!(
            refusal_of_batching(|batching| (batching.replicas, batching.speeds) = (3, vec![1.0, 2.0])),
            "--speeds: 2 speeds are given for 3 replicas; give one for each, or none"
        );
    }

    #[test]
    fn a_step_takes_a_microsecond_at_least() {
        let of = |base_ms, per_sequence_ms, speeds: &[f64]| {
            let cost = Cost { base_ms, per_sequence_ms, per_prefill_token_ms: 1.0 };
            let replicas = speeds.len().max(1) as u32;
            let batching = Batching { cost, replicas, speeds: speeds.to_vec(), ..Batching::default() };
            Settings::serving(Serving::Batching(batching)).validate().map_err(|error| error.to_string())
        };
        assert_eq!(of(0.0, 1e-3, &[]), Ok(()));
        assert_eq!(of(1e-3, 0.0, &[1.0, 0.5]), Ok(()));
        let short = "a step of one sequence takes less than a microsecond";
        let more =
            format!("--base-ms: {short}; give at least 0.001 milliseconds here or for --per-sequence-ms");
        assert_eq!(of(0.0, 0.0, &[]), Err(more.clone()));
        assert_eq!(of(1e-12, 0.000_999, &[]), Err(more));
        assert_eq!(of(10.0, 0.0, &[1.0, 1e6]), Err(format!("--speeds: {short}; give smaller ones")));
    }

    #[test]
    fn every_setting_has_its_bounds() {
        let nothing = Cost { base_ms: 0.0, per_sequence_ms: 0.0, per_prefill_token_ms: 1.0 };
        let cache = |cache: PrefixCache| refusal_of_batching(|batching| batching.prefix_cache = Some(cache));
        let fixed = |fixed: Fixed| refusal(|settings| settings.serving = Serving::Fixed(fixed));
        let freeze = |at_s, for_s| refusal(|settings| settings.freezes = vec![Freeze { at_s, for_s }]);
        for (option, refusal) in [
            ("--seed", refusal(|settings| settings.seed = 1 << 63)),
            ("--tokens-per-step", refusal(|settings| settings.tokens_per_step = 0)),
            ("--cold-start", refusal(|settings| settings.cold_start_s = -1.0)),
            ("--freeze", freeze(-1.0, 1.0)),
            ("--freeze", freeze(1.0, 0.0)),
            ("--freeze", freeze(1.0, f64::INFINITY)),
            ("--noise", refusal_of_batching(|batching| batching.noise = f64::NAN)),
            ("--noise", refusal_of_batching(|batching| batching.noise = 1.5)),
            ("--base-ms", refusal_of_batching(|batching| batching.cost = nothing)),
            ("--base-ms", refusal_of_batching(|batching| batching.cost.base_ms = f64::INFINITY)),
            ("--per-prefill-token-ms", refusal_of_batching(|b| b.cost.per_prefill_token_ms = f64::NAN)),
            ("--replicas", refusal_of_batching(|batching| batching.replicas = 0)),
            ("--replicas", refusal_of_batching(|batching| batching.replicas = u32::MAX)),
            ("--speeds", refusal_of_batching(|batching| batching.speeds = vec![0.0])),
            ("--cache-block-tokens", cache(PrefixCache { block_tokens: 0, ..PrefixCache::default() })),
            ("--cache-blocks-max", cache(PrefixCache { blocks_max: Some(0), ..PrefixCache::default() })),
            ("--ttft", fixed(Fixed { ttft_ms: -1.0, ..Fixed::default() })),
            ("--ttft-per-in-flight", fixed(Fixed { ttft_per_in_flight_ms: -1.0, ..Fixed::default() })),
            ("--itl", fixed(Fixed { itl_ms: f64::NAN, ..Fixed::default() })),
            ("--ttft-jitter", fixed(Fixed { ttft_jitter_ms: -1.0, ..Fixed::default() })),
            ("--itl-jitter", fixed(Fixed { itl_jitter_ms: -1.0, ..Fixed::default() })),
        ] {
            assert!(refusal.starts_with(&format!("{option}: ")), "{refusal}");
        }
    }
}
