//! What several processes of one run were told of a level, put together: whoever was asked by many is told of once, and
//! what each machine says of itself bears its name.

use super::{CLIENT, Efficiency, GpuLevel, HostOf, LOCAL_GPUS, LevelTelemetry, Line, Ours, ServerLevel};

/// What one process was told.
#[derive(Clone, Copy, Debug)]
pub struct OfShare<'a> {
    /// What was said.
    pub level: &'a LevelTelemetry,
    /// The name of its machine.
    pub host: &'a str,
    /// The exporters of GPUs that it asked.
    pub gpu_exporters: &'a [String],
    /// How long its level was looked at, s.
    pub window_s: f64,
    /// How much later a moment of its time line is on that of all, s.
    pub later_s: f64,
}

/// Who is called `name` by a process on `host`: what speaks of that machine, or is reached by a name that is another
/// machine's elsewhere, bears the host's name where there are several.
#[must_use]
pub fn scoped(name: &str, host: &str, several: bool) -> String {
    match several && is_local(name) {
        true => format!("{name} on {host}"),
        false => name.to_owned(),
    }
}

/// Whether the processes are on more than one machine.
#[must_use]
pub fn are_several<'a>(hosts: impl IntoIterator<Item = &'a str>) -> bool {
    let mut hosts = hosts.into_iter();
    let first = hosts.next();
    hosts.any(|host| Some(host) != first)
}

/// All of it as one, set against the numbers of all; `None` where nobody was told anything.
#[must_use]
pub fn together(shares: &[OfShare<'_>], ours: &Ours) -> Option<LevelTelemetry> {
    let several = are_several(shares.iter().map(|share| share.host));
    let gpus = gpus(shares, several);
    // Each GPU's own power, over the time in which it was looked at.
    let watts: Option<f64> = gpus.iter().map(|(gpu, window_s)| Some(gpu.energy_j? / window_s)).sum();
    let power_w = watts.filter(|watts| *watts > 0.0 && watts.is_finite());
    let all = LevelTelemetry {
        servers: servers(shares, several),
        gpus: gpus.into_iter().map(|(gpu, _)| gpu).collect(),
        host: None,
        hosts: hosts(shares),
        network: None,
        efficiency: Some(Efficiency { power_w, ..Efficiency::default() }),
        lines: lines(shares, several),
    };
    let has_any = !all.servers.is_empty() || !all.gpus.is_empty() || !all.hosts.is_empty();
    has_any.then(|| all.set_against(ours))
}

/// Each server once: from the process that heard it for longest.
fn servers(shares: &[OfShare<'_>], several: bool) -> Vec<ServerLevel> {
    let mut all: Vec<ServerLevel> = Vec::new();
    for share in shares {
        for server in &share.level.servers {
            let server = ServerLevel { name: scoped(&server.name, share.host, several), ..server.clone() };
            match all.iter_mut().find(|known| known.name == server.name) {
                None => all.push(server),
                Some(known) if known.seen_s < server.seen_s => *known = server,
                Some(_) => {}
            }
        }
    }
    all
}

/// Each GPU once, with the time that it was looked at, s.
fn gpus(shares: &[OfShare<'_>], several: bool) -> Vec<(GpuLevel, f64)> {
    let mut all: Vec<(GpuLevel, f64)> = Vec::new();
    for share in shares {
        for gpu in &share.level.gpus {
            let name = gpu_name(share, &gpu.name, several);
            if all.iter().all(|(known, _)| known.name != name) {
                all.push((GpuLevel { name, ..gpu.clone() }, share.window_s));
            }
        }
    }
    all
}

/// A GPU as all processes call it: `n1 GPU 0`, as DCGM does, where it is one of that machine; `GPU 0 (URL)` where an
/// exporter does not say of which it is.
fn gpu_name(share: &OfShare<'_>, name: &str, several: bool) -> String {
    let named = share.gpu_exporters.iter().find_map(|exporter| {
        let plain = name.strip_suffix(&format!(" ({exporter})"))?;
        Some((plain, exporter.as_str()))
    });
    let only = match share.gpu_exporters {
        [only] => Some((name, only.as_str())),
        _ => None,
    };
    if !several {
        return name.to_owned();
    }
    // The course of a GPU is kept without its exporter.
    let local =
        share.gpu_exporters.iter().find(|exporter| is_local(exporter)).map(|one| (name, one.as_str()));
    match named.or(only).or(local) {
        Some((plain, exporter)) if plain.starts_with("GPU ") && is_local(exporter) => {
            format!("{} {plain}", share.host)
        }
        Some((plain, exporter)) if plain.starts_with("GPU ") => format!("{plain} ({exporter})"),
        // It bears the name of its host.
        Some((plain, _)) => plain.to_owned(),
        None => name.to_owned(),
    }
}

/// Each machine once.
fn hosts(shares: &[OfShare<'_>]) -> Vec<HostOf> {
    let mut all: Vec<HostOf> = Vec::new();
    for share in shares {
        let Some(level) = share.level.host else { continue };
        if all.iter().all(|known| known.name != share.host) {
            all.push(HostOf { name: share.host.to_owned(), level });
        }
    }
    all
}

/// Each course once, on the time line of all.
fn lines(shares: &[OfShare<'_>], several: bool) -> Vec<Line> {
    let mut all: Vec<Line> = Vec::new();
    for share in shares {
        for line in &share.level.lines {
            let of = match line.what.as_str() {
                "cpu_busy" => share.host.to_owned(),
                "gpu_busy" | "power_w" => gpu_name(share, &line.of, several),
                _ => scoped(&line.of, share.host, several),
            };
            if all.iter().any(|known| (&known.what, &known.of) == (&line.what, &of)) {
                continue;
            }
            let moved = line.at_s.iter().map(|at_s| ((at_s + share.later_s) * 1e3).round() / 1e3);
            all.push(Line {
                what: line.what.clone(),
                of,
                at_s: moved.collect(),
                values: line.values.clone(),
            });
        }
    }
    all
}

/// Whether a name leads to the machine that asks, whichever that is.
fn is_local(name: &str) -> bool {
    let Some((scheme, rest)) = name.split_once(':') else {
        return name == LOCAL_GPUS || name == CLIENT;
    };
    let rest = rest.trim_start_matches("//");
    let own = ["localhost", "127.", "[::1]", "0.0.0.0", "[::]"];
    scheme == "unix" || own.iter().any(|own| rest.to_ascii_lowercase().starts_with(own))
}

#[cfg(test)]
mod tests {
    use super::super::{Gauge, HostLevel, Times};
    use super::*;

    const ROUTER: &str = "http://router:8000/metrics";

    fn server(name: &str, seen_s: f64, first_tokens: f64) -> ServerLevel {
        let ttft = Some(Times { n: first_tokens, mean_ms: 10.0 });
        ServerLevel { name: name.to_owned(), seen_s: Some(seen_s), ttft, ..ServerLevel::default() }
    }

    fn gpu(name: &str, energy_j: f64) -> GpuLevel {
        GpuLevel { name: name.to_owned(), energy_j: Some(energy_j), ..GpuLevel::default() }
    }

    fn host(busy: f64) -> Option<HostLevel> {
        let cpu_busy = Some(Gauge { n: 1, mean: busy, min: busy, max: busy });
        Some(HostLevel { cpu_busy, ..HostLevel::default() })
    }

    fn line(what: &str, of: &str) -> Line {
        Line { what: what.to_owned(), of: of.to_owned(), at_s: vec![1.0], values: vec![5.0] }
    }

    fn names<'a>(of: impl Iterator<Item = &'a String>) -> Vec<&'a str> {
        of.map(String::as_str).collect()
    }

    #[test]
    fn a_server_that_several_asked_is_told_once_and_machines_are_kept_apart() {
        let local = "http://127.0.0.1:8000/metrics";
        let one = LevelTelemetry {
            servers: vec![server(ROUTER, 9.0, 90.0), server(local, 9.0, 5.0)],
            gpus: vec![gpu("GPU 0", 1000.0)],
            host: host(0.25),
            lines: vec![line("running", ROUTER), line("cpu_busy", "client"), line("power_w", "GPU 0")],
            ..LevelTelemetry::default()
        };
        let two = LevelTelemetry {
            servers: vec![server(ROUTER, 10.0, 100.0), server(local, 10.0, 7.0)],
            gpus: vec![
                gpu("GPU 0 (GPUs of this machine)", 3000.0),
                gpu("n9 GPU 3 (http://n9:9400/metrics)", 500.0),
            ],
            host: host(0.5),
            lines: one.lines.clone(),
            ..LevelTelemetry::default()
        };
        let own = [LOCAL_GPUS.to_owned()];
        let both = [LOCAL_GPUS.to_owned(), "http://n9:9400/metrics".to_owned()];
        let share = OfShare { level: &one, host: "n1", gpu_exporters: &own, window_s: 10.0, later_s: 0.0 };
        let other = OfShare { level: &two, host: "n2", gpu_exporters: &both, window_s: 5.0, later_s: 2.5 };
        let ours = Ours { out_tok_s: 800.0, ttft: Some((112, 12.0)) };
        let all = together(&[share, other], &ours).unwrap();
        assert_eq!(
            names(all.servers.iter().map(|server| &server.name)),
            [ROUTER, "http://127.0.0.1:8000/metrics on n1", "http://127.0.0.1:8000/metrics on n2"]
        );
        // That which heard it for longer.
        assert_eq!(all.servers[0].ttft.unwrap().n, 100.0);
        assert_eq!(names(all.gpus.iter().map(|gpu| &gpu.name)), ["n1 GPU 0", "n2 GPU 0", "n9 GPU 3"]);
        // 1000 J in 10 s, 3000 J and 500 J in 5 s: 100 + 600 + 100 W for 800 tok/s.
        let efficiency = all.efficiency.unwrap();
        assert_eq!((efficiency.power_w, efficiency.tok_per_joule), (Some(800.0), Some(1.0)));
        assert_eq!((efficiency.gpus, all.network.unwrap().server_n), (3, 112.0));
        let busy: Vec<_> =
            all.hosts.iter().map(|host| (host.name.as_str(), host.level.cpu_busy.unwrap().mean)).collect();
        assert_eq!((busy.as_slice(), all.host), (&[("n1", 0.25), ("n2", 0.5)][..], None));
        let courses: Vec<_> = all.lines.iter().map(|line| (line.of.as_str(), line.at_s[0])).collect();
        assert_eq!(courses, [(ROUTER, 1.0), ("n1", 1.0), ("n1 GPU 0", 1.0), ("n2", 3.5), ("n2 GPU 0", 3.5)]);
    }

    #[test]
    fn processes_of_one_machine_are_told_the_same_by_it() {
        let told = LevelTelemetry {
            servers: vec![server("http://localhost:8000/metrics", 9.0, 90.0)],
            gpus: vec![gpu("GPU 0", 1000.0)],
            host: host(0.25),
            ..LevelTelemetry::default()
        };
        let own = [LOCAL_GPUS.to_owned()];
        let share = OfShare { level: &told, host: "n1", gpu_exporters: &own, window_s: 10.0, later_s: 0.0 };
        let all = together(&[share, share], &Ours::default()).unwrap();
        assert_eq!((all.servers.clone(), all.gpus.clone()), (told.servers.clone(), told.gpus.clone()));
        assert_eq!(names(all.hosts.iter().map(|host| &host.name)), ["n1"]);
        let none = LevelTelemetry::default();
        assert_eq!(together(&[OfShare { level: &none, ..share }], &Ours::default()), None);
    }
}
