//! How a run is looked at while it goes on.

use core::net::{Ipv4Addr, SocketAddr};

use crate::plan::Error;
use crate::report::progress::Ui;

/// A display.
///
/// # Errors
/// Unknown names.
pub fn ui(option: &str, text: &str) -> Result<Ui, Error> {
    match text {
        "dashboard" => Ok(Ui::Dashboard),
        "simple" => Ok(Ui::Simple),
        "none" => Ok(Ui::None),
        _ => Err(Error::new(
            option,
            format!("'{text}' is no kind of display"),
            "give dashboard, simple or none",
        )),
    }
}

/// An address to listen at: `127.0.0.1:9464`, `[::1]:9464`; `9464` and `localhost:9464` for the loopback; `:9464` for all
/// addresses of the machine, as other programs read it.
///
/// # Errors
/// No address with a port; names other than `localhost`, which may mean several addresses.
pub fn listen(option: &str, text: &str) -> Result<SocketAddr, Error> {
    let (host, port) = text.rsplit_once(':').unwrap_or(("localhost", text));
    let read = match host {
        "localhost" => port.parse().map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port))).ok(),
        "" => port.parse().map(|port| SocketAddr::from((Ipv4Addr::UNSPECIFIED, port))).ok(),
        _ => text.parse().ok(),
    };
    read.ok_or_else(|| {
        let wrong = format!("'{text}' is no address with a port");
        Error::new(option, wrong, "give a port, or an address as in 127.0.0.1:9464 or [::1]:9464")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_alone_is_one_of_the_loopback() {
        let of = |text| listen("--metrics-listen", text).map(|address| address.to_string()).ok();
        for (text, address) in [
            ("9464", "127.0.0.1:9464"),
            ("0", "127.0.0.1:0"),
            ("localhost:9464", "127.0.0.1:9464"),
            (":9464", "0.0.0.0:9464"),
            ("10.0.0.7:80", "10.0.0.7:80"),
            ("[::1]:9464", "[::1]:9464"),
        ] {
            assert_eq!(of(text).as_deref(), Some(address), "{text}");
        }
        for text in
            ["", ":", "x", "65536", "host:80", "::1", "127.0.0.1", "127.0.0.1:x", "http://127.0.0.1:80"]
        {
            assert_eq!(of(text), None, "{text}");
        }
    }
}
