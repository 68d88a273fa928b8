//! The slow, obvious decoders that the fast ones are compared with. They see the whole body at once.

use tokload::wire::sse::Name;

use super::Event;

/// What a chunked body comes to.
pub(super) struct Chunked {
    pub(super) data: Vec<u8>,
    pub(super) ending: Ending,
}

#[derive(PartialEq, Eq, Debug)]
pub(super) enum Ending {
    /// Nothing that could follow would make it a chunked body.
    Broken,
    Complete {
        leftover: usize,
    },
    /// More could follow.
    Open,
}

pub(super) fn chunked(mut rest: &[u8]) -> Chunked {
    let mut data = Vec::new();
    let ending = loop {
        let Some((line, behind)) = line(rest) else {
            break unfinished(rest, &["", "\n", "\r\n", "1\r\n"], |line| size(line).is_some());
        };
        let Some(size) = size(line) else { break Ending::Broken };
        rest = behind;
        if size == 0 {
            break trailers(rest);
        }
        let here = rest.len().min(usize::try_from(size).unwrap_or(usize::MAX));
        data.extend_from_slice(&rest[..here]);
        rest = &rest[here..];
        match rest {
            [b'\r', b'\n', ..] => rest = &rest[2..],
            [] | [b'\r'] => break Ending::Open,
            _ => break Ending::Broken,
        }
    };
    Chunked { data, ending }
}

fn trailers(mut rest: &[u8]) -> Ending {
    loop {
        let Some((line, behind)) = line(rest) else {
            return unfinished(rest, &["", "\n", "\r\n"], |line| content(line).is_some());
        };
        rest = behind;
        match content(line) {
            None => return Ending::Broken,
            Some([]) => return Ending::Complete { leftover: rest.len() },
            Some(_) => {}
        }
    }
}

/// A beginning of a line is in order if something could be put behind it that makes it a line in order.
fn unfinished(start: &[u8], tails: &[&str], valid: impl Fn(&[u8]) -> bool) -> Ending {
    let open = tails.iter().any(|tail| valid(&[start, tail.as_bytes()].concat()));
    if open { Ending::Open } else { Ending::Broken }
}

/// The first line with its LF, and what follows it.
fn line(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let lf = bytes.iter().position(|&byte| byte == b'\n')?;
    Some(bytes.split_at(lf + 1))
}

/// A line without its CRLF, if that is the only line end in it.
fn content(line: &[u8]) -> Option<&[u8]> {
    let content = line.strip_suffix(b"\r\n")?;
    if content.contains(&b'\r') || content.contains(&b'\n') { None } else { Some(content) }
}

/// The size on a size line of a chunk: digits, then blanks, then perhaps a semicolon and anything.
fn size(line: &[u8]) -> Option<u64> {
    let content = content(line)?;
    let number = content.split(|&byte| byte == b';').next().unwrap();
    let number = String::from_utf8(number.to_vec()).ok()?;
    let number = number.trim_end_matches([' ', '\t']);
    if number.is_empty() || !number.chars().all(|char| char.is_ascii_hexdigit()) {
        return None;
    }
    u64::from_str_radix(number, 16).ok().filter(|&size| size <= 1 << 40)
}

/// The events of a body, and the one that its end cuts off.
pub(super) fn sse(body: &[u8]) -> (Vec<Event>, Option<Event>) {
    let body = body.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(body);
    let lines = with_lf(body);
    let mut lines: Vec<&[u8]> = lines.split(|&byte| byte == b'\n').collect();
    // What stands behind the last line end is a line only for the event that is cut off.
    let tail = lines.pop().unwrap();
    let mut events = Vec::new();
    let mut block = Vec::new();
    for line in lines {
        if line.is_empty() {
            events.extend(event(&block));
            block.clear();
        } else {
            block.push(line);
        }
    }
    block.push(tail);
    (events, event(&block))
}

/// Every line end as LF.
fn with_lf(body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for (i, &byte) in body.iter().enumerate() {
        match byte {
            b'\n' if i > 0 && body[i - 1] == b'\r' => {}
            b'\r' => out.push(b'\n'),
            byte => out.push(byte),
        }
    }
    out
}

/// What the lines of one block come to.
fn event(block: &[&[u8]]) -> Option<Event> {
    let fields = || block.iter().map(|line| field(line));
    let data: Vec<_> = fields().filter(|(name, _)| name == b"data").map(|(_, value)| value).collect();
    let no_error = [&b""[..], b"null", b"false"];
    let errors: Vec<_> = fields()
        .filter(|(name, value)| name == b"error" && !no_error.contains(&value.trim_ascii()))
        .map(|(_, value)| value)
        .collect();
    let name = match fields().rfind(|(name, _)| name == b"event") {
        None => Name::None,
        Some((_, value)) => match &value[..] {
            b"" | b"message" => Name::None,
            b"error" => Name::Error,
            _ => Name::Other,
        },
    };
    let error_field = !errors.is_empty();
    if data.is_empty() {
        return errors.first().map(|error| Event { data: error.clone(), name, error_field });
    }
    Some(Event { data: data.join(&b'\n'), name, error_field })
}

fn field(line: &[u8]) -> (Vec<u8>, Vec<u8>) {
    match line.iter().position(|&byte| byte == b':') {
        None => (line.to_vec(), Vec::new()),
        Some(colon) => {
            let value = &line[colon + 1..];
            (line[..colon].to_vec(), value.strip_prefix(b" ").unwrap_or(value).to_vec())
        }
    }
}
