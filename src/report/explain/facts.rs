//! What a level says to the explanation, and how numbers are shown in it.

use crate::metrics::Metric;
use crate::report::format;
use crate::run_file::schema::LevelBlock;
use crate::stats::Quantile;
use crate::summary::InFlight;

/// A level with data, in milliseconds and per second. Latencies are means over the requests that ended well.
pub(super) struct Facts<'a> {
    pub(super) label: &'a str,
    /// Users of a closed loop without a schedule.
    pub(super) users: Option<f64>,
    /// Their mean pause between an answer and the next request, s.
    pub(super) think_s: f64,
    /// Answers that each request asks for (`n`): as many sequences of the server.
    pub(super) choices: f64,
    /// Asked rate of an open loop, or of paced users.
    pub(super) asked_s: Option<f64>,
    /// Of an open loop, which sends no more than so many at a time.
    pub(super) capped: bool,
    pub(super) whole_level: bool,
    pub(super) offered_s: f64,
    /// Requests that end well.
    pub(super) req_s: f64,
    pub(super) out_tok_s: f64,
    pub(super) e2e_ms: f64,
    /// Until the end of the response.
    pub(super) stay_ms: f64,
    pub(super) ttft_ms: Option<f64>,
    pub(super) tpot_ms: Option<f64>,
    /// Median and 99th percentile of all gaps.
    pub(super) itl_ms: Option<(f64, f64)>,
    pub(super) in_flight: Option<InFlight>,
    /// Requests that did not end well.
    pub(super) not_ok: u64,
    /// Of a closed loop: all users were there.
    pub(super) all_came: bool,
    /// Per request, over all its answers; 0 where not known.
    pub(super) output_tokens: f64,
    /// Per request and without those from a cache.
    pub(super) prompt_tokens: Option<f64>,
}

impl<'a> Facts<'a> {
    /// A level whose requests ask for `choices` answers each; `None` if nothing ended well, or the level's load is not
    /// known to this tokload.
    pub(super) fn of(level: &'a LevelBlock, choices: u32) -> Option<Facts<'a>> {
        let load = level.setting.read().ok()?.load;
        let distribution = |metric| level.distributions.get(&metric);
        let mean_ms = |metric| Some(distribution(metric)?.mean? / 1e6);
        let itl_ms = |quantile| Some(distribution(Metric::Itl)?.quantile(quantile)? / 1e6);
        let rates = &level.rates.window;
        let e2e_ms = mean_ms(Metric::E2e)?;
        let (ok, tokens) = (level.counts.ok, &level.tokens);
        if ok == 0 || rates.req_s <= 0.0 {
            return None;
        }
        Some(Facts {
            label: &level.label,
            // Paced users plan as an open loop does, with as many as there are users in flight at most.
            users: load.users.map(f64::from).filter(|_| load.interval_s().is_none()),
            think_s: level
                .statistics
                .as_ref()
                .and_then(|known| known.little?.pause_s)
                .unwrap_or(load.think_s),
            choices: f64::from(choices),
            asked_s: level.asked_s(),
            capped: load.cap.is_some() || load.interval_s().is_some(),
            whole_level: level.window.whole_level,
            offered_s: rates.offered_s,
            req_s: rates.req_s,
            out_tok_s: rates.out_tok_s,
            e2e_ms,
            stay_ms: mean_ms(Metric::Stream).unwrap_or(e2e_ms),
            ttft_ms: mean_ms(Metric::Ttft),
            tpot_ms: mean_ms(Metric::Tpot),
            itl_ms: itl_ms(Quantile::P50).zip(itl_ms(Quantile::P99)),
            in_flight: level.in_flight,
            not_ok: level.counts.failed + level.counts.cancelled,
            all_came: level.has_all_users(),
            output_tokens: tokens.output as f64 / ok as f64,
            prompt_tokens: (tokens.prompt_known > 0).then(|| {
                tokens.prompt.saturating_sub(tokens.cached.unwrap_or(0)) as f64 / tokens.prompt_known as f64
            }),
        })
    }

    /// Little's law for the time before the first token: how many wait for it. And for the time after it.
    pub(super) fn waiting_and_receiving(&self) -> Option<(f64, f64)> {
        let ttft_ms = self.ttft_ms?;
        Some((self.req_s * ttft_ms / 1e3, self.req_s * (self.e2e_ms - ttft_ms) / 1e3))
    }
}

/// Milliseconds, without the unit.
pub(super) fn ms(ms: f64) -> String {
    format::ms(ms * 1e6)
}

/// A count or a rate; a whole number without decimals.
pub(super) fn number(value: f64) -> String {
    unsigned_zero(if value.fract() == 0.0 { format!("{value:.0}") } else { format::rate(value) })
}

/// One decimal.
pub(super) fn tenths(value: f64) -> String {
    unsigned_zero(format!("{value:.1}"))
}

/// What rounds to nothing has no sign.
fn unsigned_zero(text: String) -> String {
    match text.strip_prefix('-') {
        Some(digits) if digits.bytes().all(|b| matches!(b, b'0' | b'.')) => digits.to_owned(),
        _ => text,
    }
}

/// As many decimals as anybody wrote, but not those that only rounding made.
pub(super) fn plain(value: f64) -> String {
    format::typed((value * 1e6).round() / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_no_more_digits_than_they_need() {
        let shown = [16.0, 15.056, -0.3, -0.001, 0.0, 1234.5].map(number);
        assert_eq!(shown, ["16", "15.06", "-0.30", "0.00", "0", "1234"]);
        assert_eq!([-0.04, 0.06].map(tenths), ["0.0", "0.1"]);
        assert_eq!([0.1 + 0.2, 10.0, 0.05].map(plain), ["0.3", "10", "0.05"]);
    }
}
