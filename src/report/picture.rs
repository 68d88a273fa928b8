//! SVG as PNG. Text is set in a font that the program brings along: a server has none.

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg;

mod letters;

/// Why a picture cannot be drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(String);

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the picture cannot be drawn: {}", self.0)
    }
}

impl std::error::Error for Error {}

/// The picture of `svg` as a PNG, `scale` times its size.
///
/// # Errors
///
/// When `svg` is none, or has no size, or a size that memory cannot hold.
pub fn png(svg: &str, scale: f32) -> Result<Vec<u8>, Error> {
    let svg = letters::outlined(svg)?;
    let tree = usvg::Tree::from_str(&svg, &usvg::Options::default()).map_err(|e| Error(e.to_string()))?;
    let size = tree.size();
    let pixels = |length: f32| (length * scale).ceil() as u32;
    let mut pixmap = Pixmap::new(pixels(size.width()), pixels(size.height()))
        .ok_or_else(|| Error("it has no size".to_owned()))?;
    resvg::render(&tree, Transform::from_scale(scale, scale), &mut pixmap.as_mut());
    pixmap.encode_png().map_err(|e| Error(e.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_drawn_in_the_font_that_is_brought_along() {
        let drawn = |text: &str| {
            let svg = format!(
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"60\" height=\"20\"><text x=\"2\" y=\"15\" \
                 font-family=\"DejaVu Sans, sans-serif\" font-size=\"14\">{text}</text></svg>"
            );
            png(&svg, 1.0).unwrap()
        };
        assert_eq!(drawn("")[..8], *b"\x89PNG\r\n\x1a\n");
        assert!(drawn("12.5 ms") != drawn(""), "the text leaves a trace");
        assert!(drawn("12.5 ms") != drawn("13.5 ms"), "and says what it says");
    }

    #[test]
    fn what_is_no_picture_is_refused() {
        assert!(png("<svg", 1.0).is_err());
        assert!(png("", 1.0).is_err());
    }
}
