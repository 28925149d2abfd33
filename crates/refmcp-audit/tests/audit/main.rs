//! The auditor on scripted conversations: of each rule that it judges, one that keeps it and one that breaks exactly this rule.

#![allow(clippy::needless_pass_by_value, reason = "messages are passed as they are written, by json!")]

mod apps;
mod authorization;
mod bounded;
mod buggy_client;
mod client_features;
mod connections;
mod coverage;
mod exchange;
mod http_events;
mod http_requests;
mod http_sessions;
mod http_sse;
mod input_rounds;
mod lifecycle;
mod lists;
mod messages;
mod mirrored_headers;
mod own_server;
mod patterns;
mod resources;
mod script;
mod shapes;
mod skills;
mod stateless_http;
mod stdio;
mod streamable;
mod subscriptions;
mod tasks;
mod tasks_extension;
mod tools;

use std::collections::BTreeSet;

use refmcp_audit::auditor::audited_rules;
use script::Example;
use serde_json::json;

fn examples() -> Vec<Example> {
    [
        messages::examples(),
        shapes::examples(),
        stdio::examples(),
        http_requests::examples(),
        http_events::examples(),
        http_sessions::examples(),
        stateless_http::examples(),
        mirrored_headers::examples(),
        http_sse::examples(),
        authorization::examples(),
        lifecycle::examples(),
        patterns::examples(),
        input_rounds::examples(),
        subscriptions::examples(),
        tools::examples(),
        resources::examples(),
        lists::examples(),
        client_features::examples(),
        tasks::examples(),
        tasks_extension::examples(),
        skills::examples(),
        apps::examples(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[test]
fn a_party_that_keeps_a_rule_is_not_reported() {
    let wrong = examples().into_iter().filter_map(|it| it.kept.kept(it.rule, it.role).err());
    fail(wrong);
}

#[test]
fn a_party_that_breaks_one_rule_is_reported_for_this_rule_alone() {
    let broken = examples().into_iter().flat_map(|example| {
        example.broken.into_iter().map(move |script| script.broken(example.rule, example.role))
    });
    fail(broken.filter_map(Result::err));
}

fn fail(wrong: impl Iterator<Item = String>) {
    let wrong: Vec<String> = wrong.collect();
    assert!(wrong.is_empty(), "{} examples: {}", wrong.len(), wrong.join("\n"));
}

#[test]
fn every_rule_that_is_judged_has_examples() {
    let judged: BTreeSet<&str> = audited_rules().map(|rule| rule.id).collect();
    let shown: BTreeSet<&str> = examples()
        .iter()
        .filter(|example| !example.broken.is_empty())
        .map(|example| example.rule.id)
        .collect();
    let missing: Vec<_> = judged.difference(&shown).collect();
    assert!(missing.is_empty(), "without an example that breaks it: {missing:?}");
    let unlisted: Vec<_> = shown.difference(&judged).collect();
    assert!(unlisted.is_empty(), "judged by a check that does not list it: {unlisted:?}");
}

#[test]
fn values_of_any_type_are_judged() {
    for example in examples() {
        for script in example.broken.iter().chain([&example.kept]) {
            for depth in 2..6 {
                for value in [json!(null), json!(-7), json!(["x"])] {
                    script.with_values(depth, &value).judge();
                }
            }
        }
    }
}
