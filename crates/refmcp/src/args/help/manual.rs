//! The manual page, made from the definition of the command line: one page with a section for every command.

use std::io::{self, Write};

use super::definition;

/// Writes what the help says below the options, line by line: how arguments are written, and examples.
fn render_examples(command: &clap::Command, to: &mut impl Write) -> io::Result<()> {
    let Some(text) = command.get_after_help() else { return Ok(()) };
    writeln!(to, ".PP\n.nf")?;
    for line in text.to_string().lines() {
        writeln!(to, "{}", literal(line))?;
    }
    writeln!(to, ".fi")
}

/// A line that troff shows as it is.
fn literal(line: &str) -> String {
    let escaped = line.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq");
    // At the beginning of a line, a dot would be a request.
    format!("\\&{escaped}")
}

/// Commands that are shown.
fn shown(command: &clap::Command) -> impl Iterator<Item = &clap::Command> {
    command.get_subcommands().filter(|sub| sub.get_name() != "help" && !sub.is_hide_set())
}

/// Writes the commands of a command, by the names of their sections in this page.
fn render_commands(command: &clap::Command, to: &mut impl Write) -> io::Result<()> {
    for sub in shown(command) {
        let about = sub.get_about().map(ToString::to_string).unwrap_or_default();
        writeln!(to, ".TP\n\\fB{}\\fR\n{}", literal(sub.get_name()), literal(&about))?;
    }
    Ok(())
}

/// Writes the section of a command, and those of its own commands.
fn render_section(path: &str, command: &clap::Command, to: &mut impl Write) -> io::Result<()> {
    let path = format!("{path} {}", command.get_name());
    writeln!(to, ".SH \"{}\"", path.to_uppercase())?;
    let page = clap_mangen::Man::new(command.clone());
    let mut parts = Vec::new();
    page.render_description_section(&mut parts)?;
    page.render_synopsis_section(&mut parts)?;
    page.render_options_section(&mut parts)?;
    // These are parts of this section, which the generator takes for sections of a page.
    for line in String::from_utf8_lossy(&parts).lines() {
        match line.strip_prefix(".SH ") {
            Some(title) => writeln!(to, ".SS {title}")?,
            None => writeln!(to, "{line}")?,
        }
    }
    if shown(command).next().is_some() {
        writeln!(to, ".SS COMMANDS")?;
        render_commands(command, to)?;
    }
    render_examples(command, to)?;
    shown(command).try_for_each(|sub| render_section(&path, sub, to))
}

/// What the process exits with.
const EXIT_STATUS: [(&str, &str); 6] = [
    ("0", "It worked."),
    (
        "1",
        "The command cannot be understood, the arguments do not fit, or the server answered with an error.",
    ),
    ("3", "The server wants authorization."),
    (
        "4",
        "The server cannot be reached or started, does not speak the protocol or breaks it, or does not answer in time.",
    ),
    ("5", "The tool ran and says that it failed."),
    ("129, 130, 143", "SIGHUP, SIGINT (ctrl-c) or SIGTERM ended the command."),
];

/// Writes the manual page, with a section for every command.
///
/// # Errors
///
/// The page cannot be written.
pub(crate) fn print_manual(to: &mut impl Write) -> io::Result<()> {
    let command = definition();
    let page = clap_mangen::Man::new(command.clone());
    page.render_title(to)?;
    page.render_name_section(to)?;
    page.render_synopsis_section(to)?;
    page.render_description_section(to)?;
    page.render_options_section(to)?;
    writeln!(to, ".SH COMMANDS\nEach has a section below.")?;
    render_commands(&command, to)?;
    writeln!(to, ".SH EXAMPLES")?;
    render_examples(&command, to)?;
    writeln!(to, ".SH \"EXIT STATUS\"")?;
    for (code, when) in EXIT_STATUS {
        writeln!(to, ".TP\n{code}\n{}", literal(when))?;
    }
    shown(&command).try_for_each(|sub| render_section("refmcp", sub, to))?;
    page.render_version_section(to)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::ExitReason;

    #[test]
    fn the_page_has_every_command() {
        let mut page = Vec::new();
        print_manual(&mut page).unwrap();
        let page = String::from_utf8(page).unwrap();
        assert!(page.contains(".TH refmcp"), "{page}");
        for command in [
            "STDIO",
            "SERVE",
            "LIST",
            "CALL",
            "WATCH",
            "SHELL",
            "TRUST",
            "TRUST ALLOW",
            "AUTH LOGIN",
            "AUTH KEYRING",
            "MODELS",
            "MODELS SELECT",
            "LOG",
        ] {
            assert!(page.contains(&format!(".SH \"REFMCP {command}\"")), "{command}");
        }
        for section in ["COMMANDS", "EXAMPLES", "\"EXIT STATUS\""] {
            assert!(page.contains(&format!("\n.SH {section}\n")), "{section}");
        }
        // No other page is there to be looked up.
        assert!(!page.contains("(1)") && !page.contains("EXTRA"), "{page}");
        for reason in [
            ExitReason::Usage,
            ExitReason::Failed,
            ExitReason::Authorization,
            ExitReason::Unreachable,
            ExitReason::ToolError,
            ExitReason::HungUp,
            ExitReason::Interrupted,
            ExitReason::Terminated,
        ] {
            let code = reason.code().to_string();
            assert!(
                EXIT_STATUS.iter().any(|(codes, _)| codes.split(", ").any(|known| known == code)),
                "{code}"
            );
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
