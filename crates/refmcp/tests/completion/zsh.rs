//! zsh at a terminal, with the script that `refmcp completions zsh` prints.

use super::User;
use super::lines::{completes_lines, quotes_names};
use super::support::Terminal;
use super::terminal;

/// zsh with a configuration of these lines; that of the machine is not read.
fn start(user: &User, completion: &str) -> Terminal {
    let configuration = format!(
        "PROMPT='ready$ '\n\
         setopt complete_in_word\n\
         unsetopt beep prompt_cr prompt_sp\n\
         take() {{ print -r -- \"<<$BUFFER>>\"; BUFFER= }}\n\
         zle -N take\n\
         bindkey -e\n\
         bindkey '^T' take\n\
         {completion}\n"
    );
    user.write(".zshrc", &configuration);
    terminal::start(user, "zsh", &["--no-global-rcs", "-i"], "dumb")
}

/// The script is sourced after `compinit`, which writes no file and asks nothing about the owners of folders.
fn sourced(user: &User) -> Terminal {
    start(user, "autoload -Uz compinit && compinit -D -u\nsource <(refmcp completions zsh)")
}

/// The script is a file in a folder of `$fpath`.
fn in_a_folder(user: &User) -> Terminal {
    user.write("functions/_refmcp", &user.run(&["completions", "zsh"]));
    start(user, "fpath=(~/functions $fpath)\nautoload -Uz compinit && compinit -D -u")
}

/// Quotes that are open, and at last a word with the cursor in it.
const LINES: [(&str, &str); 6] = [
    ("refmcp call 'my", "refmcp call 'my server' "),
    ("refmcp call \"my", "refmcp call \"my server\" "),
    ("refmcp call 'my server' 'su", "refmcp call 'my server' 'sum' "),
    ("refmcp call URL ask_user form=\"ch", "refmcp call URL ask_user form=choice "),
    ("refmcp call --config 'some", "refmcp call --config 'some file.json' "),
    ("refmcp call URL sm\x02", "refmcp call URL sum "),
];

#[test]
fn words_are_completed_at_a_terminal() {
    completes_lines(sourced, &LINES);
}

#[test]
fn words_are_completed_with_the_script_in_a_folder() {
    completes_lines(in_a_folder, &LINES);
}

#[test]
fn names_of_a_server_are_quoted_at_a_terminal() {
    quotes_names(
        sourced,
        [("\\$", "\\$\\(touch\\ hit\\) "), ("'`", "'`touch hit`;x' "), ("\"a", "\"a b\" ")],
    );
}
