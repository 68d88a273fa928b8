//! `--export FORM=PATH`: a saved run in the forms of other tools, as files.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::failure::Failure;
use super::whole_file::{is_stream, replace, try_out};
use crate::plan::{Error, Slo, nearest};
use crate::report::export::{self, FORMS, Form, Needs, Sink, Source};
use crate::run_file::{Loaded, RunFile};

/// A form, and where it is to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    form: &'static str,
    path: String,
}

impl Export {
    /// What `texts` ask for, each as in `FORM=PATH`.
    ///
    /// # Errors
    ///
    /// A form that is none, a path that is missing, and one place for two.
    pub(super) fn all(texts: &[String]) -> Result<Vec<Export>, Error> {
        let mut all: Vec<Export> = Vec::new();
        for text in texts {
            let export = Export::of(text)?;
            if let Some(other) = all.iter().find(|other| other.path == export.path) {
                let wrong =
                    format!("{} and {} are to be in one place, {}", other.form, export.form, other.path);
                return Err(Error::new("--export", wrong, "give each a path of its own"));
            }
            all.push(export);
        }
        Ok(all)
    }

    fn of(text: &str) -> Result<Export, Error> {
        let names = || FORMS.map(|form| form.name);
        let Some((name, path)) = text.split_once('=').filter(|(_, path)| !path.is_empty()) else {
            let remedy = format!("write as in --export csv=levels.csv; there are {}", names().join(", "));
            return Err(Error::new("--export", format!("'{text}' is no form with a path"), remedy));
        };
        match FORMS.iter().find(|form| form.name == name) {
            Some(form) if !form.is_built_in => {
                let wrong = format!("this tokload cannot write {}", form.name);
                let remedy = format!(
                    "build one that can by cargo build --release --features {}, or take csv-records",
                    form.name
                );
                Err(Error::new("--export", wrong, remedy))
            }
            Some(form) => Ok(Export { form: form.name, path: path.to_owned() }),
            None => {
                let near = nearest(name, names());
                let near = near.map_or_else(String::new, |near| format!("did you mean {near}? "));
                let remedy = format!("{near}there are {}", names().join(", "));
                Err(Error::new("--export", format!("'{name}' is no form"), remedy))
            }
        }
    }

    /// Refuses what would write over something, a file that is there or a folder that is not empty, and what cannot be written.
    pub(super) fn check(&self, force: bool) -> Result<(), Failure> {
        let path = Path::new(&self.path);
        let is_taken = if self.form().is_some_and(|form| form.is_folder) {
            path.exists() && path.read_dir().map_or(true, |mut names| names.next().is_some())
        } else {
            path.exists() && !is_stream(path)
        };
        if is_taken && !force {
            let wrong = format!("{} is there already", self.path);
            let remedy = "name another place, or write over it with --force";
            return Err(Failure::bad(Error::new("--export", wrong, remedy)));
        }
        let is_folder = self.form().is_some_and(|form| form.is_folder);
        try_out(&if is_folder { path.join("a") } else { path.to_owned() })
    }

    /// Refuses what `run` has nothing of.
    pub(super) fn check_run(&self, run: &RunFile) -> Result<(), Failure> {
        let asked = run.plan.read().is_ok_and(|plan| plan.slice_s.is_some());
        let has_slices = asked || run.levels.iter().any(|level| level.slices.is_some());
        if self.needs() == Needs::Slices && !has_slices {
            let wrong = "the run has no slices of time: they are kept where it is run with --slice-duration";
            let remedy = "leave it out, or measure again with --slice-duration, as in --slice-duration 10s";
            return Err(Failure::bad(Error::new("--export slices", wrong, remedy)));
        }
        Ok(())
    }

    /// Where it is written to.
    pub(super) fn path(&self) -> &Path {
        Path::new(&self.path)
    }

    /// What it is made of.
    pub(super) fn needs(&self) -> Needs {
        self.form().map_or(Needs::Nothing, |form| form.needs)
    }

    fn form(&self) -> Option<&'static Form> {
        FORMS.iter().find(|form| form.name == self.form)
    }

    /// Writes `loaded` so; returns the names of the files.
    pub(super) fn write(&self, loaded: &Loaded, slo: &Slo) -> Result<Vec<PathBuf>, Failure> {
        let mut place = Place::new(PathBuf::from(&self.path));
        if let Some(form) = self.form() {
            let written = (form.write)(&Source { loaded, slo: *slo }, &mut place);
            written.map_err(|error| match error {
                export::Error::Unreadable(error) => Failure::bad(format!("--export {}: {error}", self.form)),
                export::Error::Unwritable(sentence) => place.why_unwritten(sentence),
            })?;
        }
        Ok(place.written)
    }
}

/// Files in a folder, or at a path.
pub(super) struct Place {
    path: PathBuf,
    /// Those that were written.
    pub(super) written: Vec<PathBuf>,
    /// Why the last one was not.
    failed: Option<Failure>,
}

impl Place {
    pub(super) fn new(path: PathBuf) -> Place {
        Place { path, written: Vec::new(), failed: None }
    }

    /// Why a file could not be written, which a form has told as `sentence`.
    pub(super) fn why_unwritten(&mut self, sentence: String) -> Failure {
        self.failed.take().unwrap_or_else(|| Failure::own(sentence))
    }
}

impl Sink for Place {
    fn file(
        &mut self,
        name: &str,
        write: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), export::Error> {
        let path = if name.is_empty() { self.path.clone() } else { self.path.join(name) };
        if let Err(failure) = replace(&path, |out| write(out)) {
            let sentence = failure.to_string();
            self.failed = Some(failure);
            return Err(export::Error::Unwritable(sentence));
        }
        self.written.push(path);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(texts: &[&str]) -> Result<Vec<Export>, Error> {
        Export::all(&texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn forms_and_places_are_read_from_what_was_typed() {
        assert_eq!(all(&["csv=a=b.csv"]).unwrap(), [Export { form: "csv", path: "a=b.csv".to_owned() }]);
        for (texts, said) in [
            (&["csv"][..], "csv=levels.csv"),
            (&["csv="], "csv=levels.csv"),
            (&["aiprf=x"], "did you mean aiperf?"),
            (&["csv=x", "vllm=x"], "of its own"),
        ] {
            let error = all(texts).unwrap_err();
            assert_eq!(error.subject, "--export");
            assert!(error.remedy.contains(said), "{error:?}");
        }
    }

    #[test]
    fn what_is_there_is_kept_without_force() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("x");
        let texts = [format!("csv={}", place.display()), format!("hgrm={}", place.display())];
        let [file, many] = texts.map(|text| Export::of(&text).unwrap());
        file.check(false).unwrap();
        std::fs::create_dir(&place).unwrap();
        many.check(false).unwrap();
        std::fs::write(place.join("y"), "").unwrap();
        for export in [&file, &many] {
            assert!(export.check(false).unwrap_err().to_string().contains("--force"));
        }
        many.check(true).unwrap();
        let failure = file.check(true).unwrap_err();
        assert!(failure.to_string().contains("is a directory"), "{failure}");
    }
}
