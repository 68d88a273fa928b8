//! The figures drawn: what fits, from the top, and the series in the room that is left.

use std::collections::VecDeque;
use std::ffi::OsStr;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Paragraph, Sparkline};

use super::figures::{Figures, LATENCIES, Row};
use crate::metrics::live::{Sums, Timing};
use crate::report::format;
use crate::stats::Quantile;

/// Whether there are colours; without them everything is said by words and shapes, as it is with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Colours {
    On,
    Off,
}

/// Columns of the table: names, numbers, and between the two groups.
const NAME: usize = 5;
const NUMBER: usize = 9;
const BETWEEN: usize = 3;
/// From this width on the table has both groups.
const BOTH: u16 = (NAME + 6 * NUMBER + BETWEEN) as u16;
/// The least height of a series, its heading included, and what it does with more.
const SERIES_MIN: u16 = 3;

impl Colours {
    /// What `NO_COLOR` says.
    pub(super) fn of(no_color: Option<&OsStr>) -> Colours {
        if no_color.is_some_and(|value| !value.is_empty()) { Colours::Off } else { Colours::On }
    }

    fn style(self, colour: Color) -> Style {
        match self {
            Colours::On => Style::new().fg(colour),
            Colours::Off => Style::new(),
        }
    }
}

/// Draws all of it.
pub(super) fn draw(frame: &mut Frame<'_>, figures: &Figures, colours: Colours) {
    let area = frame.area();
    let (level, now) = (figures.level(), figures.now());
    let head = head(figures, area.width, colours);
    let mut foot = table(figures, (&level, &now), area.width);
    foot.push(ends(figures, &level, (usize::from(area.width), colours)));
    foot.push(client(figures, &level, usize::from(area.width)));
    // What the client measures itself comes first.
    let room = usize::from(area.height).saturating_sub(head.len() + foot.len());
    let servers = figures.servers.iter().take(room);
    foot.extend(servers.map(|(name, says)| Line::raw(format!(" {name}  {says}"))));
    foot.extend(figures.facts.notes.iter().map(|note| {
        Line::styled(
            format!(" {}", format::one_line(note, usize::from(area.width))),
            colours.style(Color::Yellow),
        )
    }));
    let rest = area.height.saturating_sub((head.len() + foot.len()) as u16);
    // Two rows of series, one, or none.
    let rows = (rest / SERIES_MIN).min(2);
    let series = if rows == 0 { 0 } else { rest };
    let [above, middle, below] = Layout::vertical([
        Constraint::Length(head.len() as u16),
        Constraint::Length(series),
        Constraint::Length(foot.len() as u16),
    ])
    .areas(area);
    frame.render_widget(Paragraph::new(head), above);
    frame.render_widget(Paragraph::new(foot), below);
    if rows > 0 {
        draw_series(frame, middle, figures, (rows, colours));
    }
}

/// What is run, and how far it is.
fn head(figures: &Figures, width: u16, colours: Colours) -> Vec<Line<'static>> {
    let width = usize::from(width);
    let name = format!(" tokload {} · {}", env!("CARGO_PKG_VERSION"), figures.title);
    let key = "q: stop, keep results ";
    let room = width.saturating_sub(key.chars().count() + 1);
    let name = fitted(&name, room);
    let gap = width.saturating_sub(name.chars().count() + key.chars().count());
    let first = Line::from(vec![
        Span::styled(name, Style::new().add_modifier(Modifier::BOLD)),
        Span::raw(" ".repeat(gap)),
        Span::styled(key, Style::new().add_modifier(Modifier::DIM)),
    ]);
    vec![first, progress(figures, width, colours)]
}

fn progress(figures: &Figures, width: usize, colours: Colours) -> Line<'static> {
    let course = &figures.facts.course;
    let head =
        if course.ordinal.is_some() { format!(" {}", course.head()) } else { " getting ready".to_owned() };
    let stopping = match figures.stops {
        0 => None,
        1 => Some(": stopping when open requests have ended, q again gives them up"),
        _ => Some(": giving up open requests"),
    };
    if let Some(stopping) = stopping {
        return Line::styled(format!("{head}{stopping}"), colours.style(Color::Red));
    }
    if let Some(requests) = course.warming {
        return Line::raw(format!("{head}: warm-up, {requests} requests"));
    }
    let left = course.left_s().map_or_else(String::new, |left| format!(" · {} left", span(left)));
    let said = match course.goal {
        super::super::course::Goal::None => {
            format!(" {}", span(course.last.map_or(0.0, |tick| tick.elapsed_s)))
        }
        _ => format!(" {:.0} %{left}", course.done() * 100.0),
    };
    // The bar takes the room that is left, up to a third of the line.
    let room = width.saturating_sub(head.chars().count() + said.chars().count() + 2).min(width / 3);
    let full = (course.done() * room as f64).round() as usize;
    Line::from(vec![
        Span::raw(format!("{head} ")),
        Span::styled("━".repeat(full), colours.style(Color::Green)),
        Span::styled("┄".repeat(room - full), Style::new().add_modifier(Modifier::DIM)),
        Span::raw(said),
    ])
}

fn draw_series(frame: &mut Frame<'_>, area: Rect, figures: &Figures, (rows, colours): (u16, Colours)) {
    let series = &figures.series;
    let whole = |value: f64| format!("{value:.0}");
    let upper: [Panel<'_>; 3] = [
        Panel { name: "in flight", unit: "", points: &series.in_flight, words: &whole, colour: Color::Cyan },
        Panel {
            name: "requests/s",
            unit: "",
            points: &series.requests_s,
            words: &format::rate,
            colour: Color::Cyan,
        },
        Panel {
            name: "tokens/s",
            unit: "",
            points: &series.tokens_s,
            words: &format::rate,
            colour: Color::Cyan,
        },
    ];
    let lower: [Panel<'_>; 2] = [
        Panel {
            name: "TTFT p50",
            unit: " ms",
            points: &series.ttft_p50,
            words: &format::ms,
            colour: Color::Green,
        },
        Panel {
            name: "TTFT p99",
            unit: " ms",
            points: &series.ttft_p99,
            words: &format::ms,
            colour: Color::Yellow,
        },
    ];
    let lines = Layout::vertical(vec![Constraint::Fill(1); usize::from(rows)]).split(area);
    for (line, panels) in lines.iter().zip([&upper[..], &lower[..]]) {
        let cells = Layout::horizontal(vec![Constraint::Fill(1); panels.len()]).spacing(1).split(*line);
        for (cell, panel) in cells.iter().zip(panels) {
            panel.draw(frame, *cell, colours);
        }
    }
}

/// A series with its heading.
struct Panel<'a> {
    name: &'a str,
    unit: &'a str,
    points: &'a VecDeque<Option<f64>>,
    words: &'a dyn Fn(f64) -> String,
    colour: Color,
}

impl Panel<'_> {
    fn draw(&self, frame: &mut Frame<'_>, area: Rect, colours: Colours) {
        let shown = usize::from(area.width);
        let points: Vec<Option<f64>> =
            self.points.iter().skip(self.points.len().saturating_sub(shown)).copied().collect();
        let most = points.iter().flatten().copied().fold(0.0, f64::max);
        let last = points.iter().rev().find_map(|point| *point);
        let last = last.map_or_else(|| "-".to_owned(), |last| format!("{}{}", (self.words)(last), self.unit));
        let full = format!(" {} {last}, most {} ", self.name, (self.words)(most));
        let title = if full.chars().count() + 2 > shown { format!(" {} {last} ", self.name) } else { full };
        let block = Block::new().borders(Borders::TOP).title(fitted(&title, shown));
        // Bars are eighths of a line; a thousand steps are as good.
        let scaled = |value: f64| (value / most.max(f64::MIN_POSITIVE) * 1000.0).round() as u64;
        let bars: Vec<Option<u64>> = points.iter().map(|point| point.map(scaled)).collect();
        let line = Sparkline::default().data(bars).max(1000).style(colours.style(self.colour)).block(block);
        frame.render_widget(line, area);
    }
}

fn table(figures: &Figures, (level, now): (&Sums, &Sums), width: u16) -> Vec<Line<'static>> {
    let both = width >= BOTH;
    let group = |name: &str| format!("{name:>width$}", width = 3 * NUMBER);
    let numbers = |row: Row| -> String {
        let word =
            |value: Option<f64>| format!("{:>NUMBER$}", value.map_or_else(|| "-".to_owned(), format::ms));
        [row.p50, row.p90, row.p99].into_iter().map(word).collect()
    };
    let names: String = ["p50", "p90", "p99"].iter().map(|name| format!("{name:>NUMBER$}")).collect();
    let line = |name: &str, now: &str, level: &str| {
        let first = if both { format!("{now}{}", " ".repeat(BETWEEN)) } else { String::new() };
        format!("{name:<NAME$}{first}{level}")
    };
    let dim = Style::new().add_modifier(Modifier::DIM);
    let mut lines = vec![
        Line::styled(line(" ms", &group("last 10 s"), &group("level so far")), dim),
        Line::styled(line("", &names, &names), dim),
    ];
    lines.extend(LATENCIES.iter().map(|(name, timing)| {
        let (now, level) = (figures.row(*timing, now), figures.row(*timing, level));
        Line::raw(line(&format!(" {name}"), &numbers(now), &numbers(level)))
    }));
    lines
}

/// How requests ended.
fn ends(figures: &Figures, level: &Sums, (width, colours): (usize, Colours)) -> Line<'static> {
    let (ok, failed, cancelled) = level.ends();
    let mut well = format!(" ok {ok}");
    if cancelled > 0 {
        well += &format!(" · cancelled {cancelled}");
    }
    if failed == 0 {
        return Line::raw(format!("{well} · none failed"));
    }
    let share = format::percent(failed as f64 / (ok + failed) as f64);
    let kinds: Vec<String> =
        figures.failures(level).iter().map(|(label, count)| format!("{label} {count}")).collect();
    let said = format!(" · failed {failed} ({share} %): {}", kinds.join(", "));
    let said = fitted(&said, width.saturating_sub(well.chars().count()));
    Line::from(vec![Span::raw(well), Span::styled(said, colours.style(Color::Red))])
}

/// By how much the client itself may falsify what it measures: the rule of the error budget without kernel stamps.
fn client(figures: &Figures, level: &Sums, width: usize) -> Line<'static> {
    let p99 = |timing| level.times(timing).quantile(Quantile::P99);
    let (Some(late), Some(lag)) = (p99(Timing::ScheduleDelay), p99(Timing::LoopLag)) else {
        return Line::raw(" client: nothing measured yet");
    };
    let ttft = figures.row(Timing::Ttft, level).p50.filter(|ttft| *ttft > 0.0);
    let error = ttft.map_or_else(String::new, |ttft| {
        format!("; own error {} % of TTFT p50", format::percent((late + lag) / ttft))
    });
    let [late, lag] = [late, lag].map(format::ms);
    let short = format!(" client p99: send delay {late} ms, loop lag {lag} ms");
    let whole = format!("{short}{error}");
    Line::raw(if whole.chars().count() <= width { whole } else { short })
}

/// At most so many columns of a text.
fn fitted(text: &str, columns: usize) -> String {
    if text.chars().count() <= columns {
        return text.to_owned();
    }
    let kept: String = text.chars().take(columns.saturating_sub(1)).collect();
    if columns == 0 { kept } else { format!("{kept}…") }
}

/// A time to wait: `15 s`, `2 min 05 s`, `1 h 03 min`.
fn span(seconds: f64) -> String {
    let all = seconds.ceil().max(0.0) as u64;
    match all {
        0..60 => format!("{all} s"),
        60..3600 => format!("{} min {:02} s", all / 60, all % 60),
        _ => format!("{} h {:02} min", all / 3600, all % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::super::figures::tests::example;
    use super::*;
    use crate::telemetry::Snapshot;

    fn drawn(figures: &Figures, width: u16, height: u16, colours: Colours) -> TestBackend {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, figures, colours)).unwrap();
        terminal.backend().clone()
    }

    fn lines(backend: &TestBackend) -> Vec<String> {
        let width = usize::from(backend.buffer().area.width);
        let symbols: Vec<&str> = backend.buffer().content.iter().map(|cell| cell.symbol()).collect();
        symbols.chunks(width.max(1)).map(|line| line.concat().trim_end().to_owned()).collect()
    }

    #[test]
    fn a_usual_terminal_shows_all_of_it() {
        let shown = lines(&drawn(&example(), 80, 24, Colours::Off)).join("\n");
        assert_eq!(shown, include_str!("screen_80x24.txt").trim_end(), "\n{shown}");
    }

    #[test]
    fn no_terminal_is_too_small_or_too_large() {
        let mut figures = example();
        figures.facts.notes.extend(["one".to_owned(), "two ".repeat(100)]);
        figures.title = "a model with a name — that is wide 模型 ".repeat(5);
        figures.servers.push(("gpu 0".to_owned(), "98 % busy, 61.2 GB".to_owned()));
        for (width, height) in [(0, 0), (1, 1), (5, 2), (20, 5), (39, 9), (60, 14), (80, 17), (300, 90)] {
            let shown = lines(&drawn(&figures, width, height, Colours::On));
            assert_eq!(shown.len(), usize::from(height));
        }
        let shown = lines(&drawn(&figures, 160, 50, Colours::On)).join("\n");
        for said in [" gpu 0  98 % busy", "two two", "failed 3", "last 10 s", "TTFT p99"] {
            assert!(shown.contains(said), "{said}\n{shown}");
        }
        let narrow = lines(&drawn(&figures, 40, 12, Colours::On)).join("\n");
        assert!(narrow.contains("level so far") && !narrow.contains("last 10 s"), "{narrow}");
    }

    #[test]
    fn what_servers_and_gpus_say_has_a_line_each_where_there_is_room() {
        let mut figures = example();
        figures.servers = super::super::figures::servers(&Snapshot {
            running: Some(12.0),
            waiting: Some(3.0),
            kv_cache_use: Some(0.455),
            gpus: 2,
            gpu_use: Some(0.87),
            power_w: Some(512.4),
        });
        let shown = lines(&drawn(&figures, 80, 24, Colours::Off)).join("\n");
        for said in [" server  running 12 · waiting 3 · KV cache 45.5 %", " 2 GPUs  busy 87.0 % · 512 W"] {
            assert!(shown.contains(said), "{said}\n{shown}");
        }
        // What is not known is left out, and who says nothing has no line.
        let one = Snapshot { gpus: 1, power_w: Some(70.0), ..Snapshot::default() };
        let lines_of = super::super::figures::servers;
        assert_eq!(lines_of(&one), [("GPU".to_owned(), "70 W".to_owned())]);
        assert!(lines_of(&Snapshot::default()).is_empty());
        // A terminal without room keeps what the client measures.
        let small = lines(&drawn(&figures, 80, 10, Colours::Off)).join("\n");
        assert!(small.contains("client p99") && !small.contains("GPUs"), "{small}");
    }

    #[test]
    fn without_colours_nothing_has_one() {
        for (colours, some) in [(Colours::On, true), (Colours::Off, false)] {
            let backend = drawn(&example(), 80, 24, colours);
            let coloured = backend.buffer().content.iter().any(|cell| cell.fg != Color::Reset);
            assert_eq!(coloured, some, "{colours:?}");
        }
        assert_eq!(Colours::of(None), Colours::On);
        assert_eq!(Colours::of(Some(OsStr::new(""))), Colours::On);
        assert_eq!(Colours::of(Some(OsStr::new("1"))), Colours::Off);
    }

    #[test]
    fn a_stop_says_what_it_does() {
        let mut figures = example();
        for (stops, said) in [(1, "stopping when open requests have ended"), (2, "giving up open requests")] {
            figures.stops = stops;
            let shown = lines(&drawn(&figures, 100, 24, Colours::Off));
            assert!(shown[1].contains(said), "{}", shown[1]);
        }
    }

    #[test]
    fn waits_are_said_in_few_words() {
        let words = [0.2, 59.0, 60.0, 125.0, 3780.0].map(span);
        assert_eq!(words, ["1 s", "59 s", "1 min 00 s", "2 min 05 s", "1 h 03 min"]);
    }
}
