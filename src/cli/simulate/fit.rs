//! From a saved sweep to the server behind it: which levels count, what they say, and the fit in words.
//!
//! The estimate itself is `model::fit`'s; here a level of a run file becomes one of its points, or a remark why not.

use std::fmt::Write as _;
use std::path::Path;

use crate::metrics::Metric;
use crate::model::fit::{self, Fit, Point, Quantity, Residual};
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
            Error::new("--fit", error.to_string(), "name a saved run, a tokload-TIME.json")
        })?;
        Estimate::of_run(&loaded.run)
    }

    /// The server of `run`.
    ///
    /// Levels count that are closed loops without think time and have TTFT and TPOT; each remark on another says why
    /// it does not.
    ///
    /// # Errors
    /// When no level counts, or those that do leave a cost open.
    pub fn of_run(run: &RunFile) -> Result<Estimate, Error> {
        let planned_words = run.plan.read().ok().and_then(|plan| plan.workload.prompt_words());
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
        remarks.extend(used.iter().filter_map(|level| of_failures(level)));
        remarks.extend(of_prompts(&used, planned_words));
        remarks.extend(of_length(&used, &points));
        if fit.error_rms > FITS {
            remarks.push("the errors are large: this model does not describe this server".to_owned());
        }
        if used.iter().any(|level| level.tokens.events * 2 < level.tokens.output) {
            remarks
                .push("several tokens come with an event: what a step costs is shared among them".to_owned());
        }
        if fit.slots.is_none() {
            let most = points.iter().map(|point| point.users).max().unwrap_or(0);
            remarks.push(format!(
                "no level filled the slots: there are at least {most}, and beyond that many users --slots inf is a guess"
            ));
        }
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
        let slots = self.fit.slots.map_or_else(|| "not filled".to_owned(), |slots| slots.to_string());
        let mut text = format!("what a step costs, by {name} at {} users\n\n", users(&self.points, ", "));
        for (what, value) in [
            ("base", digits(cost.base_ms) + " ms"),
            ("per sequence", digits(cost.per_sequence_ms) + " ms"),
            ("per prefill token", digits(cost.per_prefill_token_ms) + " ms"),
            ("slots", slots),
        ] {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "  {what:<18} {value}");
        }
        text.push_str("\nusers  quantity                 measured ms  fitted ms  error %\n");
        for Residual { users, quantity, measured_ms, fitted_ms } in &self.fit.residuals {
            let quantity = match quantity {
                Quantity::PerRequest => "server time per request",
                Quantity::Tpot => "TPOT",
                Quantity::Ttft => "TTFT",
            };
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
        fit::Error::Undetermined => {
            let wrong = format!("levels of {} users do not tell the costs apart", users(points, ", "));
            Error::new("--fit", wrong, REMEDY)
        }
    }
}

fn of_failures(level: &LevelBlock) -> Option<String> {
    let (failed, judged) = (level.counts.failed, level.counts.judged());
    (failed > 0).then(|| {
        format!(
            "{}: {failed} of {judged} requests failed; their share of the server's time is missed",
            level.label
        )
    })
}

fn of_prompts(used: &[&LevelBlock], planned_words: Option<u32>) -> Option<String> {
    if used.iter().any(|level| level.tokens.prompt_known == 0) {
        let words = planned_words.unwrap_or(0);
        return Some(format!("no prompt tokens were reported: {words} words are taken as {words} tokens"));
    }
    let sum = |of: fn(&LevelBlock) -> u64| used.iter().map(|level| of(level)).sum::<u64>();
    let (prompt, cached) = (sum(|l| l.tokens.prompt), sum(|l| l.tokens.cached.unwrap_or(0)));
    let share = format::percent(cached as f64 / prompt.max(1) as f64);
    (cached > 0)
        .then(|| format!("{share} % of the prompt tokens came from a cache and count as not computed"))
}

/// Levels so short that their beginning and end weigh in the rate.
fn of_length(used: &[&LevelBlock], points: &[Point]) -> Option<String> {
    let is_short = |(level, point): &(&&LevelBlock, &Point)| {
        level.window.whole_level && level.counts.ok < ANSWERS_PER_USER * u64::from(point.users)
    };
    let short: Vec<&str> =
        used.iter().zip(points).filter(is_short).map(|(level, _)| level.label.as_str()).collect();
    (!short.is_empty()).then(|| {
        format!(
            "{}: fewer than {ANSWERS_PER_USER} answers per user, so that beginning and end weigh in the rate; \
             --duration 90s leaves them out",
            short.join(", ")
        )
    })
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
    if value == 0.0 {
        return "0".to_owned();
    }
    let decimals = (4.0 - value.abs().log10().floor()).clamp(0.0, 12.0) as usize;
    let text = format!("{value:.decimals$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

const REMEDY: &str =
    "measure one user and several more numbers of users, as in tokload run --max-concurrency 1,4,16,64";
/// Relative error beyond which a model says nothing of the server.
const FITS: f64 = 0.1;
const ANSWERS_PER_USER: u64 = 10;
const REMARK_CHARS_MAX: usize = 300;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_shown_with_five_digits() {
        let shown = [10.0, 0.5, 0.050_000_4, 12.345_678, 1_234_567.8, 0.0, 3.2e-7].map(digits);
        assert_eq!(shown, ["10", "0.5", "0.05", "12.346", "1234568", "0", "0.00000032"]);
    }
}
