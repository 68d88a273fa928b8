//! `report`: the table of a saved run again, also under other SLOs.

use std::path::Path;

use crate::cli::args::ReportArgs;
use crate::cli::exit::Exit;
use crate::cli::failure::Failure;
use crate::cli::run::{exit_of, show_run};
use crate::cli::value;
use crate::run_file::Loaded;

pub(super) fn main(args: &ReportArgs) -> Result<Exit, Failure> {
    let format =
        args.format.as_deref().map_or(Ok(value::Format::default()), |text| value::format("--format", text));
    let format = format.map_err(Failure::bad)?;
    let loaded = Loaded::open(Path::new(&args.run)).map_err(Failure::bad)?;
    let run = if args.goodput.is_empty() {
        loaded.run
    } else {
        let slo = value::goodput("--goodput", &args.goodput).map_err(Failure::bad)?;
        loaded.judged_by(&slo).map_err(Failure::bad)?
    };
    show_run(&run, format, &[], None)?;
    Ok(exit_of(&run, args.strict))
}
