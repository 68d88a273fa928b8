//! The commands by name: which structures read the words of each, and what each refuses of them.

use argh::{ArgsInfo, CommandInfoWithArgs, FlagInfo};

use super::{
    CheckArgs, CompareArgs, FindCapacityArgs, ImportArgs, LintArgs, MergeArgs, MockServerArgs, QuickArgs,
    ReportArgs, RunArgs, SelftestArgs, ShareArgs, SimulateArgs,
};
use crate::cli::aliases::Tool;
use crate::cli::model_options::ModelArgs;
use crate::cli::{help, lint, simulate};

/// The commands that exist, in the order in which help shows them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name {
    /// `quick`
    Quick,
    /// `run`
    Run,
    /// `find-capacity`
    FindCapacity,
    /// `check`
    Check,
    /// `compare`
    Compare,
    /// `report`
    Report,
    /// `share`
    Share,
    /// `merge`
    Merge,
    /// `import`
    Import,
    /// `lint`
    Lint,
    /// `simulate`
    Simulate,
    /// `mock-server`
    MockServer,
    /// `selftest`
    Selftest,
}

/// An option of a command.
#[derive(Clone, Copy, Debug)]
pub struct Placed {
    /// Which of the command's structures reads it, a place in [`Name::parts`].
    pub part: usize,
    /// The option.
    pub flag: &'static FlagInfo<'static>,
}

impl Name {
    /// All of them.
    pub const ALL: [Name; 13] = [
        Name::Quick,
        Name::Run,
        Name::FindCapacity,
        Name::Check,
        Name::Compare,
        Name::Report,
        Name::Share,
        Name::Merge,
        Name::Import,
        Name::Lint,
        Name::Simulate,
        Name::MockServer,
        Name::Selftest,
    ];

    /// As typed.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Name::FindCapacity => "find-capacity",
            Name::Import => "import",
            Name::Check => "check",
            Name::Compare => "compare",
            Name::Lint => "lint",
            Name::Merge => "merge",
            Name::MockServer => "mock-server",
            Name::Quick => "quick",
            Name::Report => "report",
            Name::Run => "run",
            Name::Selftest => "selftest",
            Name::Share => "share",
            Name::Simulate => "simulate",
        }
    }

    /// The structures that read its options and words, with their help. The first is its own: it has the command's
    /// description and its words. argh cannot put one structure into another, so that commands share options by
    /// having several.
    #[must_use]
    pub fn parts(self) -> Vec<CommandInfoWithArgs> {
        match self {
            Name::FindCapacity => vec![FindCapacityArgs::get_args_info(), RunArgs::get_args_info()],
            Name::Import => vec![ImportArgs::get_args_info()],
            Name::Merge => vec![MergeArgs::get_args_info()],
            Name::Check => vec![CheckArgs::get_args_info()],
            Name::Compare => vec![CompareArgs::get_args_info()],
            Name::Lint => vec![LintArgs::get_args_info(), RunArgs::get_args_info()],
            Name::MockServer => vec![MockServerArgs::get_args_info(), ModelArgs::get_args_info()],
            Name::Quick => vec![QuickArgs::get_args_info()],
            Name::Report => vec![ReportArgs::get_args_info()],
            Name::Run => vec![RunArgs::get_args_info()],
            Name::Selftest => vec![SelftestArgs::get_args_info()],
            Name::Share => vec![ShareArgs::get_args_info()],
            Name::Simulate => {
                vec![
                    SimulateArgs::get_args_info(),
                    ModelArgs::get_args_info(),
                    FindCapacityArgs::get_args_info(),
                    RunArgs::get_args_info(),
                ]
            }
        }
    }

    /// Its description and its words, with the help of its own options.
    #[must_use]
    pub fn info(self) -> CommandInfoWithArgs {
        self.parts().swap_remove(0)
    }

    /// Its options, part by part. An option of an earlier part stands for one of the same name in a later part.
    #[must_use]
    pub fn flags(self) -> Vec<Placed> {
        let mut all: Vec<Placed> = Vec::new();
        for (part, info) in self.parts().into_iter().enumerate() {
            let new = |flag: &&FlagInfo<'_>| !all.iter().any(|placed| placed.flag.long == flag.long);
            let flags: Vec<Placed> =
                info.flags.iter().filter(new).map(|flag| Placed { part, flag }).collect();
            all.extend(flags);
        }
        all
    }

    /// Why it does not take an option of its parts, and what to do instead; `None`: it takes it.
    #[must_use]
    pub fn refusal(self, option: &str) -> Option<(&'static str, &'static str)> {
        match self {
            Name::Lint => lint::refusal(option),
            Name::Simulate => simulate::refusal(option),
            Name::Check
            | Name::Compare
            | Name::FindCapacity
            | Name::Import
            | Name::Merge
            | Name::Share
            | Name::MockServer
            | Name::Quick
            | Name::Report
            | Name::Run
            | Name::Selftest => None,
        }
    }

    /// Whether it takes the options of a plan, and with them the other tools' names for these.
    #[must_use]
    pub fn takes_a_plan(self) -> bool {
        matches!(self, Name::FindCapacity | Name::Lint | Name::Run | Name::Simulate)
    }

    /// Its help.
    #[must_use]
    pub fn help(self) -> String {
        help::of_command(self, Tool::Tokload)
    }
}
