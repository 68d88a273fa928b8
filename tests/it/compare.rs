//! Runs beside each other.

use serde_json::Value;
use tokload::compare::{SideBySide, compare};
use tokload::plan::Load;
use tokload::report::{Style, side_by_side};
use tokload::stats::Confidence;

use crate::check::made::{constant, run, spread};
use crate::run_file::conforms;

fn three() -> SideBySide {
    let of = |name: &str, ttft_ms: f64, seed| {
        let (one, four) = (spread(300, ttft_ms, seed), spread(300, 2.0 * ttft_ms, seed + 50));
        run(name, &[(Load::closed(1), one), (Load::closed(4), four)])
    };
    let fourth = run("only/eight.json", &[(Load::closed(8), constant(30, 100.0))]);
    let samples = [of("a.json", 100.0, 1), of("b.json", 100.2, 2), of("c.json", 120.0, 3), fourth];
    compare(&samples, None, Confidence::C95)
}

fn text(width: usize) -> String {
    let mut out = Vec::new();
    side_by_side::write(&three(), Style { width, color: false }, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn differences_are_shown_where_there_are_any() {
    let runs = three();
    assert_eq!(
        runs.loads.iter().map(|load| load.load.as_str()).collect::<Vec<_>>(),
        ["1 user", "4 users", "8 users"]
    );
    let ttft = &runs.loads[0].figures[2];
    assert_eq!(ttft.figure.to_string(), "ttft_p50");
    let direction = |run: usize| ttft.runs[run].unwrap().difference.unwrap().direction();
    assert!(ttft.runs[0].unwrap().difference.is_none(), "the first run is what others are compared with");
    assert!(direction(1).is_eq() && direction(2).is_gt());
    assert!(ttft.runs[3].is_none());
    // Every value has its interval, and the true median lies in it.
    let cell = ttft.runs[2].unwrap();
    assert!(cell.low.unwrap() < 120e6 && 120e6 < cell.high.unwrap(), "{cell:?}");
    // Nobody is compared with a run that lacks the load.
    assert!(
        runs.loads[2]
            .figures
            .iter()
            .flat_map(|figure| &figure.runs)
            .flatten()
            .all(|cell| cell.difference.is_none())
    );
    assert_eq!(runs.differences, 2 * 2 * 10);
}

#[test]
fn the_front_has_who_is_beaten_by_nobody() {
    let runs = three();
    assert_eq!(runs.pareto.len(), 7);
    for point in &runs.pareto {
        let beats = |other: &&tokload::compare::Point| {
            other.user_tok_s >= point.user_tok_s
                && other.out_tok_s >= point.out_tok_s
                && (other.user_tok_s > point.user_tok_s || other.out_tok_s > point.out_tok_s)
        };
        assert_eq!(point.on_front, !runs.pareto.iter().any(|other| beats(&other)), "{point:?}");
    }
}

#[test]
fn equals_are_on_the_front_together() {
    let of = |name: &str| run(name, &[(Load::closed(1), spread(300, 100.0, 1))]);
    let runs = compare(&[of("a.json"), of("b.json")], None, Confidence::C95);
    assert_eq!(runs.pareto.iter().map(|point| point.on_front).collect::<Vec<_>>(), [true, true]);
}

#[test]
fn every_width_shows_the_same_and_fits() {
    let wide = text(250);
    assert!(wide.contains("A  a.json") && wide.contains("≈ ("), "{wide}");
    assert!(wide.contains("`≈`: no difference shown"), "{wide}");
    assert!(
        wide.contains("! loads: not in the second run: 1 user, 4 users (a.json to only/eight.json)"),
        "{wide}"
    );
    for width in [70, 80, 120] {
        let narrow = text(width);
        assert!(narrow.lines().skip(4).all(|line| line.chars().count() <= width), "{width}: {narrow}");
        let words = |text: &str| text.matches(" to ").count();
        assert!(words(&narrow) >= words(&wide));
    }
}

#[test]
fn json_conforms_to_the_published_schema() {
    let schema: Value =
        serde_json::from_str(include_str!("../../tools/schema/tokload.compare.v1.schema.json")).unwrap();
    let mut out = Vec::new();
    side_by_side::write_json(&three(), &mut out).unwrap();
    let json: Value = serde_json::from_slice(&out).unwrap();
    assert_eq!(conforms(&schema, &schema, &json, "compare"), Ok(()));
    assert!(json["loads"][0]["figures"][2]["runs"][3].is_null());
}
