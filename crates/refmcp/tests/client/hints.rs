//! Mistakes that are common: each says what to do.

use std::io::{BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Stdio;

use crate::certificates::SecureServer;
use crate::support::Server;
#[cfg(target_os = "linux")]
use crate::support::Terminal;
use crate::support::http::{Answer, Request, answering, listening};
use crate::{REFMCP, User, scripted};

#[test]
fn words_in_the_wrong_order_are_put_right() {
    let user = User::new();
    for (words, right) in [
        (&["call", "echo", "http://h/mcp", "a=1"][..], "write http://h/mcp before \"echo\""),
        (&["prompt", "p", "http://h/mcp"], "write http://h/mcp before \"p\""),
        (&["raw", "tools/list", "ws://h/"], "write ws://h/ before \"tools/list\""),
        (&["read", "file:///a", "http://h/mcp"], "write http://h/mcp before \"file:///a\""),
        (&["watch", "memo://a", "http://h/mcp"], "write http://h/mcp before \"memo://a\""),
        (&["call", "echo", "a=1", "http://h/mcp"], "write http://h/mcp before \"echo\""),
    ] {
        let ended = user.run(words);
        assert_eq!(ended.code, 1, "{words:?}");
        assert!(ended.err.contains("the target comes first") && ended.err.contains(right), "{ended:?}");
    }
}

#[test]
fn names_that_are_nearly_right_are_proposed() {
    let user = User::new();
    for (words, proposed) in [
        (&["read", "file:///notes/tod.txt"][..], "did you mean file:///notes/todo.txt?"),
        (&["complete", "--prompt", "code_reviw", "language=r"], "did you mean code_review?"),
        (&["list", "tool"], "did you mean tools?"),
        (&["prompt", "code_reviw"], "did you mean \"code_review\"?"),
    ] {
        let ended = user.with_stdio(words);
        assert_eq!(ended.code, 1, "{ended:?}");
        assert!(ended.err.contains(proposed), "{ended:?}");
    }
}

#[test]
fn the_other_scheme_or_path_is_proposed() {
    let (user, plain, secure) = (User::new(), Server::start(&[]), SecureServer::start(&User::new()));
    let (plain, secure) = (&plain.address, &secure.address);
    let page = |status| {
        let body = "<html><title>Shop</title></html>".to_owned();
        answering(move |_, _| Answer(status, "Content-Type: text/html\r\n", body.clone()))
    };
    let (shop, files) = (page("200 OK"), page("405 Method Not Allowed"));
    for (url, hint) in [
        (
            format!("{shop}/"),
            format!(
                "HTML: Shop; a web page is at /: check the path of the URL; many servers have their endpoint at /mcp, try {shop}/mcp"
            ),
        ),
        (
            format!("{files}/x"),
            format!(
                "no endpoint of MCP is at /x: check the path of the URL; many servers have their endpoint at /mcp, try {files}/mcp"
            ),
        ),
        (format!("https://{plain}/mcp"), format!("does not speak TLS at this port; try http://{plain}/mcp")),
        (format!("wss://{plain}/mcp/ws"), format!("try ws://{plain}/mcp/ws")),
        (format!("http://{secure}/mcp"), format!("speaks TLS at this port: try https://{secure}/mcp")),
        (format!("ws://{secure}/mcp/ws"), format!("speaks TLS at this port: try wss://{secure}/mcp/ws")),
        (format!("https://{secure}/mcp"), "with --cacert FILE".to_owned()),
        (format!("http://{plain}/"), format!("MCP is at /mcp; nothing is at /: try http://{plain}/mcp")),
        (format!("http://{plain}/other"), format!("try http://{plain}/mcp")),
        (format!("http://{plain}/other"), "there is nothing here; MCP is at /mcp".to_owned()),
        (format!("http://{plain}/mcp/"), format!("nothing is at /mcp/: try http://{plain}/mcp")),
        (format!("ws://{plain}/nope"), format!("try ws://{plain}/mcp/ws")),
        (format!("sse+http://{plain}/mcp"), format!("try sse+http://{plain}/sse, or http://{plain}/mcp")),
        (answering(|_, _| Answer::empty("404 Not Found")) + "/mcp", "check the path of the URL".to_owned()),
    ] {
        let ended = user.run(&["list", "tools", &url]);
        assert_eq!(ended.code, 4, "{url}: {ended:?}");
        assert!(ended.err.contains(&hint), "{url}: {ended:?}");
        assert!(ended.err.matches("there is nothing here").count() < 2, "{url}: {ended:?}");
    }
}

#[test]
fn a_port_that_does_not_speak_http_is_told_of() {
    let address = listening(|mut stream| {
        // What is wrong with the client is no matter of this server.
        let _ = stream.write_all(b"SSH-2.0-OpenSSH_9.0\r\n");
        let _ = stream.read(&mut [0; 4096]);
    });
    let user = User::new();
    for scheme in ["http", "ws", "sse+http", "https", "wss"] {
        let ended = user.run(&["info", &format!("{scheme}://{address}/mcp")]);
        assert_eq!(ended.code, 4, "{scheme}: {ended:?}");
        let told = "does not speak HTTP at this port: it says \"SSH-2.0-OpenSSH_9.0\"";
        assert!(ended.err.contains(told) && !ended.err.contains("try http"), "{scheme}: {ended:?}");
    }
}

#[test]
fn a_hint_does_not_hide_the_error_of_the_server() {
    let address = listening(|mut stream| {
        read_request(&stream);
        let body = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32009,"message":"gone"}}"#;
        let head =
            format!("HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", body.len());
        let _ = stream.write_all((head + body).as_bytes());
    });
    let ended = User::new().run(&["info", "-o", "json", &format!("http://{address}/x/")]);
    let error: serde_json::Value = serde_json::from_str(&ended.err).unwrap_or_else(|_| panic!("{ended:?}"));
    assert_eq!(error["error"]["rpc"]["code"], -32009, "{error}");
    assert!(error["error"]["message"].as_str().unwrap().contains("nothing is at /x/: try"), "{error}");
}

/// Reads a whole request: a connection that is closed with unread bytes is reset, and the response may be lost.
fn read_request(stream: &TcpStream) {
    let mut stream = BufReader::new(stream.try_clone().unwrap());
    // The server answers whatever is asked.
    let _ = Request::read(&mut stream);
}

#[test]
fn it_is_said_when_to_try_again() {
    let (seconds, date) = ("37", "Wed, 21 Oct 2026 07:28:00 GMT");
    for (value, told) in
        [(seconds, "; try again in 37 s"), (date, "; try again after Wed, 21 Oct 2026 07:28:00 GMT")]
    {
        let address = listening(move |mut stream| {
            read_request(&stream);
            let head = format!(
                "HTTP/1.1 429 Too Many Requests\r\nRetry-After: {value}\r\nConnection: close\r\nContent-Length: 4\r\n\r\n"
            );
            let _ = stream.write_all((head + "busy").as_bytes());
        });
        for scheme in ["http", "ws", "sse+http"] {
            let ended = User::new().run(&["info", &format!("{scheme}://{address}/mcp")]);
            assert_eq!(ended.code, 4, "{scheme}: {ended:?}");
            assert!(ended.err.contains(&format!("status 429: busy{told}")), "{scheme}: {ended:?}");
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_question_has_its_line_for_itself() {
    let user = User::new();
    user.write(
        "mcp.json",
        r#"{ "mcpServers": { "bad": { "command": 7 }, "good": { "command": "false" } } }"#,
    );
    for _ in 0..5 {
        let mut terminal = Terminal::start(user.command(&["info", "good"]).env("TERM", "xterm"), 160);
        let before = terminal.expect("Start it?");
        assert!(before.contains("refmcp: ./mcp.json: server \"bad\"") && before.ends_with('\n'), "{before}");
        terminal.enter("n");
        assert!(!terminal.ended().success());
        let line = terminal.all.lines().find(|line| line.contains("Start it?"));
        assert!(!line.unwrap().contains("refmcp: "), "{}", terminal.all);
    }
}

#[test]
fn usages_name_the_program_however_it_was_started() {
    use std::os::unix::process::CommandExt;
    let mut command = std::process::Command::new(REFMCP);
    let output = command.arg0("/opt/tools/other").args(["serve", "--help"]).output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    assert!(help.contains("Usage: refmcp serve [OPTIONS]"), "{help}");
}

#[test]
fn a_broken_configuration_file_says_where() {
    let user = User::new();
    let file = user.write("servers.json", "{\n  \"mcpServers\": {\n    \"a\": }\n}");
    let ended = user.run(&["list", "--config", &file, "a"]);
    assert_eq!(ended.code, 1, "{ended:?}");
    assert!(ended.err.contains("servers.json") && ended.err.contains("line 3 column 10"), "{ended:?}");
    user.write("mcp.json", "{ \"mcpServers\": ");
    let ended = user.run(&["list", "a"]);
    assert!(ended.err.contains("no server is called \"a\"") && ended.err.contains("mcp.json"), "{ended:?}");
    assert!(ended.err.contains("line 1 column"), "{ended:?}");
    // A file that is whole beside one that is broken is used.
    user.write(".mcp.json", r#"{ "mcpServers": { "b": { "url": "http://127.0.0.1:1/mcp" } } }"#);
    assert!(user.run(&["list", "b"]).err.contains("cannot reach"));
    // A session with all servers that are named says which file it goes without.
    let ended = user.run(&["shell"]);
    assert!(ended.err.contains("mcp.json: ") && ended.err.contains("line 1 column"), "{ended:?}");
    user.write(".mcp.json", "{}");
    let ended = user.run(&["shell"]);
    assert!(ended.err.contains("no server that may be used is named in"), "{ended:?}");
    assert!(ended.err.contains("line 1 column"), "{ended:?}");
}

#[test]
fn only_names_that_are_near_are_proposed() {
    let user = User::new();
    let ended = user.with_stdio(&["call", "ecco"]);
    assert!(ended.err.contains("did you mean \"echo\"?"), "{ended:?}");
    let ended = user.with_stdio(&["call", "frobnicate_widgets"]);
    assert!(!ended.err.contains("did you mean"), "{ended:?}");
    let list = r#""result":{"prompts":[{"name":"a"},{"name":"b"}]}"#;
    let ended =
        user.with_script(&["prompt", "zzz"], &scripted(r#"{"prompts":{}}"#, &[("prompts/list", list)]));
    assert!(ended.err.contains("the server has no prompt \"zzz\"; it has a, b"), "{ended:?}");
}

#[test]
fn an_address_that_nothing_is_at_is_not_watched_in_any_revision() {
    let user = User::new();
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"] {
        let ended = user.with_stdio(&["watch", "--protocol-version", version, "file:///notes/todo.tx"]);
        assert_eq!((ended.code, ended.out.as_str()), (1, ""), "{version}: {ended:?}");
        assert!(ended.err.contains("file:///notes/todo.tx cannot be watched"), "{version}: {ended:?}");
        assert!(ended.err.contains("did you mean file:///notes/todo.txt?"), "{version}: {ended:?}");
    }
}

#[test]
fn nor_in_the_shell() {
    let user = User::new();
    for version in ["2025-06-18", "2026-07-28"] {
        let mut command = user.command(&["shell", "--protocol-version", version, "--", REFMCP, "stdio"]);
        let mut shell = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        shell.stdin.take().unwrap().write_all(b"subscribe file:///nothing\n").unwrap();
        let output = shell.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{version}: {said}");
        assert!(said.contains("file:///nothing cannot be watched"), "{version}: {said}");
    }
}

#[test]
fn what_is_wrong_with_a_configuration_file_is_told_to_the_user_of_a_name() {
    let user = User::at_work();
    for (text, said) in [
        ("{\"mcpServers\": {", "mcp.json: is not valid JSON: Unterminated object on line 1 column 16"),
        (r#"{"mcpServers": {"there": {"args": []}}}"#, "the entry of \"there\" cannot be used: "),
        (r#"{"mcpServers": {"theree": {"command": "x"}}}"#, "did you mean \"theree\"? There is theree"),
        (
            r#"{"mcpserver": {"there": {"command": "x"}}}"#,
            "mcp.json: lists no servers: it has neither \"mcpServers\"",
        ),
    ] {
        user.write("work/mcp.json", text);
        let ended = user.run(&["info", "there"]);
        let last = ended.err.lines().last().unwrap_or_default();
        assert!(ended.code == 1 && last.contains(said), "{text}: {ended:?}");
        assert_eq!(ended.err.lines().count(), 1, "{text}: {ended:?}");
    }
}

#[test]
fn a_file_without_servers_is_told_of_where_it_would_be_used() {
    let (user, server) = (User::at_work(), Server::start(&[]));
    let url = format!("http://{}/mcp", server.address);
    user.write("work/mcp.json", "{}");
    user.write("work/.mcp.json", &format!(r#"{{"mcpServers": {{"there": {{"url": "{url}"}}}}}}"#));
    let told = "refmcp: ./mcp.json: lists no servers: it has neither \"mcpServers\" nor \"servers\"; write \
                {\"mcpServers\": {\"NAME\": {\"command\": \"PROGRAM\", \"args\": []}}}, or \"url\" in place of \"command\"\n";
    for words in [&["info", "there"][..], &["info", "there", "-o", "json"], &["servers"], &["shell"]] {
        let ended = user.run(words);
        assert_eq!((ended.code, ended.err.as_str()), (0, told), "{words:?}: {ended:?}");
    }
    for words in [&["info", &url][..], &["shell", &url], &["log"], &["info", "there", "--log", "error"]] {
        let ended = user.run(words);
        assert_eq!((ended.code, ended.err.as_str()), (0, ""), "{words:?}: {ended:?}");
    }
    let ended = user.run(&["info", "-o", "json", "--", REFMCP, "stdio"]);
    assert_eq!((ended.code, ended.err.as_str()), (0, ""), "{ended:?}");
}

#[test]
fn names_of_arguments_that_are_nearly_right_are_proposed() {
    let user = User::new();
    let review = ["complete", "--prompt", "code_review"];
    let memo = ["complete", "--template", "memo://{shelf}/{name}"];
    for (words, proposed) in [
        (
            [&review[..], &["langauge=r"]].concat(),
            "the prompt has no argument \"langauge\"; did you mean \"language\"?",
        ),
        (
            [&memo[..], &["nmae="]].concat(),
            "the template has no variable \"nmae\"; did you mean \"name\"? It has shelf, name",
        ),
        (
            [&memo[..], &["--context", "shlef=office", "name="]].concat(),
            "no variable \"shlef\"; did you mean \"shelf\"?",
        ),
        (vec!["info", "--log-level", "warn"], "'warning'"),
        (vec!["info", "--log", "inof"], "--log inof: did you mean \"info\"?"),
        (vec!["info", "--log", "refmcp=debug,warning"], "--log warning: did you mean \"warn\"?"),
        (vec!["info", "--log", "refmcp=debgu"], "--log refmcp=debgu: not a filter"),
    ] {
        let ended = user.with_stdio(&words);
        assert_eq!(ended.code, 1, "{ended:?}");
        assert!(ended.err.contains(proposed), "{ended:?}");
    }
    // A server that has no values for an argument that it does not know either.
    let server = scripted(
        r#"{"prompts":{},"completions":{}}"#,
        &[
            ("prompts/list", r#""result":{"prompts":[{"name":"p","arguments":[{"name":"code"}]}]}"#),
            ("completion/complete", r#""result":{"completion":{"values":[]}}"#),
        ],
    );
    let ended = user.with_script(&["complete", "--prompt", "p", "cod=x"], &server);
    assert!(ended.code == 1 && ended.err.contains("did you mean \"code\"? It has code"), "{ended:?}");
    let ended = user.with_script(&["complete", "--prompt", "p", "code=x"], &server);
    assert_eq!((ended.code, ended.err.as_str()), (0, ""), "{ended:?}");
    for name in ["refmcp", "hyper", "refmcp::calls=info", "off", "WARN"] {
        assert_eq!(user.with_stdio(&["info", "--log", name]).code, 0, "{name}");
    }
}
