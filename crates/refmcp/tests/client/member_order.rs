//! What a server has written is printed as it was written.

use crate::User;

/// A server with two pages of tools, whose members are in an order of their own.
const SERVER: &str = r#"
while read -r line; do
  id=$(printf '%s' "$line" | sed 's/.*"id":\([^,}]*\).*/\1/')
  case "$line" in
  *'"initialize"'*)
    printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18",' "$id"
    printf '"capabilities":{"x-own":{},"tools":{}},"serverInfo":{"version":"1","x-own":1.0,"name":"s"}}}\n' ;;
  *'"cursor":"2"'*)
    printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"second","inputSchema":{"type":"object"}}]}}\n' "$id" ;;
  *'"tools/list"'*)
    printf '{"jsonrpc":"2.0","id":%s,"result":{"nextCursor":"2","tools":[{"x-own":1.0,"inputSchema":' "$id"
    printf '{"type":"object","properties":{"z":{},"a":{}}},"name":"first"}],"_meta":{"b":1,"a":2}}}\n' ;;
  esac
done
"#;

const FIRST: &str = r#"    {
      "x-own": 1.0,
      "inputSchema": {
        "type": "object",
        "properties": {
          "z": {},
          "a": {}
        }
      },
      "name": "first"
    }"#;

const SECOND: &str = r#"    {
      "name": "second",
      "inputSchema": {
        "type": "object"
      }
    }"#;

const META: &str = r#"  "_meta": {
    "b": 1,
    "a": 2
  }"#;

#[test]
fn members_stay_in_the_order_of_the_server() {
    let user = User::new();
    let script = user.write("server.sh", SERVER);
    let run = |words: &[&str]| {
        let server = ["--protocol-version", "legacy", "--", "sh", script.as_str()];
        user.run(&words.iter().copied().chain(server).collect::<Vec<_>>())
    };
    let came = run(&["list", "tools", "-o", "json"]);
    assert_eq!(came.out, format!("{{\n  \"tools\": [\n{FIRST},\n{SECOND}\n  ]\n}}\n"), "{came:?}");
    let came = run(&["info", "-o", "json"]);
    let info =
        "{\n  \"serverInfo\": {\n    \"version\": \"1\",\n    \"x-own\": 1.0,\n    \"name\": \"s\"\n  },\n";
    assert!(came.out.starts_with(info), "{came:?}");
    assert!(came.out.contains("{\n    \"x-own\": {},\n    \"tools\": {}\n  }"), "{came:?}");
    let raw = format!("{{\n  \"nextCursor\": \"2\",\n  \"tools\": [\n{FIRST}\n  ],\n{META}\n}}\n");
    for output in ["text", "json"] {
        let came = run(&["raw", "tools/list", "-o", output]);
        assert_eq!(came.out, raw, "{output}: {came:?}");
    }
}
