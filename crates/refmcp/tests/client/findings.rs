//! What a server does wrong is told on stderr, and what can be used of it is shown all the same.

use crate::{User, scripted};

#[test]
fn structured_content_without_content_is_shown_as_a_finding() {
    let user = User::new();
    let list = r#""result":{"tools":[{"name":"count","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]}"#;
    let call = r#""result":{"structuredContent":{"total":3},"isError":false}"#;
    let server = scripted(r#"{"tools":{}}"#, &[("tools/list", list), ("tools/call", call)]);
    for output in ["text", "json"] {
        let came = user.with_script(&["call", "count", "--yes", "-o", output], &server);
        assert_eq!(came.code, 0, "{came:?}");
        assert!(came.out.contains("\"total\": 3"), "{came:?}");
        let told: Vec<&str> = came.err.lines().filter(|line| line.contains("TOOL-07")).collect();
        assert!(
            matches!(told[..], [line] if line.contains("repeat the data as text in content")),
            "{came:?}"
        );
    }
}
