//! A program for an instruction counter: takes the given number of events through one path and ends.
//!
//! `tools/instructions.sh` runs it twice per path with different numbers; the difference is free of all that happens
//! once. Without arguments it lists the paths, and first what the counts depend on besides the code.

mod rig;

use rig::{PATHS, Rig};

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|argument| !argument.starts_with("--"));
    let (Some(name), Some(events)) = (arguments.next(), arguments.next()) else {
        return list();
    };
    let path = PATHS.iter().find(|path| path.name == name).expect("a path of the list");
    let events: usize = events.parse().expect("a number of events");
    let mut rig = Rig::new(path);
    for _ in 0..events / path.events_per_read * if path.cut { 2 } else { 1 } {
        rig.read();
    }
    std::hint::black_box(&rig);
}

fn list() {
    println!("simd {}", simd());
    for path in &PATHS {
        println!("path {}", path.name);
    }
}

/// What memchr, httparse, simd-json and the C library choose their loops by.
#[cfg(target_arch = "x86_64")]
fn simd() -> &'static str {
    if std::is_x86_feature_detected!("avx512bw") {
        "x86_64-avx512"
    } else if std::is_x86_feature_detected!("avx2") {
        "x86_64-avx2"
    } else {
        "x86_64-sse2"
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn simd() -> &'static str {
    std::env::consts::ARCH
}
