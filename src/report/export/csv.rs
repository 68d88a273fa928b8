//! `csv`: the levels as `report --format csv` writes them. It needs no records.

use super::{Error, Form, Needs, Sink, Source};
use crate::report::csv;

pub(super) const FORM: Form = Form {
    name: "csv",
    what: "a row per level, and per endpoint, replica or model where there are several: counts, rates, percentiles in ms",
    is_folder: false,
    is_built_in: true,
    needs: Needs::Nothing,
    write,
};

fn write(source: &Source<'_>, sink: &mut dyn Sink) -> Result<(), Error> {
    sink.file("", &mut |out| csv::write(&source.loaded.run, out))
}
