//! Every handler that asks, forced to run again at each of its questions: what a client sees in the end must not depend
//! on how its answers came.

use refmcp_reference::{Options, server_with};
use refmcp_server::{Revision, Server};
use refmcp_testkit::client::accept_all;
use refmcp_testkit::replay::{ReplayRun, replay_call};
use serde_json::{Value, json};

fn speaking(revisions: &[Revision]) -> Server {
    let revisions = revisions.to_vec();
    server_with(Options::default(), |builder| builder.revisions(revisions)).unwrap()
}

async fn call(server: &Server, tool: &str, arguments: Value) -> Vec<ReplayRun> {
    let params = json!({ "name": tool, "arguments": arguments });
    let seen = replay_call(server, "tools/call", params, accept_all).await;
    seen.unwrap_or_else(|difference| panic!("{tool}: {difference}"))
}

/// How many questions the newest revision was asked.
fn asked(seen: &[ReplayRun]) -> usize {
    let newest = seen.iter().max_by_key(|run| run.revision);
    newest.map_or(0, |run| run.questions.len())
}

#[tokio::test(start_paused = true)]
async fn the_reference_tools() {
    let server = speaking(&Revision::ALL);
    for (tool, arguments) in [
        ("ask_user", json!({ "form": "choice" })),
        ("ask_user", json!({ "form": "confirm" })),
        ("ask_user", json!({ "form": "url" })),
        ("ask_model", json!({ "prompt": "Name a city." })),
    ] {
        assert!(asked(&call(&server, tool, arguments).await) >= 1, "{tool} asked nothing");
    }
}

#[tokio::test(start_paused = true)]
async fn the_roots() {
    // Only a session can tell how often its client's roots have changed.
    let (stateless, sessions) = Revision::ALL.split_last().unwrap();
    for server in [speaking(sessions), speaking(&[*stateless])] {
        assert_eq!(asked(&call(&server, "list_roots", json!({})).await), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn the_form_with_everything() {
    // The older forms have no multiple choice, so the two kinds of forms are compared among themselves.
    let plain = speaking(&[Revision::V2025_06_18]);
    let full = speaking(&[Revision::V2025_11_25, Revision::V2026_07_28]);
    for server in [plain, full] {
        assert_eq!(asked(&call(&server, "ask_user", json!({ "form": "all" })).await), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn the_fixtures() {
    let server = speaking(&[Revision::V2025_11_25, Revision::V2026_07_28]);
    for (tool, arguments, questions) in [
        ("test_sampling", json!({ "prompt": "Name a city." }), 1),
        ("test_elicitation", json!({ "message": "Who are you?" }), 1),
        ("test_elicitation_sep1034_defaults", json!({}), 1),
        ("test_elicitation_sep1330_enums", json!({}), 1),
        ("test_input_required_result_elicitation", json!({}), 1),
        ("test_input_required_result_sampling", json!({}), 1),
        ("test_input_required_result_list_roots", json!({}), 1),
        ("test_input_required_result_request_state", json!({}), 1),
        ("test_input_required_result_multiple_inputs", json!({}), 3),
        ("test_input_required_result_multi_round", json!({}), 2),
        ("test_input_required_result_tampered_state", json!({}), 1),
    ] {
        assert_eq!(asked(&call(&server, tool, arguments).await), questions, "{tool}");
    }
    let prompt = json!({ "name": "test_input_required_result_prompt" });
    let seen = replay_call(&server, "prompts/get", prompt, accept_all).await.unwrap();
    assert_eq!(asked(&seen), 1);
}
