//! A server that wants authorization: how it asks for it is judged, and nothing else is.

use refmcp_check::{CheckReport, Checker, Options, Outcome};
use refmcp_proto::revision::Revision;

use crate::altered::{Change, Reply};

async fn check(change: Change) -> CheckReport {
    let mut options = Options::default();
    options.revisions = vec![Revision::V2025_06_18];
    Checker::new(change.http().await, options).run(|_| {}).await
}

fn refusal(status: u16, challenge: &str) -> Option<Reply> {
    let headers = vec![("www-authenticate".to_owned(), challenge.to_owned())];
    Some(Reply { headers, ..Reply::new(status, &[]) })
}

fn outcomes(report: &CheckReport) -> Vec<(&str, bool)> {
    let judged = report.results.iter().filter(|it| matches!(it.outcome, Outcome::Kept | Outcome::Broken(_)));
    judged.map(|it| (it.rule.id, it.outcome == Outcome::Kept)).collect()
}

#[tokio::test]
async fn how_a_server_asks_for_a_token_is_judged() {
    let named = Change::instead(|_| {
        refusal(401, "Bearer resource_metadata=\"http://127.0.0.1:1/.well-known/oauth-protected-resource\"")
    });
    let report = check(named).await;
    assert_eq!(outcomes(&report), [("AUTH-02", true), ("AUTH-04", true)], "{report:#?}");
    let unnamed = check(Change::instead(|_| refusal(401, "Bearer"))).await;
    assert_eq!(outcomes(&unnamed), [("AUTH-02", true), ("AUTH-04", false)], "{unnamed:#?}");
    let violation = unnamed.broken().next().unwrap().violation().unwrap();
    assert!(violation.exchange.answer.contains("401"), "{violation:#?}");
    let wrong = check(Change::instead(|_| refusal(403, "Bearer error=\"invalid_token\""))).await;
    assert_eq!(outcomes(&wrong), [("AUTH-02", false)], "{wrong:#?}");
}

#[tokio::test]
async fn the_metadata_is_read_without_a_token() {
    let change = Change::instead(|asked| match &*asked.http {
        "GET" => Some(Reply::new(200, &[serde_json::json!({ "resource": "x" })])),
        _ => refusal(401, "Bearer resource_metadata=\"/.well-known/oauth-protected-resource/mcp\""),
    });
    let report = check(change).await;
    let found = report.broken().find(|it| it.rule.id == "AUTH-03").unwrap();
    assert!(found.violation().unwrap().exchange.request.starts_with("GET /.well-known/"), "{found:#?}");
}

#[tokio::test]
async fn a_server_that_was_not_let_into_is_not_verified() {
    let report =
        check(Change::instead(|_| refusal(401, "Bearer resource_metadata=\"http://127.0.0.1:1/\""))).await;
    assert!(report.wants_authorization && !report.is_verified(), "{report:#?}");
    assert_eq!(report.report(None).conclusion, refmcp_audit::report::Conclusion::NothingJudged);
}
