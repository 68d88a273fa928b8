//! What machine this is, as far as a result should say so.

use std::fs;
use std::path::Path;

/// Facts about the machine; `None` where the system does not tell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Host {
    /// CPU model.
    pub cpu_model: Option<String>,
    /// Logical CPUs of the machine.
    pub cores: Option<u32>,
    /// Kernel release.
    pub kernel: Option<String>,
    /// Its name.
    pub name: Option<String>,
    /// Memory of the machine, bytes.
    pub memory_bytes: Option<u64>,
}

impl Host {
    /// Reads `/proc`.
    #[must_use]
    pub fn read() -> Host {
        let cpus = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").ok();
        Host {
            cpu_model: field(&cpus, "model name").map(str::to_owned),
            cores: u32::try_from(cpus.lines().filter(|line| line.starts_with("processor")).count()).ok(),
            kernel: kernel.map(|release| release.trim().to_owned()),
            name: fs::read_to_string("/proc/sys/kernel/hostname")
                .ok()
                .map(|name| name.trim().to_owned())
                .filter(|name| !name.is_empty()),
            memory_bytes: field(&memory, "MemTotal").and_then(kibibytes),
        }
    }
}

/// Whether a process of that number is there. It need not be the one that is meant: numbers come again.
#[must_use]
pub fn process_exists(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

/// The value of the first line `name : value`.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let lines = text.lines().filter_map(|line| line.split_once(':'));
    lines.into_iter().find(|(key, _)| key.trim() == name).map(|(_, value)| value.trim())
}

fn kibibytes(text: &str) -> Option<u64> {
    text.strip_suffix(" kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_name() {
        let text = "processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\nMemTotal:       24 kB\n";
        assert_eq!(field(text, "model name"), Some("Some CPU @ 2 GHz"));
        assert_eq!(field(text, "MemTotal").and_then(kibibytes), Some(24 * 1024));
        assert_eq!(field(text, "absent"), None);
    }
}
