//! fish at a terminal, with the script that `refmcp completions fish` prints.

use std::fs;

use super::User;
use super::lines::{completes_lines, quotes_names};
use super::support::Terminal;
use super::terminal;

const CONFIGURATION: &str = "\
set -g fish_greeting
set -g fish_autosuggestion_enabled 0
function fish_prompt; printf 'ready$ '; end
function fish_user_key_bindings
    bind \\ct 'printf \"<<%s>>\\n\" (commandline); commandline \"\"; commandline -f repaint'
end
";

/// fish with its files in the user's home, among them this configuration.
fn start(user: &User, completion: &str) -> Terminal {
    user.write(".config/fish/config.fish", &format!("{CONFIGURATION}{completion}\n"));
    // Without this folder, fish reads all manual pages of the machine when it is started for the first time.
    fs::create_dir_all(user.path(".local/share/fish/generated_completions")).unwrap();
    // fish lists nothing at a terminal that cannot move the cursor. Newer versions ask the terminal, which has no answers here.
    terminal::start(user, "fish", &["--interactive", "--features", "no-query-term"], "xterm")
}

/// The script is a file where fish looks for completions.
fn in_a_folder(user: &User) -> Terminal {
    user.write(".config/fish/completions/refmcp.fish", &user.run(&["completions", "fish"]));
    start(user, "")
}

/// The script is sourced.
fn sourced(user: &User) -> Terminal {
    start(user, "refmcp completions fish | source")
}

#[test]
fn words_are_completed_at_a_terminal() {
    completes_lines(
        in_a_folder,
        &[
            ("refmcp call 'my", "refmcp call 'my server' "),
            ("refmcp call \"my", "refmcp call \"my server\" "),
            ("refmcp call 'my server' 'su", "refmcp call 'my server' 'sum' "),
            ("refmcp call URL ask_user form=\"ch", "refmcp call URL ask_user form=\"choice\" "),
            ("refmcp call --config 'some", "refmcp call --config 'some file.json' "),
        ],
    );
}

#[test]
fn names_of_a_server_are_quoted_at_a_terminal() {
    quotes_names(
        sourced,
        [("\\$", "\\$\\(touch\\ hit\\) "), ("'`", "'`touch hit`;x' "), ("\"a", "\"a b\" ")],
    );
}
