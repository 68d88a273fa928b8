//! From a saved sweep to the server behind it: which levels count, what they say, and the fit in words.
//!
//! The estimate itself is `model::fit`'s; here a level of a run file becomes one of its points, or a remark why not.
//! What else there is to remark is `remarks`'s.

mod remarks;

use std::fmt::Write as _;
use std::path::Path;

use crate::metrics::Metric;
use crate::model::fit::{self, Fit, Point, Quantity, Residual, Terms};
use crate::plan::Error;
use crate::report::format;
use crate::run_file::schema::LevelBlock;
use crate::run_file::{Loaded, RunFile};

/// A server that was found in a saved run.
#[derive(Clone, Debug)]
pub struct Estimate {
    /// Its costs and slots.
    pub fit: Fit,
    /// What they were found from, one for each level used, in the order of the run.
    pub points: Vec<Point>,
    /// What to know of it, one sentence each.
    pub remarks: Vec<String>,
}

impl Estimate {
    /// The server of the saved run at `path`.
    ///
    /// # Errors
    /// When it cannot be read, and as [`of_run`](Estimate::of_run).
    pub fn of_file(path: &Path) -> Result<Estimate, Error> {
        let loaded = Loaded::open(path).map_err(|error| {
            Error::new("--fit", error.to_string(), "it takes a saved sweep of closed loops")
        })?;
        Estimate::of_run(&loaded.run)
    }

    /// The server of `run`.
    ///
    /// Levels count that are closed loops without think time, of one answer to a request, and have TTFT and TPOT; each
    /// remark on another says why it does not.
    ///
    /// # Errors
    /// When no level counts, or those that do leave a cost open.
    pub fn of_run(run: &RunFile) -> Result<Estimate, Error> {
        let workload = run.plan.read().ok().map(|plan| plan.workload);
        let planned_words = workload.as_ref().and_then(|workload| workload.prompt_words());
        let choices = workload.map_or(1, |workload| workload.choices);
        if choices > 1 {
            let why = format!("each request asks for {choices} answers, which share steps with each other");
            return Err(Error::new("--fit", why, "measure with one answer to a request, without --n"));
        }
        if let Some(share) = run.plan.read().ok().and_then(|plan| plan.share).filter(|share| share.of > 1) {
            let why = format!("it is share {share}: the server had the load of all");
            return Err(Error::new("--fit", why, "merge the shares by tokload merge first"));
        }
        let mut remarks = Vec::new();
        let mut points = Vec::new();
        let mut used = Vec::new();
        for level in &run.levels {
            match point(level, planned_words) {
                Ok(point) => {
                    points.push(point);
                    used.push(level);
                }
                Err(Unused(reason)) => remarks.push(format!("{} is not used: {reason}", level.label)),
            }
        }
        if points.is_empty() {
            let why = match remarks.is_empty() {
                true => "the run has no level".to_owned(),
                false => remarks.join(", "),
            };
            return Err(Error::new("--fit", why, REMEDY));
        }
        let fit = fit::fit(&points).map_err(|error| unfitted(error, &points))?;
        let known = remarks::Known { run, used: &used, points: &points, fit: &fit };
        remarks.extend(known.remarks());
        Ok(Estimate { fit, points, remarks })
    }

    /// The command that runs the same levels against the fitted server.
    #[must_use]
    pub fn command(&self) -> String {
        let cost = &self.fit.cost;
        let mean = |of: fn(&Point) -> f64| {
            let sum: f64 = self.points.iter().map(of).sum();
            (sum / self.points.len() as f64).round().max(1.0)
        };
        format!(
            "tokload simulate --slots {} --base-ms {} --per-sequence-ms {} --per-prefill-token-ms {} \
             --random-input-len {} --random-output-len {} --max-concurrency {}",
            self.fit.slots.map_or_else(|| "inf".to_owned(), |slots| slots.to_string()),
            digits(cost.base_ms),
            digits(cost.per_sequence_ms),
            digits(cost.per_prefill_token_ms),
            mean(|point| point.prompt_tokens),
            mean(|point| point.output_tokens),
            users(&self.points, ",")
        )
    }

    /// All of it for reading; `name` is that of the file.
    #[must_use]
    pub fn text(&self, name: &str) -> String {
        let cost = &self.fit.cost;
        let deviation = &self.fit.deviation;
        let slots = self.fit.slots.map_or_else(|| "not filled".to_owned(), |slots| slots.to_string());
        let mut text = format!("what a step costs, by {name} at {} users\n\n", users(&self.points, ", "));
        for (what, value) in [
            ("base", with_deviation(cost.base_ms, deviation.base_ms)),
            ("per sequence", with_deviation(cost.per_sequence_ms, deviation.per_sequence_ms)),
            ("per prefill token", with_deviation(cost.per_prefill_token_ms, deviation.per_prefill_token_ms)),
            ("slots", slots),
        ] {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "  {what:<18} {value}");
        }
        text.push_str("\nusers  quantity                 measured ms  fitted ms  error %\n");
        for Residual { users, quantity, measured_ms, fitted_ms } in &self.fit.residuals {
            let quantity = named(*quantity);
            let (measured, fitted) = (format::ms(measured_ms * 1e6), format::ms(fitted_ms * 1e6));
            let error = (fitted_ms / measured_ms - 1.0) * 100.0;
            let _ = writeln!(text, "{users:>5}  {quantity:<23}  {measured:>11}  {fitted:>9}  {error:>+7.2}");
        }
        let rms = self.fit.error_rms * 100.0;
        let _ = writeln!(text, "root of the mean square of the errors: {rms:.2} %");
        if !self.remarks.is_empty() {
            text.push('\n');
        }
        for remark in &self.remarks {
            let _ = writeln!(text, "  {}", format::one_line(remark, REMARK_CHARS_MAX));
        }
        let _ = writeln!(text, "\nnext:\n  {}", self.command());
        text
    }
}

/// Why a level is no point.
struct Unused(&'static str);

/// What a level says to the fit. `planned_words` stand in for prompt tokens that the server did not report.
fn point(level: &LevelBlock, planned_words: Option<u32>) -> Result<Point, Unused> {
    let setting = level.setting.read().map_err(|_| Unused("this tokload does not know its load"))?;
    let users = setting.load.users.ok_or(Unused("it is no closed loop"))?;
    if setting.load.interval_s().is_some() {
        return Err(Unused("its users are paced"));
    }
    if setting.load.think_s > 0.0 {
        return Err(Unused("its users think"));
    }
    if level.counts.cancelled > 0 {
        return Err(Unused("some of its users went away"));
    }
    if level.counts.slow_ok + level.counts.slow_failed > 0 {
        return Err(Unused("some of its users read slowly"));
    }
    if level.counts.ok == 0 {
        return Err(Unused("no request ended well"));
    }
    let mean_ms = |metric| Some(level.distributions.get(&metric)?.mean? / 1e6);
    let ttft_ms = mean_ms(Metric::Ttft).ok_or(Unused("it has no TTFT"))?;
    let tokens = &level.tokens;
    if tokens.output == 0 {
        return Err(Unused("its output tokens are not known"));
    }
    let output_tokens = tokens.output as f64 / level.counts.ok as f64;
    let tpot_ms = match mean_ms(Metric::Tpot) {
        Some(ms) => ms,
        None if output_tokens <= 1.0 => 0.0,
        None => return Err(Unused("it has no TPOT")),
    };
    let prompt_tokens = match tokens.prompt_known {
        0 => f64::from(planned_words.ok_or(Unused("its prompt tokens are not known"))?),
        known => tokens.prompt.saturating_sub(tokens.cached.unwrap_or(0)) as f64 / known as f64,
    };
    let rate = level.rates.window.req_s;
    let request_rate = Some(rate).filter(|rate| *rate > 0.0);
    Ok(Point { users, prompt_tokens, output_tokens, ttft_ms, tpot_ms, request_rate })
}

fn unfitted(error: fit::Error, points: &[Point]) -> Error {
    match error {
        fit::Error::BadPoint(place) => {
            let users = points.get(place).map_or(0, |point| point.users);
            Error::new("--fit", format!("the level of {users} users has numbers out of range"), REMEDY)
        }
        fit::Error::Undetermined(terms) => {
            let levels = format!("levels of {} users", users(points, ", "));
            Error::new("--fit", format!("{levels} do not tell the cost {terms}"), telling(terms, points))
        }
    }
}

/// The sweep that tells the costs which this one leaves open.
fn telling(terms: Terms, points: &[Point]) -> String {
    let mut wishes = Vec::new();
    if terms.prefill && points.iter().all(|point| point.prompt_tokens == 0.0) {
        wishes.push("prompts that no cache answers for");
    }
    if points.iter().all(|point| point.output_tokens < SHORT_ANSWER) {
        wishes.push("answers of many tokens");
    }
    if !points.iter().any(|point| point.users == 1) {
        wishes.push("one user");
    }
    if terms.base || wishes.is_empty() {
        wishes.push("several more numbers of users");
    }
    let (last, first) = wishes.split_last().map_or(("", &[][..]), |(last, first)| (*last, first));
    let wishes = if first.is_empty() { last.to_owned() } else { format!("{} and {last}", first.join(", ")) };
    format!("measure {wishes}, as in tokload run --max-concurrency 1,4,16,64 --random-output-len 64")
}

fn named(quantity: Quantity) -> &'static str {
    match quantity {
        Quantity::PerRequest => "server time per request",
        Quantity::Tpot => "TPOT",
        Quantity::Ttft => "TTFT",
    }
}

/// A cost with what it may be off by, as far as that is known.
fn with_deviation(ms: f64, deviation_ms: f64) -> String {
    let value = digits(ms) + " ms";
    match deviation_ms.is_finite() && deviation_ms > ms * NO_DEVIATION {
        true => format!("{value} +- {}", brief(deviation_ms)),
        false => value,
    }
}

/// The numbers of users, each once: levels may have been repeated.
fn users(points: &[Point], separator: &str) -> String {
    let mut numbers: Vec<u32> = Vec::new();
    for point in points {
        if !numbers.contains(&point.users) {
            numbers.push(point.users);
        }
    }
    numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(separator)
}

/// A cost with five digits that count, which is more than any measurement has.
fn digits(value: f64) -> String {
    rounded(value, 5)
}

/// Two digits that count.
fn brief(value: f64) -> String {
    rounded(value, 2)
}

/// `value` with so many digits that count, without zeros at its end.
fn rounded(value: f64, count: u8) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let decimals = (f64::from(count) - 1.0 - value.abs().log10().floor()).clamp(0.0, 12.0) as usize;
    let text = format!("{value:.decimals$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

const REMEDY: &str =
    "measure one user and several more numbers of users, as in tokload run --max-concurrency 1,4,16,64";
/// Share of a cost below which its standard error is that of the arithmetic.
const NO_DEVIATION: f64 = 1e-6;
/// Answers of fewer tokens are mostly prefill.
const SHORT_ANSWER: f64 = 4.0;
const REMARK_CHARS_MAX: usize = 400;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_shown_with_five_digits() {
        let shown = [10.0, 0.5, 0.050_000_4, 12.345_678, 1_234_567.8, 0.0, 3.2e-7].map(digits);
        assert_eq!(shown, ["10", "0.5", "0.05", "12.346", "1234568", "0", "0.00000032"]);
    }
}
