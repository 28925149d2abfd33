//! Bad input again and again: the server keeps nothing of it.

use serde_json::json;

use crate::peer::{Peer, Site, WAYS, Way};
use crate::support::Version;
use crate::table::long;

#[test]
fn repeats_take_no_memory() {
    let site = Site::start(&[]);
    // One revision of each lifecycle over each transport.
    let older = |way: &Way| matches!(way.version, Version::Session("2025-03-26" | "2025-06-18"));
    for way in WAYS.into_iter().filter(|way| !older(way)) {
        let mut peer = Peer::open(&site, way);
        let version = way.version;
        let kinds = [
            "no JSON".to_owned(),
            format!("{{\"jsonrpc\":\"1.0\",\"id\":1,\"{}\":1}}", long(1000)),
            version.request(long(200), "unknown", &json!({})),
            version.call(1, "unknown", &json!({})),
            version.call(2, "echo", &json!({ "message": 5 })),
            version.request(3, "resources/read", &json!({ "uri": long(1000) })),
            version.request(4, "tools/list", &json!({ "cursor": long(1000) })),
        ];
        let repeat = |peer: &mut Peer, times: usize| {
            for _ in 0..times {
                kinds.iter().for_each(|kind| peer.send(kind.as_bytes()));
                kinds.iter().for_each(|_| drop(peer.message()));
                // Neither responses nor cancellations of what is unknown leave anything behind.
                for told in [
                    r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
                    r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"unknown"}}"#,
                ] {
                    peer.send(told.as_bytes());
                    if way.has_status() {
                        while peer.next().is_some() {}
                    }
                }
            }
            peer.resident().unwrap_or_else(|| site.resident())
        };
        let before = repeat(&mut peer, 300);
        let after = repeat(&mut peer, 1200);
        assert!(after < before + 1024, "{way:?}: {before} KiB became {after} KiB");
        peer.hears_nothing("each was answered once");
    }
}
