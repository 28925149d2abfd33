//! Tests of what can be typed and what it means.

use clap::CommandFactory;
use refmcp_client::VersionPolicy;
use refmcp_proto::model::{CompletionRef, LogLevel, PromptReference, ResourceTemplateReference};
use refmcp_proto::revision::Revision;

use super::*;
use crate::arguments::ArgumentInput;

#[test]
fn the_definitions_are_sound() {
    Args::command().debug_assert();
    Inspector::command().debug_assert();
}

#[test]
fn options_do_not_change_the_description_of_their_command() {
    let (before, mut built) = (Args::command(), Args::command());
    built.build();
    for command in before.get_subcommands() {
        let name = command.get_name();
        let later = built.find_subcommand(name).unwrap();
        assert_eq!(
            later.get_about().map(ToString::to_string),
            command.get_about().map(ToString::to_string),
            "{name}"
        );
        assert!(later.get_long_about().is_none(), "{name}");
    }
}

fn parsed(line: &str) -> Result<Action, clap::Error> {
    let words = split_words(&format!("refmcp {line}")).unwrap();
    parse_from(words.into_iter().map(OsString::from)).map(|(_, action)| action)
}

fn client(line: &str) -> (ClientCommand, SharedOptions) {
    match parsed(line) {
        Ok(Action::Client(command, shared)) => (command, *shared),
        other => panic!("{line}: {other:?}"),
    }
}

fn error(line: &str) -> String {
    parsed(line).map(|action| panic!("{line}: {action:?}")).unwrap_err().to_string()
}

fn at(url: &str) -> Target {
    Target::parse(url).unwrap()
}

fn started(words: &[&str]) -> Target {
    Target::Command(words.iter().map(|word| (*word).to_owned()).collect())
}

fn words(words: &[&str], json: Option<&str>) -> ArgumentInput {
    let words = words.iter().map(|word| (*word).to_owned()).collect();
    ArgumentInput { words, json: json.map(str::to_owned) }
}

#[test]
fn commands_mean_what_they_say() {
    let url = at("http://localhost/mcp");
    for (line, expected) in [
        (
            "list http://localhost/mcp",
            ClientCommand::InSession(
                url.clone(),
                SessionCommand::List { what: ListKind::All, names: Vec::new() },
            ),
        ),
        (
            "list tools http://localhost/mcp",
            ClientCommand::InSession(
                url.clone(),
                SessionCommand::List { what: ListKind::Tools, names: Vec::new() },
            ),
        ),
        (
            "list prompts named",
            ClientCommand::InSession(
                at("named"),
                SessionCommand::List { what: ListKind::Prompts, names: Vec::new() },
            ),
        ),
        (
            "list templates -- npx x --flag",
            ClientCommand::InSession(
                started(&["npx", "x", "--flag"]),
                SessionCommand::List { what: ListKind::Templates, names: Vec::new() },
            ),
        ),
        (
            "list http://localhost/mcp tools",
            ClientCommand::InSession(
                url.clone(),
                SessionCommand::List { what: ListKind::Tools, names: Vec::new() },
            ),
        ),
        (
            "list tools http://localhost/mcp echo",
            ClientCommand::InSession(
                url.clone(),
                SessionCommand::List { what: ListKind::Tools, names: vec!["echo".to_owned()] },
            ),
        ),
        (
            "list resources a:b -- npx",
            ClientCommand::InSession(
                started(&["npx"]),
                SessionCommand::List { what: ListKind::Resources, names: vec!["a:b".to_owned()] },
            ),
        ),
        (
            "list models named",
            ClientCommand::InSession(
                at("named"),
                SessionCommand::List { what: ListKind::Models, names: Vec::new() },
            ),
        ),
        (
            "models named",
            ClientCommand::InSession(
                at("named"),
                SessionCommand::List { what: ListKind::Models, names: Vec::new() },
            ),
        ),
        (
            "models list named",
            ClientCommand::InSession(
                at("named"),
                SessionCommand::List { what: ListKind::Models, names: Vec::new() },
            ),
        ),
        (
            "models select named gpt-4",
            ClientCommand::InSession(at("named"), SessionCommand::SelectModel { name: "gpt-4".to_owned() }),
        ),
        (
            "model select gpt-4 -- s",
            ClientCommand::InSession(
                started(&["s"]),
                SessionCommand::SelectModel { name: "gpt-4".to_owned() },
            ),
        ),
        ("metadata -- s", ClientCommand::InSession(started(&["s"]), SessionCommand::Metadata)),
        (
            "list -- npx",
            ClientCommand::InSession(
                started(&["npx"]),
                SessionCommand::List { what: ListKind::All, names: Vec::new() },
            ),
        ),
        (
            "call http://localhost/mcp echo message=hi n:=1 --json @a",
            ClientCommand::InSession(
                url.clone(),
                SessionCommand::Call {
                    tool: "echo".to_owned(),
                    arguments: words(&["message=hi", "n:=1"], Some("@a")),
                },
            ),
        ),
        (
            "call echo message=hi -- ./server --yes",
            ClientCommand::InSession(
                started(&["./server", "--yes"]),
                SessionCommand::Call { tool: "echo".to_owned(), arguments: words(&["message=hi"], None) },
            ),
        ),
        (
            "call http://localhost/mcp slow --detach",
            ClientCommand::InSession(
                url.clone(),
                SessionCommand::CallAsTask {
                    tool: "slow".to_owned(),
                    arguments: words(&[], None),
                    is_detached: true,
                },
            ),
        ),
        (
            "task result named id",
            ClientCommand::InSession(at("named"), SessionCommand::Task(TaskCommand::Result("id".to_owned()))),
        ),
        (
            "task list -- ./server",
            ClientCommand::InSession(started(&["./server"]), SessionCommand::Task(TaskCommand::List)),
        ),
        (
            "read named file:///a",
            ClientCommand::InSession(at("named"), SessionCommand::Read { uri: "file:///a".to_owned() }),
        ),
        (
            "read http://a/b -- s",
            ClientCommand::InSession(started(&["s"]), SessionCommand::Read { uri: "http://a/b".to_owned() }),
        ),
        (
            "prompt named review code=x",
            ClientCommand::InSession(
                at("named"),
                SessionCommand::Prompt { name: "review".to_owned(), arguments: words(&["code=x"], None) },
            ),
        ),
        (
            "complete named --prompt review language=py --context a=b",
            ClientCommand::InSession(
                at("named"),
                SessionCommand::Complete {
                    of: CompletionRef::Prompt(PromptReference::new("review")),
                    argument: "language".to_owned(),
                    prefix: "py".to_owned(),
                    context: vec![("a".to_owned(), "b".to_owned())],
                },
            ),
        ),
        (
            "complete --template file:///{p} p= -- s",
            ClientCommand::InSession(
                started(&["s"]),
                SessionCommand::Complete {
                    of: CompletionRef::Resource(ResourceTemplateReference::new("file:///{p}")),
                    argument: "p".to_owned(),
                    prefix: String::new(),
                    context: Vec::new(),
                },
            ),
        ),
        (
            "watch named a:b c:d",
            ClientCommand::InSession(
                at("named"),
                SessionCommand::Watch { uris: vec!["a:b".to_owned(), "c:d".to_owned()] },
            ),
        ),
        (
            "watch a:b -- s",
            ClientCommand::InSession(started(&["s"]), SessionCommand::Watch { uris: vec!["a:b".to_owned()] }),
        ),
        ("info -- s", ClientCommand::InSession(started(&["s"]), SessionCommand::Info)),
        (
            "raw named ping",
            ClientCommand::InSession(
                at("named"),
                SessionCommand::Raw { method: "ping".to_owned(), params: None },
            ),
        ),
        (
            "raw x/y '{}' -- s",
            ClientCommand::InSession(
                started(&["s"]),
                SessionCommand::Raw { method: "x/y".to_owned(), params: Some("{}".to_owned()) },
            ),
        ),
        (
            "shell a http://localhost/mcp -- s",
            ClientCommand::Shell { targets: vec![at("a"), url.clone(), started(&["s"])] },
        ),
        ("shell --config f", ClientCommand::Shell { targets: Vec::new() }),
        ("shell", ClientCommand::Shell { targets: Vec::new() }),
        (
            "bridge --from stdio --to http://localhost/mcp",
            ClientCommand::Bridge { from: BridgeSide::Stdio, to: url.clone() },
        ),
        (
            "bridge --from stdio --to stdio -- s",
            ClientCommand::Bridge { from: BridgeSide::Stdio, to: started(&["s"]) },
        ),
    ] {
        assert_eq!(client(line).0, expected, "{line}");
    }
    let (ClientCommand::Bridge { from, to }, _) = client("bridge --from ws://127.0.0.1:1/ -- s --to x")
    else {
        panic!("no bridge");
    };
    assert!(matches!(from, BridgeSide::Listen { transport: UrlTransport::WebSocket, .. }));
    assert_eq!(to, started(&["s", "--to", "x"]));
}

#[test]
fn words_that_make_no_sense_are_explained() {
    for (line, hint) in [
        ("list", "missing: the target"),
        ("list tools", "missing: the target"),
        ("list tols http://a", "cannot list \"tols\": expected tools, resources"),
        ("list tols -- s", "cannot list \"tols\""),
        ("list http://a http://b", "one word too many: \"http://b\""),
        ("list http://a -- s", "two targets"),
        ("call", "missing: the target"),
        ("call http://a", "missing: the tool's name"),
        ("call -- s", "missing: the tool's name"),
        ("call http://a echo -- s", "two targets"),
        ("call ./server echo", "after `--`"),
        ("call ftp://a echo", "ftp is not one of"),
        ("read named", "missing: the URI"),
        ("read named a:b c:d", "unexpected argument"),
        ("read a:b c:d -- s", "one word too many"),
        ("complete named a=b", "--prompt"),
        ("complete named a=b --prompt x --template y", "cannot be used with"),
        ("complete named a --prompt x", "write a="),
        ("info a b", "unexpected argument"),
        ("info a -- s", "one word too many"),
        ("models select named", "missing: the model's name"),
        ("task get named", "missing: the task's id"),
        ("models", "missing: the target"),
        ("metadata", "missing: the target"),
        ("raw named", "missing: the request's method"),
        ("bridge --to http://a", "--from"),
        ("bridge --from stdio", "missing: --to"),
        ("bridge --from http://h/ --to http://a --allow-host http://h/", "a name is no URL; write h"),
        ("bridge --from http://h/ --to http://a --allow-origin app.example", "write https://app.example"),
        ("bridge --from stdio --to stdio", "needs the server's command"),
        ("bridge --from stdio --to a -- s", "two servers"),
        ("bridge --from stdio --root /x -- s", "--root has no effect on a bridge"),
        ("bridge --from stdio --total-timeout 5 -- s", "--total-timeout has no effect"),
        ("bridge --from stdio --header a:b -- s", "--header has no effect on a server that is started"),
        ("bridge --from stdio --cacert f -- s", "--cacert has no effect on a server that is started"),
        ("bridge --from stdio --explain -- s", "--explain has no effect on a server that is started"),
        ("bridge --from stdio --env a=b --to http://a", "--env has no effect on a server at a URL"),
        ("bridge --from stdio --cwd / --to http://a", "--cwd has no effect on a server at a URL"),
        (
            "bridge --from stdio --server-stderr hide --to http://a",
            "--server-stderr has no effect on a server at a URL",
        ),
        ("bridge --from stdio --config f -- s", "--config has no effect on a server that no configuration"),
        ("bridge --from stdio --yes --to http://a", "--yes has no effect on a server that no configuration"),
        ("bridge --from http://u:p@127.0.0.1:1/ -- s", "a user or password has no effect"),
        ("bridge --from http://127.0.0.1:1/?a=b -- s", "what follows the path has no effect"),
        ("bridge --from named --to http://a", "expected stdio, or an address"),
        ("info a --protocol-version 1999", "neither auto, legacy, modern nor a revision: 2024-11-05"),
        ("info a --header x", "expected 'NAME: VALUE'"),
        ("info a --env x", "expected KEY=VALUE"),
        ("info a --timeout x", "expected a number of seconds"),
        ("info a --log-level loud", "possible values: debug"),
        ("trust allow", "required"),
        ("nonsense", "unrecognized subcommand"),
    ] {
        let error = error(line);
        assert!(error.contains(hint), "{line}: {error}");
    }
}

#[test]
fn shared_options_are_read() {
    let (_, shared) = client(
        "info a --protocol-version legacy --timeout 1.5 --total-timeout 9 --header 'A: b' -H 'C: d' --env K=V=W --cwd /x \
         --output jsonl --record t --yes --sampler 'llm -m x' --root / --root /tmp --log-level warning --no-color \
         --config f --mask-arguments --model gpt-4",
    );
    assert_eq!((shared.protocol_version, shared.output), (VersionPolicy::Legacy, OutputFormat::Jsonl));
    assert_eq!((shared.timeout.as_millis(), shared.total_timeout.as_secs()), (1500, 9));
    assert_eq!(shared.headers.iter().map(|header| header.name.as_str()).collect::<Vec<_>>(), ["A", "C"]);
    assert_eq!(shared.env, [("K".to_owned(), "V=W".to_owned())]);
    assert_eq!((shared.roots.len(), shared.log_level), (2, Some(LogLevel::Warning)));
    assert!(shared.yes && shared.no_color && shared.mask_arguments);
    assert!(shared.cwd.is_some() && shared.record.record.is_some() && shared.config.is_some());
    assert_eq!(shared.model.as_deref(), Some("gpt-4"));
    assert_eq!(shared.sampler.as_deref(), Some("llm -m x"));
    for revision in Revision::ALL {
        assert_eq!(
            client(&format!("info a --protocol-version {}", revision.as_str())).1.protocol_version,
            VersionPolicy::Exactly(revision)
        );
    }
    for (line, expected) in [
        ("info a", VersionPolicy::Auto),
        ("info a --protocol-version modern", VersionPolicy::Modern),
        ("info a --era modern", VersionPolicy::Modern),
    ] {
        assert_eq!(client(line).1.protocol_version, expected, "{line}");
    }
}

#[test]
fn the_inspectors_flags_are_translated() {
    let url = at("http://localhost/mcp");
    let over = |transport| match at("http://localhost/mcp") {
        Target::Url { url, .. } => Target::Url { url, transport },
        other => panic!("{other}"),
    };
    for (line, expected) in [
        (
            "--cli http://localhost/mcp --method tools/list",
            ClientCommand::InSession(
                url.clone(),
                SessionCommand::List { what: ListKind::Tools, names: Vec::new() },
            ),
        ),
        (
            "--cli --method resources/list http://localhost/mcp --transport sse",
            ClientCommand::InSession(
                over(UrlTransport::Sse),
                SessionCommand::List { what: ListKind::Resources, names: Vec::new() },
            ),
        ),
        (
            "--cli --method resources/templates/list http://localhost/mcp --transport http",
            ClientCommand::InSession(
                over(UrlTransport::StreamableHttp),
                SessionCommand::List { what: ListKind::Templates, names: Vec::new() },
            ),
        ),
        (
            "--cli node build/index.js --method prompts/list -- --flag x",
            ClientCommand::InSession(
                started(&["node", "build/index.js", "--flag", "x"]),
                SessionCommand::List { what: ListKind::Prompts, names: Vec::new() },
            ),
        ),
        (
            "--cli node s.js --transport stdio --method tools/call --tool-name t --tool-arg a=1 b='x y' --tool-arg c=[]",
            ClientCommand::InSession(
                started(&["node", "s.js"]),
                SessionCommand::Call {
                    tool: "t".to_owned(),
                    arguments: words(&["a=1", "b=x y", "c=[]"], None),
                },
            ),
        ),
        (
            "--cli --config f --server s --method resources/read --uri a:b",
            ClientCommand::InSession(at("s"), SessionCommand::Read { uri: "a:b".to_owned() }),
        ),
        (
            "--cli s --method prompts/get --prompt-name p --prompt-args a=b c=d",
            ClientCommand::InSession(
                started(&["s"]),
                SessionCommand::Prompt { name: "p".to_owned(), arguments: words(&["a=b", "c=d"], None) },
            ),
        ),
        (
            "--cli s --method logging/setLevel --log-level debug",
            ClientCommand::InSession(started(&["s"]), SessionCommand::SetLevel { level: LogLevel::Debug }),
        ),
        (
            "--cli s --method ping",
            ClientCommand::InSession(
                started(&["s"]),
                SessionCommand::Raw { method: "ping".to_owned(), params: None },
            ),
        ),
    ] {
        let (command, shared) = client(line);
        assert_eq!(command, expected, "{line}");
        assert_eq!((shared.output, shared.yes), (OutputFormat::Json, true));
    }
    let (_, shared) = client("--cli http://a --method ping --header 'A: b' 'C: d' -e K=V");
    assert_eq!((shared.headers.len(), shared.env.len()), (2, 1));
}

#[test]
fn the_inspectors_mistakes_are_explained() {
    for (line, hint) in [
        ("--cli http://a", "--method"),
        ("--cli --method tools/list", "missing: the server's URL"),
        ("--cli s --method tools/call", "tools/call needs --tool-name"),
        ("--cli s --method resources/read", "needs --uri"),
        ("--cli s --method prompts/get", "needs --prompt-name"),
        ("--cli s --method logging/setLevel", "needs --log-level"),
        ("--cli s --method x --transport http", "only be talked to over stdio"),
        ("--cli http://a --method x --transport stdio", "cannot be talked to over stdio"),
        ("--cli http://a more --method x", "takes no arguments"),
        ("--cli --method x --config f", "say --server NAME"),
        ("--cli a --method x --config f --server s", "two targets"),
        ("--cli --method x --server s", "--config"),
    ] {
        let error = error(line);
        assert!(error.contains(hint), "{line}: {error}");
    }
}

#[test]
fn cli_behind_the_command_is_the_servers_own() {
    assert_eq!(
        client("info -- server --cli").0,
        ClientCommand::InSession(started(&["server", "--cli"]), SessionCommand::Info)
    );
}

#[test]
fn commands_without_a_server_are_read() {
    assert!(matches!(parsed("trust list --json"), Ok(Action::Trust(TrustCommand::List { json: true, .. }))));
    let Ok(Action::Trust(TrustCommand::Allow(change))) = parsed("trust allow --config f -- npx --tool x")
    else {
        panic!("not allowed");
    };
    assert_eq!((change.command.len(), change.tool), (3, None));
    assert!(matches!(parsed("trust revoke http://a --tool t"), Ok(Action::Trust(TrustCommand::Revoke(_)))));
    assert!(matches!(parsed("log --tool t -n 3"), Ok(Action::Log(LogQuery { last: Some(3), .. }))));
    assert!(matches!(parsed("completions bash"), Ok(Action::Completions(clap_complete::Shell::Bash))));
    assert!(matches!(parsed("man"), Ok(Action::Man)));
    assert!(matches!(parsed("stdio"), Ok(Action::Stdio(_))));
    assert!(matches!(parsed("serve --port 0"), Ok(Action::Serve(_))));
}

#[test]
fn logins_are_parsed() {
    let auth = |line: &str| match client(line).0 {
        ClientCommand::Auth(command) => command,
        other => panic!("{line}: {other:?}"),
    };
    let (target, login, browser) = match auth("auth login http://h/mcp") {
        AuthCommand::Login { target, login, browser } => (target, login, browser),
        other => panic!("{other:?}"),
    };
    assert_eq!(
        (target, *login, browser),
        (at("http://h/mcp"), LoginOptions::default(), BrowserOptions::default())
    );
    let line = "auth login s --client-id c --client-secret-file f --scope 'a b' --scope c --dpop --callback-port 7 \
                --grant client-credentials --no-browser --login-timeout 9 --explain";
    let AuthCommand::Login { login, browser, .. } = auth(line) else { panic!("no login") };
    assert_eq!(login.grant, GrantType::ClientCredentials);
    assert!(
        login.client_secret_file.is_some_and(|file| file.is_absolute()),
        "it is read from elsewhere later"
    );
    assert_eq!((login.scopes.len(), login.dpop), (2, true));
    assert_eq!((browser.callback_port, browser.no_browser, browser.login_timeout.as_secs()), (7, true, 9));
    assert!(client(line).1.explain);
    assert_eq!(auth("auth status"), AuthCommand::Status { target: None });
    assert_eq!(auth("auth logout s"), AuthCommand::Logout { target: at("s") });
    let keyring = |action| AuthCommand::Keyring { action };
    assert_eq!(auth("auth keyring"), keyring(KeyringAction::Show));
    assert_eq!(auth("auth keyring off"), keyring(KeyringAction::Off));
    assert_eq!(auth("auth keyring on"), keyring(KeyringAction::On { helper: None }));
    assert_eq!(
        auth("auth keyring on --helper pass"),
        keyring(KeyringAction::On { helper: Some("pass".into()) })
    );
    for (line, hint) in [
        ("auth keyring perhaps", "on|off"),
        ("auth keyring off --helper pass", "only to turn the keyring on"),
        ("auth keyring --helper pass", "required"),
        ("auth login", "required"),
        ("auth login ./s", "after `--`"),
        ("auth login s --grant client-credentials", "needs --client-id"),
        ("auth login s --grant jwt-bearer", "needs --assertion-file"),
        ("auth login s --assertion-file f", "only for --grant jwt-bearer"),
        ("auth login s --grant enterprise", "needs --client-id"),
        ("auth login s --grant enterprise --client-id c --idp-issuer i", "--id-token-file"),
        ("auth login s --client-id c --idp-issuer i", "only for --grant enterprise"),
        ("auth login s --id-token-file f", "--idp-issuer"),
        ("auth login s --client-secret-file f", "--client-id"),
        ("auth login s --client-id c --client-key k --client-secret-env E", "cannot be used with"),
        ("auth login s --client-id c --client-key k --client-key-alg HS256", "possible values: ES256"),
        ("auth login s --client-metadata-url http://h/c", "must be https"),
        ("auth login s --client-metadata-url http://127.0.0.1/c", "must be https"),
        ("auth login s --client-metadata-url https://h/c --client-id c", "cannot be used with"),
    ] {
        let error = error(line);
        assert!(error.contains(hint), "{line}: {error}");
    }
}

#[test]
fn options_of_authorization_are_parsed() {
    let serve = |line: &str| match parsed(line) {
        Ok(Action::Serve(options)) => options.authorization,
        other => panic!("{line}: {other:?}"),
    };
    assert_eq!(serve("serve").auth, None);
    let line = "serve --auth builtin --auth-login auto --auth-fault slow=3 --auth-fault wrong-state --auth-client a \
                --auth-client b:c:d --auth-scopes 'x y' --auth-token-lifetime 5 --auth-dpop nonce";
    let options = serve(line);
    assert_eq!((options.auth, options.auth_login), (Some(TokenIssuer::Builtin), BuiltinLogin::Auto));
    assert_eq!(options.auth_faults, ["slow=3", "wrong-state"]);
    assert_eq!(options.auth_clients[1].secret.as_ref().map(|secret| secret.is("c:d")), Some(true));
    assert_eq!(options.auth_scopes.map(|scopes| scopes.to_string()).as_deref(), Some("x y"));
    let name = "https://issuer.example/a";
    assert_eq!(serve(&format!("serve --auth {name}")).auth, Some(TokenIssuer::External(name.to_owned())));
    for (line, hint) in [
        ("serve --auth nonsense", "neither builtin nor"),
        ("serve --auth http://issuer.example", "must be https"),
        ("serve --auth https://issuer.example/?x", "no query"),
        ("serve --auth builtin --auth-fault nonsense", "is no fault"),
        ("serve --auth builtin --auth-client :x", "expected ID"),
        ("serve --auth builtin --auth-scopes '\"'", "no scope"),
        ("serve --auth builtin --auth-introspect --auth-introspect-every 0.9", "at least a second"),
        ("serve --auth builtin --auth-introspect-every 5", "--auth-introspect"),
        ("serve --auth-login auto", "--auth"),
        ("stdio --auth builtin", "unexpected argument"),
    ] {
        let error = error(line);
        assert!(error.contains(hint), "{line}: {error}");
    }
}
