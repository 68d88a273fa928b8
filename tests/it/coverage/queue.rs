//! Levels of the 16-slot server in virtual time, without bytes: so fast that their intervals can be tried a thousand
//! times. Shared by the test and by `benches/coverage.rs`; the test holds it to the virtual engine.

use tokload::model::{Emission, Job, Server, Settings};
use tokload::plan::{Arrivals, Stop};
use tokload::time::Stamp;
use tokload::workload::arrival::Schedule;

/// Requests per second that the server can just do: 16 users of a closed loop get 15.06.
const SATURATION: f64 = 15.06;
/// Of all requests, as in the worked examples.
const PROMPT_TOKENS: u32 = 200;
const OUTPUT_TOKENS: u32 = 50;
/// When the virtual engine starts its first level, and how much later than it is sent a request arrives there.
const START_NS: u64 = 10_000_000;
const ON_THE_WAY_NS: u64 = 1;

/// One request per this many seconds on average, at random.
pub fn arrivals(load_percent: u32) -> Arrivals {
    Arrivals::Poisson { rate: SATURATION * f64::from(load_percent) / 100.0 }
}

/// TTFT of `n` requests from their planned times, ns, in the order of these; those of `run_in` requests before them
/// are left out.
pub fn ttft_ns(arrivals: Arrivals, seed: u64, run_in: usize, n: usize) -> Vec<u64> {
    let stop = Stop { units: Some((run_in + n) as u64), duration_s: None, grace_s: 0.0 };
    let mut queue = Queue {
        server: Server::new(&Settings::course(), Stamp::ZERO).unwrap(),
        emissions: Vec::new(),
        planned_ns: Vec::new(),
        ttft_ns: vec![0; run_in + n],
    };
    for due in Schedule::new(&arrivals, seed, &stop) {
        queue.send(START_NS + due.offset_ns);
    }
    queue.run_until(Stamp::MAX);
    queue.ttft_ns.split_off(run_in)
}

struct Queue {
    server: Server,
    /// Of one call.
    emissions: Vec<Emission>,
    /// When the requests were planned, by index.
    planned_ns: Vec<u64>,
    ttft_ns: Vec<u64>,
}

impl Queue {
    fn send(&mut self, at_ns: u64) {
        let arrival = Stamp::from_nanos(at_ns + ON_THE_WAY_NS);
        self.run_until(arrival);
        let job = Job {
            owner: self.planned_ns.len() as u64,
            prompt_tokens: PROMPT_TOKENS,
            output_tokens: OUTPUT_TOKENS,
            ..Job::default()
        };
        self.planned_ns.push(at_ns);
        self.server.submit(arrival, job).unwrap();
    }

    /// Lets the server go on until `end` and notes the first tokens of requests.
    fn run_until(&mut self, end: Stamp) {
        while self.server.next_wakeup() < end {
            self.server.advance(self.server.next_wakeup(), &mut self.emissions);
            for first in self.emissions.drain(..).filter(|emission| emission.first) {
                let index = first.owner as usize;
                self.ttft_ns[index] = first.due.as_nanos() - self.planned_ns[index];
            }
        }
    }
}
