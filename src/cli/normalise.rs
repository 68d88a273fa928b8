//! One step in front of argh: which command, whose command line, every option under its own name.
//!
//! argh takes neither `--key=value` nor `-c5` nor several values after an option, knows no `--version`, and names only
//! the top command in its errors. Here all that becomes plain `--option value` pairs that argh cannot misread, or an
//! error that names the option and the remedy. Values are not read here.

use std::collections::HashMap;

use argh::{FlagInfoKind, Optionality};

use super::aliases::{self, Action, Takes, Tool};
use super::args::{Name, Placed};
use super::{help, presets};
use crate::plan::{Error, nearest};

/// A command line in the one form that argh reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Normal {
    /// A command.
    Command {
        /// Which.
        name: Name,
        /// Whose command line it was.
        tool: Tool,
        /// `--option value` pairs and words, for each of the command's [parts](Name::parts).
        args: Vec<Vec<String>>,
        /// Remarks for the user.
        notes: Vec<String>,
    },
    /// Help or the version.
    Text(String),
}

/// Normalises the words after the program's name.
pub(super) fn normalise(words: &[String]) -> Result<Normal, Error> {
    let Some(first) = words.first() else {
        return Ok(Normal::Text(help::of_program()));
    };
    match first.as_str() {
        "--version" | "-V" | "version" => {
            return Ok(Normal::Text(format!("tokload {}\n", env!("CARGO_PKG_VERSION"))));
        }
        "--help" | "-h" => return Ok(Normal::Text(help::of_program())),
        "help" => return help_of(&words[1..]),
        _ => {}
    }
    let (name, tool, rest) = command(words)?;
    let options = rest.iter().take_while(|word| *word != "--");
    if options.clone().any(|word| word == "--help" || word == "-h")
        || rest.first().is_some_and(|w| w == "help")
    {
        return Ok(Normal::Text(help::of_command(name, tool)));
    }
    let mut line = Line::new(name, tool);
    line.read(rest)?;
    let asks_for_presets = |words: &Vec<String>| words.windows(2).any(|pair| pair == ["--preset", "help"]);
    if line.out.iter().any(asks_for_presets) {
        return Ok(Normal::Text(presets::help()));
    }
    Ok(Normal::Command { name, tool, args: line.out, notes: line.notes })
}

fn help_of(words: &[String]) -> Result<Normal, Error> {
    if words.is_empty() {
        return Ok(Normal::Text(help::of_program()));
    }
    command(words).map(|(name, tool, _)| Normal::Text(help::of_command(name, tool)))
}

/// Whose command line `words` are; `None` where no command is named.
pub(super) fn tool_of(words: &[String]) -> Option<Tool> {
    command(words).ok().map(|(_, tool, _)| tool)
}

/// The command that the first words name, and the words after it.
fn command(words: &[String]) -> Result<(Name, Tool, &[String]), Error> {
    let word = |place: usize| words.get(place).map(String::as_str);
    let first = word(0).unwrap_or_default();
    if let Some(name) = Name::ALL.into_iter().find(|name| name.as_str() == first) {
        return Ok((name, Tool::Tokload, &words[1..]));
    }
    match (first, word(1)) {
        ("bench", Some("serve")) => Ok((Name::Run, Tool::Vllm, &words[2..])),
        // guidellm's full form is `benchmark run`.
        ("benchmark", Some("run")) => Ok((Name::Run, Tool::Tokload, &words[2..])),
        ("benchmark" | "serve" | "sweep", _) => Ok((Name::Run, Tool::Tokload, &words[1..])),
        ("profile", _) => Ok((Name::Run, Tool::Aiperf, &words[1..])),
        ("compare-models" | "--compare", _) => Ok((Name::Compare, Tool::Tokload, &words[1..])),
        ("bench", _) => Err(unknown(
            words.iter().take(2).map(String::as_str).collect::<Vec<_>>().join(" "),
            "use bench serve, the only one of vLLM's benchmarks that is spoken",
        )),
        (first, _) => Err(stranger(first)),
    }
}

fn stranger(first: &str) -> Error {
    if let Some((_, instead)) = LATER.iter().find(|(name, _)| *name == first) {
        return Error::new(format!("tokload {first}"), "is not supported yet", *instead);
    }
    let known = Name::ALL.map(Name::as_str).join(", ");
    if first.starts_with('-') {
        let remedy = format!("name a command first, as in tokload run {first}; there are {known}");
        return Error::new("tokload", format!("'{first}' stands where a command should"), remedy);
    }
    let near = nearest(first, Name::ALL.map(Name::as_str).into_iter().chain(RUN_NAMES));
    let near = near.map_or_else(String::new, |near| format!("did you mean {near}? "));
    unknown(first.to_owned(), format!("{near}there are {known}"))
}

fn unknown(command: String, remedy: impl Into<String>) -> Error {
    Error::new("tokload", format!("there is no command '{command}'"), remedy)
}

/// The options of one command while they are read.
struct Line {
    name: Name,
    tool: Tool,
    flags: Vec<Placed>,
    /// One list of words for each part of the command.
    out: Vec<Vec<String>>,
    notes: Vec<String>,
    /// How options that may stand once were spelt.
    seen: HashMap<&'static str, String>,
}

/// The words that are still to be read.
type Rest<'w> = std::iter::Peekable<std::slice::Iter<'w, String>>;

impl Line {
    fn new(name: Name, tool: Tool) -> Line {
        let out = vec![Vec::new(); name.parts().len()];
        Line { name, tool, flags: name.flags(), out, notes: Vec::new(), seen: HashMap::new() }
    }

    fn read(&mut self, words: &[String]) -> Result<(), Error> {
        let mut rest = words.iter().peekable();
        while let Some(word) = rest.next() {
            if word == "--" {
                self.out[0].push(word.clone());
                self.out[0].extend(rest.cloned());
                return Ok(());
            }
            match self.split(word) {
                Some((option, attached)) => self.option(&option, attached, &mut rest)?,
                None => self.word(word)?,
            }
        }
        Ok(())
    }

    /// The option that a word is, and the value attached to it; `None` for a plain word.
    fn split(&self, word: &str) -> Option<(String, Option<String>)> {
        if let Some(long) = word.strip_prefix("--") {
            let (name, value) =
                long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
            // vLLM's parser takes underscores too.
            return Some((format!("--{}", name.replace('_', "-")), value.map(str::to_owned)));
        }
        let mut chars = word.strip_prefix('-')?.chars();
        let short = format!("-{}", chars.next()?);
        if self.action(word).is_some() {
            return Some((word.to_owned(), None));
        }
        let attached = chars.as_str();
        let attached = attached.strip_prefix('=').unwrap_or(attached);
        Some((short, (word.len() > 2).then(|| attached.to_owned())))
    }

    fn word(&mut self, word: &str) -> Result<(), Error> {
        if self.name.info().positionals.is_empty() {
            let subject = format!("tokload {}", self.name.as_str());
            let remedy = "options begin with --; put quotes around a value that has spaces";
            return Err(Error::new(subject, format!("'{word}' belongs to no option"), remedy));
        }
        self.out[0].push(word.to_owned());
        Ok(())
    }

    fn option(&mut self, option: &str, attached: Option<String>, rest: &mut Rest<'_>) -> Result<(), Error> {
        if let Some(flag) = self.own(option).filter(|_| self.tools_own(option).is_none()) {
            return self.emit(flag, option, attached, rest);
        }
        match self.action(option) {
            None => Err(self.stranger(option)),
            Some(&Action::Accept(Takes::Nothing)) => Ok(()),
            Some(&Action::Accept(Takes::Value)) => value(option, attached, rest).map(drop),
            Some(&Action::Refuse(wrong, remedy)) => Err(Error::new(option, wrong, remedy)),
            Some(&Action::Noted(canonical, note)) => {
                self.notes.push(note.to_owned());
                self.emit_as(canonical, option, attached, rest)
            }
            Some(&Action::Same(canonical)) => self.emit_as(canonical, option, attached, rest),
            Some(&Action::Set(canonical, value)) => {
                self.emit_as(canonical, option, Some(value.to_owned()), &mut [].iter().peekable())
            }
            Some(&Action::Convert(convert)) => {
                let mut given = value(option, attached, rest)?;
                loop {
                    let pairs =
                        convert(&given).map_err(|(wrong, remedy)| Error::new(option, wrong, remedy))?;
                    for (canonical, value) in pairs {
                        let attached = (!value.is_empty()).then_some(value);
                        self.emit_as(canonical, option, attached, &mut [].iter().peekable())?;
                    }
                    match rest.next_if(|word| CONVERTED_PAIRS.contains(&option) && is_pair(word)) {
                        Some(more) => given.clone_from(more),
                        None => return Ok(()),
                    }
                }
            }
        }
    }

    /// What the tables say about an option that is not this command's own.
    fn action(&self, option: &str) -> Option<&'static Action> {
        self.tools_own(option).or_else(|| aliases::of_any_tool(option)).filter(|action| match action {
            // Other commands have some options of a plan, under the same other names; the rest is unknown to them.
            Action::Same(canonical) => self.own(canonical).is_some(),
            _ => self.name.takes_a_plan(),
        })
    }

    fn tools_own(&self, option: &str) -> Option<&'static Action> {
        aliases::of_tool(self.tool, option)
    }

    /// The command's own option of that name, long or short.
    fn own(&self, option: &str) -> Option<Placed> {
        let short = option.strip_prefix('-').and_then(|rest| {
            let mut chars = rest.chars();
            chars.next().filter(|_| chars.next().is_none())
        });
        let is_it =
            |Placed { flag, .. }: &&Placed| flag.long == option || (short.is_some() && flag.short == short);
        self.flags.iter().find(is_it).copied()
    }

    fn emit_as(
        &mut self,
        canonical: &'static str,
        option: &str,
        attached: Option<String>,
        rest: &mut Rest<'_>,
    ) -> Result<(), Error> {
        let flag = self.own(canonical).expect("aliases lead to options of the command");
        self.emit(flag, option, attached, rest)
    }

    /// Writes an option of ours, spelt `option` by the user, with its value or values.
    fn emit(
        &mut self,
        own: Placed,
        option: &str,
        attached: Option<String>,
        rest: &mut Rest<'_>,
    ) -> Result<(), Error> {
        let Placed { part, flag } = own;
        if let Some((wrong, remedy)) = self.name.refusal(flag.long) {
            return Err(Error::new(option, wrong, remedy));
        }
        if matches!(flag.kind, FlagInfoKind::Switch) {
            return self.switch(own, option, attached);
        }
        let first = value(option, attached, rest)?;
        if flag.optionality != Optionality::Repeating
            && let Some(before) = self.seen.insert(flag.long, option.to_owned())
        {
            let wrong = match before == option {
                true => "is given twice".to_owned(),
                false => format!("and {before} are the same option"),
            };
            return Err(Error::new(option, wrong, "give it once"));
        }
        self.out[part].extend([flag.long.to_owned(), first]);
        // `--goodput ttft:500 tpot:50`: further values follow without the option's name.
        let follows = |word: &str| match flag.long {
            long if NAMES.contains(&long) => !word.starts_with('-'),
            long => PAIRS.contains(&long) && is_pair(word),
        };
        while let Some(more) = rest.next_if(|word| follows(word)) {
            self.out[part].extend([flag.long.to_owned(), more.clone()]);
        }
        Ok(())
    }

    fn switch(&mut self, own: Placed, option: &str, attached: Option<String>) -> Result<(), Error> {
        let flag = own.flag;
        let on = match attached.as_deref().map(str::to_ascii_lowercase).as_deref() {
            None | Some("true" | "1" | "yes") => true,
            Some("false" | "0" | "no") => false,
            Some(other) => {
                let remedy = "give it alone to switch it on";
                return Err(Error::new(option, format!("is a switch and takes no '{other}'"), remedy));
            }
        };
        let opposite = match flag.long.strip_prefix("--no-") {
            Some(bare) => format!("--{bare}"),
            None => format!("--no-{}", flag.long.trim_start_matches('-')),
        };
        let meant = if on { Some(own) } else { self.own(&opposite) };
        if let Some(Placed { part, flag }) = meant
            && self.seen.insert(flag.long, option.to_owned()).is_none()
        {
            self.out[part].push(flag.long.to_owned());
        }
        Ok(())
    }

    fn stranger(&self, option: &str) -> Error {
        // Without the dashes, which would make any two options alike.
        let bare = |name: &'static str| name.trim_start_matches('-');
        let near = |names: &mut dyn Iterator<Item = &'static str>| {
            nearest(option.trim_start_matches('-'), names.map(bare))
        };
        let shown = self.flags.iter().filter(|placed| !placed.flag.hidden);
        let own = near(&mut shown.map(|placed| placed.flag.long));
        let owner = owner(option);
        let may_be_anothers = self.name.takes_a_plan() && owner.is_none();
        let others = || may_be_anothers.then(|| near(&mut aliases::names())).flatten();
        let command = self.name.as_str();
        let remedy = match own.or_else(others) {
            Some(near) => format!("did you mean --{near}?"),
            None => match owner {
                Some(other) => format!("it belongs to tokload {}", other.as_str()),
                None => format!("see `tokload {command} --help`"),
            },
        };
        Error::new(option, format!("is not an option of tokload {command}"), remedy)
    }
}

/// The command that has the option.
fn owner(option: &str) -> Option<Name> {
    Name::ALL
        .into_iter()
        .find(|name| name.flags().iter().any(|Placed { flag, .. }| flag.long == option && !flag.hidden))
}

/// The value of an option: the attached one, else the next word.
fn value(option: &str, attached: Option<String>, rest: &mut Rest<'_>) -> Result<String, Error> {
    // A word like `-1` is a value, one like `--seed` is the next option.
    attached
        .or_else(|| rest.next_if(|word| !word.starts_with("--")).cloned())
        .ok_or_else(|| Error::new(option, "has no value", format!("write {option} VALUE")))
}

/// Whether a word is `key:value` or `key=value` and no option, so that it can only belong to the option before.
fn is_pair(word: &str) -> bool {
    !word.starts_with('-') && word.find([':', '=']).is_some_and(|place| place > 0)
}

/// Options that take several values after their name.
const PAIRS: [&str; 5] = ["--base-url", "--freeze", "--goodput", "--header", "--metadata"];
/// The same of options whose values are converted.
const CONVERTED_PAIRS: [&str; 3] = ["--extra-inputs", "--url", "-u"];
/// Options that take several words, whatever they are.
const NAMES: [&str; 4] = ["--gpu-telemetry", "--lora-modules", "--server-metrics", "--server-metrics-match"];
/// Other names of `run`.
const RUN_NAMES: [&str; 5] = ["benchmark", "bench serve", "profile", "serve", "sweep"];
/// Commands to come, and what does a part of it now.
const LATER: [(&str, &str); 1] = [("share", "print the table by tokload report")];
