//! Fetching a page of metrics, within bounds of time and size, and what is wrong with one that is none.

use std::fmt;
use std::time::Duration;

use super::exporter::{Probe, Said};
use super::known::{self, MATCHES_MAX, Reading};
use crate::load::Route;
use crate::load::fetch::{self, FetchError, Fetched};
use crate::metrics::Meter;

/// Where a page is, and what is taken of it beside what is known.
#[derive(Clone)]
pub struct Page {
    /// Its server.
    pub route: Route,
    /// Path and query.
    pub path: String,
    /// Patterns of further series to take ([`matches`](super::matches)).
    pub patterns: Vec<String>,
    /// How long an answer may take.
    pub limit: Duration,
}

/// A page beyond it is cut off and not read: the largest that are known have 2 MB.
pub(super) const PAGE_BYTES_MAX: usize = 16 << 20;

impl fmt::Debug for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Its route may hold secrets.
        f.debug_struct("Page").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Page {
    /// The text of the page.
    ///
    /// # Errors
    /// What is wrong, in a line that follows the exporter's name.
    pub(super) fn fetch(&self) -> Result<Vec<u8>, String> {
        let answer = fetch::get_up_to(&self.route, &self.path, self.limit, PAGE_BYTES_MAX);
        let Fetched { status, body, .. } = answer.map_err(|error| self.words(&error))?;
        match status {
            200 if body.len() >= PAGE_BYTES_MAX => {
                Err(format!("its page is larger than {} MiB, and is not read", PAGE_BYTES_MAX >> 20))
            }
            200 => Ok(body),
            300..=399 => {
                Err(format!("HTTP {status}: it sends elsewhere, which is not followed; name that URL"))
            }
            401 | 403 => {
                Err(format!("HTTP {status}: it wants a password; put it into the URL, user:password@host"))
            }
            501 => Err("HTTP 501: its metrics are off (llama-server has --metrics)".to_owned()),
            _ => Err(format!("HTTP {status}")),
        }
    }

    fn words(&self, error: &FetchError) -> String {
        match error {
            FetchError::Connect(error) => format!("no connection ({error})"),
            FetchError::Broken(error)
                if matches!(error.kind(), std::io::ErrorKind::TimedOut | std::io::ErrorKind::WouldBlock) =>
            {
                format!("no whole answer within {:.1} s", self.limit.as_secs_f64())
            }
            FetchError::Broken(error) => format!("the connection broke ({error})"),
            FetchError::Tls(error) => format!("TLS failed ({error})"),
            FetchError::NotHttp => "what it says is no HTTP".to_owned(),
            FetchError::Request(error) => format!("it cannot be asked ({error})"),
        }
    }
}

/// What a page is that holds no metrics.
pub(super) fn no_metrics(body: &[u8], malformed: usize) -> String {
    let start = body.trim_ascii_start();
    if start.is_empty() {
        "its page is empty".to_owned()
    } else if start.starts_with(&[0x1f, 0x8b]) {
        "its page is compressed, which nobody asked for".to_owned()
    } else if start.starts_with(b"<") {
        "its page is HTML, no Prometheus text; name the path of the metrics".to_owned()
    } else if malformed > 0 {
        "its page is no Prometheus text".to_owned()
    } else {
        "its page has no values".to_owned()
    }
}

/// A server that is asked again and again.
#[derive(Debug)]
pub(super) struct Scraper {
    name: String,
    page: Page,
}

impl Scraper {
    pub(super) fn new(name: String, page: Page) -> Scraper {
        Scraper { name, page }
    }
}

impl Probe for Scraper {
    fn read(&mut self) -> Result<Vec<Said>, String> {
        let body = self.page.fetch()?;
        said(&body, &self.name, &self.page.patterns).map(|said| vec![said])
    }
}

/// What a server's page says.
fn said(body: &[u8], name: &str, patterns: &[String]) -> Result<Said, String> {
    let mut matched: Vec<(&str, String, f64)> = Vec::new();
    let mut left_out = 0_u32;
    let page = known::Page::read(body, |line| {
        // Buckets are many, and say together what sum and count do here.
        let is_bucket = line.name.ends_with("_bucket") && line.labels.get("le").is_some();
        if is_bucket || !patterns.iter().any(|pattern| known::matches(pattern, line.name)) {
            return;
        }
        if matched.len() >= MATCHES_MAX {
            left_out += 1;
            return;
        }
        let labels = line.labels.as_str();
        let series =
            if labels.is_empty() { line.name.to_owned() } else { format!("{}{{{labels}}}", line.name) };
        matched.push((line.name, series, line.value));
    });
    if page.counts.values == 0 {
        return Err(no_metrics(body, page.counts.malformed));
    }
    let mut readings = page.readings();
    readings.extend(matched.into_iter().map(|(name, series, value)| Reading {
        meter: if page.is_counter(name) { Meter::OtherCount } else { Meter::Other },
        name: series,
        value,
    }));
    let mut troubles = Vec::new();
    if page.counts.malformed > 0 {
        troubles
            .push(format!("{} lines of its page cannot be read, and are left out", page.counts.malformed));
    }
    if left_out > 0 {
        troubles.push(format!("{left_out} more series match than the {MATCHES_MAX} that are kept"));
    }
    if readings.is_empty() {
        let patterned = if patterns.is_empty() {
            "name series by --server-metrics-match"
        } else {
            "nor does a pattern match"
        };
        return Err(format!("its page has no series that is known; {patterned}"));
    }
    Ok(Said {
        of: name.to_owned(),
        product: page.product().map(str::to_owned),
        readings,
        trouble: (!troubles.is_empty()).then(|| troubles.join("; ")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_by_pattern_keep_their_labels_and_their_kind() {
        let text = "# TYPE my_requests counter\nmy_requests{code=\"200\"} 5\nmy_depth 3\n\
                    # TYPE my_time histogram\nmy_time_bucket{le=\"1\"} 1\nmy_time_sum 2\nother 1\nbroken\n";
        let said = said(text.as_bytes(), "x", &["my_*".to_owned()]).unwrap();
        let seen: Vec<_> = said.readings.iter().map(|r| (r.meter, r.name.as_str(), r.value)).collect();
        let expected = [
            (Meter::OtherCount, "my_requests{code=\"200\"}", 5.0),
            (Meter::Other, "my_depth", 3.0),
            (Meter::OtherCount, "my_time_sum", 2.0),
        ];
        assert_eq!(seen, expected);
        assert_eq!(said.trouble.unwrap(), "1 lines of its page cannot be read, and are left out");
    }

    #[test]
    fn patterns_keep_so_many_series_and_say_what_they_leave_out() {
        let text: String = (0..100).map(|i| format!("a{{i=\"{i}\"}} 1\n")).collect();
        let said = said(text.as_bytes(), "x", &["*".to_owned()]).unwrap();
        assert_eq!(said.readings.len(), MATCHES_MAX);
        assert_eq!(said.trouble.unwrap(), "36 more series match than the 64 that are kept");
    }

    #[test]
    fn what_is_no_page_is_named() {
        let wrong = |body: &[u8]| said(body, "x", &[]).unwrap_err();
        assert!(wrong(b" <!doctype html><p>hi").contains("HTML"));
        assert!(wrong(b"\x1f\x8b\x08junk").contains("compressed"));
        assert!(wrong(b"").contains("empty"));
        assert!(wrong(b"# only a comment\n").contains("no values"));
        assert!(wrong(b"{\"detail\":\"x\"}").contains("no Prometheus text"));
        assert!(wrong(b"up 1\n").contains("--server-metrics-match"));
    }
}
