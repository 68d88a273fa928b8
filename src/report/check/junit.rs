//! A gate as JUnit's XML: a suite for each load, a case for each figure.

use std::io::{self, Write};

use super::sentence;
use crate::gate::{CheckedLoad, Outcome, Report};

/// Writes the report. A regression is a failure; what is inconclusive is skipped, or with `strict` a failure as well.
/// Remarks are properties.
///
/// # Errors
///
/// When `out` fails.
pub fn write(report: &Report, strict: bool, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
    writeln!(out, "<testsuites name=\"tokload check\">")?;
    for load in &report.loads {
        suite(load, strict, out)?;
    }
    let doubts: Vec<String> = report
        .unmatched
        .iter()
        .map(|load| format!("{load}: only one side has this load"))
        .chain(report.remarks.iter().map(|remark| format!("{}: {}", remark.about, remark.text)))
        .collect();
    if !doubts.is_empty() {
        let failed = strict && report.is_doubtful();
        let failures = u32::from(failed);
        writeln!(
            out,
            " <testsuite name=\"comparability\" tests=\"1\" failures=\"{failures}\" skipped=\"0\">"
        )?;
        writeln!(out, "  <testcase classname=\"tokload.check\" name=\"comparability\">")?;
        if failed {
            writeln!(out, "   <failure message=\"the runs are not of the same kind\"/>")?;
        }
        writeln!(out, "   <system-out>{}</system-out>", escaped(&doubts.join("\n")))?;
        writeln!(out, "  </testcase>\n </testsuite>")?;
    }
    writeln!(out, "</testsuites>")
}

fn suite(load: &CheckedLoad, strict: bool, out: &mut impl Write) -> io::Result<()> {
    let count = |outcome: Outcome| load.figures.iter().filter(|one| one.outcome == outcome).count();
    let (open, worse) = (count(Outcome::Inconclusive), count(Outcome::Regression));
    let (failures, skipped) = if strict { (open + worse, 0) } else { (worse, open) };
    let (name, tests) = (escaped(&load.load), load.figures.len());
    writeln!(
        out,
        " <testsuite name=\"{name}\" tests=\"{tests}\" failures=\"{failures}\" skipped=\"{skipped}\">"
    )?;
    for checked in &load.figures {
        let element = match checked.outcome {
            Outcome::Pass => None,
            Outcome::Inconclusive if !strict => Some("skipped"),
            Outcome::Inconclusive | Outcome::Regression => Some("failure"),
        };
        let case = format!("<testcase classname=\"tokload.check.{name}\" name=\"{}\"", checked.figure);
        match element {
            None => writeln!(out, "  {case}/>")?,
            Some(element) => {
                writeln!(out, "  {case}>")?;
                writeln!(out, "   <{element} message=\"{}\"/>", escaped(&sentence(checked)))?;
                writeln!(out, "  </testcase>")?;
            }
        }
    }
    writeln!(out, " </testsuite>")
}

/// For text and attributes. What XML has no place for at all becomes a replacement character.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' => out.push(c),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_xml_means_otherwise_is_escaped() {
        assert_eq!(escaped("a<b & \"c\">\u{1b}d\n"), "a&lt;b &amp; &quot;c&quot;&gt;\u{fffd}d\n");
    }
}
