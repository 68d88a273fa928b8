//! What the machine and this process have used so far: counters that only grow, read before and after.

use std::fs;

use rustix::process::{RawPid, getpid};

/// Readings of the system's counters; `None` where it does not tell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Time of all CPUs of the machine, in ticks of the kernel: busy, and in all.
    pub cpu_busy: Option<u64>,
    /// The same in all, idle time included.
    pub cpu_all: Option<u64>,
    /// What other guests of the physical machine took.
    pub cpu_stolen: Option<u64>,
    /// Time that threads of our control group were held back by its CPU quota, us.
    pub throttled_us: Option<u64>,
    /// Page faults of this process that waited for a disk.
    pub major_faults: u64,
    /// Page faults of this process that did not.
    pub minor_faults: u64,
    /// Times that a thread of this process was put aside although it had more to do.
    pub preemptions: u64,
    /// Pages that the machine read from swap and wrote to it.
    pub swapped_pages: Option<u64>,
}

/// How busy the machine is: counters that only grow but memory; `None` where it does not tell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    /// Time of all CPUs that was not idle, in ticks of the kernel.
    pub cpu_busy: Option<u64>,
    /// The same in all, idle time included.
    pub cpu_all: Option<u64>,
    /// What other guests of the physical machine took.
    pub cpu_stolen: Option<u64>,
    /// Memory that is not available, bytes.
    pub memory_used_bytes: Option<u64>,
    /// Bytes that network interfaces but loopback received.
    pub net_in_bytes: Option<u64>,
    /// Bytes that they sent.
    pub net_out_bytes: Option<u64>,
}

/// What holds local ports at the moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ports {
    /// TCP sockets of the machine in TIME_WAIT.
    pub time_wait: Option<u64>,
    /// Ports that the machine gives to connections.
    pub all: Option<u64>,
    /// Whether the machine gives ports in TIME_WAIT again (`net.ipv4.tcp_tw_reuse`): 0 never, 1 to all connections, 2 to
    /// those on loopback.
    pub tw_reuse: Option<u64>,
}

impl Usage {
    /// Reads `/proc` and the control group's files: some 0.1 ms.
    #[must_use]
    pub fn read() -> Usage {
        let text = |path: &str| fs::read_to_string(path).ok();
        let cpu = text("/proc/stat").and_then(|stat| cpu_times(&stat));
        let (minor_faults, major_faults) =
            text("/proc/self/stat").and_then(|stat| faults(&stat)).unwrap_or_default();
        Usage {
            cpu_busy: cpu.map(|cpu| cpu.busy),
            cpu_all: cpu.map(|cpu| cpu.all),
            cpu_stolen: cpu.map(|cpu| cpu.stolen),
            throttled_us: throttled_us(),
            major_faults,
            minor_faults,
            preemptions: preemptions(),
            swapped_pages: text("/proc/vmstat").and_then(|vmstat| swapped(&vmstat)),
        }
    }
}

impl Activity {
    /// Reads `/proc`.
    #[must_use]
    pub fn read() -> Activity {
        let text = |path: &str| fs::read_to_string(path).ok();
        let cpu = text("/proc/stat").and_then(|stat| cpu_times(&stat));
        let net = text("/proc/net/dev").map(|dev| net_bytes(&dev));
        Activity {
            cpu_busy: cpu.map(|cpu| cpu.busy),
            cpu_all: cpu.map(|cpu| cpu.all),
            cpu_stolen: cpu.map(|cpu| cpu.stolen),
            memory_used_bytes: text("/proc/meminfo").and_then(|memory| memory_used(&memory)),
            net_in_bytes: net.map(|(received, _)| received),
            net_out_bytes: net.map(|(_, sent)| sent),
        }
    }
}

impl Ports {
    /// Reads `/proc`.
    #[must_use]
    pub fn read() -> Ports {
        let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
        Ports {
            time_wait: time_wait(&text("/proc/net/sockstat")),
            all: range(&text("/proc/sys/net/ipv4/ip_local_port_range")),
            tw_reuse: text("/proc/sys/net/ipv4/tcp_tw_reuse").trim().parse().ok(),
        }
    }
}

#[derive(Clone, Copy)]
struct CpuTimes {
    busy: u64,
    all: u64,
    stolen: u64,
}

/// The first line of `/proc/stat`: user, nice, system, idle, iowait, irq, softirq, steal; guests are part of user.
fn cpu_times(stat: &str) -> Option<CpuTimes> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let fields: Vec<u64> = line.split_whitespace().map_while(|field| field.parse().ok()).take(8).collect();
    let [user, nice, system, idle, iowait, irq, softirq, stolen] = fields[..] else { return None };
    let busy = user + nice + system + irq + softirq + stolen;
    Some(CpuTimes { busy, all: busy + idle + iowait, stolen })
}

/// Bytes received and sent by all interfaces but loopback, which carries nothing of the network.
fn net_bytes(dev: &str) -> (u64, u64) {
    let interfaces =
        dev.lines().filter_map(|line| line.split_once(':')).filter(|(name, _)| name.trim() != "lo");
    let bytes = interfaces.filter_map(|(_, counts)| {
        let mut counts = counts.split_whitespace().map(str::parse::<u64>);
        // Eight counts of what was received, then eight of what was sent.
        Some((counts.next()?.ok()?, counts.nth(7)?.ok()?))
    });
    bytes.fold((0, 0), |(received, sent), (r, s)| (received.wrapping_add(r), sent.wrapping_add(s)))
}

fn memory_used(meminfo: &str) -> Option<u64> {
    let of = |name: &str| {
        let mut lines = meminfo.lines().filter_map(|line| line.split_once(':'));
        let value = lines.find(|(key, _)| *key == name)?.1;
        value.trim().strip_suffix(" kB")?.parse::<u64>().ok()
    };
    of("MemTotal")?.checked_sub(of("MemAvailable")?)?.checked_mul(1024)
}

/// Minor and major faults of `/proc/self/stat`. The name of the program, in brackets, may hold anything.
fn faults(stat: &str) -> Option<(u64, u64)> {
    let after_name = stat.rsplit_once(')')?.1;
    let mut fields = after_name.split_whitespace();
    let minor = fields.nth(7)?.parse().ok()?;
    let major = fields.nth(1)?.parse().ok()?;
    Some((minor, major))
}

/// Preemptions of all threads that are alive.
fn preemptions() -> u64 {
    let pid: RawPid = getpid().as_raw_nonzero().get();
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return 0 };
    let of = |status: String| status_field(&status, "nonvoluntary_ctxt_switches");
    threads
        .flatten()
        .filter_map(|thread| fs::read_to_string(thread.path().join("status")).ok().and_then(of))
        .sum()
}

fn status_field(status: &str, name: &str) -> Option<u64> {
    let mut lines = status.lines().filter_map(|line| line.split_once(':'));
    lines.find(|(key, _)| *key == name)?.1.trim().parse().ok()
}

fn swapped(vmstat: &str) -> Option<u64> {
    let of = |name: &str| {
        let mut lines = vmstat.lines().filter_map(|line| line.split_once(' '));
        lines.find(|(key, _)| *key == name)?.1.trim().parse::<u64>().ok()
    };
    Some(of("pswpin")? + of("pswpout")?)
}

/// Of our own control group: version 2 counts microseconds, version 1 nanoseconds.
fn throttled_us() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let read = |path: String| fs::read_to_string(path).ok();
    if let Some(path) = groups.lines().find_map(|line| line.strip_prefix("0::"))
        && let Some(stat) = read(format!("/sys/fs/cgroup{path}/cpu.stat"))
        && let Some(us) = cgroup_field(&stat, "throttled_usec")
    {
        return Some(us);
    }
    // In a container the group's own path often cannot be seen, but its root is ours.
    let roots =
        ["/sys/fs/cgroup/cpu.stat", "/sys/fs/cgroup/cpu/cpu.stat", "/sys/fs/cgroup/cpu,cpuacct/cpu.stat"];
    roots.into_iter().find_map(|path| {
        let stat = read(path.to_owned())?;
        cgroup_field(&stat, "throttled_usec").or_else(|| Some(cgroup_field(&stat, "throttled_time")? / 1000))
    })
}

fn cgroup_field(stat: &str, name: &str) -> Option<u64> {
    stat.lines().filter_map(|line| line.split_once(' ')).find(|(key, _)| *key == name)?.1.trim().parse().ok()
}

/// `TCP: inuse 3 orphan 0 tw 12 alloc 5 mem 2`
fn time_wait(sockstat: &str) -> Option<u64> {
    let line = sockstat.lines().find_map(|line| line.strip_prefix("TCP:"))?;
    let mut words = line.split_whitespace().skip_while(|word| *word != "tw").skip(1);
    words.next()?.parse().ok()
}

/// Two numbers, the first and the last port.
fn range(text: &str) -> Option<u64> {
    let mut ends = text.split_whitespace().map(str::parse::<u64>);
    let (first, last) = (ends.next()?.ok()?, ends.next()?.ok()?);
    Some(last.checked_sub(first)? + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_times_are_busy_idle_and_stolen() {
        let stat = "cpu  100 10 30 1000 50 1 2 7 40 0\ncpu0 1 2 3 4 5 6 7 8\n";
        let cpu = cpu_times(stat).unwrap();
        assert_eq!((cpu.busy, cpu.all, cpu.stolen), (150, 1200, 7));
        assert!(cpu_times("cpu  1 2 3\n").is_none());
        assert!(cpu_times("").is_none());
    }

    #[test]
    fn faults_stand_behind_a_name_that_may_hold_brackets() {
        let stat = "12 (a) b) S 1 2 3 4 5 6 111 0 22 0 1 1 0 0\n";
        assert_eq!(faults(stat), Some((111, 22)));
        assert_eq!(faults("12 (a"), None);
    }

    #[test]
    fn fields_of_the_systems_files_are_found() {
        assert_eq!(swapped("nr_free 1\npswpin 3\npswpout 4\n"), Some(7));
        assert_eq!(swapped("pswpin 3\n"), None);
        assert_eq!(cgroup_field("usage_usec 5\nthrottled_usec 9\n", "throttled_usec"), Some(9));
        assert_eq!(time_wait("sockets: used 9\nTCP: inuse 3 orphan 0 tw 12 alloc 5 mem 2\n"), Some(12));
        assert_eq!(range("32768\t60999\n"), Some(28_232));
        assert_eq!(range("5"), None);
        let dev = "Inter-|   Receive\n face |bytes packets\n    lo: 9 1 0 0 0 0 0 0 9 1 0 0 0 0 0 0\n\
                   eth0: 100 2 0 0 0 0 0 0 50 1 0 0 0 0 0 0\n eth1:1 2 0 0 0 0 0 0 2 1 0 0 0 0 0 0\n";
        assert_eq!(net_bytes(dev), (101, 52));
        assert_eq!(memory_used("MemTotal: 10 kB\nMemAvailable:  4 kB\n"), Some(6 * 1024));
        assert_eq!(
            status_field("Name:\tx\nnonvoluntary_ctxt_switches:\t42\n", "nonvoluntary_ctxt_switches"),
            Some(42)
        );
    }

    #[test]
    fn counters_of_this_machine_grow() {
        let before = Usage::read();
        // More than an allocator ever takes from what was freed before, which would not fault.
        let touched = std::hint::black_box(vec![1_u8; 64 << 20]);
        let after = Usage::read();
        assert!(after.minor_faults > before.minor_faults, "{} bytes were written", touched.len());
        // The kernel's count of waits for a disk may go back a little.
        assert!(after.cpu_all.is_some() && before.cpu_all.is_some());
    }
}
