//! Numbers and foreign text as a reader sees them: sensible digits, never a zero for what is not known.

/// Milliseconds of `ns`, without the unit: three decimals below 1 ms, two below 100, one below 1000, else none.
#[must_use]
pub fn ms(ns: f64) -> String {
    let ms = ns / 1e6;
    match ms.abs() {
        x if x < 1.0 => format!("{ms:.3}"),
        x if x < 100.0 => format!("{ms:.2}"),
        x if x < 1000.0 => format!("{ms:.1}"),
        _ => format!("{ms:.0}"),
    }
}

/// A rate, without the unit: two decimals below 100, one below 1000, else none.
#[must_use]
pub fn rate(per_second: f64) -> String {
    match per_second.abs() {
        x if x < 100.0 => format!("{per_second:.2}"),
        x if x < 1000.0 => format!("{per_second:.1}"),
        _ => format!("{per_second:.0}"),
    }
}

/// A share in percent, without the sign, one decimal. Only all is `100` and only nothing is `0`.
#[must_use]
pub fn percent(share: f64) -> String {
    if share == 0.0 {
        return "0".to_owned();
    }
    if share == 1.0 {
        return "100".to_owned();
    }
    if (0.0..1.0).contains(&share) {
        return format!("{:.1}", (share * 100.0).clamp(0.1, 99.9));
    }
    format!("{:.1}", share * 100.0)
}

/// A share in whole percent, without the sign. Only all is `100` and only nothing is `0`.
#[must_use]
pub fn whole_percent(share: f64) -> String {
    let whole = (share * 100.0).round();
    let whole = if 0.0 < share && share < 1.0 { whole.clamp(1.0, 99.0) } else { whole };
    whole.to_string()
}

/// A number that somebody typed, as they typed it: `500`, `0.5`.
#[must_use]
pub fn typed(value: f64) -> String {
    value.to_string()
}

/// Text from a server or the system on one line: control characters become spaces (a terminal would obey them), runs
/// of spaces one, and beyond `chars_max` it is cut.
#[must_use]
pub fn one_line(text: &str, chars_max: usize) -> String {
    let mut line = String::new();
    let mut chars = 0;
    for word in text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty()) {
        if chars > 0 {
            line.push(' ');
            chars += 1;
        }
        for c in word.chars() {
            if chars + 1 >= chars_max {
                line.push('…');
                return line;
            }
            line.push(c);
            chars += 1;
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_have_digits_that_mean_something() {
        let shown = [4_200.0, 55.25e6, 412e6, 999.94e6, 1_932.4e6, 63.142_857e6].map(ms);
        assert_eq!(shown, ["0.004", "55.25", "412.0", "999.9", "1932", "63.14"]);
    }

    #[test]
    fn only_all_is_one_hundred_percent() {
        let shown = [0.0, 1e-9, 0.5, 0.9996, 1.0, 1.2].map(percent);
        assert_eq!(shown, ["0", "0.1", "50.0", "99.9", "100", "120.0"]);
        let whole = [0.0, 1e-9, 0.256, 0.9996, 1.0].map(whole_percent);
        assert_eq!(whole, ["0", "1", "26", "99", "100"]);
    }

    #[test]
    fn rates_keep_three_digits() {
        assert_eq!([4.968, 183.51, 20_480.4].map(rate), ["4.97", "183.5", "20480"]);
    }

    #[test]
    fn foreign_text_cannot_steer_the_terminal() {
        assert_eq!(one_line("a\x1b[31m b\r\n\tc\u{9b}d", 80), "a [31m b c d");
        assert_eq!(one_line("abcdef", 4), "abc…");
        assert_eq!(one_line("  ", 4), "");
    }
}
