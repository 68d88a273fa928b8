//! In which form a report is written, and where to.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::cli::failure::Failure;
use crate::cli::whole_file::replace;
use crate::cli::with_stdout;
use crate::plan::Error;
use crate::report::chart::draw::{self, Palette, Size};
use crate::report::chart::{self, Chart, Named};
use crate::report::view::View;
use crate::report::{csv, html, json, markdown, picture, terminal};
use crate::run_file::RunFile;
use crate::verdict::Verdict;

/// The form of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Form {
    /// The levels, a line each.
    Csv,
    /// A page with charts.
    Html,
    /// The run file without what only programs read.
    Json,
    /// To paste.
    Markdown,
    /// For a terminal.
    #[default]
    Table,
}

const FORMS: [(&str, &str, Form); 5] = [
    ("csv", "csv", Form::Csv),
    ("html", "html", Form::Html),
    ("json", "json", Form::Json),
    ("markdown", "md", Form::Markdown),
    ("table", "txt", Form::Table),
];

impl Form {
    /// What `--format` says, else what the name of the output does.
    pub(super) fn of(format: Option<&str>, output: Option<&str>) -> Result<Form, Error> {
        if let Some(text) = format {
            let known = FORMS.iter().find(|(name, short, _)| text == *name || text == *short);
            return known.map(|(_, _, form)| *form).ok_or_else(|| {
                let remedy = "give table, json, markdown, html or csv";
                Error::new("--format", format!("'{text}' is not a format"), remedy)
            });
        }
        let Some(output) = output else { return Ok(Form::default()) };
        let extension = Path::new(output).extension().and_then(|extension| extension.to_str());
        let known =
            extension.and_then(|ext| FORMS.iter().find(|(name, short, _)| [*name, *short].contains(&ext)));
        known.map(|(_, _, form)| *form).ok_or_else(|| {
            let wrong = format!("the name '{output}' does not say in which form to write");
            Error::new("--output", wrong, "end it with .html, .md, .csv, .json or .txt, or give --format")
        })
    }
}

/// Where a report goes.
pub(super) enum Place {
    File(PathBuf),
    Output,
}

impl Place {
    /// The file of `--output`, which must be none of the runs that are read.
    pub(super) fn of(output: Option<&str>, runs: &[String]) -> Result<Place, Error> {
        let Some(output) = output else { return Ok(Place::Output) };
        let path = PathBuf::from(output);
        none_of("--output", &path, runs)?;
        Ok(Place::File(path))
    }

    /// Writes, whole or not at all: a file is put in its place when it is finished.
    pub(super) fn write(&self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
        match self {
            Place::Output => with_stdout(write),
            Place::File(path) => replace(path, |out| write(out)),
        }
    }
}

/// Refuses `path`, which `option` is to write to, where it is one of the runs that are read.
pub(super) fn none_of(option: &str, path: &Path, runs: &[String]) -> Result<(), Error> {
    let real = |path: &Path| fs::canonicalize(path).ok();
    if real(path).is_some_and(|own| runs.iter().any(|run| real(Path::new(run)).as_ref() == Some(&own))) {
        return Err(Error::new(option, "is a run that is read", "give another name"));
    }
    Ok(())
}

/// A report of `run`, with `overlays` in its charts.
pub(super) fn write(
    form: Form,
    run: &RunFile,
    overlays: &[(String, RunFile)],
    style: terminal::Style,
    place: &Place,
) -> Result<(), Failure> {
    let view = View::new(run, &[], None);
    place.write(|mut out| match form {
        Form::Csv => csv::write(run, &mut out),
        Form::Html => {
            let charts = charts(run, overlays);
            let mut named = Vec::new();
            if !overlays.is_empty() {
                named.push((FIRST.to_owned(), view.title.join(" ")));
            }
            named.extend(overlays.iter().map(|(name, run)| {
                let view = View::new(run, &[], None);
                (name.clone(), view.title.into_iter().chain(view.verdict).collect::<Vec<_>>().join(" "))
            }));
            let page = html::Page { view: &view, verdict: run.verdict, overlays: &named, charts: &charts };
            html::write(&page, &mut out)
        }
        Form::Json => json::write(run, &mut out),
        Form::Markdown => markdown::write(&view, &mut out),
        Form::Table => terminal::write(&view, style, &mut out),
    })
}

/// A report that is a view alone, `json` in place of it where that is asked for.
pub(super) fn write_view(
    form: Form,
    view: &View,
    verdict: Option<Verdict>,
    json: &[Value],
    style: terminal::Style,
    place: &Place,
) -> Result<(), Failure> {
    place.write(|mut out| match form {
        Form::Csv => csv::write_table(&view.table, &mut out),
        Form::Html => {
            let page = html::Page { view, verdict, overlays: &[], charts: &[] };
            html::write(&page, &mut out)
        }
        Form::Json => json.iter().try_for_each(|object| writeln!(out, "{object}")),
        Form::Markdown => markdown::write(view, &mut out),
        Form::Table => terminal::write(view, style, &mut out),
    })
}

/// The charts of `run` with `overlays`.
pub(super) fn charts(run: &RunFile, overlays: &[(String, RunFile)]) -> Vec<Chart> {
    let first = if overlays.is_empty() { "" } else { FIRST };
    let others = overlays.iter().map(|(name, run)| Named { name, run });
    let named: Vec<Named<'_>> = std::iter::once(Named { name: first, run }).chain(others).collect();
    chart::all(&named)
}

/// The name of run number `place`, from 0, where there are several: `A`, `B`.
pub(super) fn name_of(place: usize) -> String {
    u8::try_from(place)
        .ok()
        .filter(|place| *place < 26)
        .map_or_else(|| format!("run {}", place + 1), |place| char::from(b'A' + place).to_string())
}

/// Writes each chart into `directory`, which is made: `NAME.svg` and `NAME.png`.
pub(super) fn draw_all(charts: &[Chart], directory: &str) -> Result<(), Failure> {
    let directory = Path::new(directory);
    for chart in charts {
        let svg = draw::whole(chart, PICTURE, Palette::PRINT, "#ffffff").map_err(Failure::own)?;
        replace(&directory.join(format!("{}.svg", chart.id)), |out| out.write_all(svg.as_bytes()))?;
        let png = picture::png(&svg, PICTURE_SCALE).map_err(Failure::own)?;
        replace(&directory.join(format!("{}.png", chart.id)), |out| out.write_all(&png))?;
    }
    Ok(())
}

const FIRST: &str = "A";
const PICTURE: Size = Size { width: 800, height: 450 };
/// Sharp on dense screens too.
const PICTURE_SCALE: f32 = 2.0;
