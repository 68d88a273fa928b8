use std::collections::HashSet;

use super::*;

const OF: Filling = Filling { seed: 7, index: 42, session: 5, warm_up: false };

fn plain(text: &str, of: Filling) -> String {
    let mut out = Vec::new();
    Text::read(text).unwrap_or_else(|wrong| panic!("{text}: {wrong}")).write(&mut out, &of);
    String::from_utf8(out).unwrap()
}

fn dressed(text: &str, dress: Dress) -> String {
    let mut out = Vec::new();
    match pieces(text).unwrap().as_slice() {
        [Piece::Blank(blank)] => blank.write(&mut out, dress, &OF),
        other => panic!("{other:?}"),
    }
    String::from_utf8(out).unwrap()
}

#[test]
fn what_stands_around_placeholders_stays() {
    assert_eq!(plain("r-{{index}}/{{session}}!", OF), "r-42/5!");
    assert_eq!(plain("", OF), "");
    assert_eq!(plain("{{{{index}}", OF), "{{index}}");
    assert_eq!(plain("a {{ b", OF), "a {{ b");
    assert_eq!(plain("}} {x} {", OF), "}} {x} {");
    assert_eq!(plain("{{{{{{index}}", OF), "{{42");
    assert_eq!(Text::read("a {{{{ b").unwrap().as_fixed(), Some("a {{ b"));
    assert_eq!(Text::read("{{index}}").unwrap().as_fixed(), None);
}

#[test]
fn a_request_has_one_value_for_each_way_of_writing() {
    let twice = plain("{{random:1:1000000}} {{random:1:1000000}}", OF);
    let (one, other) = twice.split_once(' ').unwrap();
    assert_eq!(one, other);
    assert_ne!(plain("{{random:1:1000000}}", OF), plain("{{random:1:1000001}}", OF));
    for other in [Filling { seed: 8, ..OF }, Filling { index: 43, ..OF }, Filling { warm_up: true, ..OF }] {
        assert_ne!(plain("{{random:1:1000000}}", OF), plain("{{random:1:1000000}}", other));
        assert_ne!(plain("{{uuid}}", OF), plain("{{uuid}}", other));
    }
}

#[test]
fn draws_stay_in_their_ranges_and_reach_both_ends() {
    let drawn =
        |text| -> HashSet<String> { (0..200).map(|index| plain(text, Filling { index, ..OF })).collect() };
    let of = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect::<HashSet<_>>();
    assert_eq!(drawn("{{random:3:5}}"), of(&["3", "4", "5"]));
    assert_eq!(drawn("{{random:9:9}}"), of(&["9"]));
    assert_eq!(drawn("{{choice:gold,,free tier}}"), of(&["gold", "", "free tier"]));
    // Repeating a text is its weight: 3 of 4, with a standard deviation of 27 over 4000.
    let often = (0..4000).filter(|index| plain("{{choice:a,a,a,b}}", Filling { index: *index, ..OF }) == "a");
    assert!((2863..=3137).contains(&often.count()));
}

#[test]
fn uuids_are_of_version_4_and_differ() {
    let uuids: HashSet<String> = (0..1000).map(|index| plain("{{uuid}}", Filling { index, ..OF })).collect();
    assert_eq!(uuids.len(), 1000);
    for uuid in &uuids {
        let parts: Vec<&str> = uuid.split('-').collect();
        assert_eq!(parts.iter().map(|part| part.len()).collect::<Vec<_>>(), [8, 4, 4, 4, 12], "{uuid}");
        assert!(parts[2].starts_with('4') && parts[3].starts_with(['8', '9', 'a', 'b']), "{uuid}");
        assert!(uuid.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit()));
    }
}

#[test]
fn a_value_of_its_own_is_a_number_where_it_can_be_one() {
    for (text, value, inside) in [
        ("{{index}}", "42", "42"),
        ("{{session}}", "5", "5"),
        ("{{random:8:8}}", "8", "8"),
        ("{{choice:-1.5}}", "-1.5", "-1.5"),
        ("{{choice:true}}", "true", "true"),
        ("{{choice:null}}", "null", "null"),
        ("{{choice:a\"b}}", "\"a\\\"b\"", "a\\\"b"),
        ("{{choice:[1]}}", "\"[1]\"", "[1]"),
    ] {
        assert_eq!(dressed(text, Dress::Value), value);
        assert_eq!(dressed(text, Dress::Inside), inside);
    }
    let uuid = dressed("{{uuid}}", Dress::Value);
    assert_eq!(uuid, format!("\"{}\"", dressed("{{uuid}}", Dress::Inside)));
}

#[test]
fn what_is_no_placeholder_is_refused_with_those_that_are() {
    for text in ["{{indx}}", "{{}}", "{{ index }}", "{{index:3}}", "{{prompt:2}}"] {
        let wrong = Text::read(text).unwrap_err();
        assert!(wrong.contains(text) && wrong.contains("{{uuid}}"), "{wrong}");
    }
    for text in ["{{random}}", "{{random:5:1}}", "{{random:1}}", "{{random:-1:1}}", "{{random:0:4294967295}}"]
    {
        let wrong = Text::read(text).unwrap_err();
        assert!(wrong.contains("{{random:1:100}}"), "{wrong}");
    }
    for text in ["{{choice}}", "{{choice:}}"] {
        assert!(Text::read(text).unwrap_err().contains("{{choice:a,b}}"));
    }
    for text in ["{{prompt}}", "{{model}}", "{{max_tokens}}", "{{stream}}"] {
        assert!(Text::read(text).unwrap_err().contains("only bodies have"), "{text}");
        assert!(pieces(text).is_ok());
    }
}

#[test]
fn a_placeholder_that_is_not_closed_is_told() {
    for text in ["r-{{index", "{{random:1:2}", "{\"a\": \"{{prompt\"}"] {
        let wrong = pieces(text).unwrap_err();
        assert!(wrong.contains("without }} behind it"), "{text}: {wrong}");
    }
    assert!(pieces("{{ index").is_ok() && pieces("{{{{index").is_ok(), "these are no placeholders");
}
