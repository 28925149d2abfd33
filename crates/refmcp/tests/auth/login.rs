//! Getting in, and out again.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use refmcp_auth::jose::{Header, Jwk, Jwks, PrivateKey};
use refmcp_testkit::ports::free_port;
use serde_json::Value;

use crate::secrets::Watch;
use crate::server::Server;
use crate::user::{User, came, renewal_of};

#[test]
fn a_login_serves_every_command_until_the_logout() {
    let (user, server) = (User::new(), Server::start(&["--auth-introspect"]));
    let url = &server.url();
    assert!(server.banner.contains("for tests"), "{}", server.banner);
    assert!(server.banner.contains("everybody is let in at once"), "{}", server.banner);
    let shown = user.does(&["auth", "login", url]);
    assert!(shown.starts_with(&format!("{url}\n  issuer   http://{}\n", server.address)), "{shown}");
    let visited = user.visited();
    assert!(visited.starts_with(&format!("1\nhttp://{}/authorize?", server.address)), "{visited}");
    assert_eq!(user.does(&["call", url, "echo", "message=hello"]), "hello\n");
    assert_eq!(
        user.does(&["call", url, "sum", "a=1", "b=2", "--protocol-version", "legacy"]),
        "{\"total\":3}\n"
    );
    let status: Value = serde_json::from_str(&user.does(&["auth", "status", url, "-o", "json"])).unwrap();
    assert_eq!((&status[0]["tokenType"], &status[0]["refreshable"]), (&"Bearer".into(), &true.into()));
    let kept = user.kept();
    let token = kept["grants"][0]["value"]["token"].as_str().unwrap().to_owned();
    for words in [&["auth", "status"][..], &["auth", "status", "-o", "json"], &["auth", "status", url]] {
        assert!(!user.does(words).contains(&token));
    }
    assert_eq!(user.does(&["auth", "logout", url]), format!("logged out of {url}\n"));
    let refused = user.fails(3, &["call", url, "echo", "message=hello"]);
    assert!(refused.contains(&format!("to log in: refmcp auth login {url}")), "{refused}");
    user.fails(3, &["auth", "status", url]);
    assert_eq!(user.does(&["auth", "status"]), "you are logged in nowhere\n");
    assert_eq!(user.does(&["auth", "logout", url]), format!("you were not logged in to {url}\n"));
    // It was given back, not only forgotten.
    let answer = renewal_of(&kept["grants"][0]["value"]);
    assert!(answer.contains("invalid_grant"), "{answer}");
}

#[test]
fn calls_without_a_login_are_refused() {
    let (user, server) = (User::new(), Server::start(&[]));
    let paths = ["http://ADDRESS/mcp", "sse+http://ADDRESS/sse", "ws://ADDRESS/mcp/ws"];
    for path in paths {
        let url = path.replace("ADDRESS", &server.address);
        for words in [&["info", &url][..], &["list", "tools", &url], &["call", &url, "echo", "message=x"]] {
            let said = user.fails(3, words);
            assert!(said.contains(&format!("to log in: refmcp auth login {url}")), "{said}");
        }
        assert_eq!(user.visited(), "", "no person was asked");
        user.does(&["auth", "login", &url]);
        assert_eq!(user.does(&["call", &url, "echo", "message=in"]), "in\n");
        std::fs::remove_file(user.path("visited")).unwrap();
    }
}

#[test]
fn the_page_can_be_visited_by_hand() {
    let (user, server) = (User::new(), Server::start(&[]));
    let mut login = user.command(&["auth", "login", &server.url(), "--no-browser"]);
    let mut login = login.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(login.stderr.take().unwrap()).lines();
    let page = said.find_map(|line| line.unwrap().trim().strip_prefix("http://").map(str::to_owned)).unwrap();
    assert_eq!(user.visited(), "");
    let curl = ["-sS", "-L", "--noproxy", "*"];
    let shown = Command::new("curl").args(curl).arg(format!("http://{page}")).output().unwrap();
    assert!(String::from_utf8_lossy(&shown.stdout).contains("You can close this window"), "{shown:?}");
    let rest: Vec<String> = said.map(Result::unwrap).collect();
    Watch::of_this_test().hears("a login by hand", &rest.join("\n"));
    let came = came(login.wait_with_output().unwrap());
    assert_eq!(came.code, 0, "{came:?}");
    assert!(came.out.contains("issuer"), "{came:?}");
}

/// A browser in which a person reads the page and decides.
const DECIDES: &str = r#"
curl -sS --noproxy '*' -c jar -b jar -o page.html "$1"
TOKEN=$(sed -n 's/.*name="form_token" value="\([^"]*\)".*/\1/p' page.html)
ORIGIN=$(echo "$1" | sed 's#\(http://[^/]*\).*#\1#')
curl -sS -L --noproxy '*' -c jar -b jar -o end.html -H "Origin: $ORIGIN" \
  --data-urlencode "form_token=$TOKEN" -d user=ann -d decision=DECISION "$ORIGIN/authorize"
"#;

#[test]
fn a_person_is_asked_on_a_page() {
    let (user, server) = (User::new(), Server::run(&["serve", "--port", "0", "--auth", "builtin"]));
    let url = &server.url();
    assert!(server.banner.contains("people are asked on a page"), "{}", server.banner);
    user.browser(&DECIDES.replace("DECISION", "deny"));
    let denied = user.fails(3, &["auth", "login", url, "--login-timeout", "20"]);
    assert!(denied.contains("access_denied"), "{denied}");
    assert!(!user.run(&["auth", "status"]).out.contains("issuer"), "nothing is kept");
    user.browser(&DECIDES.replace("DECISION", "allow"));
    user.does(&["auth", "login", url, "--login-timeout", "20"]);
    assert_eq!(user.does(&["call", url, "echo", "message=in"]), "in\n");
}

#[test]
fn a_server_with_tls_has_an_issuer_with_tls() {
    let user = User::new();
    let (cert, key) = (user.certificate(), user.path("key.pem"));
    let (cert, key) = (cert.as_str(), key.to_str().unwrap());
    let server = Server::start(&["--tls-cert", cert, "--tls-key", key]);
    let url = &server.url();
    assert!(url.starts_with("https://"), "{url}");
    user.browser("exec curl -sS -L --cacert cert.pem --noproxy '*' -o page.html \"$1\"");
    for words in [&["auth", "login", url][..], &["call", url, "echo", "message=in"]] {
        let came = came(user.command(words).env("SSL_CERT_FILE", cert).output().unwrap());
        assert_eq!(came.code, 0, "{came:?}");
    }
}

#[test]
fn every_step_is_explained() {
    let (user, server) = (User::new(), Server::start(&[]));
    let url = &server.url();
    let came = user.run(&["auth", "login", url, "--explain"]);
    assert_eq!(came.code, 0, "{came:?}");
    for part in
        ["/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-authorization-server", "/token"]
    {
        assert!(came.err.contains(part), "{part}: {}", came.err);
    }
    let came = user.run(&["auth", "login", url, "--explain", "-o", "json"]);
    let steps: Vec<Value> = came.err.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    assert!(steps.len() > 3 && steps.iter().all(|step| step["action"].is_string()), "{}", came.err);
}

#[test]
fn a_configured_name_is_a_target_too() {
    let (user, server) = (User::new(), Server::start(&[]));
    let text = format!(
        r#"{{"mcpServers": {{"there": {{"url": "{}"}}, "here": {{"command": "x"}}}}}}"#,
        server.url()
    );
    let file = user.write("mcp.json", &text);
    let refused = user.fails(3, &["info", "there", "--config", &file]);
    assert!(refused.contains("refmcp auth login there"), "{refused}");
    user.does(&["auth", "login", "there", "--config", &file]);
    assert_eq!(user.does(&["call", "there", "echo", "message=hi", "--config", &file]), "hi\n");
    let started = user.fails(1, &["auth", "login", "here", "--config", &file]);
    assert!(started.contains("is started here"), "{started}");
}

#[test]
fn a_server_without_authorization_needs_no_login() {
    let (user, server) = (User::new(), Server::run(&["serve", "--port", "0"]));
    let said = user.does(&["auth", "login", &server.url()]);
    assert!(said.contains("lets everybody in"), "{said}");
    assert_eq!(user.visited(), "");
    assert!(!user.tokens().exists());
}

#[test]
fn a_registered_client_uses_client_credentials() {
    let (user, server) =
        (User::new(), Server::start(&["--auth-client", "robot:hush", "--auth-token-lifetime", "60"]));
    let url = &server.url();
    let secret = user.write("secret", "hush\n");
    let login = ["auth", "login", url, "--grant", "client-credentials", "--client-id", "robot"];
    user.does(&[&login[..], &["--client-secret-file", &secret]].concat());
    assert_eq!(user.visited(), "", "no person is needed");
    assert_eq!(user.does(&["call", url, "echo", "message=beep"]), "beep\n");
    assert!(!user.kept().to_string().contains("hush"), "the secret stays where it was");
    // When the token is over, the next is got in the same way.
    let over = user.kept().to_string().replace("\"expires_at\":", "\"expires_at\":1,\"was\":");
    std::fs::write(user.tokens(), over).unwrap();
    assert_eq!(user.does(&["call", url, "echo", "message=again"]), "again\n");
    let wrong = user.write("wrong", "no");
    let refused = user.fails(3, &[&login[..], &["--client-secret-file", &wrong]].concat());
    assert!(refused.contains("invalid_client"), "{refused}");
    user.fails(1, &login);
}

#[test]
fn a_tool_with_another_scope_needs_a_step_up_login() {
    let (user, server) = (User::new(), Server::start(&[]));
    let url = &server.url();
    let call = ["call", url, "add_tool", "name=hello"];
    user.does(&["auth", "login", url]);
    for version in ["legacy", "modern"] {
        let said = user.fails(3, &[&call[..], &["--protocol-version", version]].concat());
        assert!(said.contains("you are logged in for mcp:read; for more, add --scope"), "{said}");
    }
    // A token of --header is no login: the error says what it lacks.
    let token = user.kept()["grants"][0]["value"]["token"].as_str().unwrap().to_owned();
    let said = user.fails(3, &[&call[..], &["-H", &format!("Authorization: Bearer {token}")]].concat());
    assert!(said.contains("it wants a token for mcp:write"), "{said}");
    user.does(&["auth", "login", url, "--scope", "mcp:write"]);
    let status: Value = serde_json::from_str(&user.does(&["auth", "status", "-o", "json"])).unwrap();
    assert_eq!(status[0]["scopes"], serde_json::json!(["mcp:write", "mcp:read"]));
    assert!(user.does(&call).contains("tool hello was added"));
}

#[test]
fn a_workload_logs_in_with_an_assertion() {
    let user = User::new();
    let key = PrivateKey::generate().unwrap();
    let public = Jwk { kid: Some("k".to_owned()), ..key.public() };
    let keys = user.write("keys.json", &serde_json::to_string(&Jwks { keys: vec![public] }).unwrap());
    let server = Server::start(&["--auth-workload-issuer", &format!("https://platform.example={keys}")]);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let claims = serde_json::json!({
        "iss": "https://platform.example", "sub": "job", "aud": format!("http://{}", server.address),
        "exp": now + 300, "iat": now, "jti": "1",
    });
    let header = Header { kid: Some("k".to_owned()), ..Header::default() };
    let assertion = user.write("assertion", &key.sign(header, &claims).unwrap());
    let url = &server.url();
    user.does(&["auth", "login", url, "--grant", "jwt-bearer", "--assertion-file", &assertion]);
    assert_eq!(user.visited(), "", "no person is needed");
    assert_eq!(user.does(&["call", url, "echo", "message=in"]), "in\n");
}

#[test]
fn a_server_is_known_by_every_name_of_its_machine() {
    let (user, server) = (User::new(), Server::start(&[]));
    let url = server.url().replace("127.0.0.1", "localhost");
    user.does(&["auth", "login", &url]);
    assert_eq!(user.does(&["call", &url, "echo", "message=in"]), "in\n");
    user.fails(3, &["call", &server.url(), "echo", "message=in"]);
}

#[test]
fn tokens_of_an_external_issuer_are_taken_for_this_audience() {
    let user = User::new();
    let port = free_port().to_string();
    let issuer = format!("http://127.0.0.1:{port}");
    let server = Server::run(&["serve", "--port", "0", "--auth", &issuer]);
    let url = &server.url();
    let words =
        ["serve", "--port", &port, "--auth", "builtin", "--auth-login", "auto", "--auth-resource", url];
    let other = Server::run(&words);
    user.does(&["auth", "login", &other.url()]);
    let token = user.kept()["grants"][0]["value"]["token"].as_str().unwrap().to_owned();
    let header = format!("Authorization: Bearer {token}");
    user.does(&["info", &other.url(), "-H", &header]);
    user.fails(3, &["info", url, "-H", &header]);
    let shown = user.does(&["auth", "login", url]);
    assert!(shown.starts_with(&format!("{url}\n  issuer   {issuer}\n")), "{shown}");
    assert_eq!(user.does(&["call", url, "echo", "message=in"]), "in\n");
}

#[test]
fn a_bridge_says_how_to_log_in() {
    let (user, server) = (User::new(), Server::start(&[]));
    let url = server.url();
    let words = ["bridge", "--from", "stdio", "--to", &url];
    let mut bridge = user.command(&words);
    let mut bridge =
        bridge.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let initialize = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;
    // Left open: the bridge would end with its input.
    let mut input = bridge.stdin.take().unwrap();
    writeln!(input, "{initialize}").unwrap();
    let came = came(bridge.wait_with_output().unwrap());
    assert_eq!(came.code, 3, "{came:?}");
    assert!(came.err.contains(&format!("refmcp auth login {url}")), "{came:?}");
    drop(input);
}

#[test]
fn tokens_can_be_bound_to_a_key() {
    let (user, server) = (User::new(), Server::start(&["--auth-dpop", "nonce"]));
    let url = &server.url();
    user.does(&["auth", "login", url, "--dpop"]);
    assert_eq!(user.does(&["call", url, "echo", "message=mine"]), "mine\n");
    let kept = user.kept();
    assert_eq!(kept["grants"][0]["value"]["token_type"], "DPoP");
    let token = kept["grants"][0]["value"]["token"].as_str().unwrap();
    user.fails(3, &["info", url, "-H", &format!("Authorization: Bearer {token}")]);
}
