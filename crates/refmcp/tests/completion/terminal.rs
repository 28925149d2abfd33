//! A shell at a terminal, and what tab makes of a line.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::process::Command;

use super::User;
use super::support::Terminal;

/// The prompt that every shell is given.
pub(super) const PROMPT: &str = "ready$ ";

/// Control-T. Each shell binds it to printing the line between angle brackets and emptying it. A key with a meaning to the
/// terminal itself, such as Control-U, would be lost while the shell is not reading keys.
const TAKE: &str = "\x14";

/// Wide enough that no line is wrapped or scrolled.
const COLUMNS: u16 = 400;

/// Variables that lead a shell to files of the developer, or change what it shows.
const VARIABLES: [&str; 12] = [
    "BASH_ENV",
    "CDPATH",
    "ENV",
    "FPATH",
    "HISTFILE",
    "INPUTRC",
    "LS_COLORS",
    "PROMPT_COMMAND",
    "XDG_CACHE_HOME",
    "XDG_DATA_DIRS",
    "XDG_DATA_HOME",
    "ZDOTDIR",
];

/// Starts an interactive shell in the user's home, at a terminal of this type, and waits for its prompt.
pub(super) fn start(user: &User, shell: &str, options: &[&str], kind: &str) -> Terminal {
    let mut command = Command::new(installed(shell));
    command.args(options);
    let mut command = user.place(command);
    for variable in VARIABLES {
        command.env_remove(variable);
    }
    // A folder that others may read is not used.
    DirBuilder::new().mode(0o700).create(user.path("runtime")).unwrap();
    command.env("XDG_RUNTIME_DIR", user.path("runtime")).env("TERM", kind).env("PS1", PROMPT);
    let mut terminal = Terminal::start(&command, COLUMNS);
    terminal.expect(PROMPT);
    terminal
}

/// Types this and presses tab; the line that comes of it.
pub(super) fn complete(terminal: &mut Terminal, line: &str) -> String {
    terminal.press(&format!("{line}\t{TAKE}"));
    terminal.expect("<<");
    terminal.expect(">>")
}

/// The shell, which has to be there: no test is left out.
fn installed(shell: &str) -> &str {
    let path = std::env::var("PATH").unwrap_or_default();
    let is_there = std::env::split_paths(&path).any(|folder| folder.join(shell).exists());
    assert!(is_there, "{shell} is needed for this test and is not installed: apt-get install {shell}");
    shell
}
