//! Loads that a search has made have short names, and names of their own.

use tokload::model::Settings;
use tokload::plan::{Arrivals, Load, Slo};
use tokload::report::View;
use tokload::report::chart::{self, Named};
use tokload::summary::{self, Input};

use crate::rig;

#[test]
fn a_label_has_as_many_digits_as_tell_loads_apart() {
    let plan = rig::plan_for(1);
    let mut run = crate::run_file::empty(&plan);
    let rates = [29.802_322_387_695_313, 29.8023, 31.25, 0.012_345_678, 29.802_322_387_695_313];
    for (ordinal, rate) in rates.into_iter().enumerate() {
        let load = Load { arrivals: Arrivals::Poisson { rate }, cap: None, users: None, think_s: 0.0 };
        let mut level = rig::timed(load, 100.0);
        level.stop.units = Some(4);
        let mut result = rig::simulate(&plan, Settings::fixed(10.0, 1.0), &level).result;
        result.ordinal = ordinal;
        run.push(&result, &summary::level(&Input::new(&result, None, Slo::default())));
    }
    let labels: Vec<&str> = run.levels.iter().map(|level| level.label.as_str()).collect();
    assert_eq!(
        labels,
        ["poisson 29.802/s", "poisson 29.8023/s", "poisson 31.25/s", "poisson 0.0123/s", "poisson 29.802/s"]
    );
    // What keeps loads apart by their labels sees the same.
    let loads: Vec<String> = run.levels.iter().map(|level| level.load_label()).collect();
    assert_eq!(loads, labels);
    // Exact values stay where they are kept.
    let exact = run.levels[0].setting.read().unwrap().load.rate();
    assert_eq!(exact, Some(rates[0]));
    assert_eq!(run.levels[0].setting.read().unwrap().label(), "29.802 req/s");
    let mut csv = Vec::new();
    tokload::report::csv::write(&run, &mut csv).unwrap();
    let csv = String::from_utf8(csv).unwrap();
    assert!(csv.lines().nth(1).unwrap().starts_with("0,poisson 29.802322387695313/s,"), "{csv}");
    let shown: Vec<String> =
        View::new(&run, &[], None).table.rows.iter().map(|row| row.label.clone()).collect();
    assert!(shown.iter().all(|label| label.len() <= "poisson 29.8023/s".len()), "{shown:?}");
    let charts = chart::all(&[Named { name: "", run: &run }]);
    let marks = charts.iter().flat_map(|chart| &chart.marks).map(|mark| mark.name.as_str());
    assert!(marks.into_iter().all(|name| !name.contains("29.80232")));
}
