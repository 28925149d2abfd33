//! Fetching what strangers name: where it leads, how much of it, and for how long.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use hyper::{Request, Response};
use refmcp_auth::fetch::{Fetch, FetchError};
use refmcp_client::http::{AddressScope, Fetcher, HttpSettings};
use refmcp_testkit::paused::PausedTime;
use tokio::time::Instant;

use crate::raw_server::Server;

type Fetched = Result<Response<Bytes>, FetchError>;

async fn get(fetcher: &Fetcher, url: &str) -> Fetched {
    fetcher.fetch(Request::get(url).body(Bytes::new()).unwrap()).await
}

/// Names that mean one list of addresses after the other, the last for ever; and how often they were looked up.
fn resolving(answers: Vec<Vec<SocketAddr>>) -> (HttpSettings, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = asked.clone();
    let mut settings = HttpSettings::default();
    settings.resolver = Some(Arc::new(move |_, _| {
        let time = counted.fetch_add(1, Ordering::SeqCst);
        Ok(answers[time.min(answers.len() - 1)].clone())
    }));
    (settings, asked)
}

fn port(server: &Server) -> u16 {
    server.origin().rsplit(':').next().unwrap().parse().unwrap()
}

fn at(ip: &str, port: u16) -> SocketAddr {
    SocketAddr::new(ip.parse::<IpAddr>().unwrap(), port)
}

fn is_forbidden(fetched: &Fetched) -> bool {
    matches!(fetched, Err(FetchError::Forbidden(_)))
}

/// What no stranger may send us to, whatever is near.
const NOWHERE: &[&str] = &[
    "169.254.169.254",
    "fe80::1",
    "64:ff9b::7f00:1",
    "64:ff9b::a9fe:a9fe",
    "2002:7f00:1::1",
    "2001::7f00:1",
    "::ffff:127.0.0.1",
    "::ffff:169.254.169.254",
    "::ffff:8.8.8.8",
    "::127.0.0.1",
    "0.0.0.0",
    "0.1.2.3",
    "::",
    "224.0.0.1",
    "ff02::1",
    "255.255.255.255",
    "192.0.2.1",
    "2001:db8::1",
    "fec0::1",
];

/// Addresses that only local parties may name.
const NEAR: &[&str] = &[
    "127.0.0.1",
    "127.1.2.3",
    "::1",
    "10.1.2.3",
    "172.16.0.1",
    "192.168.1.1",
    "100.64.0.1",
    "fc00::1",
    "fd00::1",
];

#[tokio::test]
async fn names_do_not_lead_inside() {
    for ip in NOWHERE.iter().chain(NEAR) {
        let (settings, asked) = resolving(vec![vec![at(ip, 443)]]);
        let fetched =
            get(&Fetcher::guarded(AddressScope::Public).settings(settings), "https://innocent.example/doc")
                .await;
        assert!(is_forbidden(&fetched), "{ip}: {fetched:?}");
        assert_eq!(asked.load(Ordering::SeqCst), 1);
    }
    for ip in NEAR.iter().take(3) {
        let (settings, _) = resolving(vec![vec![at(ip, 443)]]);
        let fetcher = Fetcher::guarded(AddressScope::Private).settings(settings);
        let fetched = get(&fetcher, "https://innocent.example/doc").await;
        assert!(is_forbidden(&fetched), "from the next machine, {ip}: {fetched:?}");
    }
    for ip in NOWHERE {
        let (settings, _) = resolving(vec![vec![at(ip, 443)]]);
        let fetched =
            get(&Fetcher::guarded(AddressScope::Loopback).settings(settings), "https://innocent.example/doc")
                .await;
        assert!(is_forbidden(&fetched), "near, {ip}: {fetched:?}");
    }
}

#[tokio::test]
async fn numbers_do_not_lead_inside_however_they_are_written() {
    let hosts = [
        "127.0.0.1",
        "2130706433",
        "0x7f000001",
        "017700000001",
        "127.1",
        "0177.0.0.1",
        "0x7f.1",
        "0",
        "0.0.0.0",
        "[::1]",
        "[::]",
        "[::ffff:7f00:1]",
        "[::ffff:127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "2852039166",
        "0xa9fea9fe",
        "localhost",
        "LOCALHOST",
        "127.0.0.1.",
    ];
    for host in hosts {
        for scheme in ["https", "http"] {
            let fetched =
                get(&Fetcher::guarded(AddressScope::Public), &format!("{scheme}://{host}:9/doc")).await;
            assert!(is_forbidden(&fetched), "{scheme} {host}: {fetched:?}");
        }
    }
}

#[tokio::test]
async fn the_address_that_was_looked_at_is_the_one_that_is_connected_to() {
    let server = Server::start().await;
    let here = at("127.0.0.1", port(&server));
    let (settings, asked) = resolving(vec![vec![here], vec![at("169.254.169.254", 80)]]);
    let fetcher = Fetcher::guarded(AddressScope::Loopback).settings(settings);
    let (fetched, ()) = tokio::join!(get(&fetcher, "http://flips.localhost/doc"), async {
        let (mut peer, seen) = server.request().await;
        assert_eq!((seen.path.as_str(), seen.header("host")), ("/doc", Some("flips.localhost")));
        peer.json("{}").await;
    });
    assert_eq!(fetched.unwrap().body(), "{}");
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    let (settings, asked) = resolving(vec![vec![at("10.0.0.1", 80)], vec![here]]);
    let fetched =
        get(&Fetcher::guarded(AddressScope::Loopback).settings(settings), "http://flips.localhost/doc").await;
    assert!(is_forbidden(&fetched), "without TLS only this machine is asked: {fetched:?}");
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn of_several_addresses_only_good_ones_are_connected_to() {
    let (good, bad) = (Server::start().await, Server::start().await);
    // The same machine by an address that is never fine, so that a connection there would be seen.
    let mixed = vec![at("::ffff:127.0.0.1", port(&bad)), at("127.0.0.1", port(&good)), at("10.0.0.1", 80)];
    let (settings, _) = resolving(vec![mixed]);
    let fetcher = Fetcher::guarded(AddressScope::Loopback).settings(settings);
    let (fetched, ()) = tokio::join!(get(&fetcher, "http://mixed.localhost/"), async {
        let (mut peer, _) = good.request().await;
        peer.json("1").await;
    });
    assert_eq!(fetched.unwrap().body(), "1");
    assert!(bad.is_left_alone(Duration::from_millis(20)).await);
}

#[tokio::test]
async fn without_tls_only_this_machine_is_asked() {
    for url in
        ["http://example.com/x", "http://10.0.0.1/x", "http://localhost.example/x", "ftp://localhost/x"]
    {
        let fetched = get(&Fetcher::guarded(AddressScope::Loopback), url).await;
        assert!(is_forbidden(&fetched), "{url}: {fetched:?}");
    }
    let fetched =
        get(&Fetcher::guarded(AddressScope::Loopback), "http://me:hush@localhost/x?token=hush").await;
    assert!(is_forbidden(&fetched) && !format!("{fetched:?}").contains("hush"), "{fetched:?}");
}

/// What is fetched from a server that writes this for ever.
async fn fetch_from(fetcher: Fetcher, head: &str, for_ever: &[u8]) -> Fetched {
    let server = Server::start().await;
    let url = format!("{}/doc?secret=hush", server.origin());
    let (fetched, ()) = tokio::join!(get(&fetcher, &url), async {
        let (mut peer, _) = server.request().await;
        peer.write(head).await;
        if for_ever.is_empty() {
            peer.gone().await;
        } else {
            peer.write_for_ever(for_ever).await;
        }
    });
    assert!(!format!("{fetched:?}").contains("hush"), "{fetched:?}");
    fetched
}

#[tokio::test]
async fn long_answers_are_cut_off() {
    let fetcher = || Fetcher::guarded(AddressScope::Loopback).at_most(1000);
    let announced = "HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\n\r\n";
    assert_eq!(
        fetch_from(fetcher(), announced, &[b'x'; 4096]).await.unwrap_err(),
        FetchError::TooLarge(1000)
    );
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let chunk = b"4\r\nabcd\r\n".repeat(100);
    assert_eq!(fetch_from(fetcher(), chunked, &chunk).await.unwrap_err(), FetchError::TooLarge(1000));
    let to_the_end = "HTTP/1.1 200 OK\r\n\r\n";
    assert_eq!(
        fetch_from(fetcher(), to_the_end, &[b'x'; 4096]).await.unwrap_err(),
        FetchError::TooLarge(1000)
    );
    let headers = fetch_from(fetcher(), "HTTP/1.1 200 OK\r\nX: ", &[b'x'; 4096]).await;
    assert!(matches!(headers, Err(FetchError::Broken(_))), "{headers:?}");
}

#[tokio::test]
async fn slow_answers_are_not_waited_for() {
    let within = Duration::from_millis(150);
    for head in ["", "HTTP/1.1 200 OK\r\nX-Slow: ", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc"] {
        let (time, started) = (PausedTime::start(), Instant::now());
        let fetcher = Fetcher::guarded(AddressScope::Loopback).within(within);
        // Timers are as precise as a millisecond.
        let passing = time.advance(within + Duration::from_millis(1));
        let (fetched, ()) = tokio::join!(fetch_from(fetcher, head, b""), passing);
        assert_eq!(fetched.unwrap_err(), FetchError::TimedOut, "{head}");
        assert!(started.elapsed() < within * 2, "{head}");
    }
    // Bytes that keep coming do not make the time longer.
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let patient = Fetcher::guarded(AddressScope::Loopback).within(within).at_most(usize::MAX);
    assert_eq!(fetch_from(patient, head, b"1\r\nx\r\n").await.unwrap_err(), FetchError::TimedOut);
}

#[tokio::test]
async fn what_is_no_answer_is_said_to_be_none() {
    for nonsense in ["SSH-2.0-OpenSSH_9.6\r\n\r\n", "HTTP/1.1 2000 X\r\n\r\n"] {
        let fetched = fetch_from(Fetcher::guarded(AddressScope::Loopback), nonsense, b"").await;
        assert!(matches!(fetched, Err(FetchError::Broken(_))), "{nonsense:?}: {fetched:?}");
    }
    let server = Server::start().await;
    let url = server.url();
    drop(server);
    let fetched = get(&Fetcher::guarded(AddressScope::Loopback), &url).await;
    assert!(matches!(fetched, Err(FetchError::Unreachable(_))), "{fetched:?}");
}

#[tokio::test]
async fn redirections_come_back_as_they_are() {
    let (server, elsewhere) = (Server::start().await, Server::start().await);
    for status in [301, 302, 303, 307, 308] {
        let (url, to) = (server.url(), elsewhere.url());
        let fetcher = Fetcher::guarded(AddressScope::Loopback);
        let (fetched, ()) = tokio::join!(get(&fetcher, &url), async {
            let (mut peer, seen) = server.request().await;
            for own in ["authorization", "cookie", "mcp-session-id", "mcp-protocol-version", "dpop"] {
                assert_eq!(seen.header(own), None);
            }
            peer.respond(status, &format!("Location: {to}\r\n"), "moved").await;
        });
        let fetched = fetched.unwrap();
        assert_eq!(
            (fetched.status().as_u16(), fetched.headers()["location"].to_str().unwrap()),
            (status, &*to)
        );
    }
    assert!(elsewhere.is_left_alone(Duration::from_millis(20)).await);
}

#[tokio::test]
async fn a_request_arrives_as_it_was_made() {
    let server = Server::start().await;
    let request = Request::post(format!("{}/token?a=1", server.origin()))
        .header("content-type", "application/x-www-form-urlencoded")
        .header("authorization", "Basic x")
        .body(Bytes::from_static(b"grant_type=x"))
        .unwrap();
    let fetcher = Fetcher::guarded(AddressScope::Loopback);
    let (fetched, ()) = tokio::join!(fetcher.fetch(request), async {
        let (mut peer, seen) = server.request().await;
        assert_eq!((seen.method.as_str(), seen.path.as_str()), ("POST", "/token?a=1"));
        assert_eq!((seen.body.as_str(), seen.header("authorization")), ("grant_type=x", Some("Basic x")));
        peer.respond(400, "Content-Type: application/json\r\nDPoP-Nonce: n\r\n", "{}").await;
    });
    let fetched = fetched.unwrap();
    assert_eq!((fetched.status().as_u16(), &fetched.headers()["dpop-nonce"]), (400, &"n".parse().unwrap()));
}
