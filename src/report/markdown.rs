//! The view as Markdown: to paste into an issue, a pull request, a wiki.

use std::io::{self, Write};

use super::view::{Note, Table, View};

/// Writes `view`.
///
/// # Errors
///
/// When `out` fails.
pub fn write(view: &View, out: &mut impl Write) -> io::Result<()> {
    for line in &view.title {
        writeln!(out, "{}\n", escaped(line))?;
    }
    if let Some((answer, reasons)) = view.capacity.split_first() {
        writeln!(out, "**{}**\n", escaped(answer))?;
        for line in reasons {
            writeln!(out, "{}\n", escaped(line))?;
        }
    }
    if view.table.rows.is_empty() {
        writeln!(out, "no level was run")?;
    } else {
        table(&view.table, out)?;
    }
    for further in [
        &view.trials,
        &view.printed,
        &view.groups,
        &view.shares,
        &view.repeats,
        &view.turns,
        &view.stress,
        &view.slices,
        &view.servers,
        &view.gpus,
        &view.connections,
        &view.budget,
    ] {
        if !further.rows.is_empty() {
            writeln!(out)?;
            table(further, out)?;
        }
    }
    if !view.failures.is_empty() {
        writeln!(out, "\n| failures | requests | at | message |\n|---|---:|---|---|")?;
        for failure in &view.failures {
            writeln!(
                out,
                "| {} | {} | {} | {} |",
                escaped(&failure.label),
                failure.count,
                escaped(&failure.levels.join(", ")),
                escaped(&failure.message)
            )?;
        }
    }
    if let Some(verdict) = &view.verdict {
        writeln!(out, "\n{}", escaped(verdict))?;
    }
    notes(&view.findings, out)?;
    notes(&view.notes, out)?;
    if !view.next.is_empty() {
        writeln!(out, "\nnext:\n")?;
        view.next.iter().try_for_each(|command| writeln!(out, "    {command}"))?;
    }
    if let Some(saved) = &view.saved {
        writeln!(out, "\nsaved {}", escaped(saved))?;
    }
    Ok(())
}

fn notes(notes: &[Note], out: &mut impl Write) -> io::Result<()> {
    if !notes.is_empty() {
        writeln!(out)?;
    }
    for note in notes {
        let mark = if note.warning { "**!** " } else { "" };
        writeln!(out, "- {mark}{}", escaped(&note.text))?;
    }
    Ok(())
}

/// A table whose headings hold what neighbouring columns share: Markdown has one line for them.
pub(super) fn table(table: &Table, out: &mut impl Write) -> io::Result<()> {
    write!(out, "| {} |", escaped(table.head))?;
    table.columns.iter().try_for_each(|column| write!(out, " {} |", escaped(&column.full_name())))?;
    write!(out, "\n|---|")?;
    table.columns.iter().try_for_each(|_| write!(out, "---:|"))?;
    writeln!(out)?;
    for row in &table.rows {
        write!(out, "| {} |", escaped(row.label.trim()))?;
        row.cells.iter().try_for_each(|cell| write!(out, " {} |", escaped(cell.text())))?;
        writeln!(out)?;
    }
    Ok(())
}

/// Text that Markdown shows as it is. A URL stays whole: in angle brackets it would not be one.
pub(super) fn escaped(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '\\' | '`' | '*' | '_' | '|' | '<' | '>' | '[' | ']' | '~' | '#') {
            shown.push('\\');
        }
        shown.push(c);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::super::view::{Cell, Column, Row};
    use super::*;

    #[test]
    fn what_others_wrote_cannot_break_the_table() {
        let columns = vec![Column { group: "TTFT ms", name: "p50" }, Column { group: "", name: "ok" }];
        let cells = vec![Cell::Number("1.5?".to_owned()), Cell::Absent];
        let rows = vec![Row { label: "a|b <img> *x*".to_owned(), cells, second: false }];
        let mut text = Vec::new();
        table(&Table::of("load", columns, rows), &mut text).unwrap();
        assert_eq!(
            String::from_utf8(text).unwrap(),
            "| load | TTFT ms p50 | ok |\n|---|---:|---:|\n| a\\|b \\<img\\> \\*x\\* | 1.5? | – |\n"
        );
    }
}
