//! What to know of a fitted server, one sentence each: what the measured levels lack, what fits badly and perhaps why,
//! and how far the costs carry.

use super::named;
use crate::model::fit::{Fit, Point, Quantity, Residual, Terms};
use crate::report::format;
use crate::run_file::RunFile;
use crate::run_file::schema::LevelBlock;

/// A fit with what it rests on.
pub(super) struct Known<'a> {
    pub(super) run: &'a RunFile,
    /// The levels that were used, one for each point.
    pub(super) used: &'a [&'a LevelBlock],
    pub(super) points: &'a [Point],
    pub(super) fit: &'a Fit,
}

impl Known<'_> {
    /// All remarks: first on the levels, then on the fit.
    pub(super) fn remarks(&self) -> Vec<String> {
        let mut remarks: Vec<String> = self.used.iter().filter_map(|level| of_failures(level)).collect();
        remarks.extend(self.of_prompts());
        remarks.extend(self.of_length());
        remarks.extend(self.of_events());
        remarks.extend(self.of_costs());
        remarks.extend(self.of_errors());
        remarks.extend(self.of_slots());
        remarks.extend(self.of_context());
        remarks
    }

    fn of_prompts(&self) -> Option<String> {
        if self.used.iter().any(|level| level.tokens.prompt_known == 0) {
            let words = self.run.plan.read().ok().and_then(|plan| plan.workload.prompt_words()).unwrap_or(0);
            return Some(format!(
                "no prompt tokens were reported: {words} words are taken as {words} tokens"
            ));
        }
        let sum = |of: fn(&LevelBlock) -> u64| self.used.iter().map(|level| of(level)).sum::<u64>();
        let (prompt, cached) = (sum(|l| l.tokens.prompt), sum(|l| l.tokens.cached.unwrap_or(0)));
        let share = format::percent(cached as f64 / prompt.max(1) as f64);
        (cached > 0)
            .then(|| format!("{share} % of the prompt tokens came from a cache and count as not computed"))
    }

    /// Levels so short that their beginning and end weigh in the rate.
    fn of_length(&self) -> Option<String> {
        let levels = self.used.iter().zip(self.points);
        let short: Vec<&str> =
            levels.filter(|(l, p)| is_short(l, p)).map(|(level, _)| level.label.as_str()).collect();
        (!short.is_empty()).then(|| {
            format!(
                "{}: fewer than {ANSWERS_PER_USER} answers per user, so that beginning and end weigh in the rate; \
                 --duration 90s leaves them out",
                short.join(", ")
            )
        })
    }

    fn of_events(&self) -> Option<String> {
        let shared = self.used.iter().any(|level| level.tokens.events * 2 < level.tokens.output);
        shared.then(|| "several tokens come with an event: what a step costs is shared among them".to_owned())
    }

    /// Costs that came out as nothing.
    fn of_costs(&self) -> Option<String> {
        let Terms { base, sequence, prefill } = self.fit.at_zero;
        let all = [(base, "base"), (sequence, "per sequence"), (prefill, "per prefill token")];
        let names: Vec<&str> = all.into_iter().filter_map(|(is_one, name)| is_one.then_some(name)).collect();
        (!names.is_empty()).then(|| {
            format!(
                "{} would have come out below zero and is held at 0: it does not show in these levels",
                names.join(" and ")
            )
        })
    }

    /// What fits worst, and what that may come from.
    fn of_errors(&self) -> Option<String> {
        let share = |residual: &Residual| residual.fitted_ms / residual.measured_ms - 1.0;
        let residuals = &self.fit.residuals;
        let worst = residuals.iter().max_by(|a, b| share(a).abs().total_cmp(&share(b).abs()))?;
        if share(worst).abs() <= FITS_EACH {
            return None;
        }
        let head = match self.fit.error_rms > FITS {
            true => "the errors are large: this model does not describe this server; ",
            false => "",
        };
        Some(format!(
            "{head}{} at {} is fitted worst, {:+.1} % off: perhaps {}",
            named(worst.quantity),
            users(worst.users),
            share(worst) * 100.0,
            self.cause(worst, share(worst) < 0.0)
        ))
    }

    /// What a number may come from that is measured as more, or else as less, than the model has it.
    fn cause(&self, of: &Residual, more: bool) -> &'static str {
        let mut levels = self.used.iter().zip(self.points);
        let most = self.points.iter().map(|point| point.users).max();
        match of.quantity {
            Quantity::Tpot | Quantity::Ttft => {
                "a network or a tokenizer that counts in the latency of one user and not in the throughput of several"
            }
            Quantity::PerRequest if levels.any(|(l, p)| p.users == of.users && is_short(l, p)) => {
                "the level was too short"
            }
            Quantity::PerRequest if of.users == 1 && more => {
                "the server is idle between the requests of a single user"
            }
            Quantity::PerRequest if Some(of.users) != most => {
                "others were at work on the machine, or steps do not grow evenly with their sequences"
            }
            Quantity::PerRequest if more => {
                "with many users the server is short of memory or processor, puts sequences off or computes them anew, \
                 or others were at work on the machine"
            }
            Quantity::PerRequest => {
                "large batches are computed better than small ones, or a cache answered for prompts without saying so"
            }
        }
    }

    /// How sure the slots are.
    fn of_slots(&self) -> Option<String> {
        let as_good = &self.fit.slots_as_good;
        let numbers: Vec<u32> = as_good.iter().copied().flatten().collect();
        let range = match (numbers.first(), numbers.last()) {
            (Some(first), Some(last)) if first == last => Some(first.to_string()),
            (Some(first), Some(last)) => Some(format!("{first} to {last}")),
            _ => None,
        };
        let never = as_good.contains(&None).then(|| "as many as it takes".to_owned());
        let others: Vec<String> = range.into_iter().chain(never).collect();
        let more = "further numbers of users would tell";
        match (self.fit.slots, others.join(" or ").as_str()) {
            (None, "") => {
                let most = self.points.iter().map(|point| point.users).max().unwrap_or(0);
                Some(format!(
                    "no level filled the slots: there are at least {most}, and beyond that many users --slots inf is a \
                     guess"
                ))
            }
            (None, others) => Some(format!(
                "it is open whether a level filled the slots: {others} fit nearly as well; {more}"
            )),
            (Some(_), "") => None,
            (Some(slots), others) => {
                Some(format!("{slots} slots are not certain: {others} fit nearly as well; {more}"))
            }
        }
    }

    /// What the costs are bound to. The model has one for all lengths.
    fn of_context(&self) -> Option<String> {
        let mean = |of: fn(&Point) -> f64| self.points.iter().map(of).sum::<f64>() / self.points.len() as f64;
        (!self.run.is_simulated()).then(|| {
            format!(
                "these are the costs with prompts of {:.0} tokens and answers of {:.0}: a real server's sequences cost \
                 more the longer their context is, and a part of a prompt's cost does not depend on its length",
                mean(|point| point.prompt_tokens),
                mean(|point| point.output_tokens)
            )
        })
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

fn is_short(level: &LevelBlock, point: &Point) -> bool {
    level.window.whole_level && level.counts.ok < ANSWERS_PER_USER * u64::from(point.users)
}

fn users(number: u32) -> String {
    if number == 1 { "1 user".to_owned() } else { format!("{number} users") }
}

/// Relative error beyond which a model says nothing of the server.
const FITS: f64 = 0.1;
/// And beyond which a single number is worth a word.
const FITS_EACH: f64 = 0.05;
const ANSWERS_PER_USER: u64 = 10;
