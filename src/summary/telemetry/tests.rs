use super::*;
use crate::run::{Span, Window};
use crate::time::Stamp;

fn at(s: f64) -> Stamp {
    Stamp::from_nanos((s * 1e9) as u64)
}

fn source(name: &str, tracks: &[(Meter, &[(f64, f64)])]) -> Source {
    let mut source = Source { name: name.to_owned(), ..Source::default() };
    for (meter, readings) in tracks {
        let mut track = if meter.is_counter() { Track::counter() } else { Track::default() };
        readings.iter().for_each(|(s, value)| track.add(at(*s), *value));
        source.tracks.insert((*meter, String::new()), track);
    }
    source
}

fn exporter(kind: Kind, source: Source) -> ExporterSeen {
    let mut heard = Track::default();
    source.tracks.values().flat_map(Track::bins).for_each(|bin| heard.add(bin.first_at, 1.0));
    let name = format!("http://{}", source.name);
    ExporterSeen {
        kind,
        name,
        answered: 1,
        attempts: 1,
        heard,
        sources: vec![source],
        ..ExporterSeen::default()
    }
}

/// A level of 10 s from 100 s on, all of which is its window.
fn joined(exporters: Vec<ExporterSeen>, ours: &Ours) -> Option<LevelTelemetry> {
    let (t0, t2) = (at(100.0), at(110.0));
    let window = Window { start: t0, end: t2, whole_level: true };
    level(&Observed { interval_s: 1.0, exporters }, Span { t0, t1: t2, t2 }, window, ours)
}

const OURS: Ours = Ours { out_tok_s: 200.0, ttft: Some((40, 130.0)) };

#[test]
fn a_server_is_joined_by_the_window_and_set_against_our_ttft() {
    let server = source(
        "a",
        &[
            (Meter::Running, &[(99.0, 50.0), (101.0, 2.0), (109.0, 4.0), (111.0, 50.0)]),
            (Meter::PrefixQueries, &[(100.0, 1_000.0), (110.0, 1_400.0)]),
            (Meter::PrefixHits, &[(100.0, 900.0), (110.0, 1_000.0)]),
            (Meter::Preemptions, &[(100.0, 7.0), (110.0, 9.0)]),
            (Meter::TtftSum, &[(100.0, 1.0), (110.0, 5.0)]),
            (Meter::TtftCount, &[(100.0, 10.0), (110.0, 50.0)]),
        ],
    );
    let level = joined(vec![exporter(Kind::Server, server)], &OURS).unwrap();
    let server = &level.servers[0];
    assert_eq!(server.running, Some(Gauge { n: 2, mean: 3.0, min: 2.0, max: 4.0 }));
    assert_eq!((server.prefix_hit_share, server.preemptions, server.waiting), (Some(0.25), Some(2.0), None));
    assert_eq!((server.ttft, server.seen_s), (Some(Times { n: 40.0, mean_ms: 100.0 }), Some(10.0)));
    let network = level.network.unwrap();
    assert_eq!((network.server_ttft_ms, network.difference_ms), (100.0, Some(30.0)));
    assert_eq!(level.lines[0].values, [2.0, 4.0]);
}

#[test]
fn times_of_other_requests_give_no_difference() {
    let counts = [
        (Meter::TtftSum, &[(100.0, 0.0), (110.0, 5.0)][..]),
        (Meter::TtftCount, &[(100.0, 0.0), (110.0, 60.0)]),
    ];
    let level = joined(vec![exporter(Kind::Server, source("a", &counts))], &OURS).unwrap();
    assert_eq!(level.network.unwrap().difference_ms, None);
    let silent = joined(vec![exporter(Kind::Server, source("a", &counts))], &Ours::default()).unwrap();
    assert_eq!(silent.network, None);
}

#[test]
fn replicas_count_as_often_as_they_answered() {
    let server = |name: &str, n: f64, sum: f64| {
        let counts = [
            (Meter::TtftSum, &[(100.0, 0.0), (110.0, sum)][..]),
            (Meter::TtftCount, &[(100.0, 0.0), (110.0, n)]),
        ];
        exporter(Kind::Server, source(name, &counts))
    };
    let level = joined(vec![server("a", 30.0, 3.0), server("b", 10.0, 2.0)], &OURS).unwrap();
    let network = level.network.unwrap();
    assert_eq!((network.server_n, network.server_ttft_ms, network.difference_ms), (40.0, 125.0, Some(5.0)));
}

#[test]
fn gpus_give_tokens_per_joule_by_counter_or_by_power() {
    let counted = source(
        "GPU 0",
        &[(Meter::Energy, &[(100.0, 500.0), (110.0, 2_500.0)]), (Meter::GpuUse, &[(105.0, 0.5)])],
    );
    let powered = source("GPU 1", &[(Meter::Power, &[(103.0, 250.0), (106.0, 350.0)])]);
    let gpus = ExporterSeen { sources: vec![counted, powered], ..exporter(Kind::Gpu, Source::default()) };
    let level = joined(vec![gpus], &OURS).unwrap();
    let energies: Vec<_> =
        level.gpus.iter().map(|gpu| (gpu.energy_j.unwrap(), gpu.energy_by_power)).collect();
    assert_eq!(energies, [(2_000.0, false), (3_000.0, true)]);
    let efficiency = level.efficiency.unwrap();
    assert_eq!((efficiency.gpus, efficiency.tok_s_per_gpu), (2, 100.0));
    assert_eq!((efficiency.power_w, efficiency.tok_per_joule), (Some(500.0), Some(0.4)));
}

#[test]
fn a_gpu_without_power_leaves_the_energy_of_all_unknown() {
    let one = source("GPU 0", &[(Meter::Energy, &[(100.0, 0.0), (110.0, 10.0)])]);
    let other = source("GPU 1", &[(Meter::GpuUse, &[(103.0, 0.25)])]);
    let gpus = ExporterSeen { sources: vec![one, other], ..exporter(Kind::Gpu, Source::default()) };
    let efficiency = joined(vec![gpus], &OURS).unwrap().efficiency.unwrap();
    assert_eq!((efficiency.power_w, efficiency.tok_per_joule, efficiency.gpus), (None, None, 2));
}

#[test]
fn a_counter_that_began_anew_is_said() {
    let server = source("a", &[(Meter::OutputTokens, &[(100.0, 500.0), (105.0, 20.0), (110.0, 50.0)])]);
    let level = joined(vec![exporter(Kind::Server, server)], &OURS).unwrap();
    assert_eq!((level.servers[0].resets, level.servers[0].output_tokens), (1, Some(50.0)));
}

#[test]
fn what_was_said_at_other_times_is_not_the_levels() {
    let server = source(
        "a",
        &[
            (Meter::Running, &[(10.0, 5.0), (200.0, 5.0)]),
            (Meter::OutputTokens, &[(10.0, 1.0), (200.0, 9.0)]),
        ],
    );
    assert_eq!(joined(vec![exporter(Kind::Server, server)], &OURS), None);
    assert_eq!(joined(Vec::new(), &OURS), None);
}
