//! The client's machine, by the system's counters.

use super::exporter::{Probe, Said};
use super::known::Reading;
use crate::metrics::Meter;
use crate::sys::usage::Activity;

/// This machine. Shares are those of the time since it was asked last.
#[derive(Debug, Default)]
pub(super) struct Host {
    before: Option<Activity>,
}

impl Probe for Host {
    fn read(&mut self) -> Result<Vec<Said>, String> {
        let now = Activity::read();
        let readings = readings(self.before.as_ref(), &now);
        // Between two looks within a tick of the kernel's counters there is nothing to divide by.
        if self.before.as_ref().is_none_or(|before| before.cpu_all != now.cpu_all) {
            self.before = Some(now);
        }
        Ok(vec![Said { of: "client".to_owned(), readings, ..Said::default() }])
    }
}

fn readings(before: Option<&Activity>, now: &Activity) -> Vec<Reading> {
    let share = |of: fn(&Activity) -> Option<u64>| {
        let grown = |of: fn(&Activity) -> Option<u64>| of(now)?.checked_sub(of(before?)?);
        let all = grown(|then| then.cpu_all).filter(|all| *all >= TICKS_MIN)?;
        Some(grown(of)? as f64 / all as f64)
    };
    let values = [
        (Meter::CpuBusy, share(|then| then.cpu_busy)),
        (Meter::CpuSteal, share(|then| then.cpu_stolen)),
        (Meter::HostMemory, now.memory_used_bytes.map(|bytes| bytes as f64)),
        (Meter::NetIn, now.net_in_bytes.map(|bytes| bytes as f64)),
        (Meter::NetOut, now.net_out_bytes.map(|bytes| bytes as f64)),
    ];
    let reading =
        |(meter, value): (Meter, Option<f64>)| Some(Reading { meter, name: String::new(), value: value? });
    values.into_iter().filter_map(reading).collect()
}

/// Fewer ticks of the kernel (10 ms of a CPU each) give no share worth having.
const TICKS_MIN: u64 = 5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_the_time_between_two_looks() {
        let at = |busy, all, stolen| Activity {
            cpu_busy: Some(busy),
            cpu_all: Some(all),
            cpu_stolen: Some(stolen),
            net_in_bytes: Some(7),
            ..Activity::default()
        };
        let of = |before: Option<&Activity>, now: &Activity| -> Vec<(Meter, f64)> {
            readings(before, now).into_iter().map(|reading| (reading.meter, reading.value)).collect()
        };
        let before = at(100, 1_000, 10);
        assert_eq!(of(None, &before), [(Meter::NetIn, 7.0)]);
        let expected = [(Meter::CpuBusy, 0.5), (Meter::CpuSteal, 0.05), (Meter::NetIn, 7.0)];
        assert_eq!(of(Some(&before), &at(200, 1_200, 20)), expected);
        assert_eq!(of(Some(&before), &at(101, 1_001, 10)), [(Meter::NetIn, 7.0)]);
        // Counters of a machine that was moved may go back.
        assert_eq!(of(Some(&before), &at(50, 1_200, 10))[0], (Meter::CpuSteal, 0.0));
    }
}
