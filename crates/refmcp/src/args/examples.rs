//! The examples in the help of each command. A test reads every line of them as if it was typed.

/// `refmcp stdio`.
pub(super) const STDIO: &str = "\
Examples:
  refmcp stdio
      serve the program that started it
  refmcp stdio --resources ./docs --prompts ./prompts
      with the files of two folders as resources and prompts
  refmcp stdio --log info --policy lenient
      log every call, and serve clients that break rules one can live with";

/// `refmcp serve`.
pub(super) const SERVE: &str = "\
Examples:
  refmcp serve
      listen on http://127.0.0.1:3000/mcp, for any client and every revision
  refmcp serve --port 0 --output json
      take any free port, and say in JSON which one it is
  refmcp serve --auth builtin
      want tokens, of an authorization server for tests beside it";

/// `refmcp list`.
pub(super) const LIST: &str = "\
Examples:
  refmcp list http://127.0.0.1:3000/mcp
      everything that a server offers
  refmcp list tools -- npx -y @modelcontextprotocol/server-everything
      the tools of a server that is started for this
  refmcp list tools http://127.0.0.1:3000/mcp sum
      one tool whole, with its description and schemas
  refmcp list prompts weather --output json
      the prompts of a server that mcp.json calls weather, for a script";

/// `refmcp call`: how arguments are written, and examples.
pub(super) const CALL: &str = "\
Arguments:
  message=hello       a value of the type that the tool's schema asks for
  tags=a tags=b       a list, as is tags=a,b
  size.width=3        a member of an object
  size:='{\"width\":3}' a value in JSON
  text=@FILE          the text of a file; @- is standard input, @@ begins a text with @
  size:=@FILE         the JSON in a file
  --json '{...}'      all arguments in JSON, or --json @FILE, or --json - for standard input;
                      single words are added to them

Examples:
  refmcp call http://127.0.0.1:3000/mcp sum a=1 b=2
      call a tool of a server that runs
  refmcp call echo message=hello -- refmcp stdio
      start a server, call one of its tools, and end it
  echo '{\"a\": 1, \"b\": 2}' | refmcp call http://127.0.0.1:3000/mcp sum --json -
      take the arguments from standard input";

/// `refmcp read`.
pub(super) const READ: &str = "\
Examples:
  refmcp read http://127.0.0.1:3000/mcp file:///notes/todo.txt
      the text of a resource
  refmcp read file:///resources/diagram.png -- refmcp stdio > diagram.png
      its bytes as they are, into a file
  refmcp read weather file:///data/custom.json -o json
      the whole answer of the server";

/// `refmcp prompt`.
pub(super) const PROMPT: &str = "\
Examples:
  refmcp prompt http://127.0.0.1:3000/mcp code_review code='x = 1' language=python
      a prompt, filled in
  refmcp prompt code_review code=@main.rs -- refmcp stdio
      with the text of a file as an argument";

/// `refmcp complete`.
pub(super) const COMPLETE: &str = "\
Examples:
  refmcp complete --prompt code_review http://127.0.0.1:3000/mcp language=r
      values that begin with r
  refmcp complete --template 'memo://{shelf}/{name}' --context shelf=office name= -- refmcp stdio
      any value of a variable, when another one is known";

/// `refmcp watch`.
pub(super) const WATCH: &str = "\
Examples:
  refmcp watch http://127.0.0.1:3000/mcp
      tell when the tools, resources or prompts change
  refmcp watch http://127.0.0.1:3000/mcp file:///notes/todo.txt -o json
      also when a resource does, as a line of JSON each";

/// `refmcp info`.
pub(super) const INFO: &str = "\
Examples:
  refmcp info https://example.org/mcp -H 'Authorization: Bearer TOKEN'
      who a server is that wants a token
  refmcp info --protocol-version legacy -- npx -y @modelcontextprotocol/server-everything
      what a server says to clients that open a session
  refmcp info weather -o json
      the same of a configured server, for a script";

/// `refmcp raw`.
pub(super) const RAW: &str = "\
Examples:
  refmcp raw http://127.0.0.1:3000/mcp tools/list
      a request without parameters
  refmcp raw http://127.0.0.1:3000/mcp resources/read '{\"uri\": \"file:///notes/todo.txt\"}'
      one with parameters, which nothing is done to
  refmcp raw tools/call @request.json -- refmcp stdio
      with parameters from a file";

/// `refmcp shell`.
pub(super) const SHELL: &str = "\
Examples:
  refmcp shell
      all servers that mcp.json and the other usual files name
  refmcp shell http://127.0.0.1:3000/mcp --server-stderr hide -- npx -y @modelcontextprotocol/server-everything
      a server that runs and one that is started, without what the latter writes to its stderr
  echo 'sum a=1 b=2' | refmcp shell --yes -- refmcp stdio
      commands from a script";

/// `refmcp bridge`.
pub(super) const BRIDGE: &str = "\
Examples:
  refmcp bridge --from stdio --to https://example.org/mcp
      for a client that can only start programs: a server on the web
  refmcp bridge --from http://127.0.0.1:3001/mcp -- npx -y @modelcontextprotocol/server-everything
      for clients on the web: a program that speaks over stdio
  refmcp bridge --from ws://127.0.0.1:3002/ --to sse+http://127.0.0.1:3000/sse
      for clients over WebSocket: a server over HTTP+SSE";

/// `refmcp auth`.
pub(super) const AUTH: &str = "\
Examples:
  refmcp auth login https://example.org/mcp
      log in with a browser
  refmcp auth status
      where you are logged in
  refmcp auth logout https://example.org/mcp
      give the tokens back";

/// `refmcp auth login`.
pub(super) const LOGIN: &str = "\
Examples:
  refmcp auth login https://example.org/mcp
      log in with a browser
  refmcp auth login https://example.org/mcp --no-browser --scope mcp:write
      on another machine than the browser, for more than the server asks for
  refmcp auth login https://example.org/mcp --grant client-credentials --client-id ci --client-secret-env CI_SECRET
      as a program, without a person";

/// `refmcp auth status`.
pub(super) const STATUS: &str = "\
Examples:
  refmcp auth status
      every server that you are logged in to
  refmcp auth status https://example.org/mcp -o json
      one of them, for a script; the exit code is 3 where you are not logged in";

/// `refmcp auth logout`.
pub(super) const LOGOUT: &str = "\
Examples:
  refmcp auth logout https://example.org/mcp
      give the tokens for a server back, and forget them
  refmcp auth logout weather
      the same for a server that mcp.json calls weather";

/// `refmcp auth keyring`.
pub(super) const KEYRING: &str = "\
Examples:
  refmcp auth keyring
      whether the file of tokens is sealed
  refmcp auth keyring on
      seal it with a key that the system's keyring keeps
  refmcp auth keyring on --helper pass
      the same with the keyring that docker-credential-pass speaks to";

/// `refmcp trust`.
pub(super) const TRUST: &str = "\
Examples:
  refmcp trust list
      what has been decided
  refmcp trust allow weather
      start the server that mcp.json calls weather without asking
  refmcp trust disable weather --tool delete_all
      never call one of its tools";

/// `refmcp trust list`.
pub(super) const TRUST_LIST: &str = "\
Examples:
  refmcp trust list
      what has been decided, and what is asked again since a file has changed
  refmcp trust list -o json
      the same for a script";

/// `refmcp trust allow`.
pub(super) const TRUST_ALLOW: &str = "\
Examples:
  refmcp trust allow weather
      start the server that mcp.json calls weather without asking
  refmcp trust allow http://127.0.0.1:3000/mcp --tool add_tool
      call a tool without asking";

/// `refmcp trust disable`.
pub(super) const TRUST_DISABLE: &str = "\
Examples:
  refmcp trust disable weather --config .vscode/mcp.json
      never start the server that this file calls weather
  refmcp trust disable --tool delete_all -- npx -y some-server
      never call a tool of a server that is started by this command";

/// `refmcp trust revoke`.
pub(super) const TRUST_REVOKE: &str = "\
Examples:
  refmcp trust revoke weather
      ask again before the server is started
  refmcp trust revoke weather --tool delete_all
      ask again before the tool is called";

/// `refmcp log`.
pub(super) const LOG: &str = "\
Examples:
  refmcp log --last 20
      the latest calls
  refmcp log --target weather --tool forecast
      those of one tool of a server
  refmcp log -o jsonl
      all of them, one JSON document on each line";

/// `refmcp models`.
pub(super) const MODELS: &str = "\
Examples:
  refmcp models list http://127.0.0.1:3000/mcp
      the models that a server knows, and the active one
  refmcp models select http://127.0.0.1:3000/mcp gpt-4
      see whether the server takes a model";

/// `refmcp models list`.
pub(super) const MODELS_LIST: &str = "\
Examples:
  refmcp models list http://127.0.0.1:3000/mcp
      the models that a server knows, and the active one
  refmcp models list -o json -- refmcp stdio
      as JSON";

/// `refmcp models select`.
pub(super) const MODELS_SELECT: &str = "\
Examples:
  refmcp models select http://127.0.0.1:3000/mcp gpt-4
      see whether the server takes a model
  refmcp models select claude-v2 -- refmcp stdio
      the same with a command";

/// `refmcp metadata`.
pub(super) const METADATA: &str = "\
Examples:
  refmcp metadata http://127.0.0.1:3000/mcp
      endpoints, revisions and scopes
  refmcp metadata -o json -- refmcp stdio
      as JSON";

/// `refmcp man`.
pub(super) const MAN: &str = "\
Examples:
  refmcp man > ~/.local/share/man/man1/refmcp.1
      install the page
  refmcp man | man -l -
      read it";

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use clap::{Command, CommandFactory};

    use crate::args::{Args, parse_from, split_words};

    /// Every command with its path, the program first.
    fn commands(command: &Command, path: &str, all: &mut Vec<(String, Command)>) {
        let path = format!("{path} {}", command.get_name()).trim_start().to_owned();
        let shown = |sub: &&Command| sub.get_name() != "help" && !sub.is_hide_set();
        for sub in command.get_subcommands().filter(shown) {
            commands(sub, &path, all);
        }
        all.push((path, command.clone()));
    }

    /// The words that are ours in an example's line, which may have other commands and files around it.
    fn ours(line: &str) -> String {
        let line = line.strip_prefix("source <(").and_then(|line| line.strip_suffix(')')).unwrap_or(line);
        let line =
            line.rsplit_once("| refmcp ").map_or(line.to_owned(), |(_, rest)| format!("refmcp {rest}"));
        let end = [" > ", " | "].iter().filter_map(|end| line.find(end)).min().unwrap_or(line.len());
        line[..end].to_owned()
    }

    #[test]
    fn every_command_has_examples_that_can_be_typed() {
        let mut built = Args::command();
        built.build();
        let mut all = Vec::new();
        commands(&built, "", &mut all);
        assert!(all.len() > 20, "{}", all.len());
        for (path, command) in all {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let (_, examples) = help.split_once("Examples:\n").unwrap_or_else(|| panic!("{path} has none"));
            let lines: Vec<&str> =
                examples.lines().filter(|line| !line.starts_with("   ")).map(str::trim).collect();
            assert!((2..=6).contains(&lines.len()), "{path}: {lines:?}");
            for line in lines {
                let typed = ours(line);
                assert!(typed.contains(&path) || path == "refmcp", "{path}: {line}");
                let words = split_words(&typed).unwrap().into_iter().map(OsString::from);
                if let Err(fault) = parse_from(words) {
                    panic!("{line}: {fault}");
                }
            }
            assert!(help.lines().all(|line| line.chars().count() <= 120), "{path}: a line is too long");
        }
    }
}
