use super::*;

fn message(body: &str) -> Option<String> {
    error_message(&mut Json::new(), body.as_bytes())
}

#[test]
fn the_message_is_found_in_each_shape() {
    for (body, expected) in [
        (r#"{"error":{"message":"no such model","type":"x","param":null,"code":404}}"#, "no such model"),
        (r#"{"error":"busy"}"#, "busy"),
        (r#"{"error":{"message":"","type":"internal_server_error"}}"#, "internal_server_error"),
        (r#"{"message":"Model not found","type":"Not Found","code":404}"#, "Model not found"),
        (r#"{"object":"error","message":"too long","type":"BadRequestError","code":400}"#, "too long"),
        (r#"{"detail":"Method Not Allowed"}"#, "Method Not Allowed"),
        (
            r#"{"detail":[{"type":"missing","loc":["body","messages",0,"role"],"msg":"Field required","input":{}},
            {"loc":[],"msg":"other"}]}"#,
            "body.messages.role: Field required; other",
        ),
        (r#"{"type":"about:blank","title":"Bad","detail":"wrong thing"}"#, "wrong thing"),
        (r#"{"error":null,"type":"oops"}"#, "oops"),
        (r#"[{"error":{"message":"in a list"}}]"#, "in a list"),
        ("\"a string\"", "a string"),
        ("Internal Server Error", "Internal Server Error"),
        ("<html><head><TITLE>502 Bad Gateway</title></head>", "502 Bad Gateway"),
        ("no \u{1b}[31mred\r\n  and\tno\0 lines ", "no [31mred and no lines"),
    ] {
        assert_eq!(message(body).as_deref(), Some(expected), "{body}");
    }
    for body in ["", "  \n", "{}", "[]", "null", "7", "<html>", r#"{"error":{"code":1}}"#, r#"{"detail":[]}"#]
    {
        assert_eq!(message(body), None, "{body}");
    }
}

#[test]
fn a_long_message_is_cut() {
    let long = message(&"é".repeat(5000)).unwrap();
    assert_eq!(long.chars().count(), MESSAGE_CHARS_MAX + 1);
    assert!(long.ends_with("é…"));
    assert_eq!(message(&"ab ".repeat(100)).unwrap().chars().count(), 299);
}

#[test]
fn a_field_is_named_in_message_param_or_place() {
    for body in [
        r#"{"detail":"Unexpected fields in the request: {'ignore_eos'}"}"#,
        r#"{"error":{"message":"bad","param":"body.ignore_eos"}}"#,
        r#"{"error":"unknown field `ignore_eos`, expected one of `a`"}"#,
        r#"{"message":"ignore_eos: not supported","type":"Bad Request","code":400}"#,
        r#"{"detail":[{"type":"extra_forbidden","loc":["body","ignore_eos"],"msg":"Extra inputs are not permitted"}]}"#,
        r#"{"detail":{"msg":"no ignore_eos"}}"#,
        r#"{"error":{"message":"2 errors:\n  {'loc': 'body.x', 'input': 1}\n  {'loc': ('body', 'ignore_eos')}"}}"#,
        "ignore_eos?",
    ] {
        assert!(names_field(body.as_bytes(), "ignore_eos"), "{body}");
    }
}

#[test]
fn a_field_that_is_only_quoted_or_part_of_a_word_is_not_named() {
    for body in [
        r#"{"detail":[{"type":"missing","loc":["body","messages"],"msg":"Field required","input":{"ignore_eos":true}}]}"#,
        r#"{"error":{"message":"1 error:\n  {'loc': ('body', 'x'), 'input': {'ignore_eos': True}}"}}"#,
        r#"{"error":{"message":"ignore_eos_token and xignore_eos and ignore_eos2"}}"#,
        r#"{"request":{"ignore_eos":true},"error":"too busy"}"#,
        "",
    ] {
        assert!(!names_field(body.as_bytes(), "ignore_eos"), "{body}");
    }
    assert!(!names_field(b"anything", ""));
}

/// The words of real servers, from captures, and of some that are none of these.
#[test]
fn a_refusal_for_the_length_of_the_context_is_known_by_its_words() {
    for said in [
        "This model's maximum context length is 4096 tokens. However, your prompt contains 68050 characters",
        "max_tokens=100000 cannot be greater than max_model_len=4096. Please request fewer output tokens.",
        "request (12002 tokens) exceeds the available context size (4096 tokens), try increasing it",
        "The input (5000 tokens) is longer than the model's context length (4096 tokens).",
        "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens and 20 `max_new_tokens`",
        "context_length_exceeded",
    ] {
        assert!(is_context_limit(said), "{said}");
    }
    for said in ["", "max_tokens must be at least 1, got 0", "Internal server error", "rate limit reached"] {
        assert!(!is_context_limit(said), "{said}");
    }
}
