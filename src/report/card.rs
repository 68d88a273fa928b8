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
use crate::plan::Axis;
use crate::run_file::RunFile;
use crate::run_file::schema::{LevelBlock, RepeatsBlock};
use crate::stats::Quantile;
use crate::stats::sort;
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
    /// Whether the numbers must not be used.
    pub is_invalid: bool,
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
        let loads = Load::all(run);
        let best = best(&loads);
        let headline = match (view.capacity.first(), best) {
            (Some(answer), _) => answer.clone(),
            (None, Some(load)) => format!(
                "{} output tok/s at {}{}{}",
                format::rate(load.out_tok_s),
                format::one_line(&load.label, LABEL_CHARS_MAX),
                load.good.map_or_else(String::new, |good| format!(
                    ", {} % of the requests within the SLO",
                    format::percent(good)
                )),
                load.repeats.map_or_else(String::new, |n| format!(", mean of {n} runs"))
            ),
            (None, None) => "no request ended well".to_owned(),
        };
        let verdict = match (run.verdict, &view.verdict) {
            (Some(Verdict::Valid), _) => "measurement valid: the client's own error is small".to_owned(),
            (_, Some(words)) => words.clone(),
            (_, None) => "measurement not judged".to_owned(),
        };
        let first = [run.is_simulated().then_some("simulated"), view::ended_early(run)];
        let first: String = first.into_iter().flatten().map(|word| format!("{word}, ")).collect();
        Card {
            headline,
            what: what(run),
            machine: machine(run),
            figures: figures(run, loads.first(), best),
            verdict: first + &verdict,
            is_doubtful: run.interrupted || !matches!(run.verdict, Some(Verdict::Valid)),
            is_invalid: run.verdict == Some(Verdict::Invalid),
            foot: view.title.first().cloned().unwrap_or_default(),
        }
    }
}

/// The load whose numbers are shown large: the one with most tokens among those that keep their SLO, or among all where none
/// does. One that was cut off is no load unless it is all there is.
fn best(loads: &[Load]) -> Option<&Load> {
    let most = |is_wanted: fn(&Load) -> bool| {
        let wanted = loads.iter().filter(|load| is_wanted(load));
        wanted.max_by(|a, b| a.out_tok_s.total_cmp(&b.out_tok_s))
    };
    most(|load| !load.is_cut && load.good.is_none_or(|good| good >= GOOD_MIN))
        .or_else(|| most(|load| !load.is_cut))
        .or_else(|| most(|_| true))
}

/// What a card shows of a load: that of its level, or what its repeats have in the mean.
#[derive(Clone, Debug)]
struct Load {
    label: String,
    /// How many repeats it is the mean of.
    repeats: Option<usize>,
    /// The share of its requests that kept the SLO, where there is one.
    good: Option<f64>,
    /// It was cut off by an interrupt, so that its rates are those of a beginning.
    is_cut: bool,
    out_tok_s: f64,
    req_s: f64,
    ttft_ns: Option<f64>,
    tpot_ns: Option<f64>,
}

impl Load {
    /// The loads of `run` that have something to show, in their order.
    fn all(run: &RunFile) -> Vec<Load> {
        match &run.repeats {
            // The best of several repeats would be the luckiest.
            Some(repeats) => repeats.iter().filter_map(Load::of_repeats).collect(),
            None => run.levels.iter().filter(|level| level.counts.ok > 0).map(Load::of_level).collect(),
        }
    }

    fn of_level(level: &LevelBlock) -> Load {
        let of = |metric: Metric| level.distributions.get(&metric)?.quantile(Quantile::P50);
        let rates = &level.rates.window;
        Load {
            label: level.label.clone(),
            repeats: None,
            good: level.goodput.map(|goodput| goodput.attainment),
            is_cut: level.interrupted,
            out_tok_s: rates.out_tok_s,
            req_s: rates.req_s,
            ttft_ns: of(Metric::Ttft),
            tpot_ns: of(Metric::Tpot),
        }
    }

    fn of_repeats(repeats: &RepeatsBlock) -> Option<Load> {
        let of = |figure: &str| repeats.figures.get(figure)?.mean;
        Some(Load {
            label: repeats.label.clone(),
            repeats: Some(repeats.n),
            good: of("attainment"),
            is_cut: false,
            out_tok_s: of("out_tok_s")?,
            req_s: of("req_s")?,
            ttft_ns: of("ttft_p50"),
            tpot_ns: of("tpot_p50"),
        })
    }
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
    let load = span(&run.levels);
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

/// From the lowest load to the highest; where loads have no order, from the first to the last.
fn span(levels: &[LevelBlock]) -> String {
    let amount = |vary: Axis| levels.iter().map(|level| level.amount(vary)).collect::<Option<Vec<f64>>>();
    // Who varies a length has users as well.
    let varied = [Axis::InputLen, Axis::OutputLen, Axis::Concurrency, Axis::Rate, Axis::Speedup];
    let mut ordered: Vec<&LevelBlock> = levels.iter().collect();
    if let Some(amounts) = varied.into_iter().find_map(amount) {
        let mut places: Vec<usize> = (0..levels.len()).collect();
        sort::few_by(&mut places, |a, b| amounts[*a].total_cmp(&amounts[*b]));
        ordered = places.into_iter().map(|place| &levels[place]).collect();
    }
    match (ordered.first(), ordered.last()) {
        (Some(first), Some(last)) if first.load_label() != last.load_label() => {
            format!("{} to {}", first.load_label(), last.load_label())
        }
        (Some(only), _) => only.load_label(),
        (None, _) => String::new(),
    }
}

fn figures(run: &RunFile, least: Option<&Load>, best: Option<&Load>) -> Vec<Figure> {
    let mut figures = Vec::new();
    let mut add = |value: Option<String>, of: String| {
        figures.extend(value.map(|value| Figure { value, of: format::one_line(&of, LABEL_CHARS_MAX) }));
    };
    let ms = |ns: Option<f64>| ns.map(|ns| format!("{} ms", format::ms(ns)));
    if let Some(load) = best {
        add(Some(format!("{} tok/s", format::rate(load.out_tok_s))), format!("output, {}", load.label));
        add(Some(format!("{}/s", format::rate(load.req_s))), format!("requests, {}", load.label));
    }
    let mut shown: Vec<&Load> = least.into_iter().chain(best).collect();
    shown.dedup_by(|a, b| a.label == b.label);
    for load in shown {
        add(ms(load.ttft_ns), format!("TTFT p50, {}", load.label));
        add(ms(load.tpot_ns), format!("TPOT p50, {}", load.label));
    }
    let failed: u64 = run.levels.iter().map(|level| level.counts.failed).sum();
    let judged: u64 = run.levels.iter().map(|level| level.counts.judged()).sum();
    if failed > 0 {
        // A card without it would show the rest as the whole.
        figures
            .insert(0, Figure { value: format!("{failed} of {judged}"), of: "requests failed".to_owned() });
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
    let over_loads = charts.iter().find(|chart| chart.id == OVER_LOADS && run.levels.len() > 2);
    let of_few = || charts.iter().find(|chart| chart.id == OF_FEW && has_a_line(chart));
    let shown = over_loads.or_else(of_few).filter(|chart| chart.empty.is_none());
    let bottom = height as i32 - 60;
    numbers(&mut svg, &card.figures, y + 24, bottom, shown.is_none());
    if let Some(chart) = shown {
        picture(&mut svg, chart, y + 4, bottom - 14)?;
    }
    let color = if card.is_doubtful { "#9a6700" } else { "#1a7f37" };
    let color = if card.is_invalid { "#cf222e" } else { color };
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
    line_of(svg, chart.title, (x + 20, top + 20), 19, "normal", SOFT);
    let top = top + 28;
    let height = (f64::from(bottom - top) / scale) as u32;
    let Drawing { base, layers, .. } =
        draw::parts(chart, Size { width: 380, height: height.clamp(120, 300) })?;
    let inner =
        std::iter::once(&base).chain(&layers).map(|part| Palette::PRINT.paint(part)).collect::<String>();
    let _ = write!(svg, "<g transform=\"translate({x},{top}) scale({scale})\">\n{inner}</g>\n");
    Ok(())
}

/// Whether there is more than a point to see, of one line: a card has no room for names.
fn has_a_line(chart: &Chart) -> bool {
    matches!(chart.series.as_slice(), [only] if only.points.len() > 2)
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

/// Of so many good requests a load is said to keep the SLO, as `quick` and searches have it unless told otherwise.
const GOOD_MIN: f64 = 0.9;
/// What networks show whole.
const CARD: Size = Size { width: 1200, height: 630 };
const MARGIN: i32 = 44;
const INK: &str = "#1f2328";
const SOFT: &str = "#59636e";
/// The picture of a sweep, and that of one or two levels.
const OVER_LOADS: &str = "throughput-load";
const OF_FEW: &str = "ttft-nines";
/// Two labels stand beside each other and the picture.
const LABEL_CHARS_MAX: usize = 26;
const LINE_CHARS_MAX: usize = 150;
