//! What a server does wrong is told on stderr, and what can be used of it is shown all the same.

use crate::User;

/// A server whose tool has data and no content.
const SERVER: &str = r#"
while read -r line; do
  id=$(printf '%s' "$line" | sed 's/.*"id":\([^,}]*\).*/\1/')
  case "$line" in
  *'"initialize"'*)
    printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18",' "$id"
    printf '"capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}\n' ;;
  *'"tools/list"'*)
    printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"count","inputSchema":{"type":"object"},' "$id"
    printf '"annotations":{"readOnlyHint":true}}]}}\n' ;;
  *'"tools/call"'*)
    printf '{"jsonrpc":"2.0","id":%s,"result":{"structuredContent":{"total":3},"isError":false}}\n' "$id" ;;
  esac
done
"#;

#[test]
fn structured_content_without_content_is_shown_as_a_finding() {
    let user = User::new();
    let script = user.write("server.sh", SERVER);
    for (output, total) in [("text", "\"total\": 3"), ("json", "\"total\": 3")] {
        let came = user.run(&[
            "call",
            "count",
            "--yes",
            "-o",
            output,
            "--protocol-version",
            "legacy",
            "--",
            "sh",
            &script,
        ]);
        assert_eq!(came.code, 0, "{came:?}");
        assert!(came.out.contains(total), "{came:?}");
        let told: Vec<&str> = came.err.lines().filter(|line| line.contains("TOOL-07")).collect();
        assert!(
            matches!(told[..], [line] if line.contains("repeat the data as text in content")),
            "{came:?}"
        );
    }
}
