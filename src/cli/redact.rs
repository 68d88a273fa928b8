//! The command line as it may be stored: without the secrets in it.
//!
//! It works on the words as they were typed, whatever they mean, so that a word that was misread is hidden too.

use crate::plan::{REDACTED, Secrets};

/// The words after the program's name in one line, quoted where a shell needs it, with keys, passwords and the values
/// of secret headers replaced.
#[must_use]
pub fn command_line(words: &[String]) -> String {
    let mut line = String::from("tokload");
    let mut option = String::new();
    for word in words {
        line.push(' ');
        line.push_str(&quoted(&hidden(&option, word)));
        if word.starts_with('-') {
            option = word.replace('_', "-");
        }
    }
    line
}

/// `word` after `option`, without what is secret in it.
fn hidden(option: &str, word: &str) -> String {
    if let Some((name, value)) = word.split_once('=').filter(|_| word.starts_with("--")) {
        return format!("{name}={}", hidden(&name.replace('_', "-"), value));
    }
    if let Some(value) = word.strip_prefix("-H").filter(|value| !value.is_empty()) {
        return format!("-H{}", hidden("-H", value));
    }
    if word.starts_with('-') {
        return word.to_owned();
    }
    match option {
        // The name of a variable tells nothing, but a key may look like one.
        "--api-key" => REDACTED.to_owned(),
        "-H" | "--header" | "--headers" if word.trim_start().starts_with('{') => REDACTED.to_owned(),
        _ => without_password(&without_header_value(word)),
    }
}

/// `Authorization: Bearer x` becomes `Authorization: [secret]`.
fn without_header_value(word: &str) -> String {
    match word.find([':', '=']).map(|place| word.split_at(place)) {
        Some((name, value))
            if Secrets::covers(name) && !name.contains(['/', '{', ' ']) && value.len() > 1 =>
        {
            format!("{name}{} {REDACTED}", &value[..1])
        }
        _ => word.to_owned(),
    }
}

/// `http://user:password@host` becomes `http://[secret]@host`.
fn without_password(word: &str) -> String {
    let start = word.find("://").map_or(0, |place| place + 3);
    let (scheme, rest) = word.split_at(start);
    let end = rest.find(['/', '?', '#', ' ', '"']).unwrap_or(rest.len());
    match rest[..end].rfind('@') {
        Some(at) => format!("{scheme}{REDACTED}{}", &rest[at..]),
        None => word.to_owned(),
    }
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=+:,./@[]%".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(words: &[&str]) -> String {
        command_line(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn what_is_not_secret_stays_and_is_quoted() {
        assert_eq!(
            line(&[
                "run",
                "--base-url",
                "http://h:8000/v1",
                "-c4",
                "--extra-body",
                r#"{"a": "it's"}"#,
                "--label",
                ""
            ]),
            r#"tokload run --base-url http://h:8000/v1 -c4 --extra-body '{"a": "it'\''s"}' --label ''"#
        );
        assert_eq!(
            line(&["run", "--goodput", "ttft:500", "tpot:50"]),
            "tokload run --goodput ttft:500 tpot:50"
        );
    }

    #[test]
    fn secrets_are_gone_however_they_are_spelt() {
        for words in [
            &["run", "--api-key", "hunter2"][..],
            &["run", "--api-key=hunter2"],
            &["run", "--api_key", "hunter2"],
            &["run", "--header", "Authorization: Bearer hunter2"],
            &["run", "--header=Authorization: Bearer hunter2"],
            &["run", "-H", "x-api-key=hunter2"],
            &["run", "-HCookie: hunter2"],
            &["run", "--header", "X-A=1", "Cookie=hunter2"],
            &["run", "-H", r#"{"Authorization": "hunter2"}"#],
            &["run", "--base-url", "http://u:hunter2@h:1/v1"],
            &["run", "--url=u:hunter2@h"],
            &["run", "--base-url", "https://hunter2@h", "-m", "x"],
        ] {
            let line = line(words);
            assert!(!line.contains("hunter2") && line.contains("[secret]"), "{line}");
        }
    }
}
