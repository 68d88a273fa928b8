//! Levels and loads in words, as tables and charts name them.

use crate::plan::{Arrivals, Gaps, Level, Load, Rate, Varying, in_label};

/// A level in words: its load, and the lengths that are its own.
#[must_use]
pub fn level_label(level: &Level) -> String {
    load_label(&level.load) + &level.sizes.in_label()
}

/// The same with all digits of its numbers, for one that would look like another.
pub(super) fn exact_level_label(level: &Level) -> String {
    label_of(&level.load, &|number| number.to_string()) + &level.sizes.in_label()
}

/// A load in words: `4 users`, `4 users paced 2/s`, `poisson 5/s cap 8`. Rates are requests per second, with three decimals at
/// most.
#[must_use]
pub fn load_label(load: &Load) -> String {
    label_of(load, &in_label)
}

fn label_of(load: &Load, number: &dyn Fn(f64) -> String) -> String {
    let mut label = match (load.users, &load.arrivals) {
        (Some(1), _) => "1 user".to_owned(),
        (Some(users), _) => format!("{users} users"),
        (None, Arrivals::Closed | Arrivals::Joining { .. } | Arrivals::Paced { .. }) => {
            "closed loop".to_owned()
        }
        (None, Arrivals::Burst) => "burst".to_owned(),
        (None, Arrivals::Bursts { size, every_s }) => format!("{size} every {every_s} s"),
        (None, Arrivals::Varying(Varying { gaps, rate, .. })) => {
            let rate = match rate {
                Rate::Steady(rate) => number(*rate),
                Rate::Series(_) => rate.to_string(),
            };
            match gaps {
                Gaps::Constant => format!("constant {rate}/s"),
                Gaps::Gamma { burstiness } => format!("gamma({burstiness}) {rate}/s"),
                Gaps::Poisson => format!("poisson {rate}/s"),
            }
        }
        (None, Arrivals::Constant { rate }) => format!("constant {}/s", number(*rate)),
        (None, Arrivals::Poisson { rate }) => format!("poisson {}/s", number(*rate)),
        (None, Arrivals::Gamma { rate, burstiness }) => format!("gamma({burstiness}) {}/s", number(*rate)),
        (None, Arrivals::Trace { speedup: 1.0 }) => "trace".to_owned(),
        (None, Arrivals::Trace { speedup }) => format!("trace x{}", number(*speedup)),
    };
    if let Some(cap) = load.cap {
        label += &format!(" cap {cap}");
    }
    if let (Some(_), Some(rate)) = (load.interval_s(), load.rate()) {
        label += &format!(" paced {}/s", number(rate));
    }
    if let Some(ramp_s) = load.ramp_s() {
        label += &format!(" in {ramp_s} s");
    }
    if load.think_s > 0.0 {
        label += &format!(" think {} s", load.think_s);
    }
    label
}
