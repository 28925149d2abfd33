//! Messages: ids, notifications, batches.

use refmcp_proto::revision::Revision;
use serde_json::json;

use super::{Example, SESSIONS, STATELESS, error, over_http, pipe, succeed};
use crate::altered::{Asked, Change, Reply};

pub(super) fn examples() -> Vec<Example> {
    vec![
        pipe(
            "ids",
            &["RPC-05", "T-14"],
            SESSIONS,
            Change::after(|asked, reply| {
                if asked.id().is_string() && asked.id() == "1" {
                    reply.edit(|message| message["id"] = json!(1));
                }
            }),
        ),
        pipe(
            "ids",
            &["RPC-05"],
            STATELESS,
            Change::after(|asked, reply| {
                if asked.id() == 0 {
                    reply.edit(|message| message["id"] = json!("another"));
                }
            }),
        ),
        pipe(
            "requests-at-once",
            &["RPC-05"],
            SESSIONS,
            Change::after(|asked, reply| {
                if asked.method() == "ping" {
                    reply.texts.extend(reply.texts.clone());
                }
            }),
        ),
        // An error is a response like any other.
        Example {
            beside: Some(Change::instead(refused_list)),
            ..pipe(
                "requests-at-once",
                &["RPC-05"],
                SESSIONS,
                Change {
                    instead: refused_list,
                    after: |asked, reply| {
                        if asked.method() == "ping" {
                            reply.edit(|message| message["result"] = json!({ "tools": [] }));
                        }
                    },
                },
            )
        },
        pipe(
            "declared-lists",
            &["RPC-22"],
            SESSIONS,
            Change::instead(|asked| (asked.method() == "prompts/list").then(|| Reply::new(200, &[]))),
        ),
        pipe("unknown-method", &["RPC-01"], SESSIONS, succeeds!("refmcp/no-such-method", |_| true)),
        pipe(
            "unknown-method",
            &["RPC-06"],
            SESSIONS,
            Change::after(|asked, reply| {
                if asked.method() == "refmcp/no-such-method" {
                    reply.edit(|message| {
                        message["error"].as_object_mut().unwrap().remove("message");
                    });
                }
            }),
        ),
        over_http(
            "unknown-method",
            &["MHTTP-11"],
            STATELESS,
            Change::after(|asked, reply| {
                if asked.method() == "refmcp/no-such-method" {
                    reply.status = 200;
                }
            }),
        ),
        pipe(
            "unknown-notification",
            &["RPC-07"],
            SESSIONS,
            Change::instead(|asked| {
                let unknown = asked.method() == "notifications/refmcp/unknown";
                unknown.then(|| Reply::new(200, &[json!({ "jsonrpc": "2.0", "id": null, "error": {} })]))
            }),
        ),
        over_http(
            "unknown-notification",
            &["HTTP-05"],
            SESSIONS,
            Change::after(|asked, reply| {
                if asked.method() == "notifications/refmcp/unknown" {
                    reply.status = 200;
                }
            }),
        ),
        over_http(
            "unknown-notification",
            &["MHTTP-03"],
            STATELESS,
            Change::instead(|asked| {
                (asked.method() == "notifications/refmcp/unknown").then(|| Reply::new(200, &[]))
            }),
        ),
        pipe(
            "no-json",
            &["RPC-01"],
            STATELESS,
            Change::instead(|asked| {
                asked.message.is_null().then(|| Reply { ends: true, ..Reply::new(200, &[]) })
            }),
        ),
        pipe(
            "no-json",
            &["RPC-05"],
            STATELESS,
            Change::instead(|asked| {
                asked
                    .message
                    .is_null()
                    .then(|| Reply::new(200, &[json!({ "jsonrpc": "2.0", "id": 1, "error": {} })]))
            }),
        ),
        pipe(
            "batch",
            &["RPC-08", "STDIO-14"],
            Revision::V2025_03_26,
            Change::instead(|asked| {
                asked.message.is_array().then(|| Reply::new(400, &[json!({ "jsonrpc": "2.0", "error": {} })]))
            }),
        ),
        pipe(
            "batch",
            &["RPC-10"],
            SESSIONS,
            Change::instead(|asked| {
                let one = asked.message.get(0)?;
                let answer = json!([{ "jsonrpc": "2.0", "id": one["id"], "result": {} }]);
                Some(Reply::new(200, &[answer]))
            }),
        ),
    ]
}

fn refused_list(asked: &Asked) -> Option<Reply> {
    (asked.method() == "tools/list").then(|| Reply::new(200, &[error(asked, -32603)]))
}
