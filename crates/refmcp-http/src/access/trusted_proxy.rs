//! Trusted proxies: the addresses and networks whose forwarding headers are believed.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// A proxy, or a network of them, whose word about its clients is taken: `192.0.2.1`, `10.0.0.0/8`, `fd00::/8`, or `unix`
/// for connections over a Unix socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrustedProxy(Kind);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Network { address: IpAddr, bits: u32 },
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
        matches!(self.0, Kind::Network { bits: 0, .. })
    }

    pub(super) fn contains(&self, other: IpAddr) -> bool {
        let Kind::Network { address, bits } = self.0 else { return false };
        let network = |address: IpAddr| match address {
            IpAddr::V4(address) => u128::from(address.to_bits()).checked_shr(32 - bits),
            IpAddr::V6(address) => address.to_bits().checked_shr(128 - bits),
        };
        address.is_ipv4() == other.is_ipv4() && network(address) == network(other)
    }
}

impl FromStr for TrustedProxy {
    type Err = TrustedProxyError;

    fn from_str(text: &str) -> Result<Self, TrustedProxyError> {
        if text == "unix" {
            return Ok(Self::UNIX);
        }
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) if bits.bytes().all(|byte| byte.is_ascii_digit()) => {
                (address, Some(bits.parse::<u32>().map_err(|_| TrustedProxyError)?))
            }
            Some(_) => return Err(TrustedProxyError),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| TrustedProxyError)?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.unwrap_or(most);
        if bits > most {
            return Err(TrustedProxyError);
        }
        // An IPv4 address that is mapped into IPv6 is an IPv4 address.
        let (address, bits) = match address.to_canonical() {
            mapped if address.is_ipv6() && mapped.is_ipv4() && bits >= 96 => (mapped, bits - 96),
            _ => (address, bits),
        };
        Ok(Self(Kind::Network { address, bits }))
    }
}

impl fmt::Display for TrustedProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Kind::Network { address, bits } => write!(f, "{address}/{bits}"),
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
