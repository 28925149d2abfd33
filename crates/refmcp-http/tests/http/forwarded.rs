//! Forwarding headers: those of trusted proxies are believed, and no others.

use std::time::Duration;

use refmcp_http::{Options, Rate, TrustedProxy};
use refmcp_testkit::log::LogBuffer;
use refmcp_testkit::paused::PausedTime;

use crate::support::Site;

fn trusting(proxies: &[&str]) -> Options {
    let trusted_proxies = proxies.iter().map(|proxy| proxy.parse().unwrap()).collect();
    let rate = Some(Rate { per_second: 1, burst: 3 });
    Options { trusted_proxies, rate, hosts: vec!["mcp.example".to_owned()], ..Options::default() }
}

/// How many of so many requests with these headers are served.
async fn served(site: &Site, count: usize, headers: impl Fn(usize) -> Vec<(String, String)>) -> usize {
    let mut served = 0;
    for turn in 0..count {
        let headers = headers(turn);
        let headers: Vec<_> = headers.iter().map(|(name, value)| (&**name, &**value)).collect();
        match site.send("GET", "/healthz", &headers, b"").await.status {
            200 => served += 1,
            429 => {}
            other => panic!("{other}"),
        }
    }
    served
}

fn claim(header: &str, value: String) -> Vec<(String, String)> {
    vec![(header.to_owned(), value)]
}

#[tokio::test]
async fn clients_behind_a_trusted_proxy_have_their_own_rates() {
    let site = Site::open(trusting(&["127.0.0.0/8"])).await;
    let _time = PausedTime::start();
    for (header, before) in [("X-Forwarded-For", ""), ("Forwarded", "for=")] {
        // What stands before the last address is the client's own word.
        let one =
            |turn: usize| claim(header, format!("{before}10.0.0.{turn}, {before}203.0.113.{}", before.len()));
        let served_one = served(&site, 12, one).await;
        assert_eq!(served_one, 3, "{header}");
        let others = |turn: usize| claim(header, format!("{before}198.51.{}.{turn}", before.len()));
        assert_eq!(served(&site, 12, others).await, 12, "{header}: all are different");
    }
    // A proxy that does not say who its client is does not free it of the rate: it may be anyone.
    for silent in [Vec::new(), claim("X-Forwarded-For", ",".to_owned()), claim("Via", "1.1 proxy".to_owned())]
    {
        let count = served(&site, 12, |_| silent.clone()).await;
        assert!(count < 12, "{silent:?}: {count}");
    }
    // Who says that its client is on this machine, or that it does not know, does not free it of the rate.
    for unknown in ["127.0.0.1", "unknown", "nonsense"] {
        let count = served(&site, 12, |_| claim("X-Forwarded-For", unknown.to_owned())).await;
        assert!(count < 12, "{unknown}: {count}");
    }
}

#[tokio::test]
async fn forwarding_headers_of_untrusted_peers_are_ignored() {
    let site = Site::open(Options { rate_on_loopback: true, ..trusting(&["192.0.2.0/24", "unix"]) }).await;
    let time = PausedTime::start();
    let count = served(&site, 12, |turn| claim("X-Forwarded-For", format!("198.51.100.{turn}"))).await;
    assert_eq!(count, 3);
    time.advance(Duration::from_secs(1)).await;
    let evil = [("X-Forwarded-Host", "evil.example"), ("Forwarded", "\"nonsense")];
    assert_eq!(site.send("GET", "/healthz", &evil, b"").await.status, 200);
}

#[tokio::test]
async fn a_forwarded_host_must_be_allowed() {
    let site = Site::open(Options { rate: None, ..trusting(&["127.0.0.1"]) }).await;
    for (headers, status) in [
        (&[("X-Forwarded-Host", "mcp.example")][..], 200),
        (&[("X-Forwarded-Host", "mcp.example:8443")], 200),
        (&[("Forwarded", "host=\"mcp.example\";for=203.0.113.9")], 200),
        (&[("X-Forwarded-Host", "evil.example")], 403),
        (&[("X-Forwarded-Host", "mcp.example@evil.example")], 403),
        (&[("Forwarded", "host=evil.example")], 403),
        // A page can send the one, and not every proxy replaces it: the other counts too.
        (&[("Host", "evil.example"), ("X-Forwarded-Host", "mcp.example")], 403),
        (&[("Forwarded", "for=203.0.113.9"), ("X-Forwarded-For", "203.0.113.8")], 400),
        (&[("Forwarded", "for=\"")], 400),
        (&[("X-Forwarded-For", "\u{e9}")], 400),
    ] {
        let reply = site.send("GET", "/healthz", headers, b"").await;
        assert_eq!(reply.status, status, "{headers:?}");
    }
    assert_eq!(site.metric("refmcp_rejections_total{reason=\"forwarded\"}").await, 3.0);
    site.serves().await;
}

// Everything of this test runs on one thread, the server too, so the log is this test's alone.
#[tokio::test(flavor = "current_thread")]
async fn the_forwarded_client_is_logged() {
    let _second =
        tracing::Dispatch::new(tracing_subscriber::fmt().with_writer(LogBuffer::default()).finish());
    let kept = LogBuffer::default();
    let log = tracing_subscriber::fmt().with_env_filter("refmcp=debug").with_ansi(false);
    let _logging = tracing::subscriber::set_default(log.with_writer(kept.clone()).finish());
    let site = Site::open(trusting(&["127.0.0.1"])).await;
    let refused = site.send("GET", "/healthz", &[("X-Forwarded-Host", "evil.example")], b"").await;
    assert_eq!(refused.text().await, "this forwarded host is not served here; --allow-host NAME serves it\n");
    assert!(kept.text().contains("detail=\"evil.example\""), "{}", kept.text());
    site.send("GET", "/healthz", &[("X-Forwarded-For", "10.9.9.9, 203.0.113.77")], b"").await;
    site.send("GET", "/readyz", &[], b"").await;
    let text = kept.text();
    assert!(text.contains("client=203.0.113.77") && !text.contains("10.9.9.9"), "{text}");
    assert!(text.contains("client=127.0.0.1"), "{text}");
}

#[test]
fn proxies_are_shown_as_networks() {
    for (text, shown) in [("10.1.0.0/16", "10.1.0.0/16"), ("::1", "::1/128"), ("unix", "unix")] {
        assert_eq!(text.parse::<TrustedProxy>().unwrap().to_string(), shown);
    }
}
