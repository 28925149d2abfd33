//! bash at a terminal, with the script that `refmcp completions bash` prints.

use super::User;
use super::lines::{completes_lines, quotes_names};
use super::support::Terminal;
use super::terminal;

fn start(user: &User) -> Terminal {
    let mut bash = terminal::start(user, "bash", &["--norc", "--noprofile", "-i"], "dumb");
    bash.press("stty -echo; bind 'set bell-style none' 'set horizontal-scroll-mode off' 'set show-all-if-ambiguous on'\n");
    bash.press("take() { printf '<<%s>>\\n' \"$READLINE_LINE\"; READLINE_LINE= READLINE_POINT=0; }\n");
    bash.press("bind -x '\"\\C-t\": take'; source <(refmcp completions bash)\n");
    bash.press("echo loa''ded\n");
    bash.expect("loaded");
    bash
}

#[test]
fn words_are_completed_at_a_terminal() {
    completes_lines(
        start,
        &[
            ("refmcp call 'my", "refmcp call 'my server'"),
            ("refmcp call \"my", "refmcp call \"my server\""),
            ("refmcp call 'my server' 'su", "refmcp call 'my server' 'sum'"),
            ("refmcp call URL ask_user form=\"ch", "refmcp call URL ask_user form=\"choice\""),
            ("refmcp call --config 'some", "refmcp call --config 'some file.json' "),
        ],
    );
}

#[test]
fn names_of_a_server_are_quoted_at_a_terminal() {
    quotes_names(start, [("\\$", "\\$\\(touch\\ hit\\) "), ("'`", "'`touch hit`;x'"), ("\"a", "\"a b\"")]);
}
