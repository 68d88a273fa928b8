//! A chart as a picture: SVG, by the plotting crate.
//!
//! Lines lie in layers of their own above the axes, so that a page can switch each off, and each point's place is known,
//! so that a page can say its value. Colours are marks that [`Palette::paint`] replaces: by those of a print, or by the
//! variables of a page that knows light and dark.

use std::fmt::Write as _;
use std::io;
use std::ops::Range;

use plotters::coord::Shift;
use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};
use plotters::prelude::*;

use super::ticks::Ruler;
use super::{Chart, Heat, Place, Point, Scale, Series};

mod marks;

/// How large a picture is, in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// From left to right.
    pub width: u32,
    /// From top to bottom.
    pub height: u32,
}

/// The parts of a picture, each the inside of an SVG element of its size.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Drawing {
    /// Axes, marks and grid, with what has no layer of its own.
    pub base: String,
    /// The lines, in the order of the chart's series.
    pub layers: Vec<String>,
    /// The places of their points that have a value: pixels from the left and from the top, and the number of the point.
    pub places: Vec<Vec<(i32, i32, usize)>>,
}

/// Colours by their use.
#[derive(Clone, Copy, Debug)]
pub struct Palette<'a> {
    /// Axes and text.
    pub ink: &'a str,
    /// Grid.
    pub grid: &'a str,
    /// Fields of a heat map at their fullest.
    pub heat: &'a str,
    /// What was found: the knee, capacity.
    pub mark: &'a str,
    /// What was set: limits.
    pub limit: &'a str,
    /// Lines, used in turns.
    pub series: [&'a str; COLORS],
}

/// Colours of lines; those beyond begin again.
pub const COLORS: usize = 8;

impl Palette<'static> {
    /// For white paper. The lines can be told apart by those who see no red or green (the set of Okabe and Ito, its yellow
    /// darkened).
    pub const PRINT: Palette<'static> = Palette {
        ink: "#24292f",
        grid: "#d8dee4",
        heat: "#0b4f9e",
        mark: "#8250df",
        limit: "#cf222e",
        series: ["#0072b2", "#d55e00", "#009e73", "#b8529a", "#a67c00", "#3d9bd1", "#5e5e5e", "#7a3e9d"],
    };
}

impl Palette<'_> {
    /// Puts the colours in the place of the marks of `svg`.
    #[must_use]
    pub fn paint(&self, svg: &str) -> String {
        let mut painted = String::with_capacity(svg.len() + svg.len() / 8);
        let mut rest = svg;
        while let Some(at) = rest.find("\"#") {
            painted.push_str(&rest[..=at]);
            rest = &rest[at + 1..];
            let Some(end) = rest.find('"') else { break };
            painted.push_str(self.color_of(&rest[..end]).unwrap_or(&rest[..end]));
            rest = &rest[end..];
        }
        painted.push_str(rest);
        painted
    }

    fn color_of(&self, text: &str) -> Option<&str> {
        let named =
            [(INK, self.ink), (GRID, self.grid), (HEAT, self.heat), (MARK, self.mark), (LIMIT, self.limit)];
        let series = (0..COLORS).map(|place| (mark(place), self.series[place]));
        named.into_iter().chain(series).find(|(mark, _)| text == hex(*mark)).map(|(_, color)| color)
    }
}

/// Draws the parts of `chart`. One without anything to draw has none.
///
/// # Errors
///
/// Never in practice: the crate's are those of files and fonts, and neither is used.
pub fn parts(chart: &Chart, size: Size) -> io::Result<Drawing> {
    if chart.empty.is_some() {
        return Ok(Drawing::default());
    }
    let plot = Plot::new(chart, size);
    let base = canvas(size, |root| plot.base(&root))?;
    let mut layers = Vec::new();
    let mut places = Vec::new();
    for (place, series) in chart.series.iter().enumerate() {
        let mut at = Vec::new();
        layers.push(canvas(size, |root| {
            at = plot.series(&root, series, mark(place % COLORS))?;
            Ok(())
        })?);
        places.push(at);
    }
    Ok(Drawing { base, layers, places })
}

/// Draws `chart` whole, with its heading and the names of its lines, to stand alone.
///
/// # Errors
///
/// As [`parts`].
pub fn whole(chart: &Chart, size: Size, palette: Palette<'_>, background: &str) -> io::Result<String> {
    let head = Head::of(chart, size);
    let inner = Size { height: size.height.saturating_sub(head.height).max(80), ..size };
    let Drawing { base, layers, .. } = parts(chart, inner)?;
    let top = canvas(size, |root| head.draw(&root, chart))?;
    let mut svg = String::new();
    let Size { width, height } = size;
    let _ = write!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" font-family=\"{FONTS}\">\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"{background}\"/>\n{}\
         <g transform=\"translate(0,{})\">\n{}{}</g>\n</svg>\n",
        palette.paint(&top),
        head.height,
        palette.paint(&base),
        layers.iter().map(|layer| palette.paint(layer)).collect::<String>()
    );
    Ok(svg)
}

/// What stands above a picture that stands alone.
struct Head {
    height: u32,
    /// Names with their left ends and lines.
    names: Vec<(String, i32, i32)>,
    /// The words in place of a picture.
    words: Vec<String>,
}

impl Head {
    fn of(chart: &Chart, size: Size) -> Head {
        let room = size.width as i32 - 2 * MARGIN;
        let (mut x, mut line) = (0, 0);
        let mut names = Vec::new();
        for series in chart.series.iter().filter(|series| !series.name.is_empty()) {
            let width = text_width(&series.name) + KEY;
            if x > 0 && x + width > room {
                (x, line) = (0, line + 1);
            }
            names.push((series.name.clone(), MARGIN + x, line));
            x += width;
        }
        let lines = names.last().map_or(0, |(_, _, line)| line + 1);
        let words = chart.empty.as_ref().map_or_else(Vec::new, |why| wrapped(why, room));
        let height = 34 + lines * LINE + if words.is_empty() { 0 } else { words.len() as i32 * LINE };
        Head { height: height as u32, names, words }
    }

    fn draw(&self, root: &Area<'_>, chart: &Chart) -> Drawn {
        text(root, chart.title, (MARGIN, 10), 20)?;
        for (place, (name, x, line)) in self.names.iter().enumerate() {
            let y = 36 + line * LINE;
            let color = mark(place % COLORS);
            root.draw(&Rectangle::new([(*x, y + 2), (x + 12, y + 10)], color.filled()))?;
            text(root, name, (x + 17, y), FONT)?;
        }
        for (line, words) in self.words.iter().enumerate() {
            text(root, words, (MARGIN, 40 + line as i32 * LINE), FONT)?;
        }
        Ok(())
    }
}

fn text(root: &Area<'_>, words: &str, at: (i32, i32), size: u32) -> Drawn {
    let style = (FONTS, size).into_font().color(&INK);
    root.draw(&Text::new(words.to_owned(), at, style))
}

/// About as wide as `text` is in the small font: the crate measures without fonts too.
fn text_width(text: &str) -> i32 {
    text.chars().count() as i32 * 7
}

fn wrapped(text: &str, room: i32) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if text_width(line) + text_width(word) + 7 <= room => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = Result<(), DrawingAreaErrorKind<io::Error>>;
type Context<'a> = ChartContext<'a, SVGBackend<'a>, Cartesian2d<Along, Along>>;

/// What is drawn on a canvas of `size`, without the element around it.
fn canvas(size: Size, draw: impl FnOnce(Area<'_>) -> Drawn) -> io::Result<String> {
    let mut svg = String::new();
    let root = SVGBackend::with_string(&mut svg, (size.width, size.height)).into_drawing_area();
    draw(root.clone()).and_then(|()| root.present()).map_err(|e| io::Error::other(e.to_string()))?;
    drop(root);
    let start = svg.find('>').map_or(0, |at| at + 1);
    let end = svg.rfind("</svg>").unwrap_or(svg.len());
    Ok(svg.get(start..end).unwrap_or_default().trim_start().to_owned())
}

/// Axes over everything that is drawn.
struct Plot<'a> {
    chart: &'a Chart,
    x: Ruler,
    y: Ruler,
    names: marks::Names,
    size: Size,
}

impl<'a> Plot<'a> {
    fn new(chart: &'a Chart, size: Size) -> Plot<'a> {
        let points =
            || chart.series.iter().flat_map(|series| &series.points).filter(|point| point.y.is_some());
        let fields = || chart.heat.iter().flat_map(|heat| &heat.fields);
        let xs = points().map(|point| point.x).chain(fields().flat_map(|field| [field.x.0, field.x.1]));
        let xs = xs.chain(chart.marks.iter().flat_map(|mark| mark.at.across()));
        let ys = points()
            .flat_map(|point| {
                let (low, high) = point.band.unzip();
                [point.y, low, high].into_iter().flatten()
            })
            .chain(fields().flat_map(|field| [field.y.0, field.y.1]))
            .chain(chart.marks.iter().filter_map(|mark| match mark.at {
                Place::Limit(at) => Some(at),
                Place::At(_) | Place::Between(..) | Place::Begins(_) => None,
            }));
        let wanted = (size.width / 90).max(3) as usize;
        let (x, y) = (Ruler::over(&chart.x, xs, wanted), Ruler::over(&chart.y, ys, 5));
        let (left, right) = (SIDE + y_labels(&y), size.width as i32 - RIGHT);
        let names = marks::Names::of(&chart.marks, &x, left, right);
        Plot { chart, x, y, names, size }
    }

    /// Where the axes begin, pixels from above.
    const fn top(&self) -> i32 {
        SIDE + self.names.height()
    }

    fn context<'b>(&self, root: &Area<'b>) -> Result<Context<'b>, DrawingAreaErrorKind<io::Error>> {
        ChartBuilder::on(root)
            .margin_top(self.top())
            .margin_right(RIGHT)
            .margin_left(SIDE)
            .x_label_area_size(if self.chart.x.title.is_empty() { 24 } else { 40 })
            .y_label_area_size(y_labels(&self.y))
            .build_cartesian_2d(Along(self.x.clone()), Along(self.y.clone()))
    }

    fn base(&self, root: &Area<'_>) -> Drawn {
        let mut context = self.context(root)?;
        let (along, up) = (|at: &f64| self.x.label(*at).to_owned(), |at: &f64| self.y.label(*at).to_owned());
        let is_named = matches!(self.chart.x.scale, Scale::Names(_));
        let mut mesh = context.configure_mesh();
        mesh.max_light_lines(0)
            .bold_line_style(GRID.stroke_width(1))
            .axis_style(INK.stroke_width(1))
            .label_style(font())
            .axis_desc_style(font())
            .x_desc(self.chart.x.title)
            .y_desc(self.chart.y.title)
            .x_labels(MARKS_MAX)
            .y_labels(MARKS_MAX)
            .set_all_tick_mark_size(4)
            .x_label_formatter(&along)
            .y_label_formatter(&up);
        if is_named {
            mesh.disable_x_mesh();
        }
        mesh.draw()?;
        if let Some(heat) = &self.chart.heat {
            self.heat(&mut context, heat)?;
        }
        let marks = &self.chart.marks;
        marks::upright(&mut context, marks, &self.names, (&self.x, &self.y))?;
        marks::level(root, &mut context, marks, (&self.x, &self.y), self.size)?;
        self.names.draw(root, self.top())
    }

    fn heat(&self, context: &mut Context<'_>, heat: &Heat) -> Drawn {
        let full = (1.0 + heat.most as f64).ln();
        context.draw_series(heat.fields.iter().map(|field| {
            let corner = |x: f64, y: f64| (self.x.place(x), self.y.place(y));
            let darkness = FAINTEST + (1.0 - FAINTEST) * (1.0 + field.count as f64).ln() / full;
            Rectangle::new(
                [corner(field.x.0, field.y.1), corner(field.x.1, field.y.0)],
                HEAT.mix(darkness).filled(),
            )
        }))?;
        Ok(())
    }

    fn series(
        &self,
        root: &Area<'_>,
        series: &Series,
        color: RGBColor,
    ) -> Result<Vec<(i32, i32, usize)>, DrawingAreaErrorKind<io::Error>> {
        let mut context = self.context(root)?;
        let place = |x: f64, y: f64| (self.x.place(x), self.y.place(y));
        let pieces: Vec<&[Point]> =
            series.points.split(|point| point.y.is_none()).filter(|piece| !piece.is_empty()).collect();
        if series.line {
            for piece in &pieces {
                self.band(&mut context, piece, color)?;
                let line = piece.iter().filter_map(|point| Some(place(point.x, point.y?)));
                context.draw_series(LineSeries::new(line, color.stroke_width(2)))?;
            }
        }
        if !series.line {
            // What is not joined has nothing between its points.
            for point in pieces.iter().flat_map(|piece| piece.chunks(1)) {
                self.band(&mut context, point, color)?;
            }
        }
        let is_dense = series.points.len() > DOTS_MAX;
        let alone = |piece: &&&[Point]| !series.line || !is_dense || piece.len() == 1;
        let dots = pieces.iter().filter(alone).flat_map(|piece| piece.iter());
        let radius = if series.line { 3 } else { 5 };
        context.draw_series(
            dots.filter_map(|point| Some(Circle::new(place(point.x, point.y?), radius, color.filled()))),
        )?;
        let numbered = series.points.iter().enumerate();
        Ok(numbered
            .filter_map(|(number, point)| {
                let (x, y) = context.backend_coord(&place(point.x, point.y?));
                Some((x, y, number))
            })
            .collect())
    }

    /// The intervals of neighbouring points, as a band; of a single one, as a bar.
    fn band(&self, context: &mut Context<'_>, piece: &[Point], color: RGBColor) -> Drawn {
        for part in piece.split(|point| point.band.is_none()).filter(|part| !part.is_empty()) {
            let at = |point: &Point, value: f64| (self.x.place(point.x), self.y.place(value));
            let low = part.iter().filter_map(|point| Some(at(point, point.band?.0)));
            let high = part.iter().rev().filter_map(|point| Some(at(point, point.band?.1)));
            let outline: Vec<(f64, f64)> = low.chain(high).collect();
            match part {
                [_] => context.draw_series(LineSeries::new(outline, color.mix(0.5).stroke_width(2)))?,
                _ => context.draw_series([Polygon::new(outline, color.mix(0.14))])?,
            };
        }
        Ok(())
    }
}

/// An axis of the plotting crate, whose marks are ours. Values are places of the ruler.
struct Along(Ruler);

impl Ranged for Along {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (start, end): (i32, i32)) -> i32 {
        let Ruler { from, to, .. } = self.0;
        let share = (value - from) / (to - from);
        start + (f64::from(end - start) * share).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        self.0.ticks.iter().map(|tick| tick.at).collect()
    }

    fn range(&self) -> Range<f64> {
        self.0.from..self.0.to
    }
}

/// What the marks of the upright axis and its title take, pixels.
fn y_labels(y: &Ruler) -> i32 {
    y.ticks.iter().map(|tick| text_width(&tick.label)).max().unwrap_or(0) + 32
}

fn font() -> TextStyle<'static> {
    font_of(&INK)
}

fn font_of(color: &RGBColor) -> TextStyle<'static> {
    (FONTS, FONT).into_font().color(color)
}

/// The mark of the line at `place`.
fn mark(place: usize) -> RGBColor {
    let level = 16 + place as u8;
    RGBColor(level, level, level)
}

fn hex(RGBColor(r, g, b): RGBColor) -> String {
    format!("#{r:02X}{g:02X}{b:02X}")
}

const INK: RGBColor = RGBColor(1, 1, 1);
const GRID: RGBColor = RGBColor(2, 2, 2);
const HEAT: RGBColor = RGBColor(3, 3, 3);
const MARK: RGBColor = RGBColor(4, 4, 4);
const LIMIT: RGBColor = RGBColor(5, 5, 5);
/// What pages and prints have; the pictures of ours are rendered with the first.
const FONTS: &str = "DejaVu Sans, Verdana, sans-serif";
/// Size of all text but headings; the crate's, a quarter above pixels.
const FONT: u32 = 15;
const LINE: i32 = 18;
const MARGIN: i32 = 14;
/// Room around the axes: left and above, and right.
const SIDE: i32 = 8;
const RIGHT: i32 = 16;
/// Width of a name's colour with the room around it.
const KEY: i32 = 34;
/// Our marks are all wanted.
const MARKS_MAX: usize = 64;
/// A line of more points than this has no dots.
const DOTS_MAX: usize = 40;
/// How much a field is seen that holds one request.
const FAINTEST: f64 = 0.15;
