//! The view as text: aligned columns that fit the width, stacked in blocks where they do not.

use std::ffi::OsStr;
use std::io::{self, Write};

use super::view::{Cell, Column, Note, Row, Table, View};

/// How text may look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Columns that fit a line.
    pub width: usize,
    /// Whether colours are understood and wanted.
    pub color: bool,
}

impl Style {
    /// No colours, 80 columns: a file, a pipe, a log.
    pub const PLAIN: Style = Style { width: 80, color: false };

    /// The style for a terminal of `width` columns (`None`: not a terminal), with the value of `NO_COLOR`, which
    /// turns colours off unless it is empty.
    #[must_use]
    pub fn of(width: Option<usize>, no_color: Option<&OsStr>) -> Style {
        match width {
            None => Style::PLAIN,
            Some(width) => Style { width, color: no_color.is_none_or(OsStr::is_empty) },
        }
    }

    fn paint(self, text: &str, code: &str) -> String {
        if self.color && !code.is_empty() { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// Writes `view`.
///
/// # Errors
///
/// When `out` fails.
pub fn write(view: &View, style: Style, out: &mut impl Write) -> io::Result<()> {
    for line in &view.title {
        wrap(out, style, "", line)?;
    }
    writeln!(out)?;
    capacity(view, style, out)?;
    if view.table.rows.is_empty() {
        writeln!(out, "no level was run")?;
    } else {
        table(&view.table, style, out)?;
    }
    for further in [
        &view.printed,
        &view.groups,
        &view.shares,
        &view.repeats,
        &view.turns,
        &view.connections,
        &view.stress,
        &view.slices,
        &view.servers,
        &view.gpus,
        &view.budget,
    ]
    .into_iter()
    .filter(|further| !further.rows.is_empty())
    {
        writeln!(out)?;
        table(further, style, out)?;
    }
    failures(view, style, out)?;
    if let Some(verdict) = &view.verdict {
        writeln!(out)?;
        wrap(out, style, "  ", verdict)?;
    }
    write_notes(&view.findings, style, out)?;
    writeln!(out)?;
    write_notes(&view.notes, style, out)?;
    if !view.next.is_empty() {
        writeln!(out, "\nnext:")?;
        for command in &view.next {
            writeln!(out, "  {command}")?;
        }
    }
    if let Some(saved) = &view.saved {
        writeln!(out, "\nsaved {saved}")?;
    }
    Ok(())
}

/// The answer of a search, and what it has tried.
fn capacity(view: &View, style: Style, out: &mut impl Write) -> io::Result<()> {
    let Some((first, further)) = view.capacity.split_first() else { return Ok(()) };
    wrap(out, style, "  ", first)?;
    for line in further {
        write!(out, "  ")?;
        wrap(out, style, "  ", line)?;
    }
    writeln!(out)?;
    if !view.trials.rows.is_empty() {
        table(&view.trials, style, out)?;
        writeln!(out)?;
    }
    Ok(())
}

/// Writes remarks, one to a paragraph, warnings with a mark.
///
/// # Errors
///
/// When `out` fails.
pub fn write_notes(notes: &[Note], style: Style, out: &mut impl Write) -> io::Result<()> {
    for note in notes {
        let lead = if note.warning { style.paint("! ", YELLOW) } else { "  ".to_owned() };
        write!(out, "{lead}")?;
        wrap(out, style, "  ", &note.text)?;
    }
    Ok(())
}

/// A part of the columns that fits a line beside the labels.
struct Block {
    columns: std::ops::Range<usize>,
    widths: Vec<usize>,
}

pub(super) fn table(view: &Table, style: Style, out: &mut impl Write) -> io::Result<()> {
    let label_width = view
        .rows
        .iter()
        .map(|row| width(&row.label))
        .chain([width(view.head)])
        .max()
        .unwrap_or(0)
        .min(if view.whole_labels { WHOLE_LABEL_WIDTH_MAX } else { LABEL_WIDTH_MAX });
    for (place, block) in blocks(view, style.width.saturating_sub(label_width)).iter().enumerate() {
        if place > 0 {
            writeln!(out)?;
        }
        let (groups, names) = head(&view.columns[block.columns.clone()], &block.widths);
        if !groups.trim().is_empty() {
            writeln!(out, "{}", style.paint(format!("{:label_width$}{groups}", "").trim_end(), DIM))?;
        }
        writeln!(out, "{}", style.paint(&format!("{:label_width$}{names}", view.head), BOLD))?;
        for row in &view.rows {
            // A second row is said only where it says something.
            let cells = &row.cells[block.columns.clone()];
            if !row.second || cells.iter().any(|cell| *cell != Cell::Blank) {
                writeln!(out, "{}", line(row, block, label_width, style).trim_end())?;
            }
        }
    }
    Ok(())
}

/// Cuts the columns into blocks of at most `room` characters, never inside a group.
fn blocks(view: &Table, room: usize) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut start = 0;
    while start < view.columns.len() {
        let group = view.columns[start].group;
        let more = view.columns[start..].iter().skip(1);
        let len = 1 + more.take_while(|column| !group.is_empty() && column.group == group).count();
        let widths = group_widths(view, start..start + len);
        match blocks.last_mut() {
            Some(block) if total(&block.widths) + total(&widths) <= room => {
                block.columns.end += len;
                block.widths.extend(widths);
            }
            _ => blocks.push(Block { columns: start..start + len, widths }),
        }
        start += len;
    }
    blocks
}

/// Widths of the columns of a group: their widest text, and the first one wider where the group's name needs it.
fn group_widths(view: &Table, columns: std::ops::Range<usize>) -> Vec<usize> {
    let widest = |column: usize| {
        let cells = view.rows.iter().map(|row| width(row.cells[column].text()));
        cells.chain([width(view.columns[column].name)]).max().unwrap_or(0)
    };
    let mut widths: Vec<usize> = columns.clone().map(widest).collect();
    let group = width(view.columns[columns.start].group);
    widths[0] += (group + GAP).saturating_sub(total(&widths));
    widths
}

/// The two lines of headings: groups, right-aligned over their columns, and names.
fn head(columns: &[Column], widths: &[usize]) -> (String, String) {
    let (mut groups, mut names, mut span) = (String::new(), String::new(), 0);
    for (place, (column, width)) in columns.iter().zip(widths).enumerate() {
        names += &right(column.name, width + GAP);
        span += width + GAP;
        let ends =
            columns.get(place + 1).is_none_or(|next| next.group.is_empty() || next.group != column.group);
        if ends {
            groups += &right(column.group, span);
            span = 0;
        }
    }
    (groups, names)
}

fn line(row: &Row, block: &Block, label_width: usize, style: Style) -> String {
    let mut label: String = row.label.chars().take(label_width).collect();
    if width(&row.label) > label_width {
        label.pop();
        label.push('…');
    }
    let padding = " ".repeat(label_width - width(&label));
    let mut line = style.paint(&label, if row.second { DIM } else { "" }) + &padding;
    for (cell, width) in row.cells[block.columns.clone()].iter().zip(&block.widths) {
        let code = match cell {
            Cell::Failed | Cell::Failures(_) => RED,
            Cell::Absent | Cell::Growing(_) => DIM,
            Cell::Suspect(_) => YELLOW,
            Cell::Number(_) if row.second => DIM,
            Cell::Blank | Cell::Number(_) | Cell::Unsupported(_) => "",
        };
        line += &style.paint(&right(cell.text(), width + GAP), code);
    }
    line
}

fn failures(view: &View, style: Style, out: &mut impl Write) -> io::Result<()> {
    if view.failures.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{}", style.paint("failures", BOLD))?;
    let label_width = view.failures.iter().map(|f| width(&f.label)).max().unwrap_or(0);
    let count_width = view.failures.iter().map(|f| f.count.to_string().len()).max().unwrap_or(0);
    for failure in &view.failures {
        let head = format!("  {:label_width$}  {:>count_width$}", failure.label, failure.count);
        let levels = match failure.levels.as_slice() {
            [] => String::new(),
            levels => format!("  ({})", levels.join(", ")),
        };
        writeln!(out, "{}{levels}", style.paint(&head, RED))?;
        if !failure.message.is_empty() {
            write!(out, "      ")?;
            wrap(out, style, "      ", &failure.message)?;
        }
    }
    Ok(())
}

/// Writes `text` broken at spaces into lines of the style's width, further ones behind `indent`. A word that is longer
/// than a line is left whole: it may be a path or a command to copy.
fn wrap(out: &mut impl Write, style: Style, indent: &str, text: &str) -> io::Result<()> {
    let mut used = indent.len();
    let mut first = true;
    for word in text.split(' ') {
        let needed = width(word) + usize::from(!first);
        if !first && used + needed > style.width {
            write!(out, "\n{indent}{word}")?;
            used = indent.len() + width(word);
        } else {
            write!(out, "{}{word}", if first { "" } else { " " })?;
            used += needed;
        }
        first = false;
    }
    writeln!(out)
}

fn right(text: &str, room: usize) -> String {
    " ".repeat(room.saturating_sub(width(text))) + text
}

fn width(text: &str) -> usize {
    text.chars().count()
}

fn total(widths: &[usize]) -> usize {
    widths.iter().map(|width| width + GAP).sum()
}

/// Spaces before a column.
const GAP: usize = 2;
const LABEL_WIDTH_MAX: usize = 30;
/// Some columns must have room in the narrowest of terminals.
const WHOLE_LABEL_WIDTH_MAX: usize = 50;
const BOLD: &str = "1";
const DIM: &str = "2";
const RED: &str = "31";
const YELLOW: &str = "33";
