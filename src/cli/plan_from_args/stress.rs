//! The options of a stress test.

use super::{RunArgs, value};
use crate::plan::{Error, Plan, Stress};

/// Makes the plan a stress test where the options ask for one, or changes that of the file.
pub(super) fn set(args: &RunArgs, plan: &mut Plan) -> Result<(), Error> {
    let lengths = [
        ("--stress-before", &args.stress_before),
        ("--stress-ramp", &args.stress_ramp),
        ("--stress-hold", &args.stress_hold),
        ("--stress-after", &args.stress_after),
        ("--stress-to", &args.stress_to),
        ("--stress-bad", &args.stress_bad),
    ];
    let given = lengths.iter().find(|(_, text)| text.is_some());
    if !args.stress && plan.stress.is_none() {
        return match given {
            None => Ok(()),
            Some((option, _)) => {
                Err(Error::new(*option, "says nothing without --stress", "give --stress as well"))
            }
        };
    }
    if args.duration.is_some() || args.num_prompts.is_some() {
        let option = if args.duration.is_some() { "--duration" } else { "--num-prompts" };
        let remedy = "leave it out, and give --stress-before, --stress-hold and --stress-after";
        return Err(Error::new(option, "is no length of a stress test", remedy));
    }
    let stress = plan.stress.get_or_insert_with(Stress::default);
    if let Some(text) = &args.stress_to {
        stress.to_rate = Some(value::number("--stress-to", text)?);
    }
    value::set(&mut stress.before_s, "--stress-before", &args.stress_before, value::seconds)?;
    value::set(&mut stress.ramp_s, "--stress-ramp", &args.stress_ramp, value::seconds)?;
    value::set(&mut stress.hold_s, "--stress-hold", &args.stress_hold, value::seconds)?;
    value::set(&mut stress.after_s, "--stress-after", &args.stress_after, value::seconds)?;
    value::set(&mut stress.bad_max, "--stress-bad", &args.stress_bad, value::share_of)
}
