use super::*;

/// What a response came to: the parts but the head, with the body in one piece, and the error if there was one.
#[derive(PartialEq, Debug)]
struct Read {
    interim: Vec<u16>,
    body: Vec<u8>,
    used: usize,
    ended: bool,
    error: Option<Error>,
}

/// Decodes the bytes in pieces of `len` bytes and leaves the decoder for further questions.
fn read_in_pieces(bytes: &[u8], len: usize, limits: Limits) -> (Response, Read) {
    let mut response = Response::new(limits);
    let mut read = Read { interim: Vec::new(), body: Vec::new(), used: 0, ended: false, error: None };
    for piece in bytes.chunks(len.max(1)) {
        let mut input = piece;
        loop {
            let step = match response.next(input) {
                Ok(step) => step,
                Err(error) => {
                    read.error = Some(error);
                    return (response, read);
                }
            };
            input = &input[step.used..];
            read.used += step.used;
            match step.part {
                Some(Part::Interim(status)) => read.interim.push(status),
                Some(Part::Head) => {}
                Some(Part::Body(data)) => read.body.extend_from_slice(data),
                Some(Part::End) => read.ended = true,
                None => break,
            }
        }
    }
    (response, read)
}

/// The same, whole and checked to be the same byte by byte. After an error `used` is not comparable.
fn read_limited(bytes: &[u8], limits: Limits) -> (Response, Read) {
    let (response, whole) = read_in_pieces(bytes, bytes.len(), limits);
    let (_, bytewise) = read_in_pieces(bytes, 1, limits);
    let used = if whole.error.is_some() { whole.used } else { bytewise.used };
    assert_eq!(
        Read { used, ..bytewise },
        whole,
        "byte by byte differs for {:?}",
        String::from_utf8_lossy(bytes)
    );
    (response, whole)
}

fn read(bytes: &[u8]) -> (Response, Read) {
    read_limited(bytes, Limits::default())
}

fn head_of(bytes: &[u8]) -> Head {
    let (response, read) = read(bytes);
    assert_eq!(read.error, None, "{:?}", String::from_utf8_lossy(bytes));
    *response.head().expect("a head")
}

fn error_of(bytes: &[u8]) -> Option<Error> {
    read(bytes).1.error
}

fn chunked(body: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{body}").into_bytes()
}

#[test]
fn the_framing_follows_status_coding_and_length() {
    let table: &[(&str, Framing)] = &[
        ("200 OK\r\n", Framing::Close),
        ("200 OK\r\nContent-Length: 0\r\n", Framing::Length(0)),
        ("200 OK\r\ncontent-length:12\r\n", Framing::Length(12)),
        ("200 OK\r\nContent-Length: 18446744073709551615\r\n", Framing::Length(u64::MAX)),
        ("200 OK\r\nContent-Length: 7\r\nContent-Length: 7\r\n", Framing::Length(7)),
        ("200 OK\r\nContent-Length: 7, 7\r\n", Framing::Length(7)),
        ("200 OK\r\nTransfer-Encoding: chunked\r\n", Framing::Chunked),
        ("200 OK\r\nTRANSFER-ENCODING:   Chunked  \r\n", Framing::Chunked),
        ("200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 7\r\n", Framing::Chunked),
        ("200 OK\r\nContent-Length: 7\r\nTransfer-Encoding: chunked\r\n", Framing::Chunked),
        ("200 OK\r\nTransfer-Encoding: gzip, chunked\r\n", Framing::Chunked),
        ("200 OK\r\nTransfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n", Framing::Chunked),
        ("200 OK\r\nTransfer-Encoding: gzip\r\nContent-Length: 7\r\n", Framing::Close),
        ("200 OK\r\nTransfer-Encoding: identity\r\nContent-Length: 7\r\n", Framing::Length(7)),
        ("200 OK\r\nTransfer-Encoding:\r\n chunked\r\n", Framing::Chunked),
        ("204 No Content\r\nContent-Length: 7\r\n", Framing::None),
        ("304 Not Modified\r\nTransfer-Encoding: chunked\r\n", Framing::None),
        ("500\r\nContent-Length: 3\r\n", Framing::Length(3)),
    ];
    for (lines, framing) in table {
        assert_eq!(head_of(format!("HTTP/1.1 {lines}\r\n").as_bytes()).framing, *framing, "{lines:?}");
    }
}

#[test]
fn the_connection_is_kept_where_version_header_and_framing_allow_it() {
    let table: &[(&str, bool)] = &[
        ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n", true),
        ("HTTP/1.1 204 No Content\r\n", true),
        ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n", false),
        ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nconnection: Upgrade, CLOSE\r\n", false),
        ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: keep-alive\r\nConnection: close\r\n", false),
        ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: closed\r\n", true),
        ("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n", false),
        ("HTTP/1.0 200 OK\r\nContent-Length: 0\r\nConnection: Keep-Alive\r\n", true),
        ("HTTP/1.1 200 OK\r\n", false),
        ("HTTP/1.1 200 OK\r\nConnection: keep-alive\r\n", false),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n", true),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 7\r\n", false),
        ("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: keep-alive\r\n", false),
    ];
    for (lines, keep_alive) in table {
        assert_eq!(head_of(format!("{lines}\r\n").as_bytes()).keep_alive, *keep_alive, "{lines:?}");
    }
    let (open, _) = read(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n");
    assert!(!open.keep_alive(), "not before the end");
    let (ended, _) = read(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx");
    assert!(ended.keep_alive());
}

#[test]
fn the_media_type_is_the_last_one_without_case_and_parameters() {
    let table: &[(&str, ContentType)] = &[
        ("", ContentType::Absent),
        ("Content-Type:\r\n", ContentType::Absent),
        ("Content-Type: nonsense\r\n", ContentType::Absent),
        ("Content-Type: text/event-stream\r\n", ContentType::EventStream),
        ("content-type:Text/Event-Stream ; charset=utf-8\r\n", ContentType::EventStream),
        ("Content-Type: application/json, text/event-stream;a=b\r\n", ContentType::EventStream),
        ("Content-Type: text/event-stream\r\nContent-Type: application/json\r\n", ContentType::Json),
        ("Content-Type: text/event-stream; a=\"b,c\"\r\n", ContentType::EventStream),
        ("Content-Type: application/problem+json\r\n", ContentType::Json),
        ("Content-Type: application/x-ndjson\r\n", ContentType::NdJson),
        ("Content-Type: application/jsonl\r\n", ContentType::NdJson),
        ("Content-Type: text/html; charset=iso-8859-1\r\n", ContentType::Html),
        ("Content-Type: text/plain\r\n", ContentType::Other),
        ("Content-Type: application/jsonish\r\n", ContentType::Other),
    ];
    for (lines, content_type) in table {
        let bytes = format!("HTTP/1.1 200 OK\r\n{lines}Content-Length: 0\r\n\r\n");
        assert_eq!(head_of(bytes.as_bytes()).content_type, *content_type, "{lines:?}");
    }
}

#[test]
fn a_coded_body_is_marked() {
    let table: &[(&str, bool)] = &[
        ("Content-Encoding: gzip\r\n", true),
        ("CONTENT-ENCODING: identity, br\r\n", true),
        ("Content-Encoding: Identity\r\n", false),
        ("Content-Encoding:\r\n", false),
        ("Transfer-Encoding: gzip, chunked\r\n", true),
        ("Transfer-Encoding: gzip\r\n", true),
        ("Transfer-Encoding: chunked\r\n", false),
        ("Accept-Encoding: gzip\r\n", false),
    ];
    for (line, encoded) in table {
        assert_eq!(
            head_of(format!("HTTP/1.1 200 OK\r\n{line}\r\n").as_bytes()).encoded,
            *encoded,
            "{line:?}"
        );
    }
}

#[test]
fn a_wait_is_whole_seconds_and_a_server_name_is_short() {
    let wait = |value: &str| {
        head_of(format!("HTTP/1.1 429 x\r\nRetry-After:{value}\r\n\r\n").as_bytes()).retry_after_s
    };
    assert_eq!(wait(" 7 "), Some(7));
    assert_eq!(wait("0"), Some(0));
    assert_eq!(wait("1.5"), None);
    assert_eq!(wait("-1"), None);
    assert_eq!(wait("18446744073709551616"), None);
    assert_eq!(wait("Fri, 31 Dec 1999 23:59:59 GMT"), None);
    let server = |value: &str| {
        let head = head_of(format!("HTTP/1.1 200 OK\r\nServer: {value}\r\n\r\n").as_bytes());
        head.server.as_str().to_owned()
    };
    assert_eq!(server("uvicorn"), "uvicorn");
    assert_eq!(server("é\tx"), "x");
    assert_eq!(server(&"s".repeat(100)), "s".repeat(ShortText::BYTES_MAX));
    let head = head_of(b"HTTP/1.1 200 OK\r\nvia: 1.1 front\r\n\r\n");
    assert_eq!((head.via.as_str(), head.server.as_str()), ("1.1 front", ""));
}

#[test]
fn lenient_forms_of_a_head_are_read() {
    for head in [
        "HTTP/1.1 200 OK\nContent-Length: 2\n\n",
        "HTTP/1.1 200 OK\nContent-Length: 2\r\n\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\n\r\n",
        "HTTP/1.1 200\r\nContent-Length: 2\r\n\r\n",
        "HTTP/1.1 200 \r\nContent-Length: 2\r\n\r\n",
        "HTTP/1.1 200 OK\r\nx-long: a\r\n b\r\n\tc\r\n \r\nContent-Length:2\r\n\r\n",
        "\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n",
        "\n\r\n\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\nEmpty:\r\n\r\n",
        "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n",
    ] {
        let bytes = format!("{head}ab");
        let (_, read) = read(bytes.as_bytes());
        let expected =
            Read { interim: vec![], body: b"ab".to_vec(), used: bytes.len(), ended: true, error: None };
        assert_eq!(read, expected, "{head:?}");
    }
}

#[test]
fn faults_in_a_head_have_their_names() {
    let table: &[(&str, Error)] = &[
        ("<html>", Error::NotHttp),
        ("HTTX", Error::NotHttp),
        ("\x15\x03\x01\x00\x02\x02\x16", Error::NotHttp),
        ("ICY 200 OK\r\n", Error::NotHttp),
        ("http/1.1 200 OK\r\n", Error::NotHttp),
        (" HTTP/1.1 200 OK\r\n", Error::NotHttp),
        ("HTTP/2 200\r\n", Error::Version),
        ("HTTP/1.2 200 OK\r\n\r\n", Error::Version),
        ("HTTP/1.1 20x OK\r\n\r\n", Error::Status),
        ("HTTP/1.1 99\r\n\r\n", Error::Status),
        ("HTTP/1.1 099 Low\r\n\r\n", Error::Status),
        ("HTTP/1.1 101 Switching Protocols\r\n\r\n", Error::Status),
        ("HTTP/1.1 200 OK\r\nno colon\r\n\r\n", Error::Header),
        ("HTTP/1.1 200 OK\r\nspace : x\r\n\r\n", Error::Header),
        ("HTTP/1.1 200 OK\r\nnul: \0\r\n\r\n", Error::Header),
        ("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", Error::ContentLength),
        ("HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\n", Error::ContentLength),
        ("HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n", Error::ContentLength),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5,\r\n\r\n", Error::ContentLength),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5 5\r\n\r\n", Error::ContentLength),
        ("HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551616\r\n\r\n", Error::ContentLength),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n", Error::ContentLength),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5, 6\r\n\r\n", Error::ContentLength),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, gzip\r\n\r\n", Error::TransferEncoding),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, chunked\r\n\r\n", Error::TransferEncoding),
    ];
    for (bytes, error) in table {
        assert_eq!(error_of(bytes.as_bytes()), Some(*error), "{bytes:?}");
    }
}

#[test]
fn interim_responses_are_skipped_one_by_one() {
    let bytes = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n\
        HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx";
    let (response, read) = read(bytes);
    assert_eq!(read.interim, [100, 103]);
    assert_eq!((read.body, read.ended), (b"x".to_vec(), true));
    assert_eq!(response.head().unwrap().status, 200);
}

#[test]
fn every_form_of_chunk_is_read() {
    for body in [
        "5\r\nhello\r\n0\r\n\r\n",
        "2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n",
        "0005\r\nhello\r\n00000000\r\n\r\n",
        "000000000000000000005\r\nhello\r\n0\r\n\r\n",
        "5  \r\nhello\r\n0\t\r\n\r\n",
        "5;a=b;c=\"d\"\r\nhello\r\n0;x\r\n\r\n",
        "5 ; a\r\nhello\r\n0\r\n\r\n",
        "5\r\nhello\r\n0\r\nA: b\r\nC: d\r\n\r\n",
    ] {
        let bytes = chunked(body);
        let (response, read) = read(&bytes);
        assert_eq!((read.error, &read.body[..]), (None, &b"hello"[..]), "{body:?}");
        assert!(read.ended && response.is_complete() && response.keep_alive());
        assert_eq!(read.used, bytes.len());
    }
    let long = "x".repeat(0xABC);
    let (_, read) = read(&chunked(&format!("AbC\r\n{long}\r\n0\r\n\r\n")));
    assert_eq!(read.body, long.as_bytes());
}

#[test]
fn faults_in_chunk_framing_have_their_names() {
    let table: &[(&str, Error)] = &[
        ("zz\r\n", Error::ChunkSize),
        ("\r\n", Error::ChunkSize),
        (";a\r\n", Error::ChunkSize),
        (" 5\r\n", Error::ChunkSize),
        ("0x5\r\n", Error::ChunkSize),
        ("5g\r\n", Error::ChunkSize),
        ("5 5\r\n", Error::ChunkSize),
        ("-5\r\n", Error::ChunkSize),
        ("5\nhello", Error::ChunkLineEnd),
        ("5\rhello", Error::ChunkLineEnd),
        ("5;a\nhello", Error::ChunkLineEnd),
        ("5;a\rb\r\nhello", Error::ChunkLineEnd),
        ("0\n\n", Error::ChunkLineEnd),
        ("10000000001\r\n", Error::ChunkSizeTooLarge),
        ("ffffffffffffffffff\r\n", Error::ChunkSizeTooLarge),
        ("5\r\nhello0\r\n\r\n", Error::ChunkDataEnd),
        ("5\r\nhello\n0\r\n\r\n", Error::ChunkDataEnd),
        ("5\r\nhello\r0\r\n\r\n", Error::ChunkDataEnd),
        ("0\r\n\n", Error::Trailer),
        ("0\r\n\rx", Error::Trailer),
        ("0\r\nA: b\n\r\n", Error::Trailer),
        ("0\r\nA: b\rC: d\r\n\r\n", Error::Trailer),
    ];
    for (body, error) in table {
        assert_eq!(error_of(&chunked(body)), Some(*error), "{body:?}");
    }
}

#[test]
fn data_before_a_fault_is_handed_on() {
    let (mut response, read) = read(&chunked("5\r\nhello\r\nzz\r\n"));
    assert_eq!((read.body, read.error), (b"hello".to_vec(), Some(Error::ChunkSize)));
    assert_eq!(response.next(b"5\r\nhello"), Err(Error::ChunkSize), "an error stays");
    assert_eq!(response.on_eof(), Err(Error::ChunkSize));
    assert!(!response.is_complete() && !response.keep_alive());
}

#[test]
fn the_end_of_the_connection_completes_truncates_or_answers_nothing() {
    let at_eof = |bytes: &[u8]| {
        let (mut response, read) = read(bytes);
        assert_eq!(read.error, None);
        response.on_eof()
    };
    let close = b"HTTP/1.1 200 OK\r\n\r\n";
    let length = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n";
    assert_eq!(at_eof(b""), Err(Error::NoResponse));
    assert_eq!(at_eof(b"\r\n\r\n"), Err(Error::NoResponse));
    assert_eq!(at_eof(b"H"), Err(Error::Truncated));
    assert_eq!(at_eof(b"HTTP/1.1 200 OK\r\n"), Err(Error::Truncated));
    assert_eq!(at_eof(b"HTTP/1.1 100 Continue\r\n\r\n"), Err(Error::Truncated));
    assert_eq!(at_eof(close), Ok(End::ByClose));
    assert_eq!(at_eof(&[close, &b"data"[..]].concat()), Ok(End::ByClose));
    assert_eq!(at_eof(length), Err(Error::Truncated));
    assert_eq!(at_eof(&[length, &b"a"[..]].concat()), Err(Error::Truncated));
    assert_eq!(at_eof(&[length, &b"ab"[..]].concat()), Ok(End::Before));
    assert_eq!(at_eof(b"HTTP/1.1 204 No Content\r\n\r\n"), Ok(End::Before));
    for body in
        ["", "5", "5\r\n", "5\r\nhel", "5\r\nhello", "5\r\nhello\r\n", "0", "0\r\n", "0\r\nA: b", "0\r\n\r"]
    {
        assert_eq!(at_eof(&chunked(body)), Err(Error::Truncated), "{body:?}");
    }
    assert_eq!(at_eof(&chunked("0\r\n\r\n")), Ok(End::Before));
    let (mut response, _) = read(close);
    assert!(!response.is_complete());
    assert_eq!(response.on_eof(), Ok(End::ByClose));
    assert!(response.is_complete() && !response.keep_alive());
}

#[test]
fn bytes_after_the_end_are_left_alone() {
    for message in [
        &chunked("0\r\n\r\n")[..],
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab",
        b"HTTP/1.1 204 No Content\r\n\r\n",
    ] {
        let bytes = [message, b"\r\nHTTP/1.1 200 OK\r\n\r\n"].concat();
        let (mut response, read) = read(&bytes);
        assert_eq!((read.used, read.ended, read.error), (message.len(), true, None));
        assert_eq!(response.next(b"more"), Ok(Step { used: 0, part: None }));
    }
}

#[test]
fn each_limit_holds_at_its_value_and_breaks_one_beyond() {
    let base = Limits::default();
    let error = |bytes: &[u8], limits| read_limited(bytes, limits).1.error;

    let head = b"HTTP/1.1 200 OK\r\nA: b\r\nC: d\r\n\r\n";
    for (bytes, expected) in [(head.len(), None), (head.len() - 1, Some(Error::HeadTooLong))] {
        assert_eq!(error(head, Limits { head_bytes_max: bytes, ..base }), expected);
    }
    assert_eq!(error(b"\n\n\n\n\n\n\n\n\n", Limits { head_bytes_max: 8, ..base }), Some(Error::HeadTooLong));
    assert_eq!(error(head, Limits { headers_max: 2, ..base }), None);
    assert_eq!(error(head, Limits { headers_max: 1, ..base }), Some(Error::TooManyHeaders));
    let many = |count: usize| format!("HTTP/1.1 200 OK\r\n{}\r\n", "a: b\r\n".repeat(count)).into_bytes();
    assert_eq!(error(&many(128), Limits { headers_max: 500, ..base }), None);
    assert_eq!(error(&many(129), Limits { headers_max: 500, ..base }), Some(Error::TooManyHeaders));

    let body = chunked("1f;abc\r\n");
    assert_eq!(error(&body, Limits { chunk_line_bytes_max: 8, ..base }), None);
    assert_eq!(error(&body, Limits { chunk_line_bytes_max: 7, ..base }), Some(Error::ChunkLineTooLong));
    assert_eq!(
        error(&chunked("1f\r\n"), Limits { chunk_line_bytes_max: 3, ..base }),
        Some(Error::ChunkLineTooLong)
    );
    assert_eq!(error(&body, Limits { chunk_size_max: 31, ..base }), None);
    assert_eq!(error(&body, Limits { chunk_size_max: 30, ..base }), Some(Error::ChunkSizeTooLarge));
    assert_eq!(
        error(&chunked("1f\r\n"), Limits { chunk_size_max: 30, ..base }),
        Some(Error::ChunkSizeTooLarge)
    );
    let body = chunked("ffffffffffffffff\r\n");
    assert_eq!(error(&body, Limits { chunk_size_max: u64::MAX, ..base }), None);
    let body = chunked("10000000000000000\r\n");
    assert_eq!(error(&body, Limits { chunk_size_max: u64::MAX, ..base }), Some(Error::ChunkSizeTooLarge));

    let body = chunked("0\r\nA: b\r\n\r\n");
    assert_eq!(error(&body, Limits { trailer_bytes_max: 8, ..base }), None);
    assert_eq!(error(&body, Limits { trailer_bytes_max: 7, ..base }), Some(Error::TrailerTooLong));
}

#[test]
fn body_parts_lie_in_the_input() {
    let mut response = Response::new(Limits::default());
    response.next(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").unwrap();
    let input = b"5\r\nhello\r\n3\r\nyou\r\n0\r\n\r\n";
    let step = response.next(input).unwrap();
    assert_eq!(step, Step { used: 10, part: Some(Part::Body(b"hello")) });
    let Some(Part::Body(data)) = step.part else { panic!("no body") };
    assert_eq!(data.as_ptr_range(), input[3..8].as_ptr_range());
    assert_eq!(response.next(&input[10..]), Ok(Step { used: 8, part: Some(Part::Body(b"you")) }));
    assert_eq!(response.next(&input[18..]), Ok(Step { used: 5, part: Some(Part::End) }));
}

#[test]
fn a_reset_decoder_is_a_new_one() {
    let broken: [&[u8]; 4] = [b"HTTP/1.1 20", b"\r\n", b"nonsense", &chunked("5\r\nhel")];
    for before in broken {
        let (mut response, _) = read(before);
        response.reset();
        assert!(!response.started() && !response.is_complete() && response.head().is_none());
        assert_eq!(response.buffered_bytes(), 0);
        let step = response.next(b"HTTP/1.1 404 Not Found\r\n\r\n").unwrap();
        assert_eq!(step, Step { used: 26, part: Some(Part::Head) });
        assert_eq!(response.head().unwrap().status, 404);
    }
}

#[test]
fn a_response_has_started_with_its_first_byte() {
    let mut response = Response::new(Limits::default());
    response.next(b"\r\n").unwrap();
    assert!(!response.started());
    response.next(b"H").unwrap();
    assert!(response.started());
}
