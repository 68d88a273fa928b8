use super::*;

#[derive(Clone, PartialEq, Eq, Debug)]
struct Owned {
    data: String,
    name: Name,
    error_field: bool,
}

impl From<Event<'_>> for Owned {
    fn from(event: Event<'_>) -> Owned {
        let data = String::from_utf8(event.data.to_vec()).unwrap();
        Owned { data, name: event.name, error_field: event.error_field }
    }
}

/// The events, and what the end of the body leaves.
type Read = (Vec<Owned>, Result<Option<Owned>, Error>);

fn read_pieces<'a>(pieces: impl IntoIterator<Item = &'a [u8]>, limits: Limits) -> Read {
    let mut decoder = Decoder::new(limits);
    let mut events = Vec::new();
    for piece in pieces {
        let mut input = piece;
        loop {
            match decoder.next(input) {
                Err(error) => return (events, Err(error)),
                Ok(Step { used, event: Some(event) }) => {
                    events.push(event.into());
                    input = &input[used..];
                }
                Ok(Step { used, event: None }) => {
                    assert_eq!(used, input.len());
                    break;
                }
            }
        }
    }
    (events, decoder.finish().map(|last| last.map(Owned::from)))
}

/// Reads the body whole, and checks that no cut into two and no bytewise reading differs.
fn read_limited(body: &[u8], limits: Limits) -> Read {
    let whole = read_pieces([body], limits);
    for cut in 0..=body.len() {
        let (left, right) = body.split_at(cut);
        assert_eq!(
            read_pieces([left, right], limits),
            whole,
            "{:?} cut at {cut}",
            String::from_utf8_lossy(body)
        );
    }
    assert_eq!(
        read_pieces(body.chunks(1), limits),
        whole,
        "{:?} byte by byte",
        String::from_utf8_lossy(body)
    );
    whole
}

fn read(body: &str) -> Read {
    read_limited(body.as_bytes(), Limits::default())
}

/// The data of the events of a body that ends in a blank line.
fn data(body: &str) -> Vec<String> {
    let (events, last) = read(body);
    assert_eq!(last, Ok(None), "{body:?}");
    assert!(events.iter().all(|event| event.name == Name::None && !event.error_field), "{body:?}");
    events.into_iter().map(|event| event.data).collect()
}

#[test]
fn lines_end_in_lf_cr_crlf_and_any_mix() {
    for body in [
        "data: a\n\ndata: b\n\n",
        "data: a\r\n\r\ndata: b\r\n\r\n",
        "data: a\r\rdata: b\r\r",
        "data: a\r\n\ndata: b\r\r\n",
        "data: a\n\rdata: b\n\r\n",
        "data: a\r\n\rdata: b\r\n\n",
    ] {
        assert_eq!(data(body), ["a", "b"], "{body:?}");
    }
}

#[test]
fn a_cr_completes_the_event_without_the_byte_behind_it() {
    let mut decoder = Decoder::new(Limits::default());
    let first = decoder.next(b"data: a\r\r").unwrap();
    assert_eq!((first.used, first.event.map(|event| event.data)), (9, Some(&b"a"[..])));
    // The LF belongs to the CR before it and is not another blank line.
    let second = decoder.next(b"\ndata: b\r\n\r").unwrap();
    assert_eq!((second.used, second.event.map(|event| event.data)), (11, Some(&b"b"[..])));
}

#[test]
fn a_byte_order_mark_is_dropped_at_the_start_only() {
    assert_eq!(data("\u{feff}data: a\n\n"), ["a"]);
    assert_eq!(data("\u{feff}\n\ndata: a\n\n"), ["a"]);
    assert_eq!(data("\u{feff}\u{feff}data: a\n\ndata: b\n\n"), ["b"]);
    assert_eq!(data("data: a\n\n\u{feff}data: b\n\ndata: c\n\n"), ["a", "c"]);
    // Its beginning alone is part of the first line.
    let (events, _) = read_limited(b"\xEF\xBBdata: a\n\ndata: b\n\n", Limits::default());
    assert_eq!(events.len(), 1);
    assert_eq!(read_limited(b"\xEF\xBB", Limits::default()), (vec![], Ok(None)));
}

#[test]
fn data_lines_are_joined_by_lf() {
    assert_eq!(data("data: a\ndata: b\ndata:c\n\n"), ["a\nb\nc"]);
    assert_eq!(data("data\ndata\n\n"), ["\n"]);
    assert_eq!(data("data:\ndata: a\ndata:\n\n"), ["\na\n"]);
}

#[test]
fn one_blank_after_the_colon_is_dropped() {
    assert_eq!(data("data:a\n\ndata: a\n\ndata:  a \n\ndata:\ta\n\n"), ["a", "a", " a ", "\ta"]);
    assert_eq!(data("data: a:b: c\n\n"), ["a:b: c"]);
}

#[test]
fn empty_data_is_an_event_and_no_data_is_none() {
    assert_eq!(data("data\n\ndata:\n\ndata: \n\n"), ["", "", ""]);
    assert_eq!(data("\n\n\nid: 1\n\nretry: 5\n\nevent: start\n\n: comment\n\n"), [""; 0]);
}

#[test]
fn comments_and_other_fields_are_read_over() {
    assert_eq!(data(":\n: ping\n:data: x\ndata: a\n:\nid: 7\nretry: 5\n\n: last\n\n"), ["a"]);
    assert_eq!(data("Data: x\nDATA: y\n data: z\ndatas: w\ndat: v\n{\"a\":1}\ndata: a\n\n"), ["a"]);
}

#[test]
fn the_name_tells_errors_from_the_rest_and_ends_with_its_block() {
    let table: &[(&str, Name)] = &[
        ("event: error\ndata: a\n\n", Name::Error),
        ("data: a\nevent:error\n\n", Name::Error),
        ("event: Error\ndata: a\n\n", Name::Other),
        ("event: error \ndata: a\n\n", Name::Other),
        ("event: delta\ndata: a\n\n", Name::Other),
        ("event: message\ndata: a\n\n", Name::None),
        ("event: error\nevent\ndata: a\n\n", Name::None),
        ("event: error\nevent: x\ndata: a\n\n", Name::Other),
        ("event: error\n\ndata: a\n\n", Name::None),
    ];
    for &(body, name) in table {
        let expected = Owned { data: "a".to_owned(), name, error_field: false };
        assert_eq!(read(body), (vec![expected], Ok(None)), "{body:?}");
    }
}

#[test]
fn an_error_field_makes_an_event_with_or_without_data() {
    let table: &[(&str, &str)] = &[
        ("error: {\"code\":400}\n\n", "{\"code\":400}"),
        ("error:x\nid: 1\n\n", "x"),
        ("error: first\nerror: second\n\n", "first"),
        ("error: x\ndata: a\n\n", "a"),
        ("data: a\nerror: x\n\n", "a"),
        ("data: a\nerror: x\ndata: b\n\n", "a\nb"),
    ];
    for &(body, data) in table {
        let expected = Owned { data: data.to_owned(), name: Name::None, error_field: true };
        assert_eq!(read(body), (vec![expected], Ok(None)), "{body:?}");
    }
    for body in
        ["error\n\n", "error:\n\n", "error: null\n\n", "error: false \n\n", "Error: x\n\n", "errors: x\n\n"]
    {
        assert_eq!(read(body), (vec![], Ok(None)), "{body:?}");
    }
    assert_eq!(data("error: null\ndata: a\n\n"), ["a"]);
    let (events, _) = read("error: x\n\ndata: a\n\n");
    assert_eq!(events.iter().map(|event| event.error_field).collect::<Vec<_>>(), [true, false]);
}

#[test]
fn the_end_of_the_body_leaves_the_block_that_lacks_its_blank_line() {
    let table: &[(&str, Option<&str>)] = &[
        ("data: [DONE]", Some("[DONE]")),
        ("data: [DONE]\n", Some("[DONE]")),
        ("data: [DONE]\r", Some("[DONE]")),
        ("data: a\ndata: b", Some("a\nb")),
        ("data: a\n:", Some("a")),
        ("data", Some("")),
        ("", None),
        ("dat", None),
        (": ping", None),
        ("id: 3\n", None),
    ];
    for &(tail, expected) in table {
        let (events, last) = read(&format!("data: x\n\n{tail}"));
        assert_eq!(events.len(), 1, "{tail:?}");
        assert_eq!(last.unwrap().map(|event| event.data).as_deref(), expected, "{tail:?}");
    }
    let (_, last) = read("event: error\ndata: a");
    assert_eq!(last.unwrap().unwrap().name, Name::Error);
    let (_, last) = read("error: a");
    assert!(last.unwrap().unwrap().error_field);
}

#[test]
fn each_limit_holds_at_its_value_and_breaks_one_beyond() {
    let limits = |line_bytes_max, event_bytes_max| Limits { line_bytes_max, event_bytes_max };
    let end = |body: &str, limits| read_limited(body.as_bytes(), limits).1.err();
    assert_eq!(end("data: abc\n\n", limits(9, 100)), None);
    assert_eq!(end("data: abc\n\n", limits(8, 100)), Some(Error::LineTooLong));
    assert_eq!(end("data: abc", limits(8, 100)), Some(Error::LineTooLong));
    assert_eq!(end(": comment\r\n", limits(8, 100)), Some(Error::LineTooLong));
    assert_eq!(end("data: abc\n\n", limits(100, 3)), None);
    assert_eq!(end("data: abc\n\n", limits(100, 2)), Some(Error::EventTooLong));
    assert_eq!(end("data: a\ndata: b\n\n", limits(100, 3)), None);
    assert_eq!(end("data: a\ndata: b\n\n", limits(100, 2)), Some(Error::EventTooLong));
    assert_eq!(end("data: abc", limits(100, 2)), Some(Error::EventTooLong));
    assert_eq!(end("data: ab\n\ndata: ab\n\n", limits(100, 2)), None, "each event has its own");
}

#[test]
fn an_error_stays_until_the_reset() {
    let mut decoder = Decoder::new(Limits { line_bytes_max: 8, event_bytes_max: 8 });
    assert_eq!(decoder.next(b"data: abc\n\n"), Err(Error::LineTooLong));
    assert_eq!(decoder.next(b"data: a\n\n"), Err(Error::LineTooLong));
    assert_eq!(decoder.finish(), Err(Error::LineTooLong));
    decoder.reset();
    assert!(decoder.next(b"data: a\n\n").unwrap().event.is_some());
}

#[test]
fn a_reset_forgets_the_stream() {
    for before in ["data: a", "data: a\n", "data: a\r", "event: error\n", "error: x\n", "\u{feff}"] {
        let mut decoder = Decoder::new(Limits::default());
        assert_eq!(decoder.next(before.as_bytes()).unwrap().event, None);
        decoder.reset();
        assert_eq!(decoder.buffered_bytes(), 0);
        let step = decoder.next("\u{feff}\ndata: b\n\n".as_bytes()).unwrap();
        assert_eq!(
            step.event,
            Some(Event { data: b"b", name: Name::None, error_field: false }),
            "{before:?}"
        );
    }
}

#[test]
fn the_usual_event_is_not_copied() {
    let input = b"data: {\"a\":1}\n\ndata: {\"b\":2}\n\n";
    let mut decoder = Decoder::new(Limits::default());
    let step = decoder.next(input).unwrap();
    assert_eq!(step.used, 15);
    assert_eq!(step.event.unwrap().data.as_ptr_range(), input[6..13].as_ptr_range());
    let step = decoder.next(&input[15..]).unwrap();
    assert_eq!(step.event.unwrap().data.as_ptr_range(), input[21..28].as_ptr_range());
    assert_eq!(decoder.buffered_bytes(), 0);
}
