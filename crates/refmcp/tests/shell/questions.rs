//! Questions that come up while something is typed.

use std::fs;

use tempfile::tempdir;

use crate::{shell_with_script, shell_with_server, total};

#[test]
fn a_form_is_filled_in() {
    let folder = tempdir().unwrap();
    let mut terminal = shell_with_server(folder.path(), &[]);
    terminal.enter("ask_user form=choice");
    terminal.expect("Choose a colour and a size.");
    terminal.expect("Answer?");
    terminal.enter("y");
    terminal.expect("Colour");
    terminal.enter("blue");
    terminal.expect("Size");
    terminal.enter("");
    terminal.expect("Send it?");
    terminal.enter("y");
    terminal.expect("The user accepted");
    terminal.expect("refmcp> ");
    terminal.enter("sum a=1 b=1");
    terminal.expect(&total(2));
}

#[test]
fn ctrl_c_gives_up_a_question() {
    let folder = tempdir().unwrap();
    let mut terminal = shell_with_server(folder.path(), &[]);
    terminal.enter("ask_user form=confirm");
    terminal.expect("Answer?");
    terminal.press("\x03");
    terminal.expect("The user put the form away");
    terminal.expect("refmcp> ");
    terminal.enter("sum a=1 b=1");
    terminal.expect(&total(2));
}

#[test]
fn tools_that_may_change_something_are_asked_about() {
    let folder = tempdir().unwrap();
    let mut terminal = shell_with_server(folder.path(), &[]);
    terminal.enter("add_tool name=x");
    terminal.expect("Run it?");
    terminal.enter("n");
    terminal.expect("it was not called");
    terminal.expect("refmcp> ");
    terminal.enter("add_tool name=x");
    terminal.expect("Run it?");
    terminal.enter("y");
    terminal.expect("the tools have changed");
}

#[test]
fn arguments_are_edited_in_place_until_they_fit() {
    let folder = tempdir().unwrap();
    let mut terminal = shell_with_server(folder.path(), &[]);
    terminal.enter("add_tool name=x");
    terminal.expect("Run it?");
    terminal.enter("e");
    terminal.expect("{\"name\":\"x\"}");
    terminal.press("\x7f\x7fy\"}\r");
    terminal.expect("name = \"xy\"");
    terminal.expect("Run it?");
    terminal.enter("e");
    terminal.expect("{\"name\":\"xy\"}");
    terminal.press("\x15[]\r");
    terminal.expect("The arguments must be an object.");
    terminal.expect("[]");
    terminal.press("\x01\x1b[3~{\x05\x7f\"name\":\"z\"}\r");
    terminal.expect("name = \"z\"");
    terminal.expect("Run it?");
    terminal.enter("e");
    terminal.expect("{\"name\":\"z\"}");
    terminal.press("\x03");
    terminal.expect("The arguments stay as they are.");
    terminal.expect("Run it?");
    terminal.enter("y");
    terminal.expect("the tools have changed");
}

#[test]
fn a_person_answers_sampling_requests() {
    let folder = tempdir().unwrap();
    let mut terminal = shell_with_server(folder.path(), &[]);
    terminal.enter("ask_model prompt='what is up?'");
    terminal.expect("Answer it?");
    terminal.enter("y");
    terminal.expect("what do you say?");
    terminal.enter("not much");
    terminal.expect("answered: not much");
}

#[test]
fn variables_of_a_template_are_asked_for_with_what_the_server_offers() {
    let folder = tempdir().unwrap();
    let mut terminal = shell_with_server(folder.path(), &[]);
    terminal.enter("read memos");
    terminal.expect("1  office");
    terminal.expect("shelf:");
    terminal.enter("travel");
    terminal.expect("2  oslo");
    terminal.expect("name:");
    terminal.enter("2");
    terminal.expect("The memo \"oslo\" from the shelf \"travel\"");
}

/// A server that asks by itself, once a line is written to a pipe, and repeats the answer.
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
fn a_question_waits_for_the_line_that_is_being_typed() {
    let folder = tempdir().unwrap();
    let (mut terminal, pipe) = shell_with_script(folder.path(), &[], ASKER);
    terminal.expect("server> ");
    terminal.press("servers");
    terminal.expect("servers");
    fs::write(&pipe, "ask").unwrap();
    terminal.expect("A server asks something: press Enter");
    terminal.expect("servers");
    terminal.enter("");
    terminal.expect("Who is there?");
    terminal.expect("Answer?");
    terminal.enter("y");
    terminal.expect("name");
    terminal.enter("Ada");
    terminal.expect("Send it?");
    terminal.enter("y");
    terminal.expect("[server] heard ");
    terminal.expect("\"name\":\"Ada\"");
    terminal.enter("servers");
    terminal.expect("connected");
}

/// A server that asks in the middle of a call, while it says how far it is. Whenever a line is written to a pipe, it
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
    let (mut terminal, pipe) = shell_with_script(folder.path(), &[], BUSY);
    terminal.expect("server> ");
    terminal.enter("work");
    terminal.expect("Answer?");
    fs::write(&pipe, "say something").unwrap();
    terminal.expect("one thing");
    let meanwhile = terminal.expect("another");
    assert!(!meanwhile.contains("at it"), "{meanwhile}");
    terminal.enter("n");
    terminal.expect("at it");
    fs::write(&pipe, "end").unwrap();
    terminal.expect("worked");
}

/// A server that asks by a task of the client, once a line is written to a pipe, and cancels it with the next.
const CANCELLER: &str = r#"
read -r hello
id=$(printf '%s' "$hello" | sed 's/.*"id":\([^,}]*\).*/\1/')
printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{},' "$id"
printf '"serverInfo":{"name":"canceller","version":"1"}}}\n'
read -r initialized
cat "$1" > /dev/null
printf '{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"Who is there?","task":{},'
printf '"requestedSchema":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}}}\n'
read -r created
task=$(printf '%s' "$created" | sed 's/.*"taskId":"\([^"]*\)".*/\1/')
cat "$1" > /dev/null
printf '{"jsonrpc":"2.0","id":"c","method":"tasks/cancel","params":{"taskId":"%s"}}\n' "$task"
read -r answer
cat "$1" > /dev/null
printf 'heard %s\n' "$answer" >&2
cat > /dev/null
"#;

#[test]
fn a_task_that_is_cancelled_takes_its_question_away() {
    let folder = tempdir().unwrap();
    let (mut terminal, pipe) = shell_with_script(folder.path(), &[], CANCELLER);
    terminal.expect("server> ");
    fs::write(&pipe, "ask").unwrap();
    terminal.expect("A server asks something: press Enter");
    terminal.enter("");
    terminal.expect("Answer?");
    fs::write(&pipe, "cancel").unwrap();
    terminal.expect("The server no longer asks.");
    fs::write(&pipe, "tell").unwrap();
    terminal.expect("\"status\":\"cancelled\"");
    terminal.enter("servers");
    terminal.expect("connected");
}
