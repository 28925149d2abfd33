//! Trusted proxies: the addresses and networks whose forwarding headers are believed.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;

/// A proxy, or a network of them, whose word about its clients is taken: `192.0.2.1`, `10.0.0.0/8`, `fd00::/8`, or `unix`
/// for connections over a Unix socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrustedProxy(Kind);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Network(IpNet),
    Unix,
}

/// A text that names no proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected an address, a network such as 10.0.0.0/8, or unix")]
pub struct TrustedProxyError;

impl TrustedProxy {
    /// Connections over a Unix socket.
    pub const UNIX: Self = Self(Kind::Unix);

    /// Whether it is every address of its version, so that every client is believed.
    pub fn is_every_address(&self) -> bool {
        matches!(self.0, Kind::Network(network) if network.prefix_len() == 0)
    }

    pub(super) fn contains(&self, other: IpAddr) -> bool {
        matches!(self.0, Kind::Network(network) if network.contains(&other))
    }
}

impl FromStr for TrustedProxy {
    type Err = TrustedProxyError;

    fn from_str(text: &str) -> Result<Self, TrustedProxyError> {
        if text == "unix" {
            return Ok(Self::UNIX);
        }
        let network = match text.parse::<IpAddr>() {
            Ok(address) => IpNet::from(address),
            Err(_) => text.parse().map_err(|_| TrustedProxyError)?,
        };
        // An IPv4 address that is mapped into IPv6 is an IPv4 address.
        let network = match (network, network.addr().to_canonical(), network.prefix_len()) {
            (IpNet::V6(_), IpAddr::V4(mapped), bits @ 96..) => IpNet::new(mapped.into(), bits - 96),
            _ => Ok(network),
        };
        network.map(|network| Self(Kind::Network(network))).map_err(|_| TrustedProxyError)
    }
}

impl fmt::Display for TrustedProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Kind::Network(network) => network.fmt(f),
            Kind::Unix => f.write_str("unix"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxy(text: &str) -> TrustedProxy {
        text.parse().unwrap()
    }

    #[test]
    fn networks_contain_their_addresses() {
        for (network, inside, outside) in [
            ("192.0.2.1", "192.0.2.1", "192.0.2.2"),
            ("10.0.0.0/8", "10.255.0.1", "11.0.0.1"),
            ("10.1.2.3/8", "10.255.0.1", "::ffff:b00:1"),
            ("::1", "::1", "127.0.0.1"),
            ("fd00::/8", "fdff::1", "fe00::1"),
            ("::ffff:10.0.0.0/104", "10.9.9.9", "11.0.0.1"),
        ] {
            let proxy = proxy(network);
            let has = |text: &str| proxy.contains(text.parse::<IpAddr>().unwrap().to_canonical());
            assert!(has(inside) && !has(outside), "{network}");
        }
        assert!(proxy("0.0.0.0/0").contains("203.0.113.1".parse().unwrap()));
        assert!(!proxy("0.0.0.0/0").contains("::1".parse().unwrap()));
        assert!(proxy("::/0").contains("2001:db8::1".parse().unwrap()));
        for bad in [
            "",
            "10.0.0.0/33",
            "::1/129",
            "10.0.0.0/",
            "10.0.0.0/-1",
            "10.0.0.0/+8",
            "localhost",
            "/8",
            "Unix",
        ] {
            assert_eq!(bad.parse::<TrustedProxy>(), Err(TrustedProxyError), "{bad}");
        }
    }
}
