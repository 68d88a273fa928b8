//! GPUs by the page of a DCGM exporter, which runs beside them on their host.

use std::collections::BTreeMap;

use super::exporter::{Probe, Said};
use super::known::Reading;
use super::prometheus::{self, Item, Line};
use super::scrape::{Page, no_metrics};
use crate::metrics::Meter;

/// Its fields: what each means, and what makes its unit ours.
const FIELDS: &[(&str, Meter, f64)] = &[
    ("DCGM_FI_DEV_GPU_UTIL", Meter::GpuUse, 0.01),
    ("DCGM_FI_DEV_FB_USED", Meter::GpuMemory, MIB),
    ("DCGM_FI_DEV_FB_TOTAL", Meter::GpuMemoryAll, MIB),
    ("DCGM_FI_DEV_POWER_USAGE", Meter::Power, 1.0),
    ("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", Meter::Energy, 1e-3),
    ("DCGM_FI_DEV_GPU_TEMP", Meter::Temperature, 1.0),
    ("DCGM_FI_DEV_SM_CLOCK", Meter::SmClock, 1.0),
    ("DCGM_FI_DEV_MEM_CLOCK", Meter::MemoryClock, 1.0),
    ("DCGM_FI_PROF_PCIE_RX_BYTES", Meter::PcieIn, 1.0),
    ("DCGM_FI_PROF_PCIE_TX_BYTES", Meter::PcieOut, 1.0),
];
/// What is free, where the whole is not told.
const FREE: &str = "DCGM_FI_DEV_FB_FREE";
/// Over all links, MB that were moved: a counter.
const NVLINK: &str = "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL";
const THROTTLE: [&str; 2] = ["DCGM_FI_DEV_CLOCKS_EVENT_REASONS", "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS"];
const MIB: f64 = 1_048_576.0;
/// Larger values stand for "not supported" in DCGM (0x7ffffffffffffff0 and around).
const BLANK: f64 = 9e18;

/// A DCGM exporter that is asked again and again.
#[derive(Debug)]
pub(super) struct Exporter {
    page: Page,
}

impl Exporter {
    pub(super) fn new(page: Page) -> Exporter {
        Exporter { page }
    }
}

impl Probe for Exporter {
    fn read(&mut self) -> Result<Vec<Said>, String> {
        said(&self.page.fetch()?)
    }
}

fn said(body: &[u8]) -> Result<Vec<Said>, String> {
    let mut gpus: BTreeMap<String, Said> = BTreeMap::new();
    let mut free: BTreeMap<String, f64> = BTreeMap::new();
    let counts = prometheus::read(body, |item| {
        let Item::Line(line) = item else { return };
        if !line.name.starts_with("DCGM_FI_") || !line.value.is_finite() || line.value >= BLANK {
            return;
        }
        let name = name_of(&line);
        let gpu = gpus.entry(name.clone()).or_default();
        gpu.product =
            gpu.product.take().or_else(|| line.labels.get("modelName").map(|name| name.into_owned()));
        let mut push = |meter, value| gpu.readings.push(Reading { meter, name: String::new(), value });
        if let Some((_, meter, unit)) = FIELDS.iter().find(|(name, ..)| *name == line.name) {
            push(*meter, line.value * unit);
        } else if line.name == FREE {
            free.insert(name, line.value * MIB);
        } else if line.name == NVLINK {
            push(Meter::Nvlink, line.value * 1e6);
        } else if THROTTLE.contains(&line.name) {
            gpu.readings.extend(throttled(line.value as u64));
        }
    });
    if counts.values == 0 {
        return Err(no_metrics(body, counts.malformed));
    }
    for (name, gpu) in &mut gpus {
        let of =
            |meter| gpu.readings.iter().find(|reading| reading.meter == meter).map(|reading| reading.value);
        if let (None, Some(used), Some(free)) =
            (of(Meter::GpuMemoryAll), of(Meter::GpuMemory), free.get(name))
        {
            let all = Reading { meter: Meter::GpuMemoryAll, name: String::new(), value: used + free };
            gpu.readings.push(all);
        }
        gpu.of.clone_from(name);
    }
    gpus.retain(|_, gpu| !gpu.readings.is_empty());
    if gpus.is_empty() {
        return Err("its page has no DCGM_FI_ series that is known".to_owned());
    }
    Ok(gpus.into_values().collect())
}

/// A GPU by its host and number, an instance of one (MIG) as well.
fn name_of(line: &Line<'_>) -> String {
    let label = |name: &str| line.labels.get(name).filter(|value| !value.is_empty());
    let number = label("gpu").or_else(|| label("UUID")).unwrap_or_default();
    let instance = label("GPU_I_ID").map_or_else(String::new, |id| format!(".{id}"));
    match label("Hostname") {
        Some(host) => format!("{host} GPU {number}{instance}"),
        None => format!("GPU {number}{instance}"),
    }
}

/// Why clocks are held down, by NVML's bits: 1 for each reason that holds, 0 for the others.
pub(super) fn throttled(bits: u64) -> impl Iterator<Item = Reading> {
    const REASONS: [(u64, &str); 6] = [
        (0x04, "power cap"),
        (0x08, "hardware slowdown"),
        (0x10, "sync boost"),
        (0x20, "temperature (software)"),
        (0x40, "temperature (hardware)"),
        (0x80, "power brake"),
    ];
    REASONS.into_iter().map(move |(bit, name)| Reading {
        meter: Meter::Throttle,
        name: name.to_owned(),
        value: if bits & bit == 0 { 0.0 } else { 1.0 },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_become_meters_of_each_gpu_in_our_units() {
        let text = "# TYPE DCGM_FI_DEV_GPU_UTIL gauge\n\
            DCGM_FI_DEV_GPU_UTIL{gpu=\"0\",UUID=\"GPU-a\",modelName=\"NVIDIA H200\",Hostname=\"n1\"} 87\n\
            DCGM_FI_DEV_FB_USED{gpu=\"0\",Hostname=\"n1\"} 100\nDCGM_FI_DEV_FB_FREE{gpu=\"0\",Hostname=\"n1\"} 28\n\
            DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{gpu=\"0\",Hostname=\"n1\"} 5000\n\
            DCGM_FI_DEV_CLOCK_THROTTLE_REASONS{gpu=\"0\",Hostname=\"n1\"} 4\n\
            DCGM_FI_DEV_POWER_USAGE{gpu=\"1\",Hostname=\"n1\"} 9223372036854775794\n\
            DCGM_FI_DEV_POWER_USAGE{gpu=\"1\",GPU_I_ID=\"2\",Hostname=\"n1\"} 350.5\nup 1\n";
        let gpus = said(text.as_bytes()).unwrap();
        let names: Vec<_> = gpus.iter().map(|gpu| gpu.of.as_str()).collect();
        assert_eq!(names, ["n1 GPU 0", "n1 GPU 1.2"]);
        assert_eq!(gpus[0].product.as_deref(), Some("NVIDIA H200"));
        let of = |meter| gpus[0].readings.iter().find(|r| r.meter == meter).unwrap().value;
        assert_eq!((of(Meter::GpuUse), of(Meter::Energy)), (0.87, 5.0));
        assert_eq!((of(Meter::GpuMemory), of(Meter::GpuMemoryAll)), (100.0 * MIB, 128.0 * MIB));
        let held: Vec<_> =
            gpus[0].readings.iter().filter(|r| r.meter == Meter::Throttle && r.value > 0.0).collect();
        assert_eq!((held.len(), held[0].name.as_str()), (1, "power cap"));
        assert!(said(b"up 1\n").unwrap_err().contains("DCGM_FI_"));
        assert!(said(b"<html>").unwrap_err().contains("HTML"));
    }
}
