//! Whom to ask meanwhile how the servers, their GPUs and this machine fare.

use serde::{Deserialize, Serialize};

use super::{Address, Endpoint, Error, Plan};

/// What others say of themselves while levels run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Telemetry {
    /// From one reading to the next, s, 0.1 to 3600. 1 by default.
    pub interval_s: f64,
    /// Ask each endpoint for its own `/metrics`. It is by default, and one that has none is not spoken of.
    pub own_metrics: bool,
    /// URLs of further pages of metrics, in Prometheus' text: `http://host:port/metrics`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub server_metrics: Vec<String>,
    /// Series to take beside those that are known: names with `*` for any text and `?` for any character.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub server_metrics_match: Vec<String>,
    /// Whether the GPUs of this machine are read.
    pub nvml: Nvml,
    /// Path of NVIDIA's library; absent: the system's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nvml_library: Option<String>,
    /// URLs of DCGM exporters, which tell of GPUs elsewhere: `http://host:9400/metrics`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dcgm: Vec<String>,
    /// Numbers of the GPUs of this machine to read; empty: all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gpu_index: Vec<u32>,
}

/// Whether the GPUs of this machine are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Nvml {
    /// Where one of the servers runs on this machine as well: others have other GPUs.
    #[default]
    Auto,
    /// They are.
    On,
    /// They are not.
    Off,
}

impl Default for Telemetry {
    fn default() -> Telemetry {
        Telemetry {
            interval_s: 1.0,
            own_metrics: true,
            server_metrics: Vec::new(),
            server_metrics_match: Vec::new(),
            nvml: Nvml::Auto,
            nvml_library: None,
            dcgm: Vec::new(),
            gpu_index: Vec::new(),
        }
    }
}

/// Shortest and longest time between two readings, s.
const INTERVAL_S: std::ops::RangeInclusive<f64> = 0.1..=3600.0;

impl Telemetry {
    /// Nobody is asked but this machine.
    #[must_use]
    pub fn off() -> Telemetry {
        Telemetry { own_metrics: false, nvml: Nvml::Off, ..Telemetry::default() }
    }

    pub(super) fn is_default(&self) -> bool {
        *self == Telemetry::default()
    }

    /// The server and the path of a page of metrics; without a path it is `/metrics`.
    ///
    /// # Errors
    /// It is no URL.
    pub fn page(option: &str, url: &str) -> Result<(Address, String), Error> {
        let scheme_end = url.find("://").map_or(0, |place| place + 3);
        let (host, path) = match url[scheme_end..].find('/') {
            Some(place) => url.split_at(scheme_end + place),
            None => (url, ""),
        };
        let bad = |wrong: String| Error::new(option, wrong, "give it as http://host:port/metrics");
        let address = Endpoint::parse(host).map_err(|error| bad(format!("'{host}': {}", error.wrong)))?;
        let is_odd = |c: char| !c.is_ascii_graphic() || matches!(c, '"' | '<' | '>' | '\\' | '^' | '`' | '#');
        if path.chars().any(is_odd) {
            return Err(bad("the path of the URL has a character that cannot be sent".to_owned()));
        }
        let path = if path.is_empty() || path == "/" { "/metrics" } else { path };
        Ok((address, path.to_owned()))
    }
}

impl Plan {
    pub(super) fn check_telemetry(&self) -> Result<(), Error> {
        let telemetry = &self.telemetry;
        if !INTERVAL_S.contains(&telemetry.interval_s) {
            let wrong = format!("{} s is out of range", telemetry.interval_s);
            return Err(Error::new("--telemetry-interval", wrong, "give 0.1 to 3600 seconds"));
        }
        for (option, urls) in
            [("--server-metrics", &telemetry.server_metrics), ("--gpu-telemetry", &telemetry.dcgm)]
        {
            urls.iter().try_for_each(|url| Telemetry::page(option, url).map(drop))?;
        }
        if telemetry.server_metrics_match.iter().any(String::is_empty) {
            let remedy = "give a name of series, as in 'my_*'";
            return Err(Error::new("--server-metrics-match", "the pattern is empty", remedy));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_a_server_and_a_path() {
        let read = |url: &str| {
            Telemetry::page("--server-metrics", url).map(|(address, path)| (address.authority(), path))
        };
        let page = |authority: &str, path: &str| Ok((authority.to_owned(), path.to_owned()));
        assert_eq!(read("http://a:9400/metrics"), page("a:9400", "/metrics"));
        assert_eq!(read("a:9400"), page("a:9400", "/metrics"));
        assert_eq!(read("https://u:p@a/v1/x?y=z"), page("a", "/v1/x?y=z"));
        assert!(read("http://").is_err() && read("http://a/b c").is_err());
        assert_eq!(read("ftp://a").unwrap_err().subject, "--server-metrics");
    }
}
