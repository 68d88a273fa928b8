use super::*;
use crate::api::Filling;
use crate::api::request::Template;

fn raw(body: &str) -> Raw {
    Raw { body: body.to_owned(), content: "/text".to_owned(), ..Raw::default() }
}

fn written(body: &str, prompt: &str) -> String {
    let mut out = Vec::new();
    Template::of_raw(&raw(body), "m\"", true).unwrap().write(&mut out, prompt, 7, &Filling::default());
    String::from_utf8(out).unwrap()
}

#[test]
fn blanks_are_filled_where_they_stand() {
    let body = r#"{
        "a": "{{prompt}}", "b": ["<s>{{prompt}}\n", {"c": "{{model}}/{{prompt}}{{prompt}}"}],
        "d": "{{max_tokens}}", "e": "{{stream}}", "f": null, "g": 0.5, "h": {}, "i\"": []
    }"#;
    assert_eq!(
        written(body, "x\"y"),
        r#"{"a":"x\"y","b":["<s>x\"y\n",{"c":"m\"/x\"yx\"y"}],"d":7,"e":true,"f":null,"g":0.5,"h":{},"i\"":[]}"#
    );
    assert_eq!(written(r#"{"a":"{{prompt}} ({{max_tokens}}, {{stream}})"}"#, "p"), r#"{"a":"p (7, true)"}"#);
    // The first byte of a prompt may need an escape too.
    assert_eq!(written(r#"{"a":"{{prompt}}!"}"#, "\""), r#"{"a":"\"!"}"#);
    assert_eq!(written(r#"{"a":"{{prompt}}!"}"#, ""), r#"{"a":"!"}"#);
}

#[test]
fn what_is_wrong_with_a_body_is_said() {
    let wrong = |body: &str| raw(body).check().unwrap_err();
    for (body, word) in [
        ("", "JSON object"),
        ("[]", "JSON object"),
        (r#"{"a":{{max_tokens}}}"#, "blanks in strings"),
        (r#"{"a":"prompt"}"#, "no {{prompt}}"),
        (r#"{"a":"{{prompt}}","b":"{{temperature}}"}"#, "{{temperature}}"),
        (r#"{"a":"{{prompt}}","b":"{{random:5:1}}"}"#, "{{random:5:1}}"),
    ] {
        let error = wrong(body);
        assert!(error.field == "body" && error.wrong.contains(word), "{body}: {error:?}");
    }
    assert_eq!(raw(r#"{"a":"{{prompt}}","b":"{{ and }}"}"#).check().unwrap_err().field, "body");
    assert_eq!(raw(r#"{"a":"{{prompt}}","b":"}} {{"}"#).check(), Ok(()));
    let places = Raw { finish: Some("choices.0".to_owned()), ..raw(r#"{"a":"{{prompt}}"}"#) };
    assert_eq!(places.check().unwrap_err().field, "finish");
}

#[test]
fn pointers_lead_through_objects_and_arrays() {
    let text = br#"{"a":[{"b/c":1},{"~":{"0":2}}],"0":{"":3}}"#;
    let mut json = Json::new();
    let document = json.parse(text).unwrap();
    let at = |pointer: &str| {
        Pointer::read("content", pointer).unwrap().find(document.root()).and_then(Value::as_u32)
    };
    assert_eq!((at("/a/0/b~1c"), at("/a/1/~0/0"), at("/0/")), (Some(1), Some(2), Some(3)));
    for nowhere in ["", "/a", "/a/2", "/a/-", "/a/x", "/b", "/a/0/b~1c/0"] {
        assert_eq!(at(nowhere), None, "{nowhere}");
    }
}

#[test]
fn reasons_are_words_or_the_truth() {
    let mut json = Json::new();
    let mut of = |value: &str| {
        let text = format!("[{value}]");
        let document = json.parse(text.as_bytes()).unwrap();
        document.root().items().next().and_then(reason)
    };
    for (value, finish) in [
        ("true", Some(Finish::Stop)),
        ("\"stop\"", Some(Finish::Stop)),
        ("\"eos_token\"", Some(Finish::Stop)),
        ("\"length\"", Some(Finish::Length)),
        ("\"limit\"", Some(Finish::Length)),
        ("\"error\"", Some(Finish::Error)),
        ("\"else\"", Some(Finish::Other)),
        ("\"\"", None),
        ("false", None),
        ("null", None),
        ("0", None),
    ] {
        assert_eq!(of(value), finish, "{value}");
    }
}
