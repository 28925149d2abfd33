//! Versions, ping, discovery and `_meta`.

use refmcp_proto::revision::Revision;
use serde_json::json;

use super::{Example, SESSIONS, STATELESS, error, pipe, succeed};
use crate::altered::{Asked, Change, Reply};

pub(super) fn examples() -> Vec<Example> {
    vec![
        pipe(
            "unknown-version",
            &["LIFE-06"],
            SESSIONS,
            Change::after(|asked, reply| {
                if asked.message["params"]["protocolVersion"] == "1900-01-01" {
                    reply.edit(|message| message["result"]["protocolVersion"] = json!("1900-01-01"));
                }
            }),
        ),
        pipe(
            "version-without-sessions",
            &["T-01"],
            SESSIONS,
            Change::after(|asked, reply| {
                let wanted = asked.message["params"]["protocolVersion"].clone();
                if asked.method() == "initialize" && wanted == Revision::LATEST.as_str() {
                    reply.edit(|message| message["result"]["protocolVersion"] = wanted);
                }
            }),
        ),
        pipe(
            "ping",
            &["PING-01"],
            SESSIONS,
            Change::after(|asked, reply| {
                if asked.method() == "ping" {
                    reply.edit(|message| message["result"] = json!({ "pong": true }));
                }
            }),
        ),
        pipe("ping", &["PING-02"], STATELESS, succeeds!("ping", |_| true)),
        pipe(
            "discover",
            &["STATE-09"],
            STATELESS,
            Change::after(|asked, reply| {
                if asked.method() == "server/discover" {
                    reply.edit(|message| message["result"]["capabilities"] = json!([]));
                }
            }),
        ),
        pipe(
            "missing-capabilities",
            &["STATE-05"],
            STATELESS,
            Change::instead(|asked| {
                let meta = asked.message["params"]["_meta"].as_object()?;
                let missing = !meta.contains_key("io.modelcontextprotocol/clientCapabilities");
                missing.then(|| succeed(asked))
            }),
        ),
        // The third request of the probe's connection.
        pipe(
            "earlier-capabilities",
            &["STATE-01"],
            STATELESS,
            Change::instead(|asked| {
                let meta = asked.message["params"]["_meta"].as_object()?;
                let missing = !meta.contains_key("io.modelcontextprotocol/clientCapabilities");
                (missing && asked.id() == 1003).then(|| succeed(asked))
            }),
        ),
        pipe(
            "unsupported-version",
            &["STATE-07"],
            STATELESS,
            Change::after(|_, reply| {
                reply.edit(|message| {
                    if message["error"]["code"] == -32022 {
                        message["error"].as_object_mut().unwrap().remove("data");
                    }
                });
            }),
        ),
        Example {
            beside: Some(Change::after(without_prompts)),
            ..pipe(
                "undeclared-capability",
                &["STATE-16"],
                STATELESS,
                Change {
                    instead: |asked| (asked.method() == "prompts/list").then(|| succeed(asked)),
                    after: without_prompts,
                },
            )
        },
        pipe(
            "unknown-log-level",
            &["LOG-04"],
            STATELESS,
            Change::instead(|asked| {
                let level = &asked.message["params"]["_meta"]["io.modelcontextprotocol/logLevel"];
                (level == "loud").then(|| succeed(asked))
            }),
        ),
        pipe(
            "same-lists",
            &["STATE-12"],
            STATELESS,
            Change::after(|asked, reply| {
                if asked.method() == "tools/list" {
                    let number = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    reply.edit(|message| {
                        message["result"]["tools"][0]["name"] = json!(format!("tool{number}"));
                    });
                }
            }),
        ),
        pipe(
            "same-lists",
            &["TOOL-03"],
            STATELESS,
            Change::after(|asked, reply| {
                if asked.method() == "tools/list" {
                    let number = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    reply.edit(|message| {
                        let tools = message["result"]["tools"].as_array_mut().unwrap();
                        let by = number % tools.len();
                        tools.rotate_left(by);
                    });
                }
            }),
        ),
    ]
}

static COUNT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(1);

fn without_prompts(asked: &Asked, reply: &mut Reply) {
    if asked.method() == "server/discover" {
        reply.edit(|message| {
            message["result"]["capabilities"].as_object_mut().unwrap().remove("prompts");
        });
    }
    if asked.method() == "prompts/list" {
        *reply = Reply::new(404, &[error(asked, -32601)]);
    }
}
