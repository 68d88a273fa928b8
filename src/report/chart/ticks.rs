//! Where an axis has its marks, and what stands at them.

use super::{Axis, Scale};

/// A mark of an axis.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tick {
    /// Where, as [`Ruler::place`] has it.
    pub(super) at: f64,
    /// What stands there.
    pub(super) label: String,
}

/// An axis with its ends and marks.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ruler {
    /// How values become places.
    scale: Scale,
    /// Lower end, as a place.
    pub(super) from: f64,
    /// Upper end.
    pub(super) to: f64,
    /// The marks, ascending, all within the ends.
    pub(super) ticks: Vec<Tick>,
}

impl Ruler {
    /// For an axis that has to hold `values`, with about `wanted` marks.
    #[must_use]
    pub(super) fn over(axis: &Axis, values: impl Iterator<Item = f64>, wanted: usize) -> Ruler {
        let (low, high) = values
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
        let (low, high) = if low <= high { (low, high) } else { (1.0, 1.0) };
        let scale = axis.scale.clone();
        match &axis.scale {
            Scale::Linear => linear(scale, low, high, wanted, 0.0),
            Scale::Whole => linear(scale, low, high, wanted, 1.0),
            Scale::Log => logarithmic(scale, low, high, wanted),
            Scale::Nines => nines(scale, high),
            Scale::Names(names) => {
                // As many as fit; the others are said when they are pointed at.
                let step = names.len().div_ceil(wanted.max(1)).max(1);
                let ticks = names.iter().enumerate().step_by(step);
                let ticks = ticks.map(|(at, name)| Tick { at: at as f64, label: name.clone() }).collect();
                Ruler { scale, from: -0.5, to: names.len().max(1) as f64 - 0.5, ticks }
            }
        }
    }

    /// The place of `value`, between [`Ruler::from`] and [`Ruler::to`].
    #[must_use]
    pub(super) fn place(&self, value: f64) -> f64 {
        let place = match self.scale {
            Scale::Linear | Scale::Whole | Scale::Names(_) => value,
            Scale::Log => value.log10(),
            Scale::Nines => -(1.0 - value).log10(),
        };
        place.clamp(self.from, self.to)
    }

    /// How far between the ends `value` lies, a share.
    #[must_use]
    pub(super) fn share(&self, value: f64) -> f64 {
        (self.place(value) - self.from) / (self.to - self.from)
    }

    /// What stands at the place `at`, if it is a mark.
    #[must_use]
    pub(super) fn label(&self, at: f64) -> &str {
        let near = |tick: &&Tick| (tick.at - at).abs() <= (self.to - self.from) * 1e-6;
        self.ticks.iter().find(near).map_or("", |tick| &tick.label)
    }
}

/// From 0 on, in steps of 1, 2 or 5 times a power of ten, of `least` or more; from below 0 where values are.
fn linear(scale: Scale, low: f64, high: f64, wanted: usize, least: f64) -> Ruler {
    let (low, high) = (low.min(0.0), if high > 0.0 { high } else { 1.0 });
    let rough = ((high - low) / wanted.max(1) as f64).max(least);
    let power = 10_f64.powf(rough.log10().floor());
    let step =
        [1.0, 2.0, 5.0, 10.0].map(|n| n * power).into_iter().find(|step| *step >= rough).unwrap_or(power);
    let (first, last) = ((low / step).floor() as i64, (high / step).ceil() as i64);
    let digits = (-(step.log10() + 1e-9).floor()).max(0.0) as usize;
    let tick = |n: i64| Tick { at: n as f64 * step, label: format!("{:.digits$}", n as f64 * step) };
    Ruler {
        scale,
        from: first as f64 * step,
        to: last as f64 * step,
        ticks: (first..=last).map(tick).collect(),
    }
}

/// At powers of ten, with 2 and 5 between them where there are few, or at doublings where there is not even one.
fn logarithmic(scale: Scale, low: f64, high: f64, wanted: usize) -> Ruler {
    let (low, high) = (low.max(f64::MIN_POSITIVE), high.max(f64::MIN_POSITIVE));
    // A little room, so that no point lies on the frame.
    let (from, to) = (low.log10() - ROOM, high.log10() + ROOM);
    let decades = (to - from).max(0.1);
    let within: &[f64] = if decades * 3.0 <= wanted as f64 * 2.0 { &[1.0, 2.0, 5.0] } else { &[1.0] };
    let every = (decades / wanted.max(1) as f64).ceil().max(1.0) as i32;
    let mut ticks = Vec::new();
    for exponent in from.floor() as i32..=to.ceil() as i32 {
        if exponent.rem_euclid(every) != 0 {
            continue;
        }
        for factor in within {
            let value = factor * 10_f64.powi(exponent);
            let at = value.log10();
            if (from..=to).contains(&at) {
                ticks.push(Tick { at, label: short(value) });
            }
        }
    }
    if ticks.len() < 2 {
        ticks = [low, high].map(|value| Tick { at: value.log10(), label: short(value) }).into();
        ticks.dedup_by(|a, b| a.label == b.label);
    }
    Ruler { scale, from, to, ticks }
}

/// 0, then 90 %, 99 % and so on up to what the values reach.
fn nines(scale: Scale, high: f64) -> Ruler {
    let highest = -(1.0 - high.clamp(0.0, 1.0 - 1e-12)).log10();
    let to = highest.max(2.0) + ROOM;
    let label = |nines: i32| match nines {
        0 => "0".to_owned(),
        1 => "90".to_owned(),
        2 => "99".to_owned(),
        nines => format!("99.{}", "9".repeat((nines - 2) as usize)),
    };
    let ticks =
        (0..=to.floor() as i32).map(|nines| Tick { at: f64::from(nines), label: label(nines) }).collect();
    Ruler { scale, from: 0.0, to, ticks }
}

/// A number of a logarithmic axis: `0.02`, `500`, `2k`.
fn short(value: f64) -> String {
    let rounded = |value: f64| {
        let digits = (1.0 - value.abs().log10().floor()).max(0.0) as usize;
        let text = format!("{value:.digits$}");
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
    };
    match value {
        value if value >= 1e6 => format!("{}M", rounded(value / 1e6)),
        value if value >= 1e4 => format!("{}k", rounded(value / 1e3)),
        value => rounded(value),
    }
}

/// Room at the ends of a logarithmic axis, decades.
const ROOM: f64 = 0.03;

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(scale: Scale, values: &[f64], wanted: usize) -> Vec<String> {
        let axis = Axis { title: "", scale };
        let ruler = Ruler::over(&axis, values.iter().copied(), wanted);
        for tick in &ruler.ticks {
            assert!((ruler.from..=ruler.to).contains(&tick.at), "{tick:?} outside of {ruler:?}");
            assert_eq!(ruler.label(tick.at), tick.label);
        }
        ruler.ticks.into_iter().map(|tick| tick.label).collect()
    }

    #[test]
    fn plain_axes_begin_at_zero_and_end_at_a_round_number() {
        assert_eq!(labels(Scale::Linear, &[3.0, 47.0], 5), ["0", "10", "20", "30", "40", "50"]);
        assert_eq!(labels(Scale::Linear, &[0.012], 4), ["0.000", "0.005", "0.010", "0.015"]);
        assert_eq!(labels(Scale::Linear, &[0.0], 2), ["0.0", "0.5", "1.0"]);
        assert_eq!(labels(Scale::Linear, &[], 2), ["0.0", "0.5", "1.0"]);
        assert_eq!(labels(Scale::Whole, &[1.0, 2.0], 6), ["0", "1", "2"]);
        assert_eq!(labels(Scale::Whole, &[3.0, 47.0], 5), ["0", "10", "20", "30", "40", "50"]);
    }

    #[test]
    fn logarithmic_axes_mark_tens_and_what_lies_between() {
        assert_eq!(labels(Scale::Log, &[1.0, 128.0], 8), ["1", "2", "5", "10", "20", "50", "100"]);
        assert_eq!(labels(Scale::Log, &[0.01, 100_000.0], 4), ["0.01", "1", "100", "10k"]);
        assert_eq!(labels(Scale::Log, &[7.0], 4), ["7"]);
        assert_eq!(labels(Scale::Log, &[2_500_000.0], 4), ["2.5M"]);
    }

    #[test]
    fn nines_have_a_mark_each() {
        assert_eq!(labels(Scale::Nines, &[0.5, 0.9996], 9), ["0", "90", "99", "99.9"]);
        let axis = Axis { title: "", scale: Scale::Nines };
        let ruler = Ruler::over(&axis, [0.99].into_iter(), 9);
        assert!((ruler.place(0.9) - 1.0).abs() < 1e-9, "{}", ruler.place(0.9));
        assert!(ruler.place(1.0).is_finite(), "the end of all nines lies at the end of the axis");
    }

    #[test]
    fn many_names_are_thinned() {
        let names: Vec<String> = (0..64).map(|n| n.to_string()).collect();
        assert_eq!(labels(Scale::Names(names), &[], 8).len(), 8);
    }
}
