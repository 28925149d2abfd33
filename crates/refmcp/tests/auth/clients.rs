//! Clients that an authorization server knows, by a secret, a key or a document.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use refmcp_auth::jose::{Jwks, PrivateKey};
use refmcp_testkit::ports::free_port;
use serde_json::{Value, json};

use crate::server::Server;
use crate::user::{User, came};

#[test]
fn a_secret_goes_to_no_other_authorization_server_than_before() {
    let (user, port) = (User::new(), free_port().to_string());
    let url = &format!("http://127.0.0.1:{port}/mcp");
    let issuers = [0, 1].map(|_| Server::start(&["--auth-client", "robot:hush", "--auth-resource", url]));
    let [first, second] = issuers.each_ref().map(|issuer| format!("http://{}", issuer.address));
    let server = Server::run(&["serve", "--port", &port, "--auth", &first]);
    let secret = user.write("secret", "hush");
    let login = ["auth", "login", url, "--grant", "client-credentials", "--client-id", "robot"];
    let login = [&login[..], &["--client-secret-file", &secret]].concat();
    user.does(&login);
    assert_eq!(user.kept()["manners"][0]["value"]["client_issuer"], first.as_str());
    // The server that they are for trusts another issuer from now on, or says so.
    drop(server);
    let _server = Server::run(&["serve", "--port", &port, "--auth", &second]);
    for words in [&login[..], &["call", url, "echo", "message=in"]] {
        let refused = user.fails(3, words);
        assert!(refused.contains(&first) && refused.contains(&second), "{refused}");
    }
    // Nor when only the token is left, or only how it was got.
    let whole = user.kept();
    for gone in ["manners", "grants"] {
        let mut kept = whole.clone();
        kept[gone] = json!([]);
        fs::write(user.tokens(), kept.to_string()).unwrap();
        let refused = user.fails(3, &login);
        assert!(refused.contains(&first) && refused.contains(&second), "{gone}: {refused}");
    }
    user.does(&[&login[..], &["--client-issuer", &second]].concat());
    assert_eq!(user.does(&["call", url, "echo", "message=in"]), "in\n");
    assert_eq!(user.kept()["manners"][0]["value"]["client_issuer"], second.as_str());
    let [first, _second] = issuers;
    assert!(!first.log().contains("hush"));
}

#[test]
fn a_client_that_signs_needs_no_secret() {
    let user = User::new();
    let key = PrivateKey::generate().unwrap();
    let keys = user.write("keys.json", &serde_json::to_string(&Jwks { keys: vec![key.public()] }).unwrap());
    let server = Server::start(&["--auth-client-keys", &format!("robot={keys}")]);
    let (url, file) = (&server.url(), user.write("key.pem", &key.reveal_pem()));
    let login =
        ["auth", "login", url, "--grant", "client-credentials", "--client-id", "robot", "--client-key"];
    user.does(&[&login[..], &[&file]].concat());
    assert_eq!(user.kept()["grants"][0]["value"]["method"], "private_key_jwt");
    assert_eq!(user.does(&["call", url, "echo", "message=in"]), "in\n");
    // It signs as well when it gives its token back.
    let left: Value = serde_json::from_str(&user.does(&["auth", "logout", url, "-o", "json"])).unwrap();
    assert_eq!((&left["forgotten"], &left["notRevoked"]), (&json!(1), &json!([])));
    let other = user.write("other.pem", &PrivateKey::generate().unwrap().reveal_pem());
    let refused = user.fails(3, &[&login[..], &[&other]].concat());
    assert!(refused.contains("invalid_client"), "{refused}");
    user.does(&["auth", "login", url, "--client-id", "robot", "--client-key", &file]);
    assert!(!user.visited().is_empty(), "a person agreed");
}

/// Serves whole responses from a folder, with TLS; ended when it is dropped.
struct Files(Child);

impl Files {
    /// Gives its address, such as `127.0.0.1:4433`, as well.
    fn in_folder_of(user: &User) -> (Self, String) {
        let words = "s_server -accept 127.0.0.1:0 -cert cert.pem -key key.pem -HTTP";
        let mut command = Command::new("openssl");
        command.args(words.split(' ')).current_dir(user.path("")).stdin(Stdio::null());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut said = BufReader::new(child.stdout.take().unwrap()).lines();
        let address = said.find_map(|line| line.unwrap().strip_prefix("ACCEPT ").map(str::to_owned)).unwrap();
        // It may say more.
        std::thread::spawn(move || said.count());
        (Self(child), address)
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_client_is_named_by_a_document_about_it() {
    let user = User::new();
    let cert = user.certificate();
    let (_files, address) = Files::in_folder_of(&user);
    let id = &format!("https://{address}/client.json");
    let document = json!({
        "client_id": id, "client_name": "a document", "redirect_uris": ["http://127.0.0.1/callback"],
        "token_endpoint_auth_method": "none", "grant_types": ["authorization_code", "refresh_token"],
    })
    .to_string();
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close";
    user.write("client.json", &format!("{head}\r\nContent-Length: {}\r\n\r\n{document}", document.len()));
    let auto = ["serve", "--port", "0", "--auth", "builtin", "--auth-login", "auto"];
    let server = Server::run_with(&auto, &[("SSL_CERT_FILE", &cert)]);
    let url = &server.url();
    let login = ["auth", "login", url, "--client-metadata-url", id];
    let mut command = user.command(&login);
    let done = came(command.env("SSL_CERT_FILE", &cert).output().unwrap());
    assert_eq!(done.code, 0, "{done:?}");
    let kept = user.kept();
    assert_eq!(kept["grants"][0]["value"]["client_id"], id.as_str());
    assert_eq!(kept["registrations"], json!([]), "there was no need to register");
    assert_eq!(user.does(&["call", url, "echo", "message=in"]), "in\n");
}
