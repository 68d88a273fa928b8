//! `share`: a run for others: a block to paste, and a card.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use crate::cli::args::ShareArgs;
use crate::cli::exit::Exit;
use crate::cli::failure::Failure;
use crate::cli::whole_file::replace;
use crate::cli::{say, with_stdout};
use crate::plan::Error;
use crate::report::{card, picture};
use crate::run_file::Loaded;

pub(super) fn main(args: &ShareArgs) -> Result<Exit, Failure> {
    if args.no_card && args.card.is_some() {
        return Err(Failure::bad(Error::new(
            "--card",
            "is given with --no-card",
            "leave out one of the two",
        )));
    }
    let run = Loaded::open(Path::new(&args.run)).map_err(Failure::bad)?.run;
    with_stdout(|mut out| card::write_markdown(&run, &mut out))?;
    if args.no_card {
        return Ok(Exit::Done);
    }
    let name = args.card.as_ref().map_or_else(|| beside(Path::new(&args.run)), PathBuf::from);
    let svg = card::svg(&run).map_err(Failure::own)?;
    let png = picture::png(&svg, 1.0).map_err(Failure::own)?;
    let with = |extension: &str| {
        let mut path = name.clone().into_os_string();
        path.push(extension);
        PathBuf::from(path)
    };
    replace(&with(".svg"), |out| out.write_all(svg.as_bytes()))?;
    replace(&with(".png"), |out| out.write_all(&png))?;
    say(&format!("saved {} and {}", with(".svg").display(), with(".png").display()));
    Ok(Exit::Done)
}

/// The run's name without `.json`, with `-card` behind it.
fn beside(run: &Path) -> PathBuf {
    let mut name = run.file_stem().unwrap_or_default().to_owned();
    name.push("-card");
    run.with_file_name(name)
}
