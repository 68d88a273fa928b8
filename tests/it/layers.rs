//! The table of floors and rooms, and that the sources keep it: a room uses lower floors and the rooms before it on
//! its own, and certain words stand in certain rooms only.
//!
//! A new room gets its name here and its line in `src/ARCHITECTURE.md`. Test code (`mod tests`, `tests.rs`) is free.

use std::fs;
use std::path::Path;

/// From below. `src/lib.rs` declares the rooms in the same order.
const FLOORS: [&[&str]; 9] = [
    &["sys"],
    &["rng", "time"],
    &["stats", "wire"],
    &["api", "metrics", "plan", "workload", "model"],
    &["exchange", "run", "summary", "verdict", "strategy"],
    &["engine", "pace", "load", "telemetry", "mock", "sim"],
    &["run_file", "import", "compare", "gate"],
    &["report"],
    &["cli", "harness"],
];

/// What lies beneath everything knows what a stamp is; the other way round it would be a circle.
const UPWARDS: [(&str, &str); 1] = [("sys", "time")];

/// Words, and the only places where they may stand: rooms, or modules of rooms.
const FENCES: [(&[&str], &[&str]); 7] = [
    (&["monoio"], &["load", "mock", "pace"]),
    // Sockets and name resolution; addresses alone are plain values, and `core::net` has them. `pace` needs one
    // conversion, to hand its epoll descriptor to the runtime.
    (&["std::net"], &["load", "mock", "pace", "telemetry"]),
    (&["std::fs"], &["cli", "run_file", "sys"]),
    (
        &["dbg!", "eprint!", "eprintln!", "print!", "println!", "stderr", "stdout"],
        &["cli", "report::progress"],
    ),
    // What a closed loop hid is guessed for imported histograms only: our own latencies are measured from the plan.
    (&["backfill"], &["import", "stats"]),
    (&["process::abort", "process::exit"], &[]),
    (&["unsafe"], &["sys"]),
];

/// Clock reads. `sys::cpu` reads processor time, which is no point on any time line.
const CLOCKS: (&[&str], &[&str]) = (
    &["Instant", "SystemTime", "UNIX_EPOCH", "_rdtsc", "clock_gettime", "gettimeofday"],
    &["sys::clock", "sys::cpu"],
);

#[test]
fn rooms_use_lower_floors_and_earlier_rooms_only() {
    let mut faults = Vec::new();
    let sources = sources();
    for (module, source) in &sources {
        faults.extend(misplaced_uses(module, source));
    }
    assert!(sources.len() > 80, "sources are missing: {}", sources.len());
    assert!(faults.is_empty(), "against the order of the rooms:\n{}", faults.join("\n"));
}

#[test]
fn fenced_words_stand_in_their_rooms_only() {
    let faults: Vec<_> =
        sources().iter().flat_map(|(module, source)| misplaced_words(module, source)).collect();
    assert!(faults.is_empty(), "words outside of their fence:\n{}", faults.join("\n"));
}

#[test]
fn the_library_declares_the_rooms_in_the_order_of_the_table() {
    let text = fs::read_to_string(root().join("lib.rs")).unwrap();
    let declared: Vec<_> =
        text.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';')).collect();
    assert_eq!(declared, FLOORS.concat());
}

#[test]
fn planted_violations_are_caught() {
    for (module, source) in [
        ("wire::sse", "use crate::api::Usage;"),
        ("metrics", "fn f() -> crate::plan::Plan { todo!() }"),
        ("stats", "use crate::{rng, time::Stamp, wire};"),
        ("stats::quantile", "use super::super::summary;"),
        ("exchange", "use super::run::Window;"),
        ("time", "use crate::sys::clock;"),
        ("sys::epoll", "use crate::rng;"),
        ("load", "use crate::nowhere::Thing;"),
        ("plan", "#[cfg(test)]\nmod tests { use crate::load; }\nuse crate::run::Run;"),
    ] {
        assert_eq!(misplaced_uses(module, source).len(), 1, "{module}: {source}");
    }
    for (module, source) in [
        ("exchange", "use monoio::time;"),
        ("plan::endpoint", "use std::net::IpAddr;"),
        ("stats", "use std::{fmt, fs::{self, File}};"),
        ("report::markdown", "println!(\"{x}\");"),
        ("main", "std::process::exit(1)"),
        ("load::shard", "unsafe { f() }"),
        ("load::shard", "let t = std::time::Instant::now();"),
        ("api", "/* \" */ let c = '\"'; let d = r#\"\"\"#; unsafe { f() } // \""),
        ("sys::limits", "let t = clock_gettime(ClockId::Monotonic);"),
    ] {
        assert!(!misplaced_words(module, source).is_empty(), "{module}: {source}");
    }
}

#[test]
fn what_is_allowed_is_not_caught() {
    for (module, source) in [
        ("api", "use crate::wire::json::{self, Json};\nuse crate::api::scan;"),
        ("load", "use crate::{engine, pace, sys::clock};"),
        ("sys::clock", "use crate::time::Stamp; let t = clock_gettime(x); unsafe { f() }"),
        ("wire", "/// See [`crate::api`] and `std::fs`.\nlet s = \"unsafe println! monoio\";"),
        (
            "wire::sse",
            "use super::lines; #[cfg(test)] mod tests { use crate::plan; use std::fs; } let x: &'a u8;",
        ),
        ("wire", "#[cfg(test)]\nmod tests;\n#[cfg(test)] use crate::plan;"),
        ("report::progress", "eprint!(\"\");"),
        ("load", "use crate::metrics; let unsafe_code = monoio::net::TcpStream::connect(\"a\");"),
    ] {
        assert_eq!(misplaced_uses(module, source), [""; 0]);
        assert_eq!(misplaced_words(module, source), [""; 0]);
    }
}

fn misplaced_uses(module: &str, source: &str) -> Vec<String> {
    let room = module.split("::").next().unwrap();
    let depth = module.split("::").count();
    let order = FLOORS.concat();
    let Some(place) = order.iter().position(|name| *name == room) else { return Vec::new() };
    // From the top of a room, `super` is the crate.
    let to_root = "super::".repeat(depth);
    let used = |path: &String| {
        let named = path.strip_prefix("crate::").or_else(|| {
            let rest = path.strip_prefix(&to_root)?;
            order.iter().any(|room| rest.split("::").next() == Some(room)).then_some(rest)
        })?;
        Some(named.split("::").next().unwrap().to_owned())
    };
    let mut used: Vec<_> = paths(&code(source)).iter().filter_map(used).collect();
    used.sort_unstable();
    used.dedup();
    let is_fault = |used: &String| match order.iter().position(|name| name == used) {
        Some(other) if other > place => !UPWARDS.contains(&(room, used)),
        Some(_) => UPWARDS.contains(&(used, room)),
        None => true,
    };
    used.into_iter().filter(is_fault).map(|used| format!("{module} uses {used}")).collect()
}

fn misplaced_words(module: &str, source: &str) -> Vec<String> {
    let paths = paths(&code(source));
    let mut faults = Vec::new();
    for (words, allowed) in FENCES.iter().chain([&CLOCKS]) {
        let inside = |place: &&str| format!("{module}::").starts_with(&format!("{place}::"));
        if allowed.iter().any(inside) {
            continue;
        }
        for word in *words {
            let fenced = format!("::{word}::");
            if paths.iter().any(|path| format!("::{path}::").contains(&fenced)) {
                faults.push(format!("{module} says {word}"));
            }
        }
    }
    faults
}

/// Every word and `a::b` path of some code; groups in braces are written out (`a::{b, c}` is `a::b` and `a::c`).
fn paths(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut prefixes = vec![String::new()];
    let mut word = String::new();
    for c in code.chars() {
        if c.is_alphanumeric() || matches!(c, '_' | ':' | '!') {
            word.push(c);
            continue;
        }
        let prefix = prefixes.last().map_or("", String::as_str);
        match c {
            '{' if word.ends_with("::") => prefixes.push(format!("{prefix}{word}")),
            _ if !word.is_empty() => found.push(format!("{prefix}{word}").trim_matches(':').to_owned()),
            _ => {}
        }
        match c {
            '{' if !word.ends_with("::") => prefixes.push(String::new()),
            '}' => drop(prefixes.pop()),
            _ => {}
        }
        word.clear();
    }
    found
}

/// The source without comments, strings and test items.
fn code(source: &str) -> String {
    let mut bare = String::new();
    let mut rest = source;
    while let Some(c) = rest.chars().next() {
        let len = skipped_len(rest);
        bare.push(if len == 0 { c } else { ' ' });
        rest = &rest[len.max(c.len_utf8())..];
    }
    while let Some(start) = bare.find("#[cfg(test)]") {
        let mut depth = 0;
        let ends = |c: char| {
            depth += i32::from(c == '{') - i32::from(c == '}');
            depth == 0 && matches!(c, '}' | ';')
        };
        let end = bare[start..].find(ends).map_or(bare.len(), |end| start + end + 1);
        bare.replace_range(start..end, "");
    }
    bare.push(' ');
    bare
}

/// Length of the comment, string or character at the beginning of `text`; 0 if there is none.
fn skipped_len(text: &str) -> usize {
    let upto = |end: &str, from: usize| text[from..].find(end).map_or(text.len(), |at| from + at + end.len());
    let raw = text.strip_prefix("br").or_else(|| text.strip_prefix('r')).unwrap_or("");
    let hashes = raw.len() - raw.trim_start_matches('#').len();
    if text.starts_with("//") {
        upto("\n", 2)
    } else if text.starts_with("/*") {
        upto("*/", 2)
    } else if raw[hashes..].starts_with('"') {
        upto(&format!("\"{}", "#".repeat(hashes)), text.len() - raw.len() + hashes + 1)
    } else if let Some(string) = text.strip_prefix('"') {
        let mut escaped = false;
        let ends = |c: char| {
            let is_end = c == '"' && !escaped;
            escaped = c == '\\' && !escaped;
            is_end
        };
        string.find(ends).map_or(text.len(), |at| at + 2)
    } else if text.starts_with("'\\") {
        upto("'", 3)
    } else {
        // A character, unless it is a lifetime.
        let mut chars = text.char_indices().skip(2);
        match chars.next() {
            Some((at, '\'')) if text.starts_with('\'') => at + 1,
            _ => 0,
        }
    }
}

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src"))
}

/// Each source file as the path of its module, with its text; tests in files of their own are left out.
fn sources() -> Vec<(String, String)> {
    let mut sources = Vec::new();
    let mut folders = vec![root().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.file_stem().is_some_and(|name| name == "tests") {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let place = path.strip_prefix(root()).unwrap().with_extension("");
                let module = place.to_str().unwrap().replace('/', "::");
                let module = module.strip_suffix("::mod").unwrap_or(&module);
                sources.push((module.to_owned(), fs::read_to_string(&path).unwrap()));
            }
        }
    }
    sources
}
