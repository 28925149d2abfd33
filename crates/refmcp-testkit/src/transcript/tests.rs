//! Transcripts of a server that does nothing but repeat.

use super::*;

/// Sends back what it gets, under another name; tells when the clock moves.
#[derive(Default)]
struct Parrot {
    said: Vec<String>,
    events: Vec<String>,
}

impl Endpoint for Parrot {
    fn send(&mut self, text: &str) {
        let mut message: Value = serde_json::from_str(text).unwrap();
        if message["method"] == "initialize" {
            let version = message["params"]["protocolVersion"].clone();
            message = serde_json::json!({"jsonrpc": "2.0", "id": message["id"], "result": {"protocolVersion": version}});
        } else if message["method"] == "notifications/initialized" {
            return;
        }
        self.said.push(message.to_string());
    }

    fn receive(&mut self) -> Vec<String> {
        std::mem::take(&mut self.said)
    }

    fn advance(&mut self, by: Duration) {
        self.events.push(format!("{by:?} passed"));
    }

    fn events(&mut self) -> Vec<String> {
        std::mem::take(&mut self.events)
    }
}

fn start(_: &Settings, _: Revision) -> Result<Box<dyn Endpoint>, String> {
    Ok(Box::new(Parrot::default()))
}

fn held(text: &str) -> (File, Vec<run::Run>) {
    let file = File::parse(text).unwrap();
    let runs = run::run(&file, &serde_json::json!({"name": "parrot"}), &mut start);
    (file, runs)
}

fn problems(text: &str) -> String {
    let (file, runs) = held(text);
    runs.iter().filter_map(|run| run.problem(&file, "t")).collect()
}

fn update(text: &str) -> String {
    let (file, runs) = held(text);
    update::updated(&file, &runs)
}

#[test]
fn a_conversation_that_goes_as_written_has_no_problems() {
    let text = r#"
revisions: session
== repeated
$OPEN
-> {"id":1,"method":"$REVISION"}
<- {"id":1,
    "method":"$REVISION"}
wait 3s
see 3s passed
<- nothing
-> [2025-06-18+] {"id":2,"params":{$META{"a":1}}}
<- {"id":2,"params":{"_meta":{"a":1}}}
"#;
    assert_eq!(problems(text), "");
}

#[test]
fn what_is_missing_surplus_or_different_is_told_with_its_place() {
    for (line, expected) in [
        ("<- {\"id\":2}", "+   \"id\": 1"),
        ("<- nothing", "- nothing"),
        ("<- {\"id\":1}\n<- {\"id\":1}", "-   \"id\": 1"),
        ("", "- nothing"),
        ("<- {\"id\":1}\nsee a ghost", "there was no \"a ghost\""),
        ("<- [..2025-06-18] {\"id\":1}", "under 2025-11-25"),
    ] {
        let told = problems(&format!("revisions: session\n== t\n-> {{\"id\":1}}\n{line}\n"));
        assert!(told.contains("t:3: \"t\" under") && told.contains(expected), "{line}: {told}");
    }
}

#[test]
fn members_that_only_some_revisions_have_stand_in_one_word() {
    let text = r#"
revisions: 2025-11-25+
capabilities: {"roots":{}}
== t
-> {"id":1,"result":{"x":1,$CACHED},"params":{$META}}
<- [session] {"id":1,"result":{"x":1},"params":{}}
<- [stateless] {"id":1,"params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",
    "io.modelcontextprotocol/clientCapabilities":{"roots":{}}}},"result":{"x":1,"ttlMs":0,"cacheScope":"private",
    "resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"parrot"}}}}
"#;
    assert_eq!(problems(text), "");
}

#[test]
fn kept_values_come_back() {
    let text =
        "revisions: stateless\n== t\n-> {\"id\":\"abc\"}\n<- {\"id\":\"$id1\"}\n-> {\"id\":\"x$id1!\"}\n";
    assert_eq!(problems(&format!("{text}<- {{\"id\":\"xabc!\"}}\n")), "");
    assert_ne!(problems(&format!("{text}<- {{\"id\":\"$id1\"}}\n")), "");
}

#[test]
fn an_update_makes_it_hold_and_keeps_the_rest() {
    let text = r#"# Why.
revisions: all
== t
-> {"id":"kept","method":"m"}
# In between.
<- {"id":"$name","method":"other"}
-> {"id":"kept","result":{$CACHED}}
-> [2025-06-18] {"id":1}
<- {"id":2}
wait 1s
"#;
    let updated = update(text);
    assert_eq!(problems(&updated), "", "{updated}");
    assert!(updated.contains("# In between.\n<- {\"id\":\"$name\",\"method\":\"m\"}\n"), "{updated}");
    assert!(
        updated.contains(
            "<- {\"id\":\"$name\",\"result\":{$CACHED}}\n-> [2025-06-18] {\"id\":1}\n<- {\"id\":1}\n"
        ),
        "{updated}"
    );
    assert_eq!(update(&updated), updated);
}

#[test]
fn an_update_tells_revisions_apart() {
    let text = "revisions: all\n== t\n-> {\"id\":1,\"method\":\"x\",\"params\":{$META}}\n";
    let updated = update(text);
    assert!(
        updated.contains("<- [session] {\"id\":1,\"method\":\"x\",\"params\":{}}\n<- [2026-07-28] {"),
        "{updated}"
    );
    assert_eq!(problems(&updated), "", "{updated}");
}

#[test]
fn bad_files_name_their_line() {
    for (text, why) in [
        ("== t\n-> {}\n<- {\n", "3: "),
        ("== t\n<- {}\n", "2: nothing was done"),
        ("== t\nwait long\n", "2: "),
        ("-> {}\n", "1: "),
        ("revisions: 2020\n", "1: 2020 is not a revision"),
    ] {
        let told = File::parse(text).unwrap_err();
        assert!(told.starts_with(why), "{text}: {told}");
    }
}
