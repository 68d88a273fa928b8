//! The view and its charts as one page: no network, light and dark, for phones and paper too.
//!
//! Owns the order of the page and its marks; words and numbers come from the view, pictures from [`chart`](super::chart). Everything
//! that somebody else wrote (names, messages) is escaped on its way in.

use std::io::{self, Write};

use serde_json::json;

use super::chart::draw::{self, COLORS, Palette, Size};
use super::chart::{Chart, Point, Scale};
use super::format;
use super::view::{Cell, Note, Table, View};
use crate::verdict::Verdict;

/// A page about runs.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    /// The run that is reported.
    pub view: &'a View,
    /// Its verdict, for the colour.
    pub verdict: Option<Verdict>,
    /// The runs that overlay it in the charts: name and title of each; empty where there is one run.
    pub overlays: &'a [(String, String)],
    /// Its charts.
    pub charts: &'a [Chart],
}

/// Writes the page.
///
/// # Errors
///
/// When `out` fails.
pub fn write(page: &Page<'_>, out: &mut impl Write) -> io::Result<()> {
    let Page { view, charts, .. } = page;
    let title = view.title.first().map_or("tokload", String::as_str);
    writeln!(out, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">")?;
    writeln!(out, "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">")?;
    // The page asks nobody for anything, and says so to the browser.
    writeln!(
        out,
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; \
         script-src 'unsafe-inline'; img-src data:\">"
    )?;
    writeln!(out, "<link rel=\"icon\" href=\"data:,\">\n<title>{}</title>", Text(title))?;
    writeln!(out, "<style>\n{STYLE}</style>\n</head>\n<body>")?;
    head(page, out)?;
    section(out, "Levels", &view.table)?;
    for (name, table) in [
        ("Tried", &view.trials),
        ("As printed", &view.printed),
        ("Parts", &view.groups),
        ("Shares", &view.shares),
        ("Repeats", &view.repeats),
        ("Turns", &view.turns),
        ("Phases of the stress test", &view.stress),
        ("Slices of time", &view.slices),
        ("What the servers said", &view.servers),
        ("Connections", &view.connections),
        ("What the GPUs said", &view.gpus),
        ("The client's own error", &view.budget),
    ] {
        if !table.rows.is_empty() {
            section(out, name, table)?;
        }
    }
    failures(view, out)?;
    let (_, remarks) = warnings_of(view);
    if !remarks.is_empty() {
        writeln!(out, "<h2>Remarks</h2>")?;
        notes(&remarks, out)?;
    }
    if !charts.is_empty() {
        writeln!(out, "<h2>Charts</h2>\n<div class=\"charts\">")?;
        charts.iter().try_for_each(|chart| figure(chart, out))?;
        writeln!(out, "</div>")?;
    }
    if !view.next.is_empty() {
        writeln!(out, "<h2>Next</h2>")?;
        view.next.iter().try_for_each(|command| writeln!(out, "<p><code>{}</code></p>", Text(command)))?;
    }
    if let Some(saved) = &view.saved {
        writeln!(out, "<footer><p>From {}</p></footer>", Text(saved))?;
    }
    writeln!(out, "<script>\n{SCRIPT}</script>\n</body>\n</html>")
}

/// What the run is, its answer, and what it is worth.
fn head(page: &Page<'_>, out: &mut impl Write) -> io::Result<()> {
    let Page { view, verdict, overlays, .. } = page;
    let (first, further) =
        view.title.split_first().map_or(("", &[][..]), |(first, rest)| (first.as_str(), rest));
    writeln!(out, "<h1>{}</h1>", Text(first))?;
    further.iter().try_for_each(|line| writeln!(out, "<p class=\"what\">{}</p>", Text(line)))?;
    if !overlays.is_empty() {
        writeln!(out, "<ul class=\"what\">")?;
        for (name, title) in *overlays {
            writeln!(out, "<li><b>{}</b> {}</li>", Text(name), Text(title))?;
        }
        writeln!(out, "</ul>")?;
        let first = Text(&overlays[0].0);
        writeln!(
            out,
            "<p class=\"what\">Verdict, tables and remarks are those of <b>{first}</b>; the charts have all, and \
             <code>tokload compare</code> holds them against each other.</p>"
        )?;
    }
    if let Some((answer, reasons)) = view.capacity.split_first() {
        writeln!(out, "<p class=\"answer\">{}</p>", Text(answer))?;
        reasons.iter().try_for_each(|line| writeln!(out, "<p>{}</p>", Text(line)))?;
    }
    if let Some(text) = &view.verdict {
        let class = match verdict {
            Some(Verdict::Invalid) => "verdict invalid",
            Some(Verdict::Degraded) => "verdict degraded",
            Some(Verdict::Valid) | None => "verdict",
        };
        writeln!(out, "<div class=\"{class}\">{}</div>", Text(text))?;
    }
    notes(&warnings_of(view).0.into_iter().chain(&view.findings).collect::<Vec<_>>(), out)
}

/// What a reader has to know before any number, and all other remarks.
fn warnings_of(view: &View) -> (Vec<&Note>, Vec<&Note>) {
    view.notes.iter().partition(|note| note.warning)
}

fn notes(notes: &[&Note], out: &mut impl Write) -> io::Result<()> {
    if notes.is_empty() {
        return Ok(());
    }
    writeln!(out, "<ul class=\"notes\">")?;
    for note in notes {
        let class = if note.warning { " class=\"warning\"" } else { "" };
        writeln!(out, "<li{class}>{}</li>", Words(&note.text))?;
    }
    writeln!(out, "</ul>")
}

fn section(out: &mut impl Write, name: &str, table: &Table) -> io::Result<()> {
    writeln!(out, "<h2>{name}</h2>")?;
    if table.rows.is_empty() {
        return writeln!(out, "<p class=\"empty\">no level was run</p>");
    }
    writeln!(out, "<div class=\"scroll\" tabindex=\"0\"><table>\n<thead>")?;
    // What neighbours share stands above them once.
    if table.columns.iter().any(|column| !column.group.is_empty()) {
        write!(out, "<tr><th></th>")?;
        for part in table.columns.chunk_by(|a, b| a.group == b.group && !a.group.is_empty()) {
            match part.len() {
                1 => write!(out, "<th>{}</th>", Text(part[0].group))?,
                n => write!(out, "<th colspan=\"{n}\">{}</th>", Text(part[0].group))?,
            }
        }
        writeln!(out, "</tr>")?;
    }
    write!(out, "<tr><th>{}</th>", Text(table.head))?;
    table.columns.iter().try_for_each(|column| write!(out, "<th>{}</th>", Text(column.name)))?;
    writeln!(out, "</tr>\n</thead>\n<tbody>")?;
    for row in &table.rows {
        let class = if row.second { " class=\"second\"" } else { "" };
        write!(out, "<tr{class}><td>{}</td>", Text(row.label.trim()))?;
        row.cells
            .iter()
            .try_for_each(|cell| write!(out, "<td{}>{}</td>", class_of(cell), Text(cell.text())))?;
        writeln!(out, "</tr>")?;
    }
    writeln!(out, "</tbody>\n</table></div>")
}

const fn class_of(cell: &Cell) -> &'static str {
    match cell {
        Cell::Absent => " class=\"absent\"",
        Cell::Failed => " class=\"failed\"",
        Cell::Failures(_) => " class=\"failures\"",
        Cell::Growing(_) => " class=\"growing\"",
        Cell::Suspect(_) => " class=\"suspect\"",
        Cell::Unsupported(_) => " class=\"unsupported\"",
        Cell::Blank | Cell::Number(_) => "",
    }
}

fn failures(view: &View, out: &mut impl Write) -> io::Result<()> {
    if view.failures.is_empty() {
        return Ok(());
    }
    writeln!(out, "<h2>Failures</h2>\n<div class=\"scroll\" tabindex=\"0\"><table class=\"words\">")?;
    writeln!(
        out,
        "<thead><tr><th>outcome</th><th>requests</th><th>at</th><th>message</th></tr></thead>\n<tbody>"
    )?;
    for failure in &view.failures {
        writeln!(
            out,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            Text(&failure.label),
            failure.count,
            Text(&failure.levels.join(", ")),
            Text(&failure.message)
        )?;
    }
    writeln!(out, "</tbody></table></div>")
}

/// A chart with the names of its lines and, for the script, the values of its points.
fn figure(chart: &Chart, out: &mut impl Write) -> io::Result<()> {
    let Chart { id, title, reading, empty, .. } = chart;
    if let Some(why) = empty {
        return writeln!(
            out,
            "<figure id=\"{id}\"><h3>{}</h3><p class=\"empty\">{}</p></figure>",
            Text(title),
            Text(why)
        );
    }
    let wide = draw::parts(chart, WIDE)?;
    let narrow = draw::parts(chart, NARROW)?;
    writeln!(out, "<figure id=\"{id}\" data-chart>\n<h3>{}</h3>", Text(title))?;
    if chart.series.iter().any(|series| !series.name.is_empty()) {
        write!(out, "<div class=\"names\">")?;
        for (place, series) in chart.series.iter().enumerate() {
            let color = place % COLORS;
            write!(
                out,
                "<button type=\"button\" aria-pressed=\"true\" style=\"--c:var(--s{color})\">{}</button>",
                Text(&series.name)
            )?;
        }
        writeln!(out, "</div>")?;
    }
    for (class, size, drawing) in [("wide", WIDE, &wide), ("narrow", NARROW, &narrow)] {
        let Size { width, height } = size;
        writeln!(
            out,
            "<svg class=\"{class}\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{}\">",
            Text(title)
        )?;
        write!(out, "{}", THEME.paint(&drawing.base))?;
        for layer in &drawing.layers {
            writeln!(out, "<g data-line>{}</g>", THEME.paint(layer))?;
        }
        writeln!(out, "</svg>")?;
    }
    writeln!(out, "<p class=\"reading\">{}</p>", Text(reading))?;
    let lines = chart.series.iter().zip(wide.places.iter().zip(&narrow.places)).map(|(series, places)| {
        let points = places.0.iter().zip(places.1).filter_map(|((x, y, number), (narrow_x, narrow_y, _))| {
            let point = series.points.get(*number)?;
            Some(json!([[x, y], [narrow_x, narrow_y], where_it_is(chart, point), value(chart, point)]))
        });
        json!({ "name": series.name, "points": points.collect::<Vec<_>>() })
    });
    // A script element ends at the first such tag, whatever surrounds it.
    let data = json!({ "lines": lines.collect::<Vec<_>>() }).to_string().replace('<', "\\u003c");
    writeln!(out, "<script type=\"application/json\">{data}</script>\n</figure>")
}

/// To what a point belongs, in words.
fn where_it_is(chart: &Chart, point: &Point) -> String {
    let place = match &chart.x.scale {
        Scale::Names(names) => names.get(point.x as usize).cloned().unwrap_or_default(),
        Scale::Nines => format!("p{}", trimmed(&format!("{:.4}", point.x * 100.0))),
        Scale::Linear | Scale::Whole | Scale::Log => {
            format!("{} {}", trimmed(&format!("{:.3}", point.x)), chart.x.title)
        }
    };
    if point.of.is_empty() || place.starts_with(&point.of) || matches!(chart.x.title, "users" | "load") {
        return if point.of.is_empty() { place } else { point.of.clone() };
    }
    format!("{place}, {}", point.of)
}

fn value(chart: &Chart, point: &Point) -> String {
    let number =
        |value: f64| if chart.y.title == "ms" { format::ms(value * 1e6) } else { format::rate(value) };
    let mut text = point.y.map_or_else(String::new, number);
    if let Some((low, high)) = point.band {
        text += &format!(" ({} to {})", number(low), number(high));
    }
    format!("{text} {}", chart.y.title)
}

fn trimmed(number: &str) -> &str {
    if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number }
}

/// A remark: what stands between backquotes as code, options unbroken, for a browser would break them behind a hyphen.
struct Words<'a>(&'a str);

impl std::fmt::Display for Words<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (place, part) in self.0.split(' ').enumerate() {
            if place > 0 {
                f.write_str(" ")?;
            }
            let code = part.strip_prefix('`').and_then(|rest| rest.split_once('`'));
            match code {
                Some((code, rest)) => write!(f, "<code>{}</code>{}", Text(code), Text(rest))?,
                None if part.starts_with("--") => write!(f, "<span class=\"option\">{}</span>", Text(part))?,
                None => Text(part).fmt(f)?,
            }
        }
        Ok(())
    }
}

/// Text of somebody else, with nothing in it that HTML would obey.
pub(super) struct Text<'a>(pub(super) &'a str);

impl std::fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut rest = self.0;
        while let Some(at) = rest.find(['&', '<', '>', '"', '\'']) {
            f.write_str(&rest[..at])?;
            f.write_str(match rest.as_bytes()[at] {
                b'&' => "&amp;",
                b'<' => "&lt;",
                b'>' => "&gt;",
                b'"' => "&quot;",
                _ => "&#39;",
            })?;
            rest = &rest[at + 1..];
        }
        f.write_str(rest)
    }
}

/// Colours that follow the page's.
const THEME: Palette<'static> = Palette {
    ink: "var(--ink)",
    grid: "var(--line)",
    heat: "var(--heat)",
    mark: "var(--mark)",
    limit: "var(--bad)",
    series: [
        "var(--s0)",
        "var(--s1)",
        "var(--s2)",
        "var(--s3)",
        "var(--s4)",
        "var(--s5)",
        "var(--s6)",
        "var(--s7)",
    ],
};
/// Two to a row on a desk.
const WIDE: Size = Size { width: 560, height: 300 };
/// One on a phone: drawn for it, since text of a picture that shrinks cannot be read.
const NARROW: Size = Size { width: 340, height: 260 };
const STYLE: &str = include_str!("html/report.css");
const SCRIPT: &str = include_str!("html/report.js");
