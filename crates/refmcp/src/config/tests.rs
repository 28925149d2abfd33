//! Tests of configuration files, valid and invalid.

use std::cell::Cell;
use std::path::{Path, PathBuf};

use refmcp_auth::secret::Secret;

use super::hosts::usual_files_in;
use super::read::parse;
use super::{Input, InputKind, Launch, Platform, ServerEntry, Servers, Severity, read, read_all};
use crate::args::UrlTransport::{self, Auto, Sse, WebSocket};

fn parsed(text: &str) -> Servers {
    parse(text, Path::new("/home/me/project/mcp.json"))
}

fn only(text: &str) -> ServerEntry {
    let servers = parsed(text);
    assert_eq!(servers.problems, [], "{text}");
    assert_eq!(servers.servers.len(), 1, "{text}");
    servers.servers.into_iter().next().unwrap()
}

fn pairs(list: &[(&str, &str)]) -> Vec<(String, Secret)> {
    list.iter().map(|(name, value)| ((*name).to_owned(), Secret::new(*value))).collect()
}

fn command(program: &str) -> Launch {
    Launch::Command {
        program: program.to_owned(),
        args: Vec::new(),
        env: Vec::new(),
        cwd: None,
        env_file: None,
    }
}

fn remote(transport: UrlTransport, url: &str, headers: &[(&str, &str)]) -> Launch {
    Launch::Remote { transport, url: url.to_owned(), headers: pairs(headers) }
}

#[test]
fn every_kind_of_entry_is_understood() {
    let url = "https://example.com/mcp";
    let table = [
        (r#"{"command":"npx"}"#, command("npx")),
        (r#"{"type":"stdio","command":"npx"}"#, command("npx")),
        (
            r#"{"command":"npx","args":["-y",1],"env":{"A":"x","B":2,"C":true,"D":null},"cwd":"there","envFile":".env"}"#,
            Launch::Command {
                program: "npx".to_owned(),
                args: vec!["-y".to_owned(), "1".to_owned()],
                env: pairs(&[("A", "x"), ("B", "2"), ("C", "true")]),
                cwd: Some("there".into()),
                env_file: Some(".env".into()),
            },
        ),
        (r#"{"url":"https://example.com/mcp"}"#, remote(Auto, url, &[])),
        (r#"{"serverUrl":"https://example.com/mcp"}"#, remote(Auto, url, &[])),
        (r#"{"type":"http","url":"https://example.com/mcp"}"#, remote(Auto, url, &[])),
        (
            r#"{"type":"streamable-http","url":"https://example.com/mcp","headers":{"X-Key":"k"}}"#,
            remote(Auto, url, &[("X-Key", "k")]),
        ),
        (r#"{"transport":"streamableHttp","url":"https://example.com/mcp"}"#, remote(Auto, url, &[])),
        (r#"{"type":"sse","url":"https://example.com/mcp"}"#, remote(Sse, url, &[])),
        (r#"{"type":"ws","url":"https://example.com/mcp"}"#, remote(WebSocket, url, &[])),
        (r#"{"type":"websocket","url":"ws://h"}"#, remote(WebSocket, "ws://h", &[])),
        (r#"{"url":"wss://h"}"#, remote(WebSocket, "wss://h", &[])),
        (r#"{"url":"${input:where}"}"#, remote(Auto, "${input:where}", &[])),
    ];
    for (entry, launch) in table {
        for list in ["mcpServers", "servers"] {
            let read = only(&format!(r#"{{"{list}":{{"one":{entry}}}}}"#));
            assert_eq!(read.launch, launch, "{entry}");
            assert_eq!((read.name.as_str(), read.disabled), ("one", false));
        }
    }
}

#[test]
fn an_entry_can_be_switched_off() {
    for (member, disabled) in [
        (r#""disabled":true"#, true),
        (r#""disabled":false"#, false),
        (r#""enabled":false"#, true),
        (r#""enabled":true"#, false),
    ] {
        let read = only(&format!(r#"{{"mcpServers":{{"one":{{"command":"x",{member}}}}}}}"#));
        assert_eq!(read.disabled, disabled, "{member}");
    }
}

#[test]
fn an_editors_file_may_have_comments_and_inputs() {
    let text = r#"{
        // Asked for once.
        "inputs": [
            {"id": "key", "type": "promptString", "description": "The key", "password": true, "default": "hush",},
            {"id": "size", "type": "pickString", "options": ["small", {"label": "Large", "value": "l"}], "default": "l"},
        ],
        "servers": { /* one */ "one": {"type": "stdio", "command": "x",}, },
    }"#;
    let servers = parsed(text);
    assert_eq!(servers.problems, []);
    assert_eq!(servers.get("one").unwrap().launch, command("x"));
    let [key, size] = &servers.inputs[..] else { panic!("two inputs: {:?}", servers.inputs) };
    assert_eq!((key.id.as_str(), key.description.as_str(), key.is_secret()), ("key", "The key", true));
    let options = vec![("small".to_owned(), "small".to_owned()), ("Large".to_owned(), "l".to_owned())];
    assert_eq!(size.kind, InputKind::Pick { options });
    assert_eq!(size.default.as_ref().map(Secret::reveal), Some("l"));
    let nested = parsed(r#"{"editor.fontSize":12,"mcp":{"servers":{"one":{"command":"x"}}}}"#);
    assert!(nested.get("one").is_some() && nested.problems.is_empty());
}

#[test]
fn every_problem_names_its_place_and_leaves_other_entries_alone() {
    let table = [
        (r#"{}"#, r#""command": is missing, and so is "url""#),
        (r#"[]"#, "must be an object"),
        (r#"null"#, "must be an object"),
        (r#"{"command":1}"#, r#""command": must be a string"#),
        (r#"{"command":" "}"#, r#""command": is empty"#),
        (r#"{"command":"x","command":"y"}"#, r#""command": is there twice"#),
        (r#"{"command":"x","args":"-y"}"#, r#""args": must be a list of strings"#),
        (r#"{"command":"x","args":[{}]}"#, r#""args": must be a list of strings"#),
        (r#"{"command":"x","env":[]}"#, r#""env": must be an object of strings"#),
        (r#"{"command":"x","env":{"A":[]}}"#, r#""env": "A" must be a string"#),
        (r#"{"command":"x","env":{"A=B":"x"}}"#, r#""env": "A=***" cannot be the name of a variable"#),
        (r#"{"command":"x","cwd":1}"#, r#""cwd": must be a string"#),
        (r#"{"command":"x","disabled":"no"}"#, r#""disabled": must be true or false"#),
        (r#"{"command":"x","url":"http://h"}"#, r#""url": cannot stand beside "command""#),
        (r#"{"type":"pigeon","command":"x"}"#, r#""type": must be stdio, http"#),
        (r#"{"type":1,"command":"x"}"#, r#""type": must be a string"#),
        (r#"{"type":"http","command":"x"}"#, r#""command": has no place in an entry of this type"#),
        (r#"{"type":"stdio","url":"http://h"}"#, r#""command": is missing, and the type wants it"#),
        (r#"{"type":"sse"}"#, r#""url": is missing, and the type wants it"#),
        (r#"{"type":"sse","url":"ws://h"}"#, r#""url": is for WebSocket"#),
        (r#"{"url":"example.com"}"#, r#""url": must be an address that begins with"#),
        (r#"{"url":"file:///etc/passwd"}"#, r#""url": must be an address that begins with"#),
        (r#"{"url":"http://h","headers":{"a b":"x"}}"#, r#""headers": "a b" cannot be sent"#),
        (r#"{"url":"http://h","headers":{"a":"x\r\ny: z"}}"#, r#""headers": "a" cannot be sent"#),
        (r#"{"url":"http://h","headers":{"a":{}}}"#, r#""headers": "a" must be a string"#),
    ];
    for (entry, expected) in table {
        let text = format!(
            r#"{{"mcpServers":{{"good":{{"command":"x"}},"bad":{entry},"fine":{{"command":"y"}}}}}}"#
        );
        let servers = parsed(&text);
        let names: Vec<_> = servers.servers.iter().map(|server| server.name.as_str()).collect();
        assert_eq!(names, ["good", "fine"], "{entry}");
        let [problem] = &servers.problems[..] else { panic!("{entry}: {:?}", servers.problems) };
        assert_eq!(problem.severity, Severity::Error);
        let told = problem.to_string();
        let place = "/home/me/project/mcp.json: server \"bad\": ";
        assert!(told.starts_with(place) && told.contains(expected), "{entry}: {told}");
        assert!(!told.contains("y: z"), "values are not repeated: {told}");
    }
}

#[test]
fn a_file_that_is_wrong_as_a_whole_says_so() {
    let (open, close) = ("[".repeat(100_000), "]".repeat(100_000));
    let deep = format!(r#"{{"servers":{{"a":{{"command":{open}{close}}}}}}}"#);
    let table = [
        ("", "is not a list of servers: it is empty"),
        ("[]", "is not a list of servers: it is no object"),
        ("{\n  \"mcpServers\": oops\n}", "on line 2 column"),
        ("{\n  \"mcpServers\": {}\n", "is not valid JSON: Unterminated object on line 1 column 1"),
        (
            "{}",
            "lists no servers: it has neither \"mcpServers\" nor \"servers\"; write {\"mcpServers\": {\"NAME\"",
        ),
        (r#"{"mcpServers":[]}"#, "\"mcpServers\": must be an object of servers"),
        (r#"{"servers":1}"#, "\"servers\": must be an object of servers"),
        (r#"{"servers":{"":{"command":"x"}}}"#, "a server needs a name"),
        (r#"{"servers":{"a":{"command":"x"},"a":{"command":"y"}}}"#, "server \"a\": is there twice"),
        (r#"{"servers":{},"inputs":{}}"#, "\"inputs\": must be a list"),
        (r#"{"servers":{},"inputs":[1]}"#, "\"inputs[0]\": must be an object"),
        (r#"{"servers":{},"inputs":[{"type":"promptString"}]}"#, "\"inputs[0].id\": is missing"),
        (r#"{"servers":{},"inputs":[{"id":"a"}]}"#, "\"inputs[0].type\": is missing"),
        (
            r#"{"servers":{},"inputs":[{"id":"a","type":"command"}]}"#,
            "\"inputs[0].type\": must be promptString",
        ),
        (
            r#"{"servers":{},"inputs":[{"id":"a","type":"promptString","password":1}]}"#,
            "\"inputs[0].password\": must be true or false",
        ),
        (
            r#"{"servers":{},"inputs":[{"id":"a","type":"pickString"}]}"#,
            "\"inputs[0].options\": must be a list",
        ),
        (
            r#"{"servers":{},"inputs":[{"id":"a","type":"pickString","options":[1]}]}"#,
            "\"inputs[0].options\": must be strings",
        ),
        (
            r#"{"servers":{},"inputs":[{"id":"a","type":"pickString","options":["x"],"default":"y"}]}"#,
            "\"inputs[0].default\": is none of the options",
        ),
        (
            r#"{"servers":{},"inputs":[{"id":"a","type":"promptString"},{"id":"a","type":"promptString"}]}"#,
            "\"inputs[1].id\": \"a\" is there twice",
        ),
        (&deep, "is not valid JSON: Maximum nesting depth exceeded"),
    ];
    for (text, expected) in table {
        let servers = parsed(text);
        let told: Vec<_> = servers.problems.iter().map(ToString::to_string).collect();
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].contains(expected), "{told:?}");
    }
}

#[test]
fn unknown_members_are_hints() {
    let servers = parsed(r#"{"mcpServers":{"one":{"command":"x","arg":["y"],"timeout":5,"\u001b[31m":1}}}"#);
    assert_eq!(servers.servers.len(), 1);
    let told: Vec<_> =
        servers.problems.iter().map(|problem| (problem.severity, problem.to_string())).collect();
    let place = "/home/me/project/mcp.json: server \"one\": ";
    let hint =
        |member: &str| (Severity::Hint, format!("{place}\"{member}\": is not known here and has no effect"));
    assert_eq!(told, [hint("arg"), hint(r"\u{1b}[31m")]);
}

fn env(name: &str) -> Option<String> {
    match name {
        "HOME" => Some("/home/me".to_owned()),
        "TOKEN" => Some("to${env:HOME}ken".to_owned()),
        "EMPTY" => Some(String::new()),
        _ => None,
    }
}

fn resolved(text: &str) -> Result<Vec<String>, String> {
    let file = format!(
        r#"{{"servers":{{"one":{{"command":"x","args":["{text}"]}}}},"inputs":[
            {{"id":"key","type":"promptString","password":true}},
            {{"id":"size","type":"pickString","options":["s","l"]}},
            {{"id":"never","type":"promptString"}}]}}"#
    );
    let servers = parse(&file, Path::new("/home/me/project/.vscode/mcp.json"));
    let ask = |input: &Input| match input.id.as_str() {
        "key" => Ok("hush".to_owned()),
        "size" => Ok("xl".to_owned()),
        _ => Err("not at a terminal".to_owned()),
    };
    let entry =
        servers.resolve(servers.get("one").unwrap(), &ask, &env).map_err(|error| error.to_string())?;
    match entry.launch {
        Launch::Command { args, .. } => Ok(args),
        other => panic!("{other:?}"),
    }
}

#[test]
fn variables_are_filled_in() {
    for (text, expected) in [
        ("plain $HOME {} $", "plain $HOME {} $"),
        ("${input:key}", "hush"),
        ("--key=${input:key}:${input:key}", "--key=hush:hush"),
        ("${env:HOME}/x", "/home/me/x"),
        ("${HOME}/x", "/home/me/x"),
        ("${NONE:-other}", "other"),
        ("${EMPTY:-other}", "other"),
        ("${EMPTY}", ""),
        ("${TOKEN}", "to${env:HOME}ken"),
        ("${workspaceFolder}/x", "/home/me/project/x"),
        ("${workspaceFolderBasename}", "project"),
        ("${userHome}", "/home/me"),
        ("a${/}b", "a/b"),
    ] {
        assert_eq!(resolved(text).unwrap(), [expected], "{text}");
    }
}

#[test]
fn a_variable_that_stands_for_nothing_is_named() {
    for (text, expected) in [
        ("${env:NONE}", "${env:NONE}: the environment has no variable of that name"),
        ("${NONE}", "${NONE}: the environment has no variable of that name"),
        ("${input:other}", "${input:other}: the file has no input of that id"),
        ("${input:never}", "${input:never}: not at a terminal"),
        ("${input:size}", "${input:size}: the answer is none of the options"),
        ("${config:x}", "${config:x} is no variable that is known here"),
        ("${}", "${} is no variable that is known here"),
        ("${open", "a variable that begins with \"${\" has no end"),
    ] {
        assert_eq!(resolved(text).unwrap_err(), expected);
    }
}

#[test]
fn variables_are_filled_in_everywhere_and_asked_for_once() {
    let text = r#"{"servers":{
        "command":{"command":"${input:v}","env":{"A":"${input:v}"},"cwd":"sub","envFile":"${input:v}/.env"},
        "http":{"type":"http","url":"http://${input:v}","headers":{"A":"Bearer ${input:v}"}},
        "sse":{"type":"sse","url":"http://${input:v}"},
        "ws":{"type":"ws","url":"ws://${input:v}"}
    },"inputs":[{"id":"v","type":"promptString"}]}"#;
    let servers = parsed(text);
    let asked = Cell::new(0);
    let ask = |_: &Input| {
        asked.set(asked.get() + 1);
        Ok("given".to_owned())
    };
    let launch = |name| servers.resolve(servers.get(name).unwrap(), &ask, &env).unwrap().launch;
    let folder = PathBuf::from("/home/me/project");
    let expected = Launch::Command {
        program: "given".to_owned(),
        args: Vec::new(),
        env: pairs(&[("A", "given")]),
        cwd: Some(folder.join("sub")),
        env_file: Some(folder.join("given/.env")),
    };
    assert_eq!(launch("command"), expected);
    assert_eq!(asked.get(), 1);
    assert_eq!(launch("http"), remote(Auto, "http://given", &[("A", "Bearer given")]));
    assert_eq!(launch("sse"), remote(Sse, "http://given", &[]));
    assert_eq!(launch("ws"), remote(WebSocket, "ws://given", &[]));
}

#[test]
fn secrets_are_not_shown() {
    let text = r#"{"servers":{
        "a":{"command":"x","args":["--key=hush"],"env":{"KEY":"hush"}},
        "b":{"url":"https://me:hush@h/?key=hush","headers":{"Authorization":"hush"}}
    },"inputs":[{"id":"k","type":"promptString","password":true,"default":"hush"}]}"#;
    let servers = parsed(text);
    assert_eq!(servers.servers.len(), 2);
    for shown in [format!("{servers:?}"), format!("{servers:#?}")] {
        assert!(!shown.contains("hush"), "{shown}");
        assert!(shown.contains("KEY") && shown.contains("Authorization"), "{shown}");
    }
}

#[test]
fn files_are_read_nearest_first() {
    let directory = tempfile::tempdir().unwrap();
    let place = |name: &str| directory.path().join(name);
    std::fs::create_dir(place(".vscode")).unwrap();
    std::fs::write(place("mcp.json"), r#"{"mcpServers":{"a":{"command":"near"}}}"#).unwrap();
    std::fs::write(place(".mcp.json"), "broken").unwrap();
    let far = r#"{"servers":{"a":{"command":"far"},"b":{"command":"${input:k}"}},"inputs":[{"id":"k","type":"promptString"}]}"#;
    std::fs::write(place(".vscode/mcp.json"), far).unwrap();
    let servers = read_all(&usual_files_in(directory.path(), Platform::CURRENT, &|_| None));
    assert_eq!(servers.get("a").unwrap().launch, command("near"));
    assert_eq!(servers.get("b").unwrap().source, place(".vscode/mcp.json"));
    let told: Vec<_> = servers.problems.iter().map(ToString::to_string).collect();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].contains(".mcp.json: is not valid JSON: Unexpected"), "{told:?}");
    assert!(told[1].contains("server \"a\": is not used"), "{told:?}");
    let ask = |_: &Input| Ok("asked".to_owned());
    let resolved = servers.resolve(servers.get("b").unwrap(), &ask, &env).unwrap();
    assert_eq!(resolved.launch, command("asked"));
}

#[test]
fn a_usual_file_for_servers_must_list_them() {
    let directory = tempfile::tempdir().unwrap();
    for (name, must) in
        [("mcp.json", 1), (".mcp.json", 1), (".claude.json", 0), ("claude_desktop_config.json", 0)]
    {
        let file = directory.path().join(name);
        for (text, expected) in [("{}", must), (r#"{"theme":"dark","mcp":{}}"#, must), ("[]", 1), ("", 1)] {
            std::fs::write(&file, text).unwrap();
            assert_eq!(read_all(&[&file]).problems.len(), expected, "{name}: {text}");
            assert_eq!(read(&file).problems.len(), 1, "{text}: a file that was asked for must have one");
        }
        std::fs::write(&file, r#"{"servers": {}}"#).unwrap();
        assert_eq!(read_all(&[&file]).problems, [], "{name}");
    }
}

#[test]
fn a_file_that_cannot_be_read_says_why() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path = directory.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    };
    let table = [
        (directory.path().join("none"), "cannot be read: "),
        (directory.path().to_owned(), "is not a file"),
        (file("latin", b"{\"a\":\"\xe9\"}"), "is not UTF-8"),
        (file("long", &vec![b' '; (16 << 20) + 1]), "is longer than 16777216 bytes"),
    ];
    for (path, expected) in table {
        let [problem] = &read(&path).problems[..] else { panic!("one problem with {path:?}") };
        assert!(problem.to_string().starts_with(&format!("{}: {expected}", path.display())), "{problem}");
    }
    let link = directory.path().join("mcp.json");
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("nowhere", &link).unwrap();
        let servers = read_all(&[link]);
        assert_eq!(servers.problems.len(), 1, "a link to nothing is not passed over");
    }
}

#[cfg(unix)]
#[test]
fn a_world_writable_file_is_not_used() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("mcp.json");
    std::fs::write(&path, r#"{"mcpServers":{"a":{"command":"x"}}}"#).unwrap();
    for (mode, used) in [(0o666, false), (0o602, false), (0o664, true), (0o600, true)] {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        let servers = read(&path);
        assert_eq!(servers.servers.len(), usize::from(used), "{mode:o}");
        let told: Vec<_> = servers.problems.iter().map(ToString::to_string).collect();
        assert_eq!(told.iter().any(|told| told.contains("can be written by every user")), !used, "{told:?}");
    }
}

#[test]
fn a_command_becomes_a_child_process() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("vars"), "A=file\nB=file\n").unwrap();
    let text = r#"{"mcpServers":{"a":{"command":"x","args":["y"],"env":{"B":"entry"},"envFile":"vars"},
        "b":{"command":"x","envFile":"none"},"c":{"url":"http://h"},"d":{"command":"x","envFile":"/dev/zero"}}}"#;
    let servers = parse(text, &directory.path().join("mcp.json"));
    let ask = |_: &Input| Err("not asked".to_owned());
    let child = |name| {
        servers
            .resolve(servers.get(name).unwrap(), &ask, &env)
            .unwrap()
            .start()
            .map(|start| start.map(|start| (start.child, start.variables)))
    };
    let (started, variables) = child("a").unwrap().unwrap();
    let started = format!("{started:?}");
    assert!(started.contains("\"x\"") && started.contains("[\"A\", \"B\"]"), "{started}");
    assert_eq!(variables, pairs(&[("A", "file"), ("B", "entry")]));
    let problem = child("b").map(drop).unwrap_err().to_string();
    assert!(
        problem.contains("server \"b\": \"envFile\": ") && problem.contains("cannot be read"),
        "{problem}"
    );
    assert!(child("c").unwrap().is_none());
    let endless = child("d").map(drop).unwrap_err().to_string();
    assert!(endless.contains("/dev/zero is not a file"), "{endless}");
}

#[test]
fn comments_and_trailing_commas_are_read_and_other_dialects_are_not() {
    let text = "\u{feff}// one\n{\"servers\": {\"a\": {\"command\": \"// no\", /* two\n*/ \"args\": [1, 2,],}, }, }\n//";
    let Launch::Command { program, args, .. } = only(text).launch else { panic!("{text}") };
    assert_eq!((program.as_str(), args), ("// no", vec!["1".to_owned(), "2".to_owned()]));
    for text in [
        "{,}",
        "[,]",
        "[1,,]",
        "[1,,2]",
        "{\"a\":,}",
        "/* open",
        "{} / {}",
        "\"open",
        "/",
        "{a:1}",
        "{'a':1}",
    ] {
        assert_eq!(parsed(text).problems.len(), 1, "{text}");
    }
}
