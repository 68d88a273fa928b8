//! The verdict and the findings, worded: one line for each rule, however many levels break it.

use super::Note;
use crate::plan::{Grade, Rule};
use crate::report::format;
use crate::run_file::RunFile;
use crate::run_file::schema::FindingBlock;
use crate::stats::sort;
use crate::verdict::Verdict;

/// One rule and who broke it.
struct Broken<'a> {
    finding: &'a FindingBlock,
    /// Labels of the levels where it is as grave as in `finding`, the first of which is that one's; none if it is about
    /// the plan.
    levels: Vec<&'a str>,
}

/// The line of the verdict and a line for each warning of `run`; what is only information is named in a last one, and
/// [`noted`] says it. The line is `None` if the run is not judged.
pub(super) fn of(run: &RunFile) -> (Option<String>, Vec<Note>) {
    let Some(verdict) = run.verdict else { return (None, Vec::new()) };
    let broken = broken_by(run);
    let (grave, noted): (Vec<_>, Vec<_>) =
        broken.iter().partition(|broken| broken.finding.grade > Grade::Info);
    let mut notes: Vec<Note> = grave.iter().map(|broken| broken.note(run.levels.len() > 1)).collect();
    if !noted.is_empty() {
        // A file may come from anywhere.
        let rules: Vec<String> =
            noted.iter().map(|broken| format::one_line(&broken.finding.rule, TEXT_CHARS_MAX)).collect();
        let text = format!("noted: {}; tokload report FILE --findings says why", rules.join(", "));
        notes.push(Note { warning: false, text });
    }
    (Some(line(verdict, &broken)), notes)
}

/// A line for each finding of `run` that is only information.
#[must_use]
pub fn noted(run: &RunFile) -> Vec<Note> {
    let broken = broken_by(run);
    let noted = broken.iter().filter(|broken| broken.finding.grade == Grade::Info);
    noted.map(|broken| broken.note(run.levels.len() > 1)).collect()
}

fn broken_by(run: &RunFile) -> Vec<Broken<'_>> {
    let of_levels = run.levels.iter().flat_map(|level| {
        level.findings.iter().flatten().map(move |finding| (finding, Some(level.label.as_str())))
    });
    let of_plan = run.findings.iter().flatten().map(|finding| (finding, None));
    broken(of_plan.chain(of_levels))
}

/// The same of the findings over a plan that was not run: with every remedy.
#[must_use]
pub fn of_plan(findings: &[FindingBlock], verdict: Verdict) -> (String, Vec<Note>) {
    let broken = broken(findings.iter().map(|finding| (finding, None)));
    let notes = broken.iter().map(|Broken { finding, .. }| Note {
        warning: finding.grade > Grade::Info,
        text: format!("{}: {}; {}", finding.rule, finding.evidence, finding.remedy),
    });
    (line(verdict, &broken), notes.collect())
}

/// Each rule once, with its gravest finding; the gravest first, else in the order of the rules, those of a later
/// tokload last.
fn broken<'a>(findings: impl Iterator<Item = (&'a FindingBlock, Option<&'a str>)>) -> Vec<Broken<'a>> {
    let mut all: Vec<Broken<'a>> = Vec::new();
    for (finding, level) in findings {
        match all.iter_mut().find(|known| known.finding.rule == finding.rule) {
            Some(known) if finding.grade > known.finding.grade => {
                *known = Broken { finding, levels: level.into_iter().collect() };
            }
            Some(known) if finding.grade == known.finding.grade => known.levels.extend(level),
            Some(_) => {}
            None => all.push(Broken { finding, levels: level.into_iter().collect() }),
        }
    }
    let place =
        |finding: &FindingBlock| Rule::from_name(&finding.rule).map_or(Rule::ALL.len(), |rule| rule as usize);
    sort::few_by_key(&mut all, |broken| (std::cmp::Reverse(broken.finding.grade), place(broken.finding)));
    all
}

/// `verdict: degraded (few_requests, late_client)`.
fn line(verdict: Verdict, broken: &[Broken<'_>]) -> String {
    let blamed = broken.iter().filter(|broken| broken.finding.grade > Grade::Info);
    let rules: Vec<&str> = blamed.map(|broken| broken.finding.rule.as_str()).collect();
    match rules.is_empty() {
        true => format!("verdict: {}", verdict.word()),
        false => format!("verdict: {} ({})", verdict.word(), rules.join(", ")),
    }
}

impl Broken<'_> {
    /// What is only information is left short.
    fn note(&self, several_levels: bool) -> Note {
        let Broken { finding, levels } = self;
        // A file may come from anywhere.
        let clean = |text: &str| format::one_line(text, TEXT_CHARS_MAX);
        let mut text = format!("{}: ", clean(&finding.rule));
        match levels.as_slice() {
            [first, ..] if several_levels => text += &format!("{first}: "),
            _ => {}
        }
        text += &clean(&finding.evidence);
        match levels.as_slice() {
            [_, others @ ..] if several_levels && !others.is_empty() && others.len() <= NAMED_MAX => {
                text += &format!(" (also {})", others.join(", "));
            }
            [_, others @ ..] if several_levels && !others.is_empty() => {
                text += &format!(" (also {} more levels)", others.len());
            }
            _ => {}
        }
        let warning = finding.grade > Grade::Info;
        if warning {
            text += &format!("; {}", clean(&finding.remedy));
        }
        Note { warning, text }
    }
}

/// Levels that are named beside the first.
const NAMED_MAX: usize = 3;
const TEXT_CHARS_MAX: usize = 400;

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(rule: &str, grade: Grade) -> FindingBlock {
        let text = |what: &str| format!("{what} of {rule}");
        FindingBlock { rule: rule.to_owned(), grade, evidence: text("evidence"), remedy: text("remedy") }
    }

    fn notes(found: &[(FindingBlock, &str)]) -> Vec<String> {
        let found = found.iter().map(|(finding, level)| (finding, Some(*level)));
        broken(found).iter().map(|broken| broken.note(true).text).collect()
    }

    #[test]
    fn a_rule_has_one_line_for_all_levels_that_break_it() {
        let late = || finding("late_client", Grade::Warn);
        let one = "late_client: a: evidence of late_client";
        let remedy = "; remedy of late_client";
        assert_eq!(notes(&[(late(), "a")]), [format!("{one}{remedy}")]);
        assert_eq!(notes(&[(late(), "a"), (late(), "b")]), [format!("{one} (also b){remedy}")]);
        let five = ["a", "b", "c", "d", "e"].map(|level| (late(), level));
        assert_eq!(notes(&five), [format!("{one} (also 4 more levels){remedy}")]);
    }

    #[test]
    fn only_the_levels_where_it_is_gravest_are_named() {
        let found = [(Grade::Info, "a"), (Grade::Warn, "b"), (Grade::Info, "c")];
        let found = found.map(|(grade, level)| (finding("coalesced", grade), level));
        assert_eq!(notes(&found), ["coalesced: b: evidence of coalesced; remedy of coalesced"]);
    }

    #[test]
    fn the_gravest_come_first_then_the_order_of_the_rules_then_strangers() {
        let grades = [
            ("of_tomorrow", Grade::Warn),
            ("single_run", Grade::Info),
            ("coalesced", Grade::Warn),
            ("few_requests", Grade::Warn),
            ("failures", Grade::Invalid),
        ];
        let found = grades.map(|(rule, grade)| (finding(rule, grade), "a"));
        let order = notes(&found);
        let rules: Vec<&str> = order.iter().map(|note| note.split(':').next().unwrap()).collect();
        assert_eq!(rules, ["failures", "few_requests", "coalesced", "of_tomorrow", "single_run"]);
        let found: Vec<FindingBlock> = found.into_iter().map(|(finding, _)| finding).collect();
        let (line, notes) = of_plan(&found, Verdict::Invalid);
        assert_eq!(line, "verdict: invalid (failures, few_requests, coalesced, of_tomorrow)");
        assert_eq!(notes.iter().filter(|note| note.warning).count(), 4);
    }
}
