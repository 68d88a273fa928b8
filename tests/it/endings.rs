//! What a socket tells once: ends and bytes that come together with others, or that one read has no room for.
//!
//! The server is a thread for each connection that writes what the test wants and closes without a word.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use tokload::metrics::{Class, Flags};
use tokload::plan::Load;

use crate::rig::{level, plan_for, run};

/// More than the 64 KiB of a read, several times over.
const MANY: usize = 3000;

#[test]
fn an_answer_that_no_read_has_room_for_is_read_to_the_end_that_came_with_it() {
    // All of it is in the kernel, end and all, before the first read: nothing further is ever told.
    let answer = format!("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n{}", events(MANY));
    let port = serve(1, answer);
    let run = run(&plan_of(port, MANY), 1, &asked(4, 12));
    assert_eq!(run.count(Class::Ok), 12, "{:?}", run.measured()[0]);
    assert!(run.measured().iter().all(|record| record.events == MANY as u32));
    assert!(run.measured().iter().all(|record| record.flags.contains(Flags::FRESH_CONNECTION)));
}

#[test]
fn one_that_always_has_more_does_not_keep_the_shard_from_others() {
    let answer = chunked(&events(MANY));
    let run = run(&plan_of(serve(usize::MAX, answer), MANY), 1, &asked(8, 64));
    assert_eq!(run.count(Class::Ok), 64, "{:?}", run.measured()[0]);
    assert!(run.measured().iter().all(|record| record.events == MANY as u32));
}

#[test]
fn a_server_that_closes_behind_its_answers_without_saying_so_loses_no_request() {
    // Behind the first the client has looked; behind the third it may have trusted the connection.
    for kept in [1, 2, 3, 4] {
        let run = run(&plan_of(serve(kept, chunked(&events(2))), 2), 1, &asked(3, 36));
        assert_eq!(run.count(Class::Ok), 36, "kept for {kept}: {:?}", run.measured()[0]);
        let fresh = run.measured().iter().filter(|one| one.flags.contains(Flags::FRESH_CONNECTION)).count();
        assert!(fresh >= 36_usize.div_ceil(kept), "{fresh} connections, kept for {kept}");
    }
}

#[test]
fn what_comes_behind_an_answer_is_no_part_of_the_next_one() {
    // A second answer that nobody asked for, in the same write.
    let twice = chunked(&events(2)).repeat(2);
    let run = run(&plan_of(serve(usize::MAX, twice), 2), 1, &asked(2, 20));
    assert_eq!(run.count(Class::Ok), 20, "{:?}", run.measured()[0]);
    assert!(run.measured().iter().all(|record| record.events == 2));
    assert!(run.measured().iter().all(|record| record.flags.contains(Flags::FRESH_CONNECTION)));
}

fn plan_of(port: u16, tokens: usize) -> tokload::plan::Plan {
    let mut plan = plan_for(port);
    plan.workload.output_tokens = (tokens as u32).into();
    plan
}

fn asked(users: u32, requests: u64) -> tokload::plan::Level {
    let mut level = level(Load::closed(users), requests);
    level.warmups = 0;
    level
}

/// The events of an answer of `tokens` tokens.
fn events(tokens: usize) -> String {
    let piece =
        r#"data: {"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"word "}}]}"#;
    let last = r#"data: {"object":"chat.completion.chunk","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
    let usage = format!(
        r#"data: {{"object":"chat.completion.chunk","choices":[],"usage":{{"prompt_tokens":8,"completion_tokens":{tokens},"total_tokens":{}}}}}"#,
        tokens + 8
    );
    format!("{}{last}\n\n{usage}\n\ndata: [DONE]\n\n", format!("{piece}\n\n").repeat(tokens))
}

/// A whole answer with `body` as one chunk.
fn chunked(body: &str) -> String {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
    format!("{head}{:x}\r\n{body}\r\n0\r\n\r\n", body.len())
}

/// Answers `kept` requests on each connection, all alike, and closes behind the last. Until the test process ends; its port.
fn serve(kept: usize, answer: String) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let answer = answer.clone();
            // A client that has gone away is no failure of the test.
            std::thread::spawn(move || {
                let _gone = converse(stream, kept, answer.as_bytes());
            });
        }
    });
    port
}

fn converse(mut stream: TcpStream, kept: usize, answer: &[u8]) -> std::io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    for _ in 0..kept {
        let mut request = Vec::new();
        while !is_whole(&request) {
            let mut buffer = [0; 4096];
            match stream.read(&mut buffer)? {
                0 => return Ok(()),
                count => request.extend_from_slice(&buffer[..count]),
            }
        }
        stream.write_all(answer)?;
    }
    // In good order: what was written arrives before the end.
    stream.shutdown(std::net::Shutdown::Write)
}

/// Whether the body is there that the head announces.
fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head
        .lines()
        .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
    body.len() >= length.unwrap_or(0)
}
