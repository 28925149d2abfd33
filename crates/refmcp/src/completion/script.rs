//! The scripts that make shells ask refmcp, and the answers as each shell reads them.

use std::fmt::Write;

use clap_complete::Shell;

use super::line::Line;
use super::{Candidate, Candidates};
use crate::args::CompletionShell;

/// Says that the shell completes the names of files itself.
const FILES: &str = ":files";

/// The script of a shell, for those that ask refmcp.
pub(crate) fn script(shell: Shell) -> Option<&'static str> {
    match shell {
        Shell::Bash => Some(BASH),
        Shell::Zsh => Some(ZSH),
        Shell::Fish => Some(FISH),
        _ => None,
    }
}

/// Words come as they are to be inserted, one on each line; a space stands at the end of those that are complete.
const BASH: &str = r#"# Completion of refmcp in bash: source <(refmcp completions bash)
_refmcp() {
    local IFS=$'\n' line
    COMPREPLY=()
    while read -r line; do
        if [[ $line == :files ]]; then
            compopt -o default +o nospace 2>/dev/null
        else
            COMPREPLY+=("$line")
        fi
    done < <(command refmcp __complete bash -- "$COMP_WORDBREAKS" "${COMP_LINE:0:$COMP_POINT}" 2>/dev/null)
}
complete -o nospace -F _refmcp refmcp
"#;

/// A line is the kind of the word, the word and what is shown for it, with tabs between them.
const ZSH: &str = r#"#compdef refmcp
# Completion of refmcp in zsh: a file _refmcp in $fpath, or: source <(refmcp completions zsh)
_refmcp() {
    local kind word shown files result=1 typed=$PREFIX
    local -a open open_shown closed closed_shown
    # Nothing is special between single quotes.
    [[ $compstate[quote] == \' ]] || typed=${(Q)typed}
    while IFS=$'\t' read -r kind word shown; do
        case $kind in
            :files) files=1 ;;
            open) open+=("$word"); open_shown+=("$shown") ;;
            closed) closed+=("$word"); closed_shown+=("$shown") ;;
        esac
    done < <(command refmcp __complete zsh -- "${(@Q)words[1,CURRENT-1]}" "$typed" 2>/dev/null)
    (( $#closed )) && compadd -l -d closed_shown -a closed && result=0
    (( $#open )) && compadd -l -d open_shown -S '' -a open && result=0
    if [[ -n $files ]]; then
        # The value of --option=value is the name.
        [[ $PREFIX == --*=* ]] && compset -P '[^=]#='
        _files && result=0
    fi
    return result
}
if [[ $funcstack[1] == _refmcp ]]; then
    _refmcp "$@"
else
    compdef _refmcp refmcp
fi
"#;

/// A line is the word and what is said about it, with a tab between them.
const FISH: &str = r#"# Completion of refmcp in fish: refmcp completions fish | source
function __refmcp_complete
    # What is typed may have quotes, the last of which may be open.
    set -l token (commandline -ct)
    set -l last (string unescape -- $token; or string unescape -- $token\'; or string unescape -- $token\")
    for line in (command refmcp __complete fish -- (commandline -opc) "$last" 2>/dev/null)
        if test "$line" = :files
            # The files that fish completes for a command that it knows nothing about.
            complete -C "'' $token"
        else
            printf '%s\n' "$line"
        end
    end
end
complete -c refmcp -f -a '(__refmcp_complete)'
"#;

/// The candidates as the script of a shell reads them.
pub(super) fn answer(shell: CompletionShell, line: &Line, found: &Candidates) -> String {
    let mut answer = String::new();
    for word in &found.words {
        // Writing to a text does not fail.
        let _ = match shell {
            CompletionShell::Bash => match for_bash(line, word) {
                Some(word) => writeln!(answer, "{word}"),
                None => Ok(()),
            },
            CompletionShell::Zsh => {
                let kind = if word.is_open { "open" } else { "closed" };
                let separator = if word.description.is_empty() { "" } else { "  -- " };
                writeln!(answer, "{kind}\t{}\t{}{separator}{}", word.text, word.text, word.description)
            }
            CompletionShell::Fish => writeln!(answer, "{}\t{}", word.text, word.description),
        };
    }
    if found.files {
        let _ = writeln!(answer, "{FILES}");
    }
    answer
}

/// A word as bash puts it onto the line, without the part that bash keeps. Names come from servers: whatever a shell would
/// take for more than a letter is quoted, and a word that cannot be is left out.
fn for_bash(line: &Line, word: &Candidate) -> Option<String> {
    let rest = word.text.get(line.replaced.kept..)?;
    let escaped = |special: &dyn Fn(char) -> bool| {
        rest.chars().fold(String::new(), |mut text, c| {
            if special(c) {
                text.push('\\');
            }
            text.push(c);
            text
        })
    };
    match line.replaced.quote {
        // Bash closes the quotes itself.
        Some('\'') => (!rest.contains('\'')).then(|| rest.to_owned()),
        Some(_) => (!rest.contains('!')).then(|| escaped(&|c| matches!(c, '"' | '\\' | '$' | '`'))),
        None => {
            let plain = |c: char| c.is_alphanumeric() || "-_./:=@%+,".contains(c);
            let end = if word.is_open { "" } else { " " };
            Some(escaped(&|c| !plain(c)) + end)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::line::bash_line;
    use super::*;

    fn bash(typed: &str, word: &str) -> Option<String> {
        let words = [" \t\n\"'@><=;|&(:".to_owned(), format!("refmcp call a {typed}")];
        for_bash(&bash_line(&words).unwrap(), &Candidate::new(word, ""))
    }

    #[test]
    fn bash_gets_the_part_that_it_replaces() {
        assert_eq!(bash("s", "sum").unwrap(), "sum ");
        assert_eq!(bash("file:", "file:///a").unwrap(), "///a ");
        assert_eq!(bash("t key=", "key=a b").unwrap(), "a\\ b ");
        assert_eq!(bash("'a ", "a b").unwrap(), "a b");
    }

    #[test]
    fn nothing_that_a_server_names_is_run() {
        assert_eq!(
            bash("", "$(rm -rf ~);`x`|&<>!").unwrap(),
            "\\$\\(rm\\ -rf\\ \\~\\)\\;\\`x\\`\\|\\&\\<\\>\\! "
        );
        assert_eq!(bash("\"", "$(x)`y`\"").unwrap(), "\\$(x)\\`y\\`\\\"");
        assert_eq!(bash("\"", "a!b"), None);
        assert_eq!(bash("'", "$(x)").unwrap(), "$(x)");
        assert_eq!(bash("'", "';x"), None);
    }
}
