//! Our own server is clean, over every transport and in every revision.

use std::sync::Arc;

use refmcp_check::{CheckReport, Outcome, Target};
use refmcp_client::http::HttpSettings;
use refmcp_client::websocket::WebSocket;
use refmcp_proto::revision::Revision;

use crate::altered::{Change, Reply};
use crate::servers::{InMemory, check, http, listen, reference};

/// What is not clean, one line each.
fn unclean(report: &CheckReport) -> String {
    let wrong = |outcome: &Outcome| matches!(outcome, Outcome::Broken(_) | Outcome::NotVerified(_));
    // The text of `get_weather` is for people: the founding example has it so.
    let results =
        report.results.iter().filter(|result| wrong(&result.outcome) && result.rule.id != "TOOL-07");
    results
        .map(|it| {
            let exchange =
                it.violation().map(|it| format!("\n{}\n{}", it.exchange.request, it.exchange.answer));
            format!(
                "{} {} {:?}: {}{}\n",
                it.rule,
                it.probe,
                it.revision,
                it.outcome,
                exchange.unwrap_or_default()
            )
        })
        .collect()
}

fn assert_clean(report: &CheckReport, revisions: usize) {
    assert_eq!(unclean(report), "");
    assert_eq!(report.revisions.iter().count(), revisions, "{:?}", report.unsupported);
    assert!(report.is_verified());
    assert_eq!(report.report(None).broken().filter(|(_, it)| it.breaks_must()).count(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_a_pipe() {
    let report = check(Target::pipe(Arc::new(InMemory(reference())))).await;
    assert_clean(&report, Revision::ALL.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_streamable_http() {
    let report = check(http(listen(reference()).await)).await;
    assert_clean(&report, Revision::ALL.len() - 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_http_sse() {
    let address = listen(reference()).await;
    let target = Target::http_sse(&format!("http://{address}/sse"), HttpSettings::default(), Vec::new());
    let report = check(target.unwrap()).await;
    assert_clean(&report, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_websocket() {
    let address = listen(reference()).await;
    let connector = WebSocket::new(&format!("ws://{address}/mcp/ws")).unwrap();
    let report = check(Target::pipe(Arc::new(connector))).await;
    assert_clean(&report, Revision::ALL.len());
}

#[tokio::test]
async fn an_address_that_leads_elsewhere_is_named() {
    let moved = Change::instead(|_| {
        let headers = vec![("location".to_owned(), "http://127.0.0.1:1/mcp/".to_owned())];
        Some(Reply { headers, ..Reply::new(307, &[]) })
    });
    let report = check(moved.http().await).await;
    assert!(!report.is_verified());
    let reasons: Vec<&str> = report.unsupported.iter().map(|(_, why)| why.as_str()).collect();
    assert!(!reasons.is_empty());
    for reason in reasons {
        let told = "is answered with status 307, which leads to http://127.0.0.1:1/mcp/: check that address";
        assert!(reason.ends_with(told), "{reason}");
    }
}
