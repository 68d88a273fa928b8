//! What the README shows of simulated servers is what the program prints: such numbers are the same on any machine.

use super::Dir;

/// The commands of the README that are followed by what they print, with those lines.
fn shown() -> Vec<(&'static str, Vec<&'static str>)> {
    let readme = include_str!("../../../README.md");
    let blocks = readme.split("```\n").skip(1).step_by(2);
    let of = |block: &'static str| {
        let (command, printed) = block.split_once('\n')?;
        let command = command.strip_prefix("$ tokload simulate ")?;
        // The first line has the time of the run; dots stand for what is left out before the rest.
        let printed: Vec<&str> =
            printed.lines().filter(|line| !line.starts_with("tokload ") && *line != "...").collect();
        (!printed.is_empty() && !printed[0].starts_with("$ ")).then_some((command, printed))
    };
    blocks.filter_map(of).collect()
}

#[test]
fn the_readme_shows_what_simulations_print() {
    let shown = shown();
    assert_eq!(shown.len(), 5, "two sweeps, two searches and a stress test: {shown:?}");
    for (options, printed) in shown {
        let said = Dir::new().tokload(&format!("simulate {options} --no-save -q"));
        let out: Vec<&str> = said.out.lines().map(str::trim_end).collect();
        assert!(
            out.windows(printed.len()).any(|lines| lines == printed),
            "{options} prints otherwise now:\n{}",
            said.out
        );
    }
}
