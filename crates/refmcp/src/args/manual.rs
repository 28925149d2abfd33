//! Completion scripts and the manual page, made from the definition of what can be typed.

use std::io::{self, Write};

use clap::CommandFactory;

use super::Args;
use crate::completion;

/// Writes the script that completes words in this shell.
///
/// # Errors
///
/// The script cannot be written.
pub(crate) fn print_completions(shell: clap_complete::Shell, to: &mut impl Write) -> io::Result<()> {
    if let Some(script) = completion::script(shell) {
        return to.write_all(script.as_bytes());
    }
    // The generator panics when it cannot write, so it writes to memory.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "refmcp", &mut script);
    to.write_all(&script)
}

/// Writes what the help says below the options, line by line: how arguments are written, and examples.
fn render_examples(command: &clap::Command, to: &mut impl Write) -> io::Result<()> {
    if let Some(text) = command.get_after_help() {
        writeln!(to, ".PP\n.nf")?;
        for line in text.to_string().lines() {
            writeln!(to, "{}", literal(line))?;
        }
        writeln!(to, ".fi")?;
    }
    for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
        render_examples(sub, to)?;
    }
    Ok(())
}

/// A line that troff shows as it is.
fn literal(line: &str) -> String {
    let escaped = line.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq");
    // At the beginning of a line, a dot would be a request.
    format!("\\&{escaped}")
}

/// Writes the manual page, with a section for every command.
///
/// # Errors
///
/// The page cannot be written.
pub(crate) fn print_manual(to: &mut impl Write) -> io::Result<()> {
    let mut command = Args::command();
    command.build();
    let page = clap_mangen::Man::new(command.clone());
    page.render(to)?;
    for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help" && !sub.is_hide_set()) {
        writeln!(to, ".SH \"REFMCP {}\"", sub.get_name().to_uppercase())?;
        let page = clap_mangen::Man::new(sub.clone());
        page.render_description_section(to)?;
        page.render_synopsis_section(to)?;
        page.render_options_section(to)?;
        render_examples(sub, to)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;

    #[test]
    fn every_shell_gets_a_script_that_knows_or_asks() {
        for shell in clap_complete::Shell::value_variants() {
            let mut script = Vec::new();
            print_completions(*shell, &mut script).unwrap();
            let script = String::from_utf8(script).unwrap();
            let asks = script.contains(&format!("refmcp __complete {shell} -- "));
            let knows =
                ["serve", "call", "complete", "bridge", "trust"].iter().all(|word| script.contains(word));
            assert!(asks || knows, "{shell}");
        }
    }

    #[test]
    fn the_page_has_every_command() {
        let mut page = Vec::new();
        print_manual(&mut page).unwrap();
        let page = String::from_utf8(page).unwrap();
        assert!(page.contains(".TH refmcp"), "{page}");
        for command in ["STDIO", "SERVE", "LIST", "CALL", "WATCH", "SHELL", "TRUST", "LOG"] {
            assert!(page.contains(&format!(".SH \"REFMCP {command}\"")), "{command}");
        }
        assert!(!page.contains("REFMCP HELP") && !page.contains("__complete"));
        for example in [
            "refmcp serve \\-\\-auth builtin",
            "sum \\-\\-json \\-",
            "refmcp trust revoke weather",
            "auth keyring on",
        ] {
            assert!(page.contains(example), "{example} in {page}");
        }
    }
}
