//! What prompts share, as a plan states it.
//!
//! Owns the types and what of them is said of a workload; which request has which beginning is `workload::content`'s
//! business.

use serde::{Deserialize, Serialize};

use super::{Error, Level, Plan, Workload};
use crate::api::Extra;

/// A beginning that prompts share: before its own words, each request has the words of one of `pool` prefixes, drawn
/// by the seed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prefix {
    /// Its words; they come on top of those of the prompt.
    pub words: u32,
    /// How many different ones there are. 1 by default: all prompts begin alike.
    #[serde(default = "one")]
    pub pool: u32,
    /// Prefix number `k` is drawn with a probability that falls as `k^-exponent`; absent: all are drawn alike.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exponent: Option<f64>,
    /// Share of all prompt tokens of a level that an unlimited cache finds: only as many requests have a prefix as that
    /// takes, and the others have as many words of their own in its place. Absent: all have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hit_fraction: Option<f64>,
}

/// A level as far as a hit fraction depends on it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sharing {
    /// Words of a prompt's own, on average.
    pub own_words: f64,
    /// Words of the system message, which all requests have.
    pub system_words: u32,
    /// Requests; `None` where nobody knows, and as if there were no end of them.
    pub requests: Option<u64>,
}

impl Prefix {
    /// Largest pool from which is drawn by an exponent or for a hit fraction: both need a sum over it.
    pub const POOL_MAX: u32 = 1 << 20;

    /// One of `pool` prefixes for every request, all drawn alike.
    #[must_use]
    pub const fn new(words: u32, pool: u32) -> Prefix {
        Prefix { words, pool, exponent: None, hit_fraction: None }
    }

    /// The share of all prompt tokens that an unlimited cache finds, expected, if a share `pooled` of the requests has a
    /// prefix. The first request with a prefix does not find it, nor does the first of all find the system message:
    ///
    /// `(s (n - 1) + w (p n - d)) / (n (s + w + o))` for `n` requests with a system message of `s` words, prefixes of `w`
    /// and `o` of their own, where `d = sum over k of 1 - (1 - p q_k)^n` prefixes of probability `q_k` come at all.
    #[must_use]
    pub fn hit_fraction_of(&self, pooled: f64, level: Sharing) -> f64 {
        let (system, words) = (f64::from(level.system_words), f64::from(self.words));
        let each = system + words + level.own_words;
        let Some(n) = level.requests.map(|n| n.max(1) as f64) else {
            return (system + words * pooled) / each;
        };
        (system * (n - 1.0) + words * (pooled * n - self.seen(pooled, n))) / (n * each)
    }

    /// The share of requests that must have a prefix for [`Prefix::hit_fraction`]; 1 without one. 0 or 1 where it is out
    /// of reach.
    #[must_use]
    pub fn pooled_share(&self, level: Sharing) -> f64 {
        let Some(wanted) = self.hit_fraction else { return 1.0 };
        // The fraction grows with the share: each request more finds a prefix or brings one along.
        let (mut low, mut high) = (0.0, 1.0);
        if self.hit_fraction_of(high, level) <= wanted {
            return high;
        }
        for _ in 0..BISECTIONS {
            let middle = (low + high) / 2.0;
            *if self.hit_fraction_of(middle, level) < wanted { &mut low } else { &mut high } = middle;
        }
        if high < 1e-9 { 0.0 } else { high }
    }

    /// How many different prefixes `n` requests have among them, expected.
    fn seen(&self, pooled: f64, n: f64) -> f64 {
        // 1 - (1 - x)^n without the rounding of 1 - x.
        let comes = |q: f64| -((-pooled * q).ln_1p() * n).exp_m1();
        match self.exponent {
            None => f64::from(self.pool) * comes(1.0 / f64::from(self.pool)),
            Some(exponent) => {
                let weight = |k: u32| f64::from(k).powf(-exponent);
                let sum: f64 = (1..=self.pool).map(weight).sum();
                (1..=self.pool).map(|k| comes(weight(k) / sum)).sum()
            }
        }
    }
}

impl Workload {
    /// The words of each prompt, those of a system message, of a shared prefix and of a context of its own among them, if
    /// all prompts have as many. Those of conversations grow from turn to turn.
    #[must_use]
    pub fn prompt_words(&self) -> Option<u32> {
        if self.is_recorded() || self.conversation.is_some() {
            return None;
        }
        let prefix = self.prefix.map_or(0, |prefix| prefix.words);
        let more = [self.system_words, self.context_words].into_iter().flatten();
        let more = more.fold(prefix, u32::saturating_add);
        self.input_words.fixed().map(|own| own.saturating_add(more))
    }

    /// Whether prompts are those of a file.
    #[must_use]
    pub fn is_recorded(&self) -> bool {
        self.trace.is_some() || self.data.is_some()
    }

    /// The words asked for in prompts, for reading: `128`, `1500 shared + 200 to 300`, `those of the trace`.
    #[must_use]
    pub fn prompt_words_text(&self) -> String {
        if self.trace.is_some() {
            return "those of the trace".to_owned();
        }
        if self.data.is_some() {
            return "those of the data set".to_owned();
        }
        let system = self.system_words.map(|words| format!("{words} of the system"));
        let prefix = self.prefix.map(|prefix| match prefix.hit_fraction {
            None => format!("{} shared", prefix.words),
            Some(_) => format!("{} partly shared", prefix.words),
        });
        let context = self.context_words.map(|words| format!("{words} of its context"));
        let turn = if self.conversation.is_some() { " in a first turn" } else { "" };
        let own = Some(format!("{}{turn}", self.input_words));
        [system, prefix, context, own].into_iter().flatten().collect::<Vec<_>>().join(" + ")
    }

    /// The tokens of the server's chat template that come on top, where they are known.
    #[must_use]
    pub fn template_tokens(&self) -> Option<u32> {
        self.tokens.as_ref()?.found.as_ref()?.template.filter(|tokens| *tokens > 0)
    }
}

impl Plan {
    /// What a hit fraction depends on in `level`.
    #[must_use]
    pub fn sharing(&self, level: &Level) -> Sharing {
        Sharing {
            own_words: self.workload.input_words.mean(),
            system_words: self.workload.system_words.unwrap_or(0),
            requests: level.requests_expected(),
        }
    }

    /// A system message has a place, and a hit fraction can be reached by each level.
    pub(super) fn check_sharing(&self) -> Result<(), Error> {
        let Workload { prefix, system_words, distinct, .. } = &self.workload;
        if system_words.is_some() {
            let wrong =
                |wrong: String, remedy| Err(Error::new("--shared-system-prompt-length", wrong, remedy));
            let dialect = self.target.dialect;
            if !dialect.has(Extra::System) {
                let remedy = "give the same words before each prompt by --random-prefix-len";
                return wrong(format!("the API {} has no system messages", dialect.name()), remedy);
            }
            if self.workload.is_recorded() {
                return wrong("a file brings prompts of its own".to_owned(), "leave it out");
            }
        }
        let Some((prefix, wanted)) = prefix.and_then(|prefix| Some((prefix, prefix.hit_fraction?))) else {
            return Ok(());
        };
        let wrong = |wrong: String, remedy| Err(Error::new("--prefix-hit-fraction", wrong, remedy));
        if distinct.is_some() {
            let remedy = "leave out one of the two";
            return wrong("prompts that come again are found as a whole".to_owned(), remedy);
        }
        for level in &self.levels {
            let sharing = self.sharing(level);
            let (least, most) = (prefix.hit_fraction_of(0.0, sharing), prefix.hit_fraction_of(1.0, sharing));
            if most < wanted {
                let remedy = "give a smaller fraction, longer prefixes, fewer of them, or more requests";
                return wrong(
                    format!("{}: at most {most:.3} of the tokens can be found", level.label()),
                    remedy,
                );
            }
            if least > wanted {
                let remedy = "give a larger fraction, or a shorter --shared-system-prompt-length";
                return wrong(
                    format!("{}: the system message is {least:.3} of the tokens", level.label()),
                    remedy,
                );
            }
        }
        Ok(())
    }
}

fn one() -> u32 {
    1
}

/// Halvings of an interval of length 1: 1e-15 is left.
const BISECTIONS: u32 = 50;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Distribution, Lengths};

    #[test]
    fn a_context_is_a_part_of_each_prompt() {
        let workload = Workload { context_words: Some(9), input_words: 100.into(), ..Workload::default() };
        assert_eq!(workload.prompt_words(), Some(109));
        assert_eq!(workload.prompt_words_text(), "9 of its context + 100");
    }

    #[test]
    fn for_reading() {
        let uniform = Lengths::Drawn(Distribution::Uniform { min: 100, max: 300 });
        let mut workload = Workload { input_words: uniform, ..Workload::default() };
        assert_eq!((workload.prompt_words(), workload.prompt_words_text()), (None, "100 to 300".into()));
        workload.prefix = Some(Prefix::new(1500, 1));
        assert_eq!(workload.prompt_words_text(), "1500 shared + 100 to 300");
        workload.input_words = 24.into();
        assert_eq!(workload.prompt_words(), Some(1524));
        workload.system_words = Some(100);
        assert_eq!(workload.prompt_words_text(), "100 of the system + 1500 shared + 24");
        assert_eq!(workload.prompt_words(), Some(1624));
    }

    fn level(own_words: f64, requests: u64) -> Sharing {
        Sharing { own_words, system_words: 0, requests: Some(requests) }
    }

    #[test]
    fn a_hit_fraction_counts_first_uses_as_misses() {
        // All of 100 requests have the one prefix of 300 words before 100: 99 find it.
        let one = Prefix::new(300, 1);
        assert!((one.hit_fraction_of(1.0, level(100.0, 100)) - 0.99 * 0.75).abs() < 1e-12);
        assert_eq!(one.hit_fraction_of(1.0, Sharing { requests: None, ..level(100.0, 0) }), 0.75);
        assert_eq!(one.hit_fraction_of(0.0, level(100.0, 100)), 0.0);
        // Two prefixes, three requests: all by chance of the eight ways, 2 use one prefix and 6 use both.
        let two = Prefix::new(300, 2);
        let hits = (2.0 * 2.0 + 6.0 * 1.0) / 8.0;
        assert!((two.hit_fraction_of(1.0, level(100.0, 3)) - hits * 300.0 / 1200.0).abs() < 1e-12);
        // With the probabilities 2/3 and 1/3: 8/27 and 1/27 use one, 18/27 both.
        let zipf = Prefix { exponent: Some(1.0), ..two };
        let hits = (9.0 * 2.0 + 18.0) / 27.0;
        assert!((zipf.hit_fraction_of(1.0, level(100.0, 3)) - hits * 300.0 / 1200.0).abs() < 1e-12);
        // A system message alone is found by all but the first.
        let system = Sharing { system_words: 100, ..level(100.0, 10) };
        assert!((one.hit_fraction_of(0.0, system) - 900.0 / 5000.0).abs() < 1e-12);
    }

    #[test]
    fn the_share_of_requests_with_a_prefix_gives_the_fraction_wanted() {
        for (exponent, pool) in [(None, 1), (None, 50), (Some(1.2), 50), (Some(0.0), 7)] {
            for requests in [Some(200), Some(100_000), None] {
                let prefix = Prefix { exponent, hit_fraction: Some(0.4), ..Prefix::new(1500, pool) };
                let level = Sharing { own_words: 500.0, system_words: 20, requests };
                let share = prefix.pooled_share(level);
                let found = prefix.hit_fraction_of(share, level);
                assert!((0.0..1.0).contains(&share) && (found - 0.4).abs() < 1e-9, "{share}: {found}");
            }
        }
        let beyond = Prefix { hit_fraction: Some(0.9), ..Prefix::new(100, 1) };
        assert_eq!(beyond.pooled_share(level(100.0, 100)), 1.0);
        let below = Prefix { hit_fraction: Some(0.1), ..Prefix::new(100, 1) };
        assert_eq!(below.pooled_share(Sharing { system_words: 900, ..level(100.0, 100) }), 0.0);
        assert_eq!(Prefix::new(100, 1).pooled_share(level(100.0, 100)), 1.0);
    }
}
