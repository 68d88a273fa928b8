//! The block that vLLM's client prints: 50 columns, labels filled up to 40, two decimals.

use std::io::{self, Write};

use super::{Level, Spread};

/// Writes the block of `level`. Lines whose data was not kept are left out; spaces at the ends of lines, too.
///
/// # Errors
///
/// When `out` fails.
pub fn write(level: &Level, out: &mut impl Write) -> io::Result<()> {
    let about = &level.about;
    ruled(out, " Serving Benchmark Result ", '=')?;
    count(out, "Successful requests:", level.completed)?;
    count(out, "Failed requests:", level.failed)?;
    if let Some(most) = about.max_concurrency {
        count(out, "Maximum request concurrency:", u64::from(most))?;
    }
    if let Some(rate) = about.request_rate {
        number(out, "Request rate configured (RPS):", rate)?;
    }
    number(out, "Benchmark duration (s):", about.duration_s)?;
    count(out, "Total input tokens:", level.input_tokens)?;
    if about.generates {
        count(out, "Total generated tokens:", level.output_tokens)?;
    }
    number(out, "Request throughput (req/s):", level.per_second(level.completed))?;
    if !about.generates {
        number(out, "Input throughput (inputs/s):", level.per_second(level.completed))?;
    }
    if let Some(good) = level.good {
        number(out, "Request goodput (req/s):", level.per_second(good))?;
    }
    if about.generates {
        number(out, "Output token throughput (tok/s):", level.per_second(level.output_tokens))?;
        if let Some(peak) = level.peak_tokens_s {
            number(out, "Peak output token throughput (tok/s):", peak as f64)?;
        }
        if let Some(peak) = level.peak_requests {
            number(out, "Peak concurrent requests:", peak as f64)?;
        }
    }
    let tokens = level.input_tokens + if about.generates { level.output_tokens } else { 0 };
    number(out, "Total token throughput (tok/s):", level.per_second(tokens))?;
    for (figure, spread) in &level.spreads {
        ruled(out, figure.heading(), '-')?;
        let Spread { mean_ms, median_ms, percentiles, .. } = spread;
        number(out, &format!("Mean {} (ms):", figure.title()), *mean_ms)?;
        number(out, &format!("Median {} (ms):", figure.title()), *median_ms)?;
        for (quantile, ms) in percentiles {
            number(out, &format!("P{quantile} {} (ms):", figure.title()), *ms)?;
        }
    }
    ruled(out, "", '=')
}

fn count(out: &mut impl Write, label: &str, count: u64) -> io::Result<()> {
    writeln!(out, "{label:<40} {count}")
}

fn number(out: &mut impl Write, label: &str, value: f64) -> io::Result<()> {
    writeln!(out, "{label:<40} {value:.2}")
}

/// A title in the middle of a line of `fill`; of two middles the left one, as Python has it.
fn ruled(out: &mut impl Write, title: &str, fill: char) -> io::Result<()> {
    let all = WIDTH.saturating_sub(title.len());
    let rule = |n: usize| fill.to_string().repeat(n);
    writeln!(out, "{}{title}{}", rule(all / 2), rule(all - all / 2))
}

const WIDTH: usize = 50;
