//! Questions that come up while something is typed.

use std::fs;
use std::process::Command;

use tempfile::tempdir;

use crate::screen::Screen;
use crate::total;

#[test]
fn a_form_is_filled_in() {
    let folder = tempdir().unwrap();
    let mut screen = Screen::with_server(folder.path(), &[]);
    screen.enter("ask_user form=choice");
    screen.expect("Choose a colour and a size.");
    screen.expect("Answer?");
    screen.enter("y");
    screen.expect("Colour");
    screen.enter("blue");
    screen.expect("Size");
    screen.enter("");
    screen.expect("Send it?");
    screen.enter("y");
    screen.expect("The user accepted");
    screen.expect("refmcp> ");
    screen.enter("sum a=1 b=1");
    screen.expect(&total(2));
}

#[test]
fn ctrl_c_gives_up_a_question() {
    let folder = tempdir().unwrap();
    let mut screen = Screen::with_server(folder.path(), &[]);
    screen.enter("ask_user form=confirm");
    screen.expect("Answer?");
    screen.press("\x03");
    screen.expect("The user put the form away");
    screen.expect("refmcp> ");
    screen.enter("sum a=1 b=1");
    screen.expect(&total(2));
}

#[test]
fn tools_that_may_change_something_are_asked_about() {
    let folder = tempdir().unwrap();
    let mut screen = Screen::with_server(folder.path(), &[]);
    screen.enter("add_tool name=x");
    screen.expect("Run it?");
    screen.enter("n");
    screen.expect("it was not called");
    screen.expect("refmcp> ");
    screen.enter("add_tool name=x");
    screen.expect("Run it?");
    screen.enter("y");
    screen.expect("the tools have changed");
}

#[test]
fn a_person_plays_the_model() {
    let folder = tempdir().unwrap();
    let mut screen = Screen::with_server(folder.path(), &[]);
    screen.enter("ask_model prompt='what is up?'");
    screen.expect("Answer it?");
    screen.enter("y");
    screen.expect("what do you say?");
    screen.enter("not much");
    screen.expect("answered: not much");
}

#[test]
fn variables_of_a_template_are_asked_for_with_what_the_server_offers() {
    let folder = tempdir().unwrap();
    let mut screen = Screen::with_server(folder.path(), &[]);
    screen.enter("read memos");
    screen.expect("1  office");
    screen.expect("shelf:");
    screen.enter("travel");
    screen.expect("2  oslo");
    screen.expect("name:");
    screen.enter("2");
    screen.expect("The memo \"oslo\" from the shelf \"travel\"");
}

/// A server that asks by itself, once somebody has written to a pipe, and repeats the answer.
const ASKER: &str = r#"
read -r hello
id=$(printf '%s' "$hello" | sed 's/.*"id":\([^,}]*\).*/\1/')
printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{},' "$id"
printf '"serverInfo":{"name":"asker","version":"1"}}}\n'
read -r initialized
cat "$1" > /dev/null
printf '{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"Who is there?",'
printf '"requestedSchema":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}}}\n'
read -r answer
printf 'heard %s\n' "$answer" >&2
cat > /dev/null
"#;

#[test]
fn a_question_that_comes_while_somebody_types_waits_for_the_line() {
    let folder = tempdir().unwrap();
    let (script, pipe) = (folder.path().join("asker.sh"), folder.path().join("pipe"));
    fs::write(&script, ASKER).unwrap();
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let words = [script.to_str().unwrap(), pipe.to_str().unwrap()];
    let mut screen =
        Screen::shell(folder.path(), &["--protocol-version", "legacy", "--", "sh", words[0], words[1]]);
    screen.expect("asker> ");
    screen.press("servers");
    screen.expect("servers");
    fs::write(&pipe, "ask").unwrap();
    screen.expect("A server asks something: press Enter");
    screen.expect("servers");
    screen.enter("");
    screen.expect("Who is there?");
    screen.expect("Answer?");
    screen.enter("y");
    screen.expect("name");
    screen.enter("Ada");
    screen.expect("Send it?");
    screen.enter("y");
    screen.expect("[asker] heard ");
    screen.expect("\"name\":\"Ada\"");
    screen.enter("servers");
    screen.expect("connected");
}

/// A server that asks in the middle of a call, while it says how far it is. Whenever somebody has written to a pipe, it
/// goes on: first with two log messages, then to the end.
const BUSY: &str = r#"
say() { printf '%s\n' "$1"; }
log() { say '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"'"$1"'"}}'; }
part() { printf '%s' "$line" | sed "s/.*\"$1\":\([^,}]*\).*/\1/"; }
while read -r line; do
  case "$line" in
  *'"initialize"'*)
    say '{"jsonrpc":"2.0","id":'"$(part id)"',"result":{"protocolVersion":"2025-06-18",
      "capabilities":{"tools":{},"logging":{}},"serverInfo":{"name":"busy","version":"1"}}}' | tr -d '\n'; say ;;
  *'"tools/list"'*)
    say '{"jsonrpc":"2.0","id":'"$(part id)"',"result":{"tools":[{"name":"work",
      "annotations":{"readOnlyHint":true},"inputSchema":{"type":"object"}}]}}' | tr -d '\n'; say ;;
  *'"tools/call"'*)
    call=$(part id)
    say '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":'"$(part progressToken)"',
      "progress":1,"message":"at it"}}' | tr -d '\n'; say
    say '{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"Go on?",
      "requestedSchema":{"type":"object","properties":{}}}}' | tr -d '\n'; say
    cat "$1" > /dev/null
    log 'one thing'; log 'another' ;;
  *'"id":"q"'*)
    cat "$1" > /dev/null
    say '{"jsonrpc":"2.0","id":'"$call"',"result":{"content":[{"type":"text","text":"worked"}]}}' ;;
  esac
done
"#;

#[test]
fn a_bar_is_out_of_the_way_while_something_is_asked() {
    let folder = tempdir().unwrap();
    let (script, pipe) = (folder.path().join("busy.sh"), folder.path().join("pipe"));
    fs::write(&script, BUSY).unwrap();
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let words = [script.to_str().unwrap(), pipe.to_str().unwrap()];
    let mut screen =
        Screen::shell(folder.path(), &["--protocol-version", "legacy", "--", "sh", words[0], words[1]]);
    screen.expect("busy> ");
    screen.enter("work");
    screen.expect("Answer?");
    fs::write(&pipe, "say something").unwrap();
    screen.expect("one thing");
    let meanwhile = screen.until("another");
    assert!(!meanwhile.contains("at it"), "{meanwhile}");
    screen.enter("n");
    screen.expect("at it");
    fs::write(&pipe, "end").unwrap();
    screen.expect("worked");
}
