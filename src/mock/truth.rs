//! What the server did in truth: counts, exact times, and how late its events were.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::Settings;
use super::account::{Account, Ending};
use super::faults::Fault;
use super::samples::{Samples, Spread};
use crate::sys::clock::OnMonotonic;

/// What was served. One per thread; added up when somebody asks.
#[derive(Clone, Debug)]
pub struct Truth {
    /// Connections accepted.
    pub connections: u64,
    /// Most connections open at once.
    pub connections_max: u64,
    /// Requests of all kinds, refused ones included.
    pub requests: u64,
    /// Requests to generating endpoints that were complete: the sum of all endings and of what is in flight.
    pub generations: u64,
    /// Those of them that asked for a stream.
    pub streams: u64,
    /// Generation requests being worked on. One is done with just before its last bytes are sent.
    pub in_flight: u64,
    /// Most of them at once.
    pub in_flight_max: u64,
    /// Content events sent; a whole answer is one.
    pub events: u64,
    /// Tokens sent.
    pub tokens: u64,
    /// Bytes sent; those of a connection are added when it closes.
    pub bytes: u64,
    /// Sends of which the kernel did not take everything at once; added when the connection closes.
    pub partial_sends: u64,
    /// How often accepting paused because no descriptor was left.
    pub accept_pauses: u64,
    /// How often the port could not be listened on again at the end of an outage; tried anew every 100 ms.
    pub listen_retries: u64,
    /// Connections on which bytes came after the server had closed them for being idle.
    pub unheard: u64,
    /// TLS handshakes from the beginning.
    pub tls_full: u64,
    /// TLS handshakes that took up an earlier session.
    pub tls_resumed: u64,
    /// What became of the requests one by one, in the order of their ends on each thread, as far as they are kept.
    pub accounts: Vec<Account>,
    /// How many of them are not kept although some are.
    pub accounts_left_out: u64,
    accounts_max: usize,
    endings: [u64; Ending::ALL.len()],
    faults: Vec<(Fault, u64)>,
    lateness: Samples,
    ttft: Samples,
    itl: Samples,
    tpot: Samples,
    e2e: Samples,
}

impl Truth {
    pub(super) fn new(settings: &Settings) -> Truth {
        let samples = || Samples::new(settings.samples_max);
        Truth {
            connections: 0,
            connections_max: 0,
            requests: 0,
            generations: 0,
            streams: 0,
            in_flight: 0,
            in_flight_max: 0,
            events: 0,
            tokens: 0,
            bytes: 0,
            partial_sends: 0,
            accept_pauses: 0,
            listen_retries: 0,
            unheard: 0,
            tls_full: 0,
            tls_resumed: 0,
            accounts: Vec::new(),
            accounts_left_out: 0,
            accounts_max: settings.accounts_max,
            endings: [0; Ending::ALL.len()],
            faults: settings.faults.requests.iter().map(|(_, fault)| (*fault, 0)).collect(),
            lateness: samples(),
            ttft: samples(),
            itl: samples(),
            tpot: samples(),
            e2e: samples(),
        }
    }

    /// Generation requests that ended in this way.
    #[must_use]
    pub fn ended(&self, ending: Ending) -> u64 {
        self.endings[ending as usize]
    }

    /// Generation requests answered to the end as asked for.
    #[must_use]
    pub fn completed(&self) -> u64 {
        self.ended(Ending::Complete)
    }

    /// Generation requests whose answer did not come to its end.
    #[must_use]
    pub fn broken(&self) -> u64 {
        self.ended(Ending::BrokenOff) + self.ended(Ending::ClientLeft) + self.ended(Ending::Stopped)
    }

    /// The faults that were set, in their order, each with the number of requests that met it.
    #[must_use]
    pub fn faults(&self) -> &[(Fault, u64)] {
        &self.faults
    }

    /// Actual minus due time of the content events sent, those apart that were held back on purpose.
    #[must_use]
    pub fn lateness(&self) -> Spread {
        self.lateness.spread()
    }

    /// From a request's last byte to its first content event; streams that came to their end.
    #[must_use]
    pub fn ttft(&self) -> Spread {
        self.ttft.spread()
    }

    /// Between the content events of one choice; all streams, whatever their end.
    #[must_use]
    pub fn itl(&self) -> Spread {
        self.itl.spread()
    }

    /// Per token after the first; streams of one choice that came to their end.
    #[must_use]
    pub fn tpot(&self) -> Spread {
        self.tpot.spread()
    }

    /// From a request's last byte to its last content event; answers that came to their end.
    #[must_use]
    pub fn e2e(&self) -> Spread {
        self.e2e.spread()
    }

    /// All of it but the single accounts. Times in us, members in alphabetical order.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let endings: Map<String, Value> = Ending::ALL
            .into_iter()
            .map(|ending| (ending.name().to_owned(), self.ended(ending).into()))
            .collect();
        let faults: Vec<Value> = self
            .faults
            .iter()
            .map(|(fault, count)| json!({ "fault": fault.to_string(), "requests": count }))
            .collect();
        json!({
            "aborted": self.ended(Ending::ClientLeft),
            "accept_pauses": self.accept_pauses,
            "accounts_left_out": self.accounts_left_out,
            "broken": self.broken(),
            "bytes": self.bytes,
            "completed": self.completed(),
            "connections": self.connections,
            "connections_max": self.connections_max,
            "e2e": self.e2e(),
            "endings": endings,
            "events": self.events,
            "faults": faults,
            "generations": self.generations,
            "in_flight": self.in_flight,
            "in_flight_max": self.in_flight_max,
            "itl": self.itl(),
            "lateness": self.lateness(),
            "listen_retries": self.listen_retries,
            "partial_sends": self.partial_sends,
            "requests": self.requests,
            "streams": self.streams,
            "tls_full": self.tls_full,
            "tls_resumed": self.tls_resumed,
            "tokens": self.tokens,
            "tpot": self.tpot(),
            "ttft": self.ttft(),
            "unheard": self.unheard,
        })
    }

    /// [`Truth::to_json`], and of each stream that came to its end and is kept its mark and when it had arrived, its first
    /// and its last content event, in ns on `CLOCK_MONOTONIC`; `line` is where the server's clock stands on that.
    #[must_use]
    pub(super) fn with_requests(&self, line: OnMonotonic) -> Value {
        let complete =
            self.accounts.iter().filter(|account| account.stream && account.ending == Ending::Complete);
        let requests = complete.filter_map(|account| {
            let (first, last) = (account.first?.sent, account.last?.sent);
            Some(json!([account.mark, line.nanos(account.arrived), line.nanos(first), line.nanos(last)]))
        });
        json!({ "truth": self.to_json(), "requests": requests.collect::<Vec<Value>>() })
    }

    pub(super) fn on_lateness(&mut self, late: Duration) {
        self.lateness.record(late);
    }

    pub(super) fn on_itl(&mut self, gap: Duration) {
        self.itl.record(gap);
    }

    /// Request number `place` of the faults that were set meets its own.
    pub(super) fn on_fault(&mut self, place: usize) {
        if let Some((_, count)) = self.faults.get_mut(place) {
            *count += 1;
        }
    }

    /// A generation request is over.
    pub(super) fn on_end(&mut self, account: &Account) {
        self.endings[account.ending as usize] += 1;
        if account.ending == Ending::Complete {
            let of = |samples: &mut Samples, ns: Option<u64>| {
                ns.into_iter().for_each(|ns| samples.record(Duration::from_nanos(ns)));
            };
            of(&mut self.ttft, account.ttft_ns());
            of(&mut self.tpot, account.tpot_ns());
            of(&mut self.e2e, account.e2e_ns());
        }
        if self.accounts.len() < self.accounts_max {
            self.accounts.push(account.clone());
        } else if self.accounts_max > 0 {
            self.accounts_left_out += 1;
        }
    }

    /// Adds another thread's part.
    pub(super) fn add(&mut self, other: &Truth) {
        self.connections += other.connections;
        self.connections_max += other.connections_max;
        self.requests += other.requests;
        self.generations += other.generations;
        self.streams += other.streams;
        self.in_flight += other.in_flight;
        self.in_flight_max += other.in_flight_max;
        self.events += other.events;
        self.tokens += other.tokens;
        self.bytes += other.bytes;
        self.partial_sends += other.partial_sends;
        self.accept_pauses += other.accept_pauses;
        self.listen_retries += other.listen_retries;
        self.unheard += other.unheard;
        self.tls_full += other.tls_full;
        self.tls_resumed += other.tls_resumed;
        self.accounts.extend_from_slice(&other.accounts);
        self.accounts_left_out += other.accounts_left_out;
        for (mine, others) in self.endings.iter_mut().zip(other.endings) {
            *mine += others;
        }
        for ((_, mine), (_, others)) in self.faults.iter_mut().zip(&other.faults) {
            *mine += others;
        }
        self.lateness.add(&other.lateness);
        self.ttft.add(&other.ttft);
        self.itl.add(&other.itl);
        self.tpot.add(&other.tpot);
        self.e2e.add(&other.e2e);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mock::account::Write;
    use crate::mock::faults::{Answer, Faults};
    use crate::time::Stamp;

    #[test]
    fn kept_streams_are_told_one_by_one_on_the_clock_of_the_machine() {
        let settings = Settings { accounts_max: 9, ..Settings::default() };
        let mut truth = Truth::new(&settings);
        let write = |ns| Some(Write { due: Stamp::ZERO, sent: Stamp::from_nanos(ns) });
        let whole =
            Account { mark: 7, ending: Ending::Complete, ..Account::new(0, None, Stamp::from_nanos(10)) };
        let stream = Account { stream: true, first: write(20), last: write(30), ..whole.clone() };
        truth.on_end(&stream);
        truth.on_end(&Account { ending: Ending::ClientLeft, ..stream });
        truth.on_end(&whole);
        let line = OnMonotonic { epoch_ns: 1_000, run_ns: 1, monotonic_ns: 1 };
        let told = truth.with_requests(line);
        assert_eq!(told["requests"], json!([[7, 1_010, 1_020, 1_030]]));
        assert_eq!(told["truth"]["completed"], 2);
    }

    #[test]
    fn truths_add_up_and_keep_their_accounts_within_the_bound() {
        let settings = Settings {
            faults: Faults::always(Fault::Answer(Answer::Html)),
            accounts_max: 2,
            ..Settings::default()
        };
        let (mut one, mut two) = (Truth::new(&settings), Truth::new(&settings));
        let end = |truth: &mut Truth, ending| {
            truth.on_end(&Account { ending, ..Account::new(1, None, Stamp::ZERO) });
        };
        one.events = 3;
        two.events = 4;
        two.on_fault(0);
        for us in 1..=50 {
            one.on_lateness(Duration::from_micros(us));
            two.on_lateness(Duration::from_micros(50 + us));
        }
        for ending in [Ending::Complete, Ending::Refused, Ending::Stopped] {
            end(&mut one, ending);
        }
        end(&mut two, Ending::ClientLeft);
        one.add(&two);
        assert_eq!((one.events, one.completed(), one.broken()), (7, 1, 2));
        assert_eq!((one.accounts.len(), one.accounts_left_out), (3, 1));
        assert_eq!(one.faults(), [(Fault::Answer(Answer::Html), 1)]);
        let late = one.lateness();
        assert_eq!((late.count, late.p50_us, late.p99_us), (100, 50.0, 99.0));
        assert_eq!(one.itl(), Spread::default());
        let json = one.to_json();
        assert_eq!(json["endings"]["refused"], 1);
        assert_eq!(json["faults"], json!([{ "fault": "html", "requests": 1 }]));
        assert_eq!(json["lateness"]["exact"], true);
    }
}
