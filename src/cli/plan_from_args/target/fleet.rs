//! Several servers: their URLs, one by one or from files, their weights, and how requests are spread over them.

use super::super::{RunArgs, value};
use crate::plan::{Endpoint, Error, Target, UrlStrategy};

/// URLs with the weights that stand behind them.
type Servers = (Vec<String>, Vec<Option<u32>>);

/// The URLs of `--base-url` and the files of URLs, whose text stands in the place of their names, or that of vLLM's
/// `--host` and `--port`.
pub(super) fn servers(args: &RunArgs) -> Result<Servers, Error> {
    let typed = args.base_url.iter().map(|text| weighed("--base-url", text));
    let read = args.base_url_file.iter().flat_map(|text| {
        let lines = text.trim_start_matches('\u{feff}').lines().map(bare).zip(1..);
        lines.filter(|(line, _)| !line.is_empty()).map(|(line, number)| listed(line, number))
    });
    let servers: Vec<(String, Option<u32>)> = typed.chain(read).collect::<Result<_, _>>()?;
    if servers.is_empty() && !args.base_url_file.is_empty() {
        let remedy = "write one URL a line, and a weight behind it if you like";
        return Err(Error::new("--base-url-file", "there is no URL in it", remedy));
    }
    if args.host.is_none() && args.port.is_none() {
        return Ok(servers.into_iter().unzip());
    }
    if !servers.is_empty() {
        return Err(Error::new("--host", "stands beside --base-url", "give one of them"));
    }
    host_and_port(args).map(|url| (vec![url], vec![None]))
}

/// What a line of a file of URLs says.
fn listed(line: &str, number: usize) -> Result<(String, Option<u32>), Error> {
    let read = weighed("--base-url-file", line).and_then(|server| Endpoint::parse(&server.0).map(|_| server));
    read.map_err(|error| Error { subject: format!("--base-url-file, line {number}"), ..error })
}

/// A line without its comment: `#` begins one at the start of a line and behind a space, as no fragment of a URL does.
fn bare(line: &str) -> &str {
    let comment = line
        .match_indices('#')
        .map(|(at, _)| at)
        .find(|at| line[..*at].chars().next_back().is_none_or(char::is_whitespace));
    line[..comment.unwrap_or(line.len())].trim()
}

/// `URL`, `URL=weight` or `URL weight`.
fn weighed(option: &str, text: &str) -> Result<(String, Option<u32>), Error> {
    let text = text.trim();
    let behind_space = text.rsplit_once(char::is_whitespace);
    let Some((url, weight)) =
        behind_space.or_else(|| text.rsplit_once('=').filter(|(url, _)| !url.contains('?')))
    else {
        return Ok((text.to_owned(), None));
    };
    let weight = value::integer::<u32>(option, weight).map_err(|_| {
        let wrong = "what stands behind a URL is not a weight";
        Error::new(option, wrong, "give a whole number, as in http://host:8000=3, or the URL alone")
    })?;
    Ok((url.trim().to_owned(), Some(weight)))
}

/// Sets the strategy and the weights: those of the option, or those `behind` the URLs.
pub(super) fn strategy(args: &RunArgs, behind: Vec<Option<u32>>, target: &mut Target) -> Result<(), Error> {
    let given: Option<Vec<u32>> = match &args.url_weights {
        Some(text) => Some(value::list("--url-weights", text, value::integer)?),
        None => None,
    };
    if behind.iter().any(Option::is_some) {
        if given.is_some() {
            let remedy = "leave out one of the two";
            return Err(Error::new("--url-weights", "stands beside weights behind the URLs", remedy));
        }
        target.url_weights = behind.into_iter().map(|weight| weight.unwrap_or(1)).collect();
    } else if let Some(weights) = given {
        target.url_weights = weights;
    }
    match args.url_strategy.as_deref() {
        Some(text) => target.url_strategy = named(text)?,
        None if !target.url_weights.is_empty() && target.url_strategy == UrlStrategy::RoundRobin => {
            target.url_strategy = UrlStrategy::Weighted;
        }
        None => {}
    }
    Ok(())
}

fn named(text: &str) -> Result<UrlStrategy, Error> {
    let name = text.trim().replace('-', "_");
    UrlStrategy::ALL.iter().find(|(_, own)| *own == name).map(|(strategy, _)| *strategy).ok_or_else(|| {
        let names: Vec<&str> = UrlStrategy::ALL.iter().map(|(_, name)| *name).collect();
        Error::new("--url-strategy", format!("'{text}' is none"), format!("give one of {}", names.join(", ")))
    })
}

/// The URL of `--host` and `--port`.
fn host_and_port(args: &RunArgs) -> Result<String, Error> {
    let host = args.host.as_deref().unwrap_or("127.0.0.1");
    if host.contains("://") || host.contains('/') {
        return Err(Error::new("--host", "is a URL", "give it by --base-url"));
    }
    let port = args.port.as_deref().map_or(Ok(8000), |text| value::integer::<u16>("--port", text))?;
    let host =
        if host.contains(':') && !host.starts_with('[') { format!("[{host}]") } else { host.to_owned() };
    Ok(format!("http://{host}:{port}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(args: &RunArgs) -> Result<(Vec<String>, Target), String> {
        let mut target = Target::default();
        let (urls, weights) = servers(args).map_err(|error| error.to_string())?;
        strategy(args, weights, &mut target).map_err(|error| error.to_string())?;
        Ok((urls, target))
    }

    fn urls(texts: &[&str]) -> RunArgs {
        RunArgs { base_url: texts.iter().map(|text| (*text).to_owned()).collect(), ..RunArgs::default() }
    }

    #[test]
    fn weights_stand_behind_urls_or_in_an_option() {
        let (read, of) = target(&urls(&["http://a:1=3", "http://b:2"])).unwrap();
        assert_eq!(read, ["http://a:1", "http://b:2"]);
        assert_eq!((of.url_weights, of.url_strategy), (vec![3, 1], UrlStrategy::Weighted));
        let args = RunArgs {
            url_weights: Some("2,1".to_owned()),
            url_strategy: Some("sticky-session".to_owned()),
            ..urls(&["a", "b"])
        };
        let of = target(&args).unwrap().1;
        assert_eq!((of.url_weights, of.url_strategy), (vec![2, 1], UrlStrategy::StickySession));
        let both = RunArgs { url_weights: Some("2,1".to_owned()), ..urls(&["a=2", "b"]) };
        assert!(target(&both).unwrap_err().contains("leave out one of the two"));
        assert!(target(&urls(&["a=x"])).unwrap_err().contains("not a weight"));
        let wrong = RunArgs { url_strategy: Some("best".to_owned()), ..urls(&["a"]) };
        assert!(target(&wrong).unwrap_err().contains("least_outstanding"), "the names are said");
    }

    #[test]
    fn a_file_has_a_url_on_each_line() {
        let file = "# the fleet\nhttp://a:1\n\n  http://b:2 3  # the large one\nhttp://c:3=2\r\n";
        let args = RunArgs { base_url_file: vec![file.to_owned()], ..urls(&["http://z:9"]) };
        let (read, of) = target(&args).unwrap();
        assert_eq!(read, ["http://z:9", "http://a:1", "http://b:2", "http://c:3"]);
        assert_eq!(of.url_weights, [1, 1, 3, 2]);
        // What an editor put before it is no part of a URL, and what is wrong is told with its line.
        let marked = |text: &str| RunArgs { base_url_file: vec![text.to_owned()], ..RunArgs::default() };
        assert_eq!(target(&marked("\u{feff}http://a:1\n")).unwrap().0, ["http://a:1"]);
        for wrong in ["http://a:1\n\nftp://b:2\n", "http://a:1\n\nhttp://b:2=x\n"] {
            let said = target(&marked(wrong)).unwrap_err();
            assert!(said.starts_with("--base-url-file, line 3: "), "{said}");
        }
        let empty = RunArgs { base_url_file: vec!["# none\n".to_owned()], ..RunArgs::default() };
        assert!(target(&empty).unwrap_err().starts_with("--base-url-file: there is no URL in it"));
    }
}
