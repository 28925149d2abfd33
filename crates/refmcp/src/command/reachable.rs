//! By which address clients elsewhere reach a listener, and warnings when all of them may.

use std::net::{IpAddr, SocketAddr, UdpSocket};

use anyhow::{Context, Result};
use refmcp_http::{Listener, Tls, TrustedProxy};
use tokio::net::TcpListener;

/// The host and port to show for an address that is listened on. One that stands for all addresses of a machine is shown
/// as a name that was given for clients, or else as the address by which this machine reaches others.
pub(crate) fn authority(
    address: SocketAddr,
    allowed: &[String],
    outgoing: impl FnOnce(SocketAddr) -> Option<IpAddr>,
) -> String {
    if !address.ip().is_unspecified() {
        return address.to_string();
    }
    let port = address.port();
    if let Some(name) = allowed.first() {
        // A name may have been allowed with its port.
        let has_port = name.rsplit_once(':').is_some_and(|(host, port)| {
            port.parse::<u16>().is_ok() && (!host.contains(':') || host.ends_with(']'))
        });
        return if has_port { name.clone() } else { format!("{name}:{port}") };
    }
    // A machine that reaches no other is reached by none.
    let loopback =
        if address.is_ipv4() { [127, 0, 0, 1].into() } else { IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1]) };
    SocketAddr::new(outgoing(address).unwrap_or(loopback), port).to_string()
}

/// The address by which this machine reaches others. Nothing is sent: the system only looks up the way to an address that
/// is kept for documentation, for which it takes its usual one.
pub(crate) fn outgoing_address(listening: SocketAddr) -> Option<IpAddr> {
    let ways: [(IpAddr, IpAddr); 2] = [
        (IpAddr::from([0, 0, 0, 0]), IpAddr::from([192, 0, 2, 1])),
        (IpAddr::from([0; 8]), IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1])),
    ];
    // A socket on all IPv6 addresses mostly listens on all IPv4 addresses too.
    let ways = ways.into_iter().filter(|(from, _)| listening.is_ipv6() || from.is_ipv4());
    ways.filter_map(|(from, to)| {
        let socket = UdpSocket::bind((from, 0)).ok()?;
        socket.connect((to, 9)).ok()?;
        Some(socket.local_addr().ok()?.ip())
    })
    .find(|address| !address.is_loopback() && !address.is_unspecified())
}

/// Listens on a port, with TLS or without; gives the address as it really is.
pub(crate) async fn listen(host: &str, port: u16, tls: Option<Tls>) -> Result<(Listener, SocketAddr)> {
    let (listener, address) = bind(host, port).await?;
    let listener = match tls {
        Some(tls) => Listener::tls(listener, tls),
        None => listener.into(),
    };
    Ok((listener, address))
}

/// Binds a port; gives the address as it really is.
pub(crate) async fn bind(host: &str, port: u16) -> Result<(TcpListener, SocketAddr)> {
    let at = format!("{host}:{port}");
    let listener = TcpListener::bind(&at).await.with_context(|| format!("cannot listen on {at}"))?;
    let address = listener.local_addr().context("no address")?;
    Ok((listener, address))
}

/// The warning for a server whose clients need no token.
pub(crate) const OPEN_SERVER: &str = "the server listens beyond this machine without --auth: every client that reaches it can \
    call every tool; --auth ISSUER asks for tokens, --host 127.0.0.1 keeps it to this machine";

/// The warning for health and metrics, which need no token at an address of their own.
pub(crate) const OPEN_OPS: &str = "--ops-addr listens beyond this machine: every client that reaches it can read health and \
    metrics without a token; give an address that only operators reach, or --ops-addr 127.0.0.1:PORT";

/// The warning for a bridge, whose clients act with its rights.
pub(crate) const OPEN_BRIDGE: &str = "the bridge listens beyond this machine: every client that reaches it can call every tool \
    of the server behind it, with the headers and tokens of the bridge; --from with 127.0.0.1 keeps it to this machine";

/// The warning for a relay, which passes on to a server that may believe that all its clients are on this machine.
pub(crate) const OPEN_RELAY: &str = "the relay listens beyond this machine: every client that reaches it reaches the server \
    behind it; --host 127.0.0.1 keeps it to this machine";

/// Warns of a listener that clients on other machines reach.
pub(crate) fn warn_if_open(address: SocketAddr, what: &str) {
    if !address.ip().is_loopback() {
        tracing::warn!(%address, "{what}");
    }
}

/// Warns of trusted proxies that are every client.
pub(crate) fn warn_of_proxies(proxies: &[TrustedProxy]) {
    for proxy in proxies.iter().filter(|proxy| proxy.is_every_address()) {
        tracing::warn!(
            "--trusted-proxy {proxy} believes the forwarding headers of every client: each can give itself any address, and so \
             pass limits of its rate and hide from the log; name the addresses of your proxies alone"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_shown_an_address_that_they_can_use() {
        let shown = |address: &str, allowed: &[&str], outgoing: Option<&str>| {
            let allowed: Vec<String> = allowed.iter().map(ToString::to_string).collect();
            let outgoing = outgoing.map(|address| address.parse().unwrap());
            authority(address.parse().unwrap(), &allowed, |_| outgoing)
        };
        let way = Some("192.0.2.7");
        assert_eq!(shown("127.0.0.1:3000", &[], way), "127.0.0.1:3000");
        assert_eq!(shown("127.0.0.1:3000", &["mcp.example"], way), "127.0.0.1:3000");
        assert_eq!(shown("192.0.2.1:3000", &["mcp.example"], way), "192.0.2.1:3000");
        assert_eq!(shown("0.0.0.0:3000", &[], way), "192.0.2.7:3000");
        assert_eq!(shown("[::]:3000", &[], Some("2001:db8::7")), "[2001:db8::7]:3000");
        assert_eq!(shown("0.0.0.0:3000", &["mcp.example", "other.example"], way), "mcp.example:3000");
        assert_eq!(shown("0.0.0.0:3000", &["mcp.example:8443"], way), "mcp.example:8443");
        assert_eq!(shown("[::]:3000", &["[2001:db8::1]"], way), "[2001:db8::1]:3000");
        assert_eq!(shown("0.0.0.0:3000", &[], None), "127.0.0.1:3000");
        assert_eq!(shown("[::]:3000", &[], None), "[::1]:3000");
    }
}
