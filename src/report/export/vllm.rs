//! `vllm`: the object of `vllm bench serve --save-result --save-detailed`, a line for each level.

use serde_json::Value;

use super::{Error, Form, Needs, Sink, Source};
use crate::report::vllm::{self, Figure, Saved, Selection};
use crate::stats::Quantile;

pub(super) const FORM: Form = Form {
    name: "vllm",
    what: "vLLM's result of --save-detailed, a line per level",
    is_folder: false,
    is_built_in: true,
    needs: Needs::Events,
    write,
};

fn write(source: &Source<'_>, sink: &mut dyn Sink) -> Result<(), Error> {
    let run = &source.loaded.run;
    let generates = run.plan.read().map_or(true, |plan| plan.target.dialect.generates());
    let figures = match generates {
        true => vec![Figure::Ttft, Figure::Tpot, Figure::Itl, Figure::E2el],
        false => vec![Figure::E2el],
    };
    let selection = Selection { figures, percentiles: Quantile::REPORTED.to_vec() };
    let levels = vllm::recorded(source.loaded, &source.slo, generates, &selection)?;
    sink.file("", &mut |out| {
        for level in &levels {
            let object = vllm::to_json(level, &Saved::of(run, level, true));
            writeln!(out, "{}", Value::Object(object))?;
        }
        Ok(())
    })
}
