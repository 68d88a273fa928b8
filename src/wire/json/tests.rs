use super::*;

/// What `read` makes of a document that is one.
fn reading<T>(text: &str, read: impl FnOnce(Value<'_>) -> T) -> T {
    let mut json = Json::new();
    let document = json.parse(text.as_bytes()).unwrap();
    read(document.root())
}

fn error(text: &[u8]) -> Option<Error> {
    Json::new().parse(text).err()
}

#[test]
fn a_field_is_found_behind_nested_values() {
    let text = r#"{"a":{"x":[1,{"b":2}]},"c":[[],{}],"b":"yes","d":null}"#;
    assert_eq!(reading(text, |v| v.field("b").unwrap().as_str().map(str::to_owned)).as_deref(), Some("yes"));
    assert!(reading(text, |v| v.field("d").unwrap().is_null()));
    assert!(reading(text, |v| v.field("x").is_none()));
    assert_eq!(reading(text, |v| v.field("c").unwrap().items().count()), 2);
}

#[test]
fn of_equal_keys_the_last_one_counts() {
    assert_eq!(reading(r#"{"a":1,"a":{"b":3},"a":2}"#, |v| v.field("a").unwrap().as_u32()), Some(2));
}

#[test]
fn keys_are_decoded() {
    assert_eq!(reading(r#"{"\u0061\n":7}"#, |v| v.field("a\n").unwrap().as_u32()), Some(7));
}

#[test]
fn asking_the_wrong_kind_gives_nothing() {
    let text = r#"["x",1,true,null,{"a":1}]"#;
    reading(text, |v| {
        assert!(v.field("a").is_none() && v.as_str().is_none() && !v.is_object() && v.is_array());
        let items: Vec<Value<'_>> = v.items().collect();
        assert!(items[0].as_u32().is_none() && items[0].items().next().is_none());
        assert!(items[1].as_str().is_none() && items[1].fields().next().is_none());
        assert!(items[2].as_f64().is_none() && items[2].as_bool() == Some(true));
        assert!(items[3].as_bool().is_none() && items[3].is_null());
        assert!(items[4].is_object() && items[4].len() == 1);
    });
}

#[test]
fn a_count_may_be_written_as_a_float() {
    let count = |number: &str| reading(&format!("[{number}]"), |v| v.items().next().unwrap().as_u32());
    for (text, value) in
        [("12", 12), ("12.0", 12), ("1.2e1", 12), ("0", 0), ("-0", 0), ("-0.0", 0), ("4294967295", u32::MAX)]
    {
        assert_eq!(count(text), Some(value), "{text}");
    }
    for text in ["-1", "-1.0", "1.5", "4294967296", "4.294967296e9", "1e300", "true", "null", "\"3\""] {
        assert_eq!(count(text), None, "{text}");
    }
}

#[test]
fn empty_is_what_says_nothing() {
    let empty = |value: &str| reading(&format!("[{value}]"), |v| v.items().next().unwrap().is_empty());
    for value in ["null", "false", "0", "0.0", "-0", "\"\"", "[]", "{}"] {
        assert!(empty(value), "{value}");
    }
    for value in ["true", "1", "0.5", "\" \"", "[0]", "{\"a\":null}"] {
        assert!(!empty(value), "{value}");
    }
}

#[test]
fn each_bad_utf8_sequence_becomes_a_replacement_character() {
    let mut json = Json::new();
    let document = json.parse(b"{\"a\":\"a\xff\xe2b\xf0\x9f\xa6c\"}").unwrap();
    assert_eq!(document.root().field("a").unwrap().as_str(), Some("a\u{fffd}\u{fffd}b\u{fffd}c"));
}

#[test]
fn bad_utf8_outside_a_string_is_no_document() {
    assert_eq!(error(b"{\"a\":1\xff}"), Some(Error::Syntax));
}

#[test]
fn an_unpaired_surrogate_becomes_a_replacement_character() {
    for (text, value) in [
        (r#"["a\ud83dz"]"#, "a\u{fffd}z"),
        (r#"["\ude00"]"#, "\u{fffd}"),
        (r#"["\ud83d"]"#, "\u{fffd}"),
        (r#"["\ud83d\ud83d\ude00\\\""]"#, "\u{fffd}\u{1f600}\\\""),
        (r#"["\ud83d\\u0041"]"#, "\u{fffd}\\u0041"),
        (r#"["\uD83D\u00e9"]"#, "\u{fffd}é"),
    ] {
        assert_eq!(
            reading(text, |v| v.items().next().unwrap().as_str().map(str::to_owned)).as_deref(),
            Some(value)
        );
    }
}

#[test]
fn a_number_that_does_not_fit_is_a_float() {
    let number =
        |text: &str| reading(&format!("{{\"n\":{text}}}"), |v| v.field("n").unwrap().as_f64().unwrap());
    assert_eq!(number("17171235005730000000000"), 1.717_123_500_573e22);
    assert_eq!(number("-99999999999999999999"), -1e20);
    assert_eq!(number("18446744073709551615"), 18_446_744_073_709_551_615.0);
    assert!(number("1e999") >= 1e300);
    assert!(number("-1e999") <= -1e300);
    assert!(number("1e-999").abs() <= 1e-300);
    assert!(number("0.000000000000000000000000000001") > 0.0);
}

#[test]
fn repair_makes_no_document_of_what_is_none() {
    for text in [
        "",
        " ",
        "{",
        "}",
        "[1,]",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{'a':1}",
        "{} x",
        "{}{}",
        "nul",
        "\"",
        "\"\\",
        "\"\\ud83d",
        "[\"\\ud8\"]",
        "[01]",
        "[1.]",
        "[+1]",
        "[-]",
        "[1e]",
        "[.5]",
        "[00000000000000000000001]",
        "[1e5e5]",
        "[NaN]",
        "[\"\t\"]",
        "{1:2}",
        "[99999999999999999999.]",
        "[\"\\x\"]",
    ] {
        assert_eq!(error(text.as_bytes()), Some(Error::Syntax), "{text}");
    }
}

#[test]
fn depth_and_size_have_their_own_errors() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert_eq!(error(nested(DEPTH_MAX).as_bytes()), None);
    assert_eq!(error(nested(DEPTH_MAX + 1).as_bytes()), Some(Error::TooDeep));
    assert_eq!(error("[".repeat(1 << 20).as_bytes()), Some(Error::TooDeep));
    assert_eq!(error("{\"a\":".repeat(1 << 16).as_bytes()), Some(Error::TooDeep));
    assert_eq!(error(&vec![b' '; TEXT_BYTES_MAX + 1]), Some(Error::TooLarge));
}

#[test]
fn memory_is_used_again_also_after_failures() {
    let mut json = Json::new();
    let text = br#"{"choices":[{"delta":{"content":"a\nb"}}],"n":[1,2,3,4,5,6,7,8,9]}"#;
    drop(json.parse(text).unwrap());
    let held = |json: &Json| (json.text.as_ptr(), json.tape.0.as_ptr() as usize, json.tape.0.capacity());
    let before = held(&json);
    assert!(before.2 > 0);
    for _ in 0..3 {
        drop(json.parse(text).unwrap());
        assert!(json.parse(b"{\"a\":tru").is_err());
    }
    assert_eq!(held(&json), before);
}

#[test]
fn a_giant_gives_its_memory_back() {
    let mut json = Json::new();
    let giant = format!("[{}1]", "1,".repeat(KEPT_BYTES_MAX));
    assert_eq!(json.parse(giant.as_bytes()).unwrap().root().len(), KEPT_BYTES_MAX + 1);
    drop(json.parse(b"{}").unwrap());
    assert!(json.text.capacity() < 4096 && json.tape.0.capacity() < 4096);
}

/// `serde_json` is an independent second opinion on thousands of damaged documents: what it takes, we take, with the
/// same values; what it refuses, we take only if a repair was needed.
#[test]
fn every_damaged_document_is_judged_as_serde_json_does() {
    let text = r#"{"a":[1,-2.5e3,true,false,null,"\u00e9\n\"x\""],"b":{"c":{},"c":[]},"d":"你 \ud83e\udd80","e":1e2}"#;
    let mut json = Json::new();
    let mut state = 9_u64;
    let mut random = move |limit: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % limit as u64) as usize
    };
    let mut taken = 0;
    for _ in 0..20_000 {
        let mut damaged = text.as_bytes().to_vec();
        for _ in 0..=random(2) {
            let at = random(damaged.len());
            let end = (at + random(4)).min(damaged.len());
            let piece = PIECES[random(PIECES.len())];
            damaged.splice(at..end, piece.iter().copied());
        }
        let ours = json.parse(&damaged).ok().map(|document| plain(document.root()));
        let theirs = serde_json::from_slice::<serde_json::Value>(&damaged).ok().map(floats);
        match (&ours, &theirs) {
            (Some(_), None) => assert!(repair::repaired(&damaged).is_some(), "{}", damaged.escape_ascii()),
            _ => assert_eq!(ours, theirs, "{}", damaged.escape_ascii()),
        }
        taken += usize::from(ours.is_some());
    }
    assert!((2_000..15_000).contains(&taken), "the damage is too weak or too strong: {taken}");
}

/// As `serde_json` would hold it, but for the numbers.
fn plain(value: Value<'_>) -> serde_json::Value {
    if value.is_object() {
        value.fields().map(|(name, value)| (name.to_owned(), plain(value))).collect()
    } else if value.is_array() {
        value.items().map(plain).collect()
    } else if let Some(number) = value.as_f64() {
        rounded(number)
    } else if let Some(truth) = value.as_bool() {
        truth.into()
    } else {
        value.as_str().into()
    }
}

/// 12 digits of a number: `serde_json` rounds those of more than 17 digits the wrong way now and then.
fn rounded(number: f64) -> serde_json::Value {
    format!("{:.11e}", number + 0.0).into()
}

fn floats(value: serde_json::Value) -> serde_json::Value {
    match value {
        serde_json::Value::Number(number) => rounded(number.as_f64().unwrap()),
        serde_json::Value::Array(items) => items.into_iter().map(floats).collect(),
        serde_json::Value::Object(fields) => {
            fields.into_iter().map(|(name, value)| (name, floats(value))).collect()
        }
        other => other,
    }
}

const PIECES: &[&[u8]] = &[
    b"",
    b"\"",
    b"\\",
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b" ",
    b"\n",
    b"0",
    b"9",
    b"-",
    b".",
    b"e",
    b"+",
    b"\x00",
    b"\x1f",
    b"\x7f",
    b"\x80",
    b"\xe2",
    b"\xff",
    b"\\u",
    b"\\ud800",
    b"\\udc00",
    b"\\u0000",
    b"null",
    b"true",
    b"nul",
    b"{}",
    b"[]",
    b"\"k\":",
    b"\"c\":1,",
    b"12345678901234567890123",
    b"1e999",
    b"-0.0",
    b"1.",
    b"01",
    b"/",
];
