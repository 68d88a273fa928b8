//! Proxies of the environment: other programs would go through them, this one never does unasked.

use crate::plan::{Address, Plan, Scheme};

/// The variables that are set and by which other programs would have gone to a server of the plan through a proxy. We take
/// none: a proxy is a part of the path that the user must ask for.
pub(super) fn ignored(plan: &Plan) -> Vec<String> {
    let set = |name: &str| std::env::var(name).ok();
    let mut names = Vec::new();
    for endpoint in &plan.target.endpoints {
        let address = endpoint.address().ok().filter(|_| plan.target.connections.unix_socket.is_none());
        names.extend(address.iter().filter_map(|address| applying(address, &set)).map(str::to_owned));
    }
    names.sort();
    names.dedup();
    names
}

/// One line that says so; `None` where there is none.
pub(super) fn note(plan: &Plan) -> Option<String> {
    let names = ignored(plan);
    let verb = if names.len() == 1 { "is" } else { "are" };
    let text = format!("{} {verb} ignored: requests go straight to the server", names.join(", "));
    (!names.is_empty()).then_some(text)
}

/// The variable by which others would reach `address` through a proxy; the one of its scheme goes before the one for all.
fn applying(address: &Address, set: &impl Fn(&str) -> Option<String>) -> Option<&'static str> {
    let given = |name: &&str| set(name).is_some_and(|value| !value.trim().is_empty());
    if address.unix.is_some() {
        return None;
    }
    let spared = ["no_proxy", "NO_PROXY"].into_iter().filter_map(set).next().unwrap_or_default();
    if is_spared(&address.host, address.port, &spared) {
        return None;
    }
    let own = match address.scheme {
        Scheme::Http => ["http_proxy", "HTTP_PROXY"],
        Scheme::Https => ["https_proxy", "HTTPS_PROXY"],
    };
    own.into_iter().chain(["all_proxy", "ALL_PROXY"]).find(given)
}

/// Whether `NO_PROXY` names the host: by itself, by a domain that it is in, by its port as well, by a range of addresses
/// (`10.0.0.0/8`), or by `*`.
fn is_spared(host: &str, port: u16, list: &str) -> bool {
    let names = |entry: &str| {
        let entry = entry.trim();
        if entry == "*" {
            return true;
        }
        if let Some(found) = in_range(host, entry) {
            return found;
        }
        let (name, of_port) = match entry.rsplit_once(':') {
            Some((name, digits)) if !name.contains(':') || name.ends_with(']') => (name, digits.parse().ok()),
            _ => (entry, None),
        };
        let name = name
            .trim_matches(['[', ']'])
            .trim_start_matches("*")
            .trim_start_matches('.')
            .to_ascii_lowercase();
        let fits = host == name || host.strip_suffix(&name).is_some_and(|rest| rest.ends_with('.'));
        !name.is_empty() && fits && of_port.is_none_or(|of: u16| of == port)
    };
    list.split([',', ' ']).filter(|entry| !entry.trim().is_empty()).any(names)
}

/// Whether the address `host` lies in a range like `10.0.0.0/8`; `None` where the one is no address or the other no range.
fn in_range(host: &str, range: &str) -> Option<bool> {
    let (base, bits) = range.split_once('/')?;
    let bits: u32 = bits.parse().ok()?;
    let number = |text: &str| match text.parse().ok()? {
        core::net::IpAddr::V4(ip) => Some((u128::from(ip.to_bits()) << 96, 32)),
        core::net::IpAddr::V6(ip) => Some((ip.to_bits(), 128)),
    };
    let (Some((host, of_host)), Some((base, of_base))) = (number(host), number(base)) else {
        return Some(false);
    };
    let mask = u128::MAX.checked_shl(128 - bits.min(128)).unwrap_or(0);
    Some(of_host == of_base && bits <= of_base && host & mask == base & mask)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Endpoint;

    fn of(url: &str, set: &[(&str, &str)]) -> Option<&'static str> {
        let value = |name: &str| set.iter().find(|(of, _)| *of == name).map(|(_, value)| (*value).to_owned());
        applying(&Endpoint::parse(url).unwrap(), &value)
    }

    #[test]
    fn the_scheme_decides_which_variable_applies() {
        let all = [("http_proxy", "p"), ("HTTPS_PROXY", "p"), ("ALL_PROXY", "p")];
        assert_eq!(of("http://h", &all), Some("http_proxy"));
        assert_eq!(of("https://h", &all), Some("HTTPS_PROXY"));
        assert_eq!(of("https://h", &all[..1]), None);
        assert_eq!(of("https://h", &all[2..]), Some("ALL_PROXY"));
        assert_eq!(of("unix:///run/x", &all), None);
        assert_eq!(of("http://h", &[("http_proxy", " ")]), None);
    }

    #[test]
    fn who_is_spared_is_not_spoken_of() {
        let spared = |url: &str, list: &str| of(url, &[("http_proxy", "p"), ("NO_PROXY", list)]).is_none();
        assert!(spared("http://h", "*") && spared("http://h", "a, h") && spared("http://A.b.c", ".b.c"));
        assert!(
            spared("http://a.b.c", "b.c") && spared("http://a.b.c", "*.b.c") && spared("http://h:81", "h:81")
        );
        assert!(!spared("http://h:80", "h:81") && !spared("http://ab.c", "b.c") && !spared("http://h", ""));
        assert!(spared("http://10.1.2.3", "10.0.0.0/8") && !spared("http://11.1.2.3", "10.0.0.0/8"));
        assert!(!spared("http://h", "10.0.0.0/8") && spared("http://10.1.2.3", "0.0.0.0/0"));
        assert!(spared("http://[fe80::1]:80", "fe80::/10") && spared("http://[::1]:80", "[::1]:80"));
        assert!(!spared("http://[fe80::1]", "10.0.0.0/8") && spared("http://[::1]", "::1"));
    }
}
