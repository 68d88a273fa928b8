use crate::cli::args::ImportArgs;
use crate::cli::exit::Exit;
use crate::cli::failure::Failure;
pub(super) fn main(_: &ImportArgs) -> Result<Exit, Failure> {
    Ok(Exit::Done)
}
