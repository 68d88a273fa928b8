//! Whom to ask about servers and GPUs. What is named on the command line takes the place of what the file names.

use super::{RunArgs, value};
use crate::plan::{Error, Nvml, Telemetry};

pub(super) fn set(args: &RunArgs, telemetry: &mut Telemetry) -> Result<(), Error> {
    telemetry.own_metrics &= !args.no_server_metrics;
    for (place, given) in [
        (&mut telemetry.server_metrics, &args.server_metrics),
        (&mut telemetry.server_metrics_match, &args.server_metrics_match),
    ] {
        if !given.is_empty() {
            place.clone_from(given);
        }
    }
    gpus(args, telemetry)?;
    if let Some(text) = &args.gpu_index {
        telemetry.gpu_index = value::cores("--gpu-index", text)?;
        if telemetry.nvml == Nvml::Off {
            let remedy = "leave out one of the two";
            return Err(Error::new(
                "--gpu-index",
                "is about GPUs of this machine, which are not read",
                remedy,
            ));
        }
    }
    value::set(&mut telemetry.interval_s, "--telemetry-interval", &args.telemetry_interval, value::seconds)
}

fn gpus(args: &RunArgs, telemetry: &mut Telemetry) -> Result<(), Error> {
    let option = "--gpu-telemetry";
    if args.no_gpu_telemetry && !args.gpu_telemetry.is_empty() {
        return Err(Error::new("--no-gpu-telemetry", "contradicts --gpu-telemetry", "give one of them"));
    }
    if args.gpu_telemetry.is_empty() && !args.no_gpu_telemetry {
        return Ok(());
    }
    (telemetry.nvml, telemetry.nvml_library) = (Nvml::Off, None);
    telemetry.dcgm.clear();
    let mut none = false;
    for word in args.gpu_telemetry.iter().flat_map(|text| text.split(',')) {
        let word = word.trim();
        match (word.split_once('='), word) {
            (_, "none") => none = true,
            // What aiperf calls it, and two words of its display, which say nothing about whom to ask.
            (_, "nvml" | "pynvml" | "dashboard" | "summary") => telemetry.nvml = Nvml::On,
            (Some(("nvml", path)), _) if !path.is_empty() => {
                (telemetry.nvml, telemetry.nvml_library) = (Nvml::On, Some(path.to_owned()));
            }
            (Some(("dcgm", url)), _) if !url.is_empty() => telemetry.dcgm.push(url.to_owned()),
            (None, url) if url.contains(':') => telemetry.dcgm.push(url.to_owned()),
            _ => {
                let remedy = "give nvml, nvml=FILE, dcgm=http://host:9400/metrics or none";
                return Err(Error::new(option, format!("'{word}' is nobody who could be asked"), remedy));
            }
        }
    }
    if none && (telemetry.nvml == Nvml::On || !telemetry.dcgm.is_empty()) {
        return Err(Error::new(option, "names somebody and none", "leave out one of the two"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str]) -> Result<Telemetry, Error> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let args = RunArgs { gpu_telemetry: words, ..RunArgs::default() };
        let mut telemetry = Telemetry::default();
        set(&args, &mut telemetry).map(|()| telemetry)
    }

    #[test]
    fn gpus_are_asked_about_by_every_way_that_is_named() {
        let all = read(&["nvml=/x/lib.so", "dcgm=http://a:9400/metrics,b:9400"]).unwrap();
        assert_eq!((all.nvml, all.nvml_library.as_deref()), (Nvml::On, Some("/x/lib.so")));
        assert_eq!(all.dcgm, ["http://a:9400/metrics", "b:9400"]);
        assert_eq!(read(&[]).unwrap(), Telemetry::default());
        assert_eq!(read(&["none"]).unwrap().nvml, Nvml::Off);
        assert_eq!(read(&["dcgm=a:1"]).unwrap().nvml, Nvml::Off);
        for wrong in [&["rocm"][..], &["none", "nvml"], &["dcgm="], &["nvml="]] {
            assert_eq!(read(wrong).unwrap_err().subject, "--gpu-telemetry", "{wrong:?}");
        }
    }

    #[test]
    fn the_number_of_a_gpu_wants_gpus_of_this_machine() {
        let args = |index: &str, off: bool| RunArgs {
            gpu_index: Some(index.to_owned()),
            no_gpu_telemetry: off,
            ..RunArgs::default()
        };
        let mut telemetry = Telemetry::default();
        set(&args("0,2-3", false), &mut telemetry).unwrap();
        assert_eq!(telemetry.gpu_index, [0, 2, 3]);
        assert_eq!(set(&args("0", true), &mut telemetry).unwrap_err().subject, "--gpu-index");
        assert_eq!(set(&args("x", false), &mut telemetry).unwrap_err().subject, "--gpu-index");
    }
}
