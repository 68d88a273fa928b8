//! The text format of Prometheus (0.0.4), written: what our own endpoint and the mock's answer at `/metrics`.
//!
//! A page is written when it is asked for, from numbers that somebody else owns; a crate for the format would want to own
//! them, and writes OpenMetrics, which is another format to whoever was promised this one.

use std::fmt::Write as _;

/// The content type of a page.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A page that is being written.
#[derive(Clone, Debug)]
pub struct Page {
    out: String,
    /// What all names begin with.
    prefix: &'static str,
    /// The labels that every line has, as they are written.
    labels: String,
}

impl Page {
    /// An empty page. All names begin with `prefix`, and every line has these labels.
    #[must_use]
    pub fn new(prefix: &'static str, labels: &[(&str, &str)]) -> Page {
        Page { out: String::new(), prefix, labels: written(labels) }
    }

    /// The text.
    #[must_use]
    pub fn into_text(self) -> String {
        self.out
    }

    /// A metric of one value; `kind` is `counter` or `gauge`.
    pub fn one(&mut self, name: &str, kind: &str, help: &str, value: f64) {
        self.head(name, kind, help);
        self.line(name, &[], value);
    }

    /// Begins a metric: its lines follow.
    pub fn head(&mut self, name: &str, kind: &str, help: &str) {
        let prefix = self.prefix;
        // Writing to a string does not fail.
        let _ = write!(self.out, "# HELP {prefix}{name} {help}\n# TYPE {prefix}{name} {kind}\n");
    }

    /// One value, with labels of its own behind those of the page.
    pub fn line(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        let own = written(labels);
        let between = if self.labels.is_empty() || own.is_empty() { "" } else { "," };
        let (prefix, all) = (self.prefix, format!("{}{between}{own}", self.labels));
        let braced = if all.is_empty() { all } else { format!("{{{all}}}") };
        let _ = match value {
            f64::INFINITY => writeln!(self.out, "{prefix}{name}{braced} +Inf"),
            // With a decimal point always, as Prometheus' own clients print floats.
            _ => writeln!(self.out, "{prefix}{name}{braced} {value:?}"),
        };
    }

    /// The lines of a histogram behind its head: how many values are at most each bound, of `counts` that each have a
    /// bucket of their own, in all and their sum. What is in `counts` beyond the bounds, or not at all, is above the last.
    pub fn buckets(&mut self, name: &str, labels: &[(&str, &str)], of: Buckets<'_>) {
        let bucket = format!("{name}_bucket");
        let mut below = 0;
        for (bound, count) in of.bounds.iter().zip(of.counts) {
            below += count;
            let bound = format!("{bound:?}");
            self.line(&bucket, &[labels, &[("le", &bound)]].concat(), below as f64);
        }
        self.line(&bucket, &[labels, &[("le", "+Inf")]].concat(), of.count as f64);
        self.line(&format!("{name}_count"), labels, of.count as f64);
        self.line(&format!("{name}_sum"), labels, of.sum);
    }
}

/// Values in buckets.
#[derive(Clone, Copy, Debug)]
pub struct Buckets<'a> {
    /// The highest value of each bucket, ascending.
    pub bounds: &'a [f64],
    /// Values in each, not below it.
    pub counts: &'a [u64],
    /// All values, those above the last bound included.
    pub count: u64,
    /// Their sum.
    pub sum: f64,
}

fn written(labels: &[(&str, &str)]) -> String {
    let escaped = |value: &str| value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let all: Vec<String> =
        labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
    all.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_the_text_of_the_format() {
        let mut page = Page::new("t:", &[("model", "a\"b\\c\nd")]);
        page.one("up", "gauge", "Whether it is.", 1.0);
        page.head("s", "histogram", "Seconds.");
        let of = Buckets { bounds: &[0.5, 2.0], counts: &[3, 1], count: 5, sum: 12.25 };
        page.buckets("s", &[("part", "one")], of);
        let labels = r#"model="a\"b\\c\nd""#;
        let expected = format!(
            "# HELP t:up Whether it is.\n# TYPE t:up gauge\nt:up{{{labels}}} 1.0\n# HELP t:s Seconds.\n\
             # TYPE t:s histogram\nt:s_bucket{{{labels},part=\"one\",le=\"0.5\"}} 3.0\n\
             t:s_bucket{{{labels},part=\"one\",le=\"2.0\"}} 4.0\nt:s_bucket{{{labels},part=\"one\",le=\"+Inf\"}} 5.0\n\
             t:s_count{{{labels},part=\"one\"}} 5.0\nt:s_sum{{{labels},part=\"one\"}} 12.25\n"
        );
        assert_eq!(page.into_text(), expected);
        let mut bare = Page::new("", &[]);
        bare.line("x", &[], f64::INFINITY);
        assert_eq!(bare.into_text(), "x +Inf\n");
    }
}
