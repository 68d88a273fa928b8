//! Order of time, and what a selection makes of it.

use std::io::{self, BufRead, Cursor, Read, Seek, SeekFrom};
use std::time::Duration;

use super::super::*;
use super::{of_format, replay};
use crate::rng::{self, Purpose};

fn burst(rows: &[(u64, u32)]) -> String {
    let mut text = String::from("Timestamp,Model,Request tokens,Response tokens\n");
    for (seconds, tokens) in rows {
        text += &format!("{seconds},m{},{tokens},{}\n", tokens % 2, tokens + 100);
    }
    text
}

fn selected(text: &str, selection: Selection) -> (Vec<Planned>, Dropped) {
    let planned = replay("f", text.as_bytes(), &Options::default()).unwrap();
    let mut selected = selection.of(planned.into_iter().map(Ok));
    let kept = selected.by_ref().map(Result::unwrap).collect();
    (kept, selected.dropped())
}

fn offsets_s(planned: &[Planned]) -> Vec<f64> {
    planned.iter().map(|planned| planned.offset_ns.unwrap() as f64 / 1e9).collect()
}

#[test]
fn a_replay_is_the_stable_sort_of_the_file() {
    for seed in 0..20 {
        let mut draws = rng::stream(seed, Purpose::Choice, 0);
        let rows: Vec<_> = (0..300).map(|row| (u64::from(rng::below(&mut draws, 40)) + 9, row)).collect();
        let planned = replay("f", burst(&rows).as_bytes(), &Options::default()).unwrap();
        let mut expected = rows.clone();
        expected.sort_by_key(|(seconds, _)| *seconds);
        let first = expected[0].0;
        let expected: Vec<_> =
            expected.iter().map(|(s, row)| (Some((s - first) * 1_000_000_000), Some(*row))).collect();
        let found: Vec<_> = planned.iter().map(|p| (p.offset_ns, p.entry.prompt_tokens())).collect();
        assert_eq!(found, expected, "seed {seed}");
    }
}

#[test]
fn a_file_in_order_needs_no_index_and_keeps_its_lines() {
    let text = burst(&[(5, 1), (5, 2), (9, 3)]);
    let mut input = Cursor::new(text.as_bytes());
    let survey = Survey::of("f", &mut input, &Options::default()).unwrap();
    assert!(survey.is_in_order);
    assert_eq!(
        (survey.first_ns, survey.last_ns, survey.timed),
        (Some(5_000_000_000), Some(9_000_000_000), 3)
    );
    let replay = Replay::new("f", &mut input, &Options::default(), &survey).unwrap();
    let lines: Vec<_> = replay.map(|planned| planned.unwrap().entry.line).collect();
    assert_eq!(lines, [2, 3, 4]);
}

#[test]
fn a_turn_without_a_time_stays_behind_what_it_follows() {
    let text = r#"
        {"timestamp": 900, "input_length": 1, "session_id": "a"}
        {"timestamp": 100, "input_length": 2}
        {"delay": 5, "input_length": 3, "session_id": "a"}
        {"timestamp": 500, "input_length": 4}"#;
    let planned = replay("f", text.as_bytes(), &Options::default()).unwrap();
    let found: Vec<_> = planned.iter().map(|p| (p.entry.prompt_tokens().unwrap(), p.offset_ns)).collect();
    let ms = |ms: u64| Some(ms * 1_000_000);
    assert_eq!(found, [(2, ms(0)), (4, ms(400)), (1, ms(800)), (3, None)]);
}

#[test]
fn conversations_stay_together_and_so_do_records_of_arrays() {
    let turns = |at: u32, text: &str| {
        format!(
            r#"{{"turns": [{{"text": "{text}1", "timestamp": {at}}}, {{"text": "{text}2", "delay": 1}}]}}"#
        )
    };
    let (one, other) = (turns(9, "a"), turns(3, "b"));
    for text in [format!("{one}\n{other}\n"), format!("[{one},\n{other}]")] {
        let planned = replay("f", text.as_bytes(), &of_format(Format::AiperfMultiTurn)).unwrap();
        let texts: Vec<_> = planned.iter().map(|p| super::said(&p.entry.prompt).1).collect();
        assert_eq!(texts, ["b1", "b2", "a1", "a2"]);
    }
}

#[test]
fn names_of_sessions_do_not_depend_on_the_way_to_them() {
    let text = "{\"turns\": [{\"text\": \"a\", \"timestamp\": 9}]}\n{\"turns\": [{\"text\": \"b\", \"timestamp\": 3}]}\n";
    let options = of_format(Format::AiperfMultiTurn);
    let in_file = super::read("f", text.as_bytes(), &options).unwrap();
    let in_time = replay("f", text.as_bytes(), &options).unwrap();
    assert_eq!(in_file[0].session, in_time[1].entry.session);
    assert_ne!(in_file[0].session, in_file[1].session);
}

/// A file that is another one from the first move within it on.
struct Swapped {
    now: Cursor<Vec<u8>>,
    then: Option<Vec<u8>>,
}

impl Read for Swapped {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.now.read(into)
    }
}

impl BufRead for Swapped {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.now.fill_buf()
    }

    fn consume(&mut self, bytes: usize) {
        self.now.consume(bytes);
    }
}

impl Seek for Swapped {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.now.seek(to)
    }

    fn seek_relative(&mut self, distance: i64) -> io::Result<()> {
        if let Some(then) = self.then.take() {
            *self.now.get_mut() = then;
        }
        self.now.seek_relative(distance)
    }
}

#[test]
fn a_file_that_changes_under_a_replay_is_told() {
    let text = burst(&[(9, 1), (5, 2), (7, 3)]);
    for (change, kept) in [
        // The row that is due first is malformed, is gone, or has moved by a byte.
        (text.replace("5,m0,2,102", "5,m0,x,102"), 0),
        (text[..text.find("5,m0").unwrap()].to_owned(), 0),
        (text.replace("9,m1", "9\n,m1"), 0),
        // The others are.
        (text.replace("7,m1,3,103", "7,m1,x,103"), 1),
        (text.replace("9,m1,1,101", "9,m1,x,101"), 2),
        (text.clone(), 3),
    ] {
        let mut input =
            Swapped { now: Cursor::new(text.clone().into_bytes()), then: Some(change.clone().into_bytes()) };
        let options = Options::default();
        let survey = Survey::of("f", &mut input, &options).unwrap();
        let planned: Vec<_> = Replay::new("f", &mut input, &options, &survey).unwrap().collect();
        let (entries, errors) = planned.split_at(kept);
        assert!(entries.iter().all(Result::is_ok), "{change}");
        let errors: Vec<_> = errors.iter().map(|error| error.as_ref().unwrap_err()).collect();
        assert_eq!(errors.len(), usize::from(kept < 3), "{change}");
        for error in errors {
            assert_eq!(error.reason, Reason::Changed);
            // Where the row was, in what the file is now.
            let line = [3, 4, 2][kept];
            assert!((line..=line + 1).contains(&error.line), "{error} in {change}");
        }
    }
}

#[test]
fn a_speedup_divides_offsets_and_waits() {
    let text = r#"{"timestamp": 0, "input_length": 1, "session_id": "a"}
        {"timestamp": 1000, "delay": 300, "input_length": 3, "session_id": "a"}"#;
    for (factor, offset_ns, wait_ns) in [(4.0, 250_000_000, 75_000_000), (0.5, 2_000_000_000, 600_000_000)] {
        let speedup = Speedup::new(factor);
        let (kept, _) = selected(text, Selection { speedup, ..Selection::default() });
        assert_eq!(kept[1].offset_ns, Some(offset_ns));
        assert_eq!(kept[1].entry.after_previous, Some(Duration::from_nanos(wait_ns)));
    }
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert_eq!(Speedup::new(bad), None);
    }
}

#[test]
fn a_slice_counts_from_its_beginning_and_takes_sessions_along() {
    let text = burst(&[(5, 1), (6, 2), (7, 3), (8, 4)]);
    let slice = Selection {
        from: Duration::from_secs(1),
        until: Some(Duration::from_secs(3)),
        ..Selection::default()
    };
    let (kept, dropped) = selected(&text, slice.clone());
    assert_eq!(offsets_s(&kept), [0.0, 1.0]);
    assert_eq!(dropped.outside, 2);
    let (kept, _) = selected(&text, Selection { speedup: Speedup::new(2.0), ..slice.clone() });
    assert_eq!(offsets_s(&kept), [0.0, 0.5], "bounds are in recorded time");

    let sessions = r#"{"timestamp": 0, "input_length": 1, "session_id": "a"}
        {"timestamp": 1500, "input_length": 2, "session_id": "b"}
        {"delay": 1, "input_length": 3, "session_id": "a"}
        {"delay": 1, "input_length": 4, "session_id": "b"}"#;
    let (kept, dropped) = selected(sessions, slice);
    assert_eq!(kept.iter().map(|p| p.entry.prompt_tokens().unwrap()).collect::<Vec<_>>(), [2, 4]);
    assert_eq!(dropped.outside, 2);
}

#[test]
fn counts_models_and_lengths_are_selected() {
    let text = burst(&[(5, 1), (6, 2), (7, 3), (8, 4)]);
    let (kept, _) = selected(&text, Selection { entries_max: Some(2), ..Selection::default() });
    assert_eq!(offsets_s(&kept), [0.0, 1.0]);
    let (kept, dropped) = selected(&text, Selection { models: vec!["m1".into()], ..Selection::default() });
    assert_eq!((offsets_s(&kept), dropped.other_model), (vec![0.0, 2.0], 2));
    let limits =
        Selection { prompt_tokens_max: Some(2), output_tokens_max: Some(103), ..Selection::default() };
    let (kept, dropped) = selected(&text, limits);
    let lengths: Vec<_> = kept.iter().map(|p| (p.entry.prompt_tokens(), p.entry.output_tokens)).collect();
    let some = |a, b| (Some(a), Some(b));
    assert_eq!(lengths, [some(1, 101), some(2, 102), some(2, 103), some(2, 103)]);
    assert_eq!((dropped.prompts_cut, dropped.outputs_cut), (2, 1));
}

#[test]
fn a_shorter_prompt_has_the_blocks_that_it_reaches() {
    let text = r#"{"timestamp": 0, "input_length": 1300, "hash_ids": [7, 8, 9]}"#;
    for (max, ids) in [(2000, &[7, 8, 9][..]), (1025, &[7, 8, 9]), (1024, &[7, 8]), (1, &[7]), (0, &[])] {
        let (kept, _) = selected(text, Selection { prompt_tokens_max: Some(max), ..Selection::default() });
        let Prompt::Tokens { count, blocks: Some(blocks) } = &kept[0].entry.prompt else { panic!() };
        assert_eq!((*count, blocks.ids.as_slice()), (max.min(1300), ids));
    }
}
