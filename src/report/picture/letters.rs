//! Text as outlines. The library that draws our pictures could set text itself, but what it needs for all the scripts of
//! the world takes longer to build than all else in it; ours are a line of numbers and words at a time, left to right.

use std::fmt::Write as _;
use std::sync::OnceLock;

use resvg::usvg::roxmltree::{Document, Node};
use ttf_parser::{Face, GlyphId, OutlineBuilder};

use super::Error;

/// `svg` with a path of outlines in the place of each text.
///
/// # Errors
///
/// When it is no XML.
pub(super) fn outlined(svg: &str) -> Result<String, Error> {
    let document = Document::parse(svg).map_err(|e| Error(e.to_string()))?;
    let mut out = String::with_capacity(svg.len() * 4);
    let mut done = 0;
    for text in document.descendants().filter(|node| node.has_tag_name((SVG, "text"))) {
        let place = text.range();
        out.push_str(&svg[done..place.start]);
        write_path(text, &mut out);
        done = place.end;
    }
    out.push_str(&svg[done..]);
    Ok(out)
}

fn write_path(text: Node<'_, '_>, out: &mut String) {
    let number = |name: &str| inherited(text, name).and_then(|value| value.parse::<f64>().ok());
    let size = number("font-size").unwrap_or(SIZE);
    let font = Font::of_program();
    let weight = inherited(text, "font-weight");
    let is_bold = weight.is_some_and(|w| w == "bold" || w.parse::<u32>().is_ok_and(|w| w >= 600));
    let wider = if is_bold { BOLDER } else { 0.0 };
    // A line end of the file is a blank of the text.
    let words = text.text().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
    let width = font.width(&words, wider) * size;
    let before = match inherited(text, "text-anchor") {
        Some("middle") => width / 2.0,
        Some("end") => width,
        _ => 0.0,
    };
    let x = number("x").unwrap_or(0.0) - before;
    let y = number("y").unwrap_or(0.0) + text.attribute("dy").map_or(0.0, |dy| length(dy, size));
    out.push_str("<path");
    for name in ["fill", "opacity", "transform"] {
        // What encloses the text also encloses the path.
        if let Some(value) = text.attribute(name) {
            let _ = write!(out, " {name}=\"{}\"", crate::report::html::Text(value));
        }
    }
    if is_bold {
        let fill = crate::report::html::Text(inherited(text, "fill").unwrap_or("#000"));
        let _ = write!(out, " stroke=\"{fill}\" stroke-width=\"{:.2}\"", wider * size);
    }
    out.push_str(" d=\"");
    font.draw(&words, (x + wider * size / 2.0, y), (size, wider), out);
    out.push_str("\"/>");
}

/// The attribute of the text or of the nearest element around it that has one.
fn inherited<'d>(text: Node<'d, '_>, name: &str) -> Option<&'d str> {
    text.ancestors().find_map(|node| node.attribute(name))
}

/// A length in user units, or in heights of the font.
fn length(text: &str, size: f64) -> f64 {
    let times = |number: &str, unit: f64| number.parse::<f64>().map_or(0.0, |number| number * unit);
    if let Some(number) = text.strip_suffix("em") {
        times(number, size)
    } else if let Some(number) = text.strip_suffix("ex") {
        times(number, size / 2.0)
    } else {
        times(text.trim_end_matches("px"), 1.0)
    }
}

/// A face, and what its units are in heights of the font.
struct Font {
    face: Face<'static>,
    unit: f64,
}

impl Font {
    fn of_program() -> &'static Font {
        static REGULAR: OnceLock<Font> = OnceLock::new();
        REGULAR.get_or_init(|| Font::read(dejavu::sans::regular()))
    }

    fn read(bytes: &'static [u8]) -> Font {
        let face = Face::parse(bytes, 0).expect("the font is part of the program");
        let unit = 1.0 / f64::from(face.units_per_em());
        Font { face, unit }
    }

    /// The first glyph of a font is a box: a letter that it does not have is seen to be missing.
    fn glyph(&self, letter: char) -> GlyphId {
        self.face.glyph_index(letter).unwrap_or(GlyphId(0))
    }

    /// How far to go on after `letter`, in heights of the font.
    fn advance(&self, letter: char) -> f64 {
        f64::from(self.face.glyph_hor_advance(self.glyph(letter)).unwrap_or(0)) * self.unit
    }

    /// The width of `text` whose letters are so much `wider` each.
    fn width(&self, text: &str, wider: f64) -> f64 {
        text.chars().map(|letter| self.advance(letter) + wider).sum()
    }

    /// Writes the outlines of `text` as data of a path, beginning on the base line at `at`.
    fn draw(&self, text: &str, (mut x, y): (f64, f64), (size, wider): (f64, f64), out: &mut String) {
        for letter in text.chars() {
            let mut pen = Pen { out, at: (x, y), scale: size * self.unit };
            self.face.outline_glyph(self.glyph(letter), &mut pen);
            x += (self.advance(letter) + wider) * size;
        }
    }
}

/// Writes the outline of one glyph; fonts count upwards, pictures downwards.
struct Pen<'o> {
    out: &'o mut String,
    at: (f64, f64),
    scale: f64,
}

impl Pen<'_> {
    fn to(&mut self, command: char, points: &[(f32, f32)]) {
        self.out.push(command);
        for &(x, y) in points {
            let (x, y) = (self.at.0 + f64::from(x) * self.scale, self.at.1 - f64::from(y) * self.scale);
            let _ = write!(self.out, "{x:.2} {y:.2} ");
        }
    }
}

impl OutlineBuilder for Pen<'_> {
    fn move_to(&mut self, x: f32, y: f32) {
        self.to('M', &[(x, y)]);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        self.to('L', &[(x, y)]);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        self.to('Q', &[(x1, y1), (x, y)]);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        self.to('C', &[(x1, y1), (x2, y2), (x, y)]);
    }

    fn close(&mut self) {
        self.out.push('Z');
    }
}

const SVG: &str = "http://www.w3.org/2000/svg";
/// Bold letters are the others with a line around them: a second face would be a twentieth of the program. What the line adds
/// to a letter's width, in heights of the font.
const BOLDER: f64 = 0.055;
/// What a text has whose size nobody said (as in other programs that draw SVG).
const SIZE: f64 = 12.0;

#[cfg(test)]
mod tests {
    use super::*;

    /// The only path of `text` as an element with these attributes, and the numbers of its first point.
    fn path(attributes: &str, text: &str) -> (String, (f64, f64)) {
        let svg =
            format!("<svg xmlns=\"{SVG}\"><g font-size=\"20\"><text {attributes}>{text}</text></g></svg>");
        let path = outlined(&svg).unwrap();
        assert!(!path.contains("<text"), "{path}");
        let first = path.split_once(" d=\"M").unwrap().1;
        let mut numbers = first.split([' ', 'L', 'Q']).map(|n| n.parse().unwrap());
        let point = (numbers.next().unwrap(), numbers.next().unwrap());
        (path, point)
    }

    #[test]
    fn a_text_stands_where_it_is_put() {
        // An `l` of this font is a bar from 0.094 to 0.184 of the height, 0.278 wide with its margins.
        let (drawn, (x, y)) = path("x=\"100\" y=\"50\"", "l");
        assert!((x - 101.88).abs() < 0.02 && (y - (50.0 - 0.76 * 20.0)).abs() < 0.02, "{drawn}");
        for (anchor, before) in [("start", 0.0), ("middle", 2.78), ("end", 5.56)] {
            let (_, (moved, _)) = path(&format!("x=\"100\" y=\"50\" text-anchor=\"{anchor}\""), "\n l\n");
            assert!((moved - (x - before)).abs() < 0.02, "{anchor}: {moved}");
        }
        for (dy, down) in [("0.76em", 15.2), ("0.5ex", 5.0), ("-0.5ex", -5.0), ("3", 3.0), ("3px", 3.0)] {
            let (_, (_, moved)) = path(&format!("x=\"100\" y=\"50\" dy=\"{dy}\""), "l");
            assert!((moved - (y + down)).abs() < 0.02, "{dy}: {moved}");
        }
    }

    #[test]
    fn what_is_said_of_a_text_holds_for_its_path() {
        let said = "fill=\"#0072b2\" opacity=\"0.5\" transform=\"rotate(90, 1, 2)\"";
        let (drawn, _) = path(said, "a &lt; b");
        assert!(drawn.contains(&format!("<path {said} d=")), "{drawn}");
    }

    #[test]
    fn bold_letters_have_a_line_around_them_and_more_room() {
        let (bold, (x, _)) = path("fill=\"#0072b2\" x=\"100\" font-weight=\"700\"", "l");
        assert!(
            bold.contains("<path fill=\"#0072b2\" stroke=\"#0072b2\" stroke-width=\"1.10\" d="),
            "{bold}"
        );
        let (plain, (left, _)) = path("fill=\"#0072b2\" x=\"100\" font-weight=\"400\"", "l");
        assert!(!plain.contains("stroke"), "{plain}");
        assert!((x - left - 0.55).abs() < 0.02, "{x} {left}");
        let end = |weight: &str| {
            path(&format!("x=\"100\" text-anchor=\"end\" font-weight=\"{weight}\"",), "lll").1.0
        };
        assert!((end("400") - end("bold") - (3.0 * 1.1 - 0.55)).abs() < 0.02);
    }

    #[test]
    fn a_letter_that_the_font_lacks_is_a_box() {
        let shape = |text: &str| path("", text).0;
        assert_eq!(shape("\u{4e2d}"), shape("\u{570b}"));
        assert_ne!(shape("\u{4e2d}"), shape("l"));
    }
}
