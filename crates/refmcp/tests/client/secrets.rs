//! Secrets in a target are in nothing that is printed, logged or kept, whatever the command and however much is logged.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use refmcp_testkit::leaks::Secrets;
use refmcp_testkit::ports::free_port;
use serde_json::json;

use super::support::Server;
use super::support::{Ended, REFMCP, User};

/// Where each secret is planted, and what it is.
const QUERY: &str = "planted-in-query-0";
const USER: &str = "planted-in-userinfo-0";
const VARIABLE: &str = "planted-in-variable-0";
const ENV: &str = "planted-in-env-0";
const HEADER: &str = "planted-in-header-0";
const OPTION: &str = "planted-in-option-0";
const ATTACHED: &str = "planted-in-attached-option-0";
const SCRIPT: &str = "planted-in-script-0";
const CONFIGURED: &str = "planted-in-config-0";

/// A user at log level trace, and all that was written to them.
struct Watched {
    user: User,
    said: Vec<(String, String)>,
}

impl Watched {
    fn new() -> Self {
        Self { user: User::new(), said: Vec::new() }
    }

    fn hears(&mut self, words: &[&str], came: &Ended) {
        self.said.push((format!("{words:?}"), format!("{}{}", came.out, came.err)));
    }

    /// Runs a command; gives its exit code.
    fn run(&mut self, words: &[&str]) -> i32 {
        self.run_with(words, "")
    }

    fn run_with(&mut self, words: &[&str], input: &str) -> i32 {
        let mut command = self.user.command(words);
        let mut child = command
            .env("REFMCP_LOG", "trace")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A command that does not read is none the worse for it.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        let came = Ended::from(child.wait_with_output().unwrap());
        self.hears(words, &came);
        came.code
    }

    /// Runs a command that goes on, until it has written a line.
    fn run_until_a_line(&mut self, words: &[&str]) {
        let mut command = self.user.command(words);
        let mut child = command
            .env("REFMCP_LOG", "trace")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut out = String::new();
        output.read_line(&mut out).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        let mut err = String::new();
        child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        assert!(!out.is_empty(), "{words:?}: {err}");
        self.hears(words, &Ended { code: 0, out, err, took: Duration::ZERO });
    }

    /// Fails when a secret was said or is kept.
    fn check(&self) {
        let mut secrets = Secrets::default();
        for secret in [QUERY, USER, VARIABLE, ENV, HEADER, OPTION, ATTACHED, SCRIPT, CONFIGURED] {
            secrets.add(secret);
        }
        for (who, said) in &self.said {
            if let Some(leak) = secrets.leak(said) {
                panic!("{who}: {leak}");
            }
        }
        let mut files = 0;
        check_files(&self.user.path("state"), &secrets, &mut files);
        assert!(files >= 3, "nothing is kept: {files} files");
    }
}

fn check_files(folder: &Path, secrets: &Secrets, count: &mut usize) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            check_files(&path, secrets, count);
            continue;
        }
        *count += 1;
        let content = fs::read(&path).unwrap();
        if let Some(leak) = secrets.leak(&String::from_utf8_lossy(&content)) {
            panic!("{}: {leak}", path.display());
        }
    }
}

/// A command that starts the reference server, with secrets in all places where they are usual.
fn command() -> Vec<String> {
    let words = [
        &format!("SOME_VARIABLE={VARIABLE}"),
        "sh",
        "-c",
        &format!("API_KEY={SCRIPT} exec \"$0\" stdio"),
        REFMCP,
        "--token",
        OPTION,
        &format!("--api-key={ATTACHED}"),
        "-e",
        &format!("name={ENV}"),
        "--header",
        &format!("Authorization: Bearer {HEADER}"),
        &format!("https://{USER}:{USER}@example.org/?key={QUERY}"),
    ];
    words.map(str::to_owned).to_vec()
}

/// Every command that drives a server, before the target is put in.
const DRIVING: [&[&str]; 9] = [
    &["list"],
    &["list", "tools", "-o", "json"],
    &["info"],
    &["info", "-o", "json"],
    &["call", "echo", "message=hi"],
    &["read", "file:///notes/todo.txt"],
    &["prompt", "code_review", "code=x"],
    &["complete", "--prompt", "code_review", "language=r"],
    &["raw", "tools/list"],
];

/// The words with a target where it belongs: behind the command's own name, and behind what to list.
fn aimed<'a>(words: &[&'a str], target: &'a str) -> Vec<&'a str> {
    let mut words = words.to_vec();
    let at = if words[0] == "list" { words.len().min(2) } else { 1 };
    words.insert(at, target);
    words
}

#[test]
fn secrets_of_a_command_are_masked() {
    let mut watched = Watched::new();
    let command = command();
    let command: Vec<&str> = command.iter().map(String::as_str).collect();
    let with = |words: &[&'static str]| -> Vec<String> {
        let env = format!("NAME={ENV}");
        let options = ["-e", &env, "--"].map(str::to_owned);
        let words = words.iter().map(|word| (*word).to_owned());
        words.chain(options).chain(command.iter().map(|word| (*word).to_owned())).collect()
    };
    let typed = |words: &[&'static str]| with(words);
    for words in DRIVING {
        let words = typed(words);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        assert_eq!(watched.run(&words), 0, "{:?}", watched.said.last());
    }
    for words in [&["watch"][..], &["bridge", "--from", "http://127.0.0.1:0/mcp"]] {
        let words = typed(words);
        watched.run_until_a_line(&words.iter().map(String::as_str).collect::<Vec<_>>());
    }
    for words in [
        &["bridge", "--from", "stdio"][..],
        &["trust", "allow"],
        &["trust", "disable", "--tool", "echo"],
        &["call", "echo", "message=hi"],
        &["trust", "list"],
        &["trust", "list", "-o", "json"],
        &["trust", "revoke", "--tool", "echo"],
        &["auth", "login", "x"],
        &["call", "no_such_tool"],
    ] {
        let words = if words.ends_with(&["list"]) || words[0] == "auth" || words.ends_with(&["json"]) {
            words.iter().map(|word| (*word).to_owned()).collect()
        } else if words[0] == "trust" {
            let words = words.iter().chain(&["--"]).chain(&command);
            words.map(|word| (*word).to_owned()).collect()
        } else {
            typed(words)
        };
        watched.run(&words.iter().map(String::as_str).collect::<Vec<_>>());
    }
    let disabled = &watched.said[watched.said.len() - 6].1;
    assert!(disabled.contains("trust revoke --tool echo -- SOME_VARIABLE=*** sh"), "{disabled}");
    // One that cannot be started, and one that ends.
    let key = format!("KEY={VARIABLE}");
    assert_eq!(watched.run(&["list", "--", &key]), 1);
    assert_eq!(watched.run(&["list", "--", "no-such-program", "--token", OPTION]), 4);
    assert_eq!(watched.run(&["list", "--", "false", "--token", OPTION]), 4);
    assert_eq!(watched.run(&["list", "-o", "json", "--", "false", "--token", OPTION]), 4);
    watched.run(&["log"]);
    watched.run(&["log", "-o", "json"]);
    assert!(watched.said.last().unwrap().1.contains("--token ***"), "{:?}", watched.said.last());
    watched.check();
}

#[test]
fn secrets_of_a_url_are_masked() {
    let (mut watched, server) = (Watched::new(), Server::start(&[]));
    let header = format!("Authorization: Bearer {HEADER}");
    for target in [
        format!("http://{}/mcp?api_key={QUERY}", server.address),
        format!("ws://{}/mcp/ws?api_key={QUERY}", server.address),
        format!("sse+http://{}/sse?api_key={QUERY}", server.address),
    ] {
        for words in DRIVING {
            let mut words = aimed(words, &target);
            words.extend(["-H", &header]);
            assert_eq!(watched.run(&words), 0, "{:?}", watched.said.last());
        }
        watched.run_until_a_line(&["watch", &target]);
        watched.run_until_a_line(&["bridge", "--from", "http://127.0.0.1:0/mcp", "--to", &target]);
        for words in [
            &["bridge", "--from", "stdio", "--to", &target][..],
            &["auth", "login", &target],
            &["auth", "status", &target],
            &["auth", "logout", &target],
            &["trust", "allow", &target],
            &["trust", "disable", &target, "--tool", "echo"],
            &["call", &target, "echo", "message=hi"],
            &["trust", "list"],
            &["trust", "revoke", &target, "--tool", "echo"],
            &["call", &target, "no_such_tool"],
            &["list", &target, &target, &target],
            &["--cli", &target, "--method", "tools/list"],
        ] {
            watched.run(words);
        }
    }
    watched.run(&["log"]);
    assert!(watched.said.last().unwrap().1.contains("api_key=***"), "{:?}", watched.said.last());
    watched.check();
}

#[test]
fn secrets_of_an_unreachable_url_are_masked() {
    let mut watched = Watched::new();
    let closed = format!("127.0.0.1:{}", free_port());
    for target in [
        format!("http://{closed}/mcp?api_key={QUERY}"),
        format!("ws://{closed}/mcp?api_key={QUERY}"),
        format!("http://{USER}@{closed}/mcp"),
        format!("http://me:{USER}@{closed}/mcp"),
        format!("ftp://{USER}@{closed}/mcp?api_key={QUERY}"),
        format!("http://[::1/mcp?api_key={QUERY}"),
        format!("{closed}/mcp?api_key={QUERY}"),
    ] {
        for words in DRIVING {
            assert_ne!(watched.run(&aimed(words, &target)), 0);
        }
        for words in [
            &["shell", &target][..],
            &["watch", &target],
            &["bridge", "--from", "stdio", "--to", &target],
            &["auth", "login", &target],
            &["auth", "status", &target],
            &["trust", "allow", &target],
            &["--cli", &target, "--method", "tools/list"],
            &[&target],
        ] {
            // A bridge whose client leaves at once never sees the server.
            assert!(watched.run(words) != 0 || words[0] == "bridge", "{words:?}");
        }
    }
    assert_ne!(watched.run(&["list", "-H", HEADER, "x"]), 0);
    assert_ne!(watched.run(&["list", "-e", ENV, "x"]), 0);
    watched.run_with(&["shell", "--", REFMCP, "stdio"], "servers\ncall echo message=hi\n");
    watched.run(&["trust", "allow", "--", "x"]);
    watched.check();
}

#[test]
fn secrets_of_a_configured_server_are_masked() {
    let (mut watched, server) = (Watched::new(), Server::start(&[]));
    let command = command();
    let document = json!({ "mcpServers": {
        "started": { "command": "env", "args": command, "env": { "NAME": CONFIGURED } },
        "reached": {
            "url": format!("http://{}/mcp?key={CONFIGURED}", server.address),
            "headers": { "Authorization": format!("Bearer {CONFIGURED}") },
        },
        "broken": { "url": format!("http://[::1/mcp?key={CONFIGURED}") },
        "missing": { "command": "no-such-program", "args": ["--token", CONFIGURED] },
        "odd": { "command": "x", "env": { (format!("KEY={CONFIGURED}")): "x" } },
        "user": { "url": format!("http://{CONFIGURED}@127.0.0.1:1/mcp") },
    } });
    watched.user.write("mcp.json", &document.to_string());
    for name in ["started", "reached", "broken", "missing", "user"] {
        for words in DRIVING {
            let words = aimed(words, name);
            watched.run(&words);
            watched.run(&[&words[..], &["--yes"]].concat());
        }
        for words in [
            &["trust", "allow", name][..],
            &["trust", "disable", name, "--tool", "echo"],
            &["call", name, "echo", "message=hi"],
            &["trust", "list"],
            &["trust", "list", "-o", "jsonl"],
            &["auth", "login", name],
            &["bridge", "--from", "stdio", "--to", name, "--yes"],
        ] {
            watched.run(words);
        }
    }
    let script = format!(
        "servers\nconnect reached\nconnect http://{}/mcp?key={QUERY}\nconnect -- {REFMCP} stdio --token {OPTION}\n\
         connect 'http://{USER}@{}/'\nservers\ninfo\nhistory\n",
        server.address, server.address,
    );
    watched.run_with(&["shell", "--yes"], &script);
    let shown = watched.said.last().unwrap().1.clone();
    assert!(shown.contains("key=***") && shown.contains("--token ***"), "{shown}");
    watched.run_with(&["shell", "--yes", "-o", "json"], &script);
    watched.check();
}

#[test]
fn what_a_server_writes_is_quoted_once_as_lines_and_without_secrets() {
    let user = User::new();
    let script = "echo \"API_KEY=$API_KEY\" >&2; echo \"NAME=$NAME $1\" >&2; exit 1";
    let words = |options: &[&'static str]| {
        let target = ["--", "API_KEY=hush", "sh", "-c", script, "--token", "planted-option"];
        [&["list", "tools", "-e", "NAME=quiet"], options, &target].concat()
    };
    let hidden = user.run(&words(&["--server-stderr", "hide"]));
    let quoted = "exit status 1; it last wrote:\n  API_KEY=***\n  NAME=*** ***\n";
    assert!(hidden.code == 4 && hidden.err.ends_with(quoted), "{hidden:?}");
    // Our error does not repeat what was shown.
    let shown = user.run(&words(&[]));
    assert_eq!(shown.err.matches("API_KEY=***\nNAME=*** ***\n").count(), 1, "{shown:?}");
    assert!(shown.err.ends_with("the server ended with exit status 1\n"), "{shown:?}");
    let file = user.word("stderr.txt");
    let written =
        user.run(&["list", "--server-stderr", &file, "--", "KEY=hush", "sh", "-c", "echo $KEY >&2"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), "***\n", "{written:?}");
    // A server that answers with an error that quotes them.
    let answer =
        r#"read l; echo '{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"no hush"}}'; cat"#;
    let came =
        user.run(&["list", "--protocol-version", "legacy", "-e", "KEY=hush", "--", "sh", "-c", answer]);
    assert!(came.code != 0 && came.err.contains("no ***") && !came.err.contains("hush"), "{came:?}");
}

/// A server with one resource, one tool and one secret, which it tells in the error that it answers all else with.
const TALKATIVE: &str = r#"
while read -r line; do
    id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
    [ -z "$id" ] && continue
    result=
    case "$line" in
        *'"initialize"'*) result='{"protocolVersion":"2025-06-18","serverInfo":{"name":"s","version":"1"},
            "capabilities":{"tools":{},"resources":{"subscribe":true},"logging":{}}}' ;;
        *'"resources/list"'*) result='{"resources":[{"name":"a","uri":"x:///a"},{"name":"b","uri":"x:///b"}]}' ;;
        *'"tools/list"'*) result='{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}' ;;
        *'"resources/subscribe"'*x:///a*) result='{}' ;;
    esac
    if [ -n "$result" ]; then
        printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$(printf %s "$result" | tr -d '\n')"
    else
        echo "no access for $KEY" >&2
        printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":"no %s","data":{"%s":["%s"]}}}\n' \
            "$id" "$KEY" "$KEY" "$KEY"
    fi
done
"#;

#[test]
fn errors_of_a_server_are_shown_without_secrets() {
    let mut watched = Watched::new();
    let key = format!("KEY={VARIABLE}");
    let target = ["--protocol-version", "legacy", "--", &key, "sh", "-c", TALKATIVE];
    for words in [
        &["call", "t"][..],
        &["call", "t", "-o", "json"],
        &["call", "t", "-o", "json", "--server-stderr", "hide"],
        &["read", "x:///a"],
        &["watch", "x:///b"],
        &["raw", "x/y", "-o", "json"],
        &["complete", "--prompt", "x", "y=z", "-o", "json"],
    ] {
        let code = watched.run(&[words, &target].concat());
        let said = &watched.said.last().unwrap().1;
        assert!(code != 0 && said.contains("no ***"), "{words:?}: {said}");
    }
    let rpc =
        watched.user.run(&[&["raw", "x/y", "-o", "json", "--server-stderr", "hide"], &target[..]].concat());
    let document: serde_json::Value = serde_json::from_str(&rpc.err).unwrap();
    assert_eq!(
        document["error"]["rpc"],
        json!({ "code": -32603, "message": "no ***", "data": { "***": ["***"] } })
    );
    let script = "ping\nlevel debug\nsubscribe x:///b\nsubscribe x:///a\nunsubscribe x:///a\nread x:///a\n\
                  servers\nroots /\n";
    for output in ["text", "json"] {
        watched.run_with(&[&["shell", "-o", output], &target[..]].concat(), script);
        let said = &watched.said.last().unwrap().1;
        let errors =
            if output == "json" { "\"error\":{\"exitCode\":1,\"message\":\"" } else { "error: no ***" };
        assert_eq!(said.matches(errors).count(), 5, "{said}");
    }
    watched.run(&["log", "-o", "json"]);
    assert!(watched.said.last().unwrap().1.contains("no ***"), "{:?}", watched.said.last());
    watched.run(&["trust", "allow", "--", "x"]);
    watched.check();
}
