//! aiperf's tables from stored runs: the golden texts.

use std::fs;
use std::path::{Path, PathBuf};

use tokload::plan::Slo;
use tokload::report::aiperf::{Metric, WIDTH_MIN, WIDTH_OF_FILES, recorded, write};
use tokload::run_file::Loaded;

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

/// Holds `text` against the golden file `name`; `TOKLOAD_REWRITE_GOLDEN=1` writes that anew.
pub(crate) fn assert_golden(name: &str, text: &str) {
    if std::env::var_os("TOKLOAD_REWRITE_GOLDEN").is_some() {
        fs::write(golden(name), text).unwrap();
    }
    assert_eq!(text, fs::read_to_string(golden(name)).unwrap(), "{name}");
}

#[test]
fn the_tables_of_the_golden_run_are_written_to_the_letter() {
    let loaded = Loaded::open(&golden("run.v1.json")).unwrap();
    let slo = loaded.run.plan.read().map_or_else(|_| Slo::default(), |plan| plan.slo);
    let levels = recorded(&loaded, &slo).unwrap();
    let text = |width: usize| {
        let mut out = Vec::new();
        levels.iter().for_each(|level| write(level, width, &mut out).unwrap());
        String::from_utf8(out).unwrap()
    };
    assert_golden("run.v1.aiperf.txt", &text(WIDTH_OF_FILES));
    assert!(text(WIDTH_MIN).lines().all(|line| line.chars().count() <= WIDTH_MIN));
    // Its event times were not kept: gaps are those of the histogram, and there is no second token.
    for (level, block) in levels.iter().zip(&loaded.run.levels) {
        assert_eq!(level.figure(Metric::TimeToSecondToken), None);
        let gaps = level.figure(Metric::InterChunkLatency).map(|figure| figure.stats.count);
        let stored = block.distributions.get(&tokload::metrics::metric::Metric::Itl).map(|gaps| Some(gaps.n));
        assert_eq!(gaps, stored);
    }
}
