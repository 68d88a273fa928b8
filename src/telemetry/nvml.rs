//! GPUs of this machine, by NVIDIA's library, which is loaded when it is needed.
//!
//! A machine without the library has no GPUs that anybody would miss. Counters that a GPU lacks are left out; a GPU that
//! answers nothing is named. What went over NVLink is one of them: few GPUs have such links, and few drivers count.

use std::ffi::OsStr;

use nvml_wrapper::enum_wrappers::device::{Clock, PcieUtilCounter, TemperatureSensor};
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{Device, Nvml};

use super::dcgm::throttled;
use super::exporter::{Probe, Said};
use super::known::Reading;
use crate::metrics::Meter;
use crate::sys::nvlink;

/// Which library, and which of its GPUs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Library {
    /// Path of the library; `None`: the system's.
    pub path: Option<String>,
    /// Numbers of the GPUs to read; empty: all.
    pub indices: Vec<u32>,
}

/// The GPUs, asked again and again.
#[derive(Debug)]
pub(super) struct Gpus {
    library: Library,
    nvml: Option<Nvml>,
}

impl Gpus {
    pub(super) fn new(library: Library) -> Gpus {
        Gpus { library, nvml: None }
    }
}

impl Probe for Gpus {
    fn read(&mut self) -> Result<Vec<Said>, String> {
        let nvml = match self.nvml.take() {
            Some(nvml) => nvml,
            None => open(self.library.path.as_deref())?,
        };
        let nvml = self.nvml.insert(nvml);
        let count = nvml.device_count().map_err(|error| format!("no number of GPUs ({error})"))?;
        if count == 0 {
            return Err("the machine has none".to_owned());
        }
        let all: Vec<u32> = (0..count).collect();
        let chosen = if self.library.indices.is_empty() { &all } else { &self.library.indices };
        let gpus: Vec<Said> = chosen.iter().map(|index| of_gpu(nvml, *index, count)).collect();
        let silent = |gpu: &Said| gpu.readings.is_empty();
        match gpus.iter().all(silent) {
            true => Err(gpus.into_iter().filter_map(|gpu| gpu.trouble).collect::<Vec<_>>().join("; ")),
            false => Ok(gpus),
        }
    }
}

fn open(path: Option<&str>) -> Result<Nvml, String> {
    let Some(path) = path else { return Nvml::init().map_err(|error| why(&error)) };
    Nvml::builder().lib_path(OsStr::new(path)).init().map_err(|error| format!("{path}: {}", why(&error)))
}

fn why(error: &NvmlError) -> String {
    match error {
        NvmlError::LibloadingError(_) => {
            "NVIDIA's library libnvidia-ml.so.1 cannot be loaded: there is no driver here".to_owned()
        }
        error => format!("NVIDIA's library does not start ({error})"),
    }
}

fn of_gpu(nvml: &Nvml, index: u32, count: u32) -> Said {
    let mut said = Said { of: format!("GPU {index}"), ..Said::default() };
    let device = match nvml.device_by_index(index) {
        Ok(device) => device,
        Err(_) if index >= count => {
            said.trouble = Some(format!("--gpu-index {index}: there are {count}, from 0 on"));
            return said;
        }
        Err(error) => {
            said.trouble = Some(format!("GPU {index}: {error}"));
            return said;
        }
    };
    said.product = device.name().ok();
    let (readings, first_error) = readings(&device);
    if readings.is_empty() {
        let error = first_error.map_or_else(|| "says nothing".to_owned(), |error| error.to_string());
        said.trouble = Some(format!("GPU {index}: {error}"));
    }
    said.readings = readings;
    said
}

/// What it tells, and the first thing that went wrong.
fn readings(device: &Device<'_>) -> (Vec<Reading>, Option<NvmlError>) {
    let (mut readings, mut wrong) = (Vec::new(), None);
    let mut take = |meter, value: Result<f64, NvmlError>| match value {
        Ok(value) => readings.push(Reading { meter, name: String::new(), value }),
        Err(error) => {
            wrong.get_or_insert(error);
        }
    };
    take(Meter::GpuUse, device.utilization_rates().map(|rates| f64::from(rates.gpu) / 100.0));
    match device.memory_info() {
        Ok(memory) => {
            take(Meter::GpuMemory, Ok(memory.used as f64));
            take(Meter::GpuMemoryAll, Ok(memory.total as f64));
        }
        Err(error) => take(Meter::GpuMemory, Err(error)),
    }
    take(Meter::Power, device.power_usage().map(|mw| f64::from(mw) / 1e3));
    take(Meter::Energy, device.total_energy_consumption().map(|mj| mj as f64 / 1e3));
    take(Meter::Temperature, device.temperature(TemperatureSensor::Gpu).map(f64::from));
    take(Meter::SmClock, device.clock_info(Clock::SM).map(f64::from));
    take(Meter::MemoryClock, device.clock_info(Clock::Memory).map(f64::from));
    let kb = |kb: u32| f64::from(kb) * 1e3;
    take(Meter::PcieIn, device.pcie_throughput(PcieUtilCounter::Receive).map(kb));
    take(Meter::PcieOut, device.pcie_throughput(PcieUtilCounter::Send).map(kb));
    match nvlink::moved_bytes(device) {
        Some(bytes) => take(Meter::Nvlink, Ok(bytes as f64)),
        None => take(Meter::Nvlink, Err(NvmlError::NotSupported)),
    }
    match device.current_throttle_reasons() {
        Ok(reasons) => readings.extend(throttled(reasons.bits())),
        Err(error) => {
            wrong.get_or_insert(error);
        }
    }
    (readings, wrong)
}
