//! A gate as workflow commands of GitHub's actions: annotations on the run.

use std::io::{self, Write};

use super::{conclusion, sentence, word};
use crate::gate::{Outcome, Report};
use crate::plan::Grade;

/// Writes an annotation for each figure that is no pass and for each remark, and the outcome as a plain line.
///
/// # Errors
///
/// When `out` fails.
pub fn write(report: &Report, out: &mut impl Write) -> io::Result<()> {
    for load in &report.loads {
        for checked in &load.figures {
            let command = match checked.outcome {
                Outcome::Pass => continue,
                Outcome::Inconclusive => "warning",
                Outcome::Regression => "error",
            };
            let title = format!("tokload check: {}", word(checked.outcome));
            annotation(out, command, &title, &format!("{}: {}", load.load, sentence(checked)))?;
        }
    }
    for load in &report.unmatched {
        annotation(out, "warning", "tokload check: load", &format!("{load}: only one side has this load"))?;
    }
    for remark in &report.remarks {
        let command = if remark.grade > Grade::Info { "warning" } else { "notice" };
        annotation(out, command, &format!("tokload check: {}", remark.about), &remark.text)?;
    }
    writeln!(out, "{}", conclusion(report))
}

fn annotation(out: &mut impl Write, command: &str, title: &str, text: &str) -> io::Result<()> {
    // In a property a colon and a comma end the value as well.
    let title = escaped(title).replace(':', "%3A").replace(',', "%2C");
    writeln!(out, "::{command} title={title}::{}", escaped(text))
}

/// As the runner takes it back: a percent sign first, or it would escape the escapes.
fn escaped(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_begin_a_command_of_its_own() {
        let mut out = Vec::new();
        annotation(&mut out, "error", "a: b, c", "5 % more\n::error::x").unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "::error title=a%3A b%2C c::5 %25 more%0A::error::x\n");
    }
}
