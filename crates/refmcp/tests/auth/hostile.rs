//! A server that wants to have something opened that is no page: nothing is started for it, or a browser with one
//! address.

use serde_json::json;

use crate::support::http::{Answer, answering};
use crate::user::User;

/// A server that is its own authorization server, where people are to log in at this address.
fn sending_people_to(endpoint: &str) -> String {
    let endpoint = endpoint.to_owned();
    let origin = answering(move |asked, origin| match asked.path.as_str() {
        "/.well-known/oauth-protected-resource/mcp" => {
            let document = json!({ "resource": format!("{origin}/mcp"), "authorization_servers": [origin] });
            Answer::json("200 OK", &document)
        }
        "/.well-known/oauth-authorization-server" => Answer::json(
            "200 OK",
            &json!({
                "issuer": origin,
                "authorization_endpoint": endpoint.replace("ORIGIN", origin),
                "token_endpoint": format!("{origin}/token"),
                "registration_endpoint": format!("{origin}/register"),
                "response_types_supported": ["code"],
                "code_challenge_methods_supported": ["S256"],
            }),
        ),
        "/register" => Answer::json("201 Created", &json!({ "client_id": "c" })),
        _ => Answer::json("401 Unauthorized\r\nWWW-Authenticate: Bearer", &json!({})),
    });
    format!("{origin}/mcp")
}

#[test]
fn only_web_pages_are_opened_each_as_one_argument() {
    let long = format!("ORIGIN/{}", "a".repeat(100 << 10));
    for (endpoint, opened) in [
        ("file:///etc/passwd", false),
        ("javascript:alert(1)", false),
        ("data:text/html,x", false),
        ("cmd:calc", false),
        ("--flag", false),
        ("", false),
        ("http://x.example/$(calc)", false),
        (&long, false),
        ("ORIGIN/$(touch pwned)", true),
        ("ORIGIN/`touch pwned`;touch pwned", true),
        ("ORIGIN/\r\n--flag", true),
        ("ORIGIN/\0--flag", true),
        ("ORIGIN/ --flag", true),
    ] {
        let user = User::new();
        user.browser("exit 0");
        let url = sending_people_to(endpoint);
        user.fails(3, &["auth", "login", &url, "--login-timeout", "1"]);
        let visited = user.visited();
        let lines: Vec<&str> = visited.lines().collect();
        match lines[..] {
            [] => {}
            ["1", page] => {
                assert!(opened, "{endpoint:?}: {page}");
                let origin = url.strip_suffix("/mcp").unwrap();
                assert!(page.starts_with(origin), "{page}");
                assert!(page.bytes().all(|byte| matches!(byte, b'!'..=b'~')), "{page}");
            }
            _ => panic!("{endpoint:?} was more than one word: {visited}"),
        }
        assert!(!user.path("pwned").exists(), "{endpoint:?}");
    }
}
