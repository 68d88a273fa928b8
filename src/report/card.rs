//! A run to show around: a block of Markdown to paste, and a card as a picture.
//!
//! Owns what of a run is worth showing to somebody who knows nothing of it, with what makes it comparable: the model, the
//! server, the machines, the verdict.

use std::fmt::Write as _;
use std::io::{self, Write};

use super::chart::draw::{self, Drawing, Palette, Size};
use super::chart::{self, Chart, Named};
use super::format;
use super::markdown;
use super::view::{self, View};
use crate::metrics::Metric;
use crate::run_file::RunFile;
use crate::run_file::schema::LevelBlock;
use crate::stats::Quantile;
use crate::verdict::Verdict;

/// What stands on a card.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Card {
    /// The answer of the run in a sentence.
    pub headline: String,
    /// What was measured: model, server, load.
    pub what: Vec<String>,
    /// On which machine, as far as it is known.
    pub machine: Option<String>,
    /// Large numbers, each with what it is.
    pub figures: Vec<Figure>,
    /// What the run is worth.
    pub verdict: String,
    /// Whether that is a reservation.
    pub is_doubtful: bool,
    /// Who measured, and when.
    pub foot: String,
}

/// A number of a card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figure {
    /// The number with its unit.
    pub value: String,
    /// What it is, at which load.
    pub of: String,
}

impl Card {
    /// What of `run` stands on its card.
    #[must_use]
    pub fn of(run: &RunFile) -> Card {
        let view = View::new(run, &[], None);
        let best = fullest(run);
        let headline = match (view.capacity.first(), best) {
            (Some(answer), _) => answer.clone(),
            (None, Some(level)) => format!(
                "{} output tok/s at {}",
                format::rate(level.rates.window.out_tok_s),
                format::one_line(&level.label, LABEL_CHARS_MAX)
            ),
            (None, None) => "no request ended well".to_owned(),
        };
        let verdict = match (run.verdict, &view.verdict) {
            (Some(Verdict::Valid), _) => "measurement valid: the client's own error is small".to_owned(),
            (_, Some(words)) => words.clone(),
            (_, None) => "measurement not judged".to_owned(),
        };
        Card {
            headline,
            what: what(run),
            machine: machine(run),
            figures: figures(run, best),
            verdict: if run.is_simulated() { format!("simulated, {verdict}") } else { verdict },
            is_doubtful: !matches!(run.verdict, Some(Verdict::Valid)),
            foot: view.title.first().cloned().unwrap_or_default(),
        }
    }
}

/// The level with the most output tokens per second.
fn fullest(run: &RunFile) -> Option<&LevelBlock> {
    let with_ok = run.levels.iter().filter(|level| level.counts.ok > 0);
    with_ok.max_by(|a, b| a.rates.window.out_tok_s.total_cmp(&b.rates.window.out_tok_s))
}

/// The model and the server, then what was asked of it.
fn what(run: &RunFile) -> Vec<String> {
    let plan = run.plan.read().ok();
    let models = match (&run.imported, &plan) {
        (Some(_), _) | (None, None) => run.target.models.join(", "),
        (None, Some(_)) if run.is_simulated() => "simulated server".to_owned(),
        (None, Some(plan)) => plan.target.models.join(", "),
    };
    let server = [&run.target.kind, &run.target.version].into_iter().flatten().map(String::as_str);
    let server = server.collect::<Vec<_>>().join(" ");
    // A simulated server is its own model.
    let server = if server == models { String::new() } else { server };
    let subject =
        [models, server].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" on ");
    let levels: Vec<String> = run.levels.iter().map(LevelBlock::load_label).collect();
    let load = match levels.as_slice() {
        [] => String::new(),
        [only] => only.clone(),
        [first, .., last] => format!("{first} to {last}"),
    };
    let tokens = run.levels.first().and_then(|level| {
        let tokens = &level.tokens;
        let mean = |sum: u64, n: u64| (n > 0).then(|| format!("{:.0}", sum as f64 / n as f64));
        let prompt = mean(tokens.prompt, tokens.prompt_known)?;
        let output = mean(tokens.output, level.counts.ok)?;
        Some(format!("{prompt} prompt and {output} output tokens a request"))
    });
    let asked = [Some(load), tokens].into_iter().flatten().filter(|part| !part.is_empty());
    let asked = asked.collect::<Vec<_>>().join(", ");
    [subject, asked]
        .into_iter()
        .filter(|line| !line.is_empty())
        .map(|line| format::one_line(&line, LINE_CHARS_MAX))
        .collect()
}

/// The machine that is known is the client's; it is the server's too where both are one.
fn machine(run: &RunFile) -> Option<String> {
    if run.is_simulated() {
        return None;
    }
    let machine = view::machine(&run.environment)?;
    let whose = if run.target.on_client_host == Some(true) { "server and client" } else { "client" };
    Some(format::one_line(&format!("{whose}: {machine}"), LINE_CHARS_MAX))
}

fn figures(run: &RunFile, best: Option<&LevelBlock>) -> Vec<Figure> {
    let mut figures = Vec::new();
    let mut add = |value: Option<String>, of: String| {
        figures.extend(value.map(|value| Figure { value, of: format::one_line(&of, LABEL_CHARS_MAX) }));
    };
    let least = run.levels.iter().find(|level| level.counts.ok > 0);
    let ms = |level: &LevelBlock, metric: Metric, quantile: Quantile| {
        let value = level.distributions.get(&metric)?.quantile(quantile)?;
        Some(format!("{} ms", format::ms(value)))
    };
    if let Some(level) = best {
        let tokens = format!("{} tok/s", format::rate(level.rates.window.out_tok_s));
        add(Some(tokens), format!("output, {}", level.label));
        add(
            Some(format!("{}/s", format::rate(level.rates.window.req_s))),
            format!("requests, {}", level.label),
        );
    }
    if let Some(level) = least {
        add(ms(level, Metric::Ttft, Quantile::P50), format!("TTFT p50, {}", level.label));
        add(ms(level, Metric::Tpot, Quantile::P50), format!("TPOT p50, {}", level.label));
    }
    if let (Some(level), true) = (best, best.map(|level| level.ordinal) != least.map(|level| level.ordinal)) {
        add(ms(level, Metric::Ttft, Quantile::P50), format!("TTFT p50, {}", level.label));
        add(ms(level, Metric::Tpot, Quantile::P50), format!("TPOT p50, {}", level.label));
    }
    figures
}

/// Writes the block to paste: the card in words, and the table of levels.
///
/// # Errors
///
/// When `out` fails.
pub fn write_markdown(run: &RunFile, out: &mut impl Write) -> io::Result<()> {
    let Card { headline, what, machine, verdict, foot, .. } = Card::of(run);
    let view = View::new(run, &[], None);
    writeln!(out, "**{}**\n", markdown::escaped(&headline))?;
    for line in what.iter().chain(&machine) {
        writeln!(out, "- {}", markdown::escaped(line))?;
    }
    writeln!(out, "- {}\n", markdown::escaped(&verdict))?;
    markdown::table(&view.table, out)?;
    writeln!(out, "\n<sub>{}</sub>", markdown::escaped(&foot))
}

/// The card as SVG.
///
/// # Errors
///
/// As those of [`draw::whole`].
pub fn svg(run: &RunFile) -> io::Result<String> {
    let card = Card::of(run);
    let Size { width, height } = CARD;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" font-family=\"DejaVu Sans, Verdana, sans-serif\">\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n\
         <rect width=\"{width}\" height=\"10\" fill=\"#0072b2\"/>\n"
    );
    let mut y = 66;
    for line in wrapped(&card.headline, 46, 3) {
        line_of(&mut svg, &line, (MARGIN, y), 36, "bold", INK);
        y += 46;
    }
    y += 2;
    for text in card.what.iter().chain(&card.machine) {
        for line in wrapped(text, 80, 2) {
            line_of(&mut svg, &line, (MARGIN, y), 23, "normal", SOFT);
            y += 31;
        }
    }
    let charts = chart::all(&[Named { name: "", run }]);
    let shown =
        charts.iter().find(|chart| chart.id == CHART && chart.empty.is_none() && run.levels.len() > 2);
    let bottom = height as i32 - 60;
    numbers(&mut svg, &card.figures, y + 24, bottom, shown.is_none());
    if let Some(chart) = shown {
        picture(&mut svg, chart, y + 4, bottom)?;
    }
    let color = if card.is_doubtful { "#9a6700" } else { "#1a7f37" };
    for line in wrapped(&card.verdict, 96, 1) {
        line_of(&mut svg, &line, (MARGIN, height as i32 - 46), 20, "normal", color);
    }
    line_of(&mut svg, &format::one_line(&card.foot, 110), (MARGIN, height as i32 - 18), 18, "normal", SOFT);
    svg.push_str("</svg>\n");
    Ok(svg)
}

/// The large numbers: two to a row beside a picture, else three.
fn numbers(svg: &mut String, figures: &[Figure], top: i32, bottom: i32, is_alone: bool) {
    let columns: i32 = if is_alone { 3 } else { 2 };
    let width = if is_alone { 380 } else { 290 };
    for (place, Figure { value, of }) in figures.iter().enumerate() {
        let (column, row) = (place as i32 % columns, place as i32 / columns);
        let (x, y) = (MARGIN + column * width, top + 30 + row * 86);
        if y + 28 > bottom {
            break;
        }
        line_of(svg, value, (x, y), 34, "bold", "#0072b2");
        line_of(svg, of, (x, y + 28), 19, "normal", SOFT);
    }
}

/// A chart at the right.
fn picture(svg: &mut String, chart: &Chart, top: i32, bottom: i32) -> io::Result<()> {
    let (x, scale) = (640, 1.4);
    let height = (f64::from(bottom - top) / scale) as u32;
    let Drawing { base, layers, .. } =
        draw::parts(chart, Size { width: 380, height: height.clamp(120, 300) })?;
    let inner =
        std::iter::once(&base).chain(&layers).map(|part| Palette::PRINT.paint(part)).collect::<String>();
    let _ = write!(svg, "<g transform=\"translate({x},{top}) scale({scale})\">\n{inner}</g>\n");
    Ok(())
}

fn line_of(svg: &mut String, text: &str, (x, y): (i32, i32), size: u32, weight: &str, color: &str) {
    let text = super::html::Text(text);
    let _ = writeln!(
        svg,
        "<text x=\"{x}\" y=\"{y}\" font-size=\"{size}\" font-weight=\"{weight}\" fill=\"{color}\">{text}</text>"
    );
}

/// `text` in at most `lines` lines of about `chars`; what does not fit ends with an ellipsis.
fn wrapped(text: &str, chars: usize, lines: usize) -> Vec<String> {
    let mut shown: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let is_full = shown.len() == lines;
        match shown.last_mut() {
            Some(line) if line.chars().count() + word.chars().count() < chars => {
                line.push(' ');
                line.push_str(word);
            }
            Some(line) if is_full => {
                line.push('…');
                return shown;
            }
            _ => shown.push(format::one_line(word, chars)),
        }
    }
    shown
}

/// What networks show whole.
const CARD: Size = Size { width: 1200, height: 630 };
const MARGIN: i32 = 44;
const INK: &str = "#1f2328";
const SOFT: &str = "#59636e";
const CHART: &str = "throughput-load";
const LABEL_CHARS_MAX: usize = 30;
const LINE_CHARS_MAX: usize = 150;
