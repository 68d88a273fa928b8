//! The marks of a chart: lines and bands beneath its lines, their names above the axes, where nothing is covered.

use plotters::prelude::*;

use super::super::ticks::Ruler;
use super::super::{Mark, Place};
use super::{Area, Context, Drawn, INK, LIMIT, LINE, MARK, Size, font, font_of, text_width};

/// The names above the axes.
pub(super) struct Names {
    /// Each with its left end in pixels, its line from below, and whether it is a finding.
    names: Vec<(String, i32, i32, bool)>,
    /// How many lines they take.
    lines: i32,
    /// The places among the marks of those upright lines that are drawn: each name has its own, others are left out where
    /// they would be a grey field.
    shown: Vec<usize>,
}

impl Names {
    /// Sets the names of `marks` over axes that lie between `left` and the right margin.
    pub(super) fn of(marks: &[Mark], x: &Ruler, left: i32, right: i32) -> Names {
        let pixel = |value: f64| left + (x.share(value) * f64::from(right - left)).round() as i32;
        let mut names: Vec<(String, i32, i32, bool)> = Vec::new();
        // Where the last name of each line ends.
        let mut ends: Vec<i32> = Vec::new();
        let mut named_at: Vec<(usize, i32)> = Vec::new();
        for (place, mark) in marks.iter().enumerate() {
            let width = text_width(&mark.name);
            let (at, is_found) = match mark.at {
                Place::At(at) => (pixel(at) - width / 2, true),
                Place::Between(from, to) => ((pixel(from) + pixel(to) - width) / 2, true),
                Place::Begins(at) => (pixel(at), false),
                Place::Limit(_) => continue,
            };
            if !is_found {
                // Any of them tells what the lines are: those without room go without.
                if at >= ends.first().copied().unwrap_or(0) && at + width <= right + ROOM {
                    names.push((mark.name.clone(), at, 0, false));
                    named_at.push((place, at));
                    ends.splice(..ends.len().min(1), [at + width + GAP]);
                }
                continue;
            }
            let at = at.clamp(EDGE, (right + ROOM - width).max(EDGE));
            let line = ends.iter().position(|end| *end <= at).unwrap_or(ends.len());
            match ends.get_mut(line) {
                Some(end) => *end = at + width + GAP,
                None => ends.push(at + width + GAP),
            }
            names.push((mark.name.clone(), at, line as i32, true));
        }
        let lines = names.iter().map(|(_, _, line, _)| line + 1).max().unwrap_or(0);
        let mut drawn = named_at;
        for (place, mark) in marks.iter().enumerate() {
            let Place::Begins(at) = mark.at else { continue };
            let at = pixel(at);
            if drawn.iter().all(|(_, other)| (other - at).abs() >= APART) {
                drawn.push((place, at));
            }
        }
        Names { names, lines, shown: drawn.into_iter().map(|(place, _)| place).collect() }
    }

    /// Pixels that they take.
    pub(super) const fn height(&self) -> i32 {
        self.lines * LINE
    }

    /// Draws them with the lowest line just above `top`, where the axes begin.
    pub(super) fn draw(&self, root: &Area<'_>, top: i32) -> Drawn {
        for (name, x, line, is_found) in &self.names {
            let style = if *is_found { font_of(&MARK) } else { font() };
            root.draw(&Text::new(name.clone(), (*x, top - (line + 1) * LINE + 2), style))?;
        }
        Ok(())
    }
}

/// Draws bands and upright lines, which other things lie upon.
pub(super) fn upright(
    context: &mut Context<'_>,
    marks: &[Mark],
    names: &Names,
    (x, y): (&Ruler, &Ruler),
) -> Drawn {
    for (place, mark) in marks.iter().enumerate() {
        match mark.at {
            Place::At(at) => {
                line(context, [(x.place(at), y.from), (x.place(at), y.to)], MARK.stroke_width(2))?
            }
            Place::Between(from, to) => {
                let (from, to) = (x.place(from), x.place(to));
                context
                    .draw_series([Rectangle::new([(from, y.from), (to, y.to)], MARK.mix(0.14).filled())])?;
                for at in [from, to] {
                    line(context, [(at, y.from), (at, y.to)], MARK.stroke_width(1))?;
                }
            }
            Place::Begins(at) if names.shown.contains(&place) => {
                let at = x.place(at);
                line(context, [(at, y.from), (at, y.to)], INK.mix(0.35).stroke_width(1))?;
            }
            Place::Begins(_) | Place::Limit(_) => {}
        }
    }
    Ok(())
}

/// Draws level lines with their names at the left, where latencies are lowest.
pub(super) fn level(
    root: &Area<'_>,
    context: &mut Context<'_>,
    marks: &[Mark],
    (x, y): (&Ruler, &Ruler),
    size: Size,
) -> Drawn {
    let mut taken: Vec<i32> = Vec::new();
    for mark in marks {
        let Place::Limit(at) = mark.at else { continue };
        let at = y.place(at);
        line(context, [(x.from, at), (x.to, at)], LIMIT.stroke_width(1))?;
        let (left, height) = context.backend_coord(&(x.from, at));
        let top = context.backend_coord(&(x.from, y.to)).1;
        // Above the line, below it where there is no room.
        let above = height - LINE + 2;
        let is_free = above >= top && taken.iter().all(|other| (other - above).abs() >= LINE - 4);
        let place = if is_free { above } else { height + 4 };
        taken.push(place);
        let left = (left + 6).min(size.width as i32 - text_width(&mark.name)).max(EDGE);
        root.draw(&Text::new(mark.name.clone(), (left, place), font_of(&LIMIT)))?;
    }
    Ok(())
}

fn line(context: &mut Context<'_>, ends: [(f64, f64); 2], style: ShapeStyle) -> Drawn {
    context.draw_series([PathElement::new(ends, style)])?;
    Ok(())
}

/// Least distance of a name from the picture's edge, and of two names from each other.
const EDGE: i32 = 2;
const GAP: i32 = 8;
/// Names may go so far beyond the axes.
const ROOM: i32 = 14;
/// Faint lines are at least so far apart.
const APART: i32 = 16;
