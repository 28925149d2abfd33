//! Bad input again and again: the server keeps nothing of it (the plan's rule for all cases).

use serde_json::json;

use crate::support::{Client, Version};
use crate::table::long;

#[test]
fn repeats_take_no_memory() {
    for version in [Version::Session("2025-11-25"), Version::Stateless] {
        let mut client = Client::start(version, &[]);
        let kinds = [
            "no JSON".to_owned(),
            format!("{{\"jsonrpc\":\"1.0\",\"id\":1,\"{}\":1}}", long(1000)),
            version.request(long(200), "unknown", &json!({})),
            version.call(1, "unknown", &json!({})),
            version.call(2, "echo", &json!({ "message": 5 })),
            version.request(3, "resources/read", &json!({ "uri": long(1000) })),
            version.request(4, "tools/list", &json!({ "cursor": long(1000) })),
        ];
        let repeat = |client: &mut Client, times: usize| {
            for _ in 0..times {
                client.process.send_line(kinds.join("\n"));
                kinds.iter().for_each(|_| drop(client.next()));
                // Neither answers nor cancellations of what is unknown leave anything behind.
                client.process.send_line(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
                client.notify("notifications/cancelled", &json!({ "requestId": "unknown" }));
            }
            client.process.memory("VmRSS")
        };
        let before = repeat(&mut client, 300);
        let after = repeat(&mut client, 1200);
        assert!(after - before < 1.0, "{version:?}: {before} MiB became {after} MiB");
        client.hears_nothing("each was answered once");
    }
}
