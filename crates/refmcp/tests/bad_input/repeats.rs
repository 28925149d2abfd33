//! Bad input again and again: the server keeps nothing of it (the plan's rule for all cases).

use serde_json::json;

use crate::support::{Client, Era};
use crate::table::long;

#[test]
fn repeats_take_no_memory() {
    for era in [Era::Session("2025-11-25"), Era::Stateless] {
        let mut client = Client::start(era, &[]);
        let kinds = [
            "no JSON".to_owned(),
            format!("{{\"jsonrpc\":\"1.0\",\"id\":1,\"{}\":1}}", long(1000)),
            era.request(long(200), "unknown", &json!({})),
            era.call(1, "unknown", &json!({})),
            era.call(2, "echo", &json!({ "message": 5 })),
            era.request(3, "resources/read", &json!({ "uri": long(1000) })),
            era.request(4, "tools/list", &json!({ "cursor": long(1000) })),
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
        assert!(after - before < 1.0, "{era:?}: {before} MiB became {after} MiB");
        client.hears_nothing("each was answered once");
    }
}
