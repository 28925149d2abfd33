//! Which addresses a stranger may make us connect to.
//!
//! A server names addresses that we then ask: of its authorization server, of documents. It must not make us ask what is
//! only reachable from where we are: services of this machine, of the local network, of the cloud that we run in.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use refmcp_auth::uri::is_loopback;
use url::{Host, Url};

/// From where somebody can be reached, the nearest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reach {
    /// From this machine.
    Machine,
    /// From a private network.
    Network,
    /// From everywhere.
    World,
    /// From nowhere that we know of, or from too near: links, groups, addresses that wrap others.
    Nowhere,
}

impl Reach {
    /// From where whoever is at this URL can be reached, without asking what its name means: a name means what its owner
    /// likes. Only numbers and `localhost` tell of themselves, all others may be anywhere.
    pub fn of_url(url: &Url) -> Self {
        match url.host() {
            Some(Host::Ipv4(address)) => Self::of(address.into()),
            Some(Host::Ipv6(address)) => Self::of(address.into()),
            _ if is_loopback(url) => Self::Machine,
            _ => Self::World,
        }
    }

    /// From where an address can be reached.
    pub fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => of_v4(address),
            IpAddr::V6(address) => of_v6(address),
        }
    }
}

fn of_v4(address: Ipv4Addr) -> Reach {
    match address.octets() {
        [127, ..] => Reach::Machine,
        [10, ..] | [192, 168, ..] | [172, 16..=31, ..] | [100, 64..=127, ..] => Reach::Network,
        // This network; links; assignments of the protocol; the relays of 6to4; benchmarks; documentation.
        [0, ..] | [169, 254, ..] | [192, 0, 0, _] | [192, 88, 99, _] | [198, 18..=19, ..] => Reach::Nowhere,
        [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] => Reach::Nowhere,
        // Groups, what is reserved, and broadcasts.
        [224..=255, ..] => Reach::Nowhere,
        _ => Reach::World,
    }
}

fn of_v6(address: Ipv6Addr) -> Reach {
    if address == Ipv6Addr::LOCALHOST {
        return Reach::Machine;
    }
    match address.segments() {
        [0xfc00..=0xfdff, ..] => Reach::Network,
        // Teredo and others of the protocol's own; ORCHID; documentation; 6to4, which wraps any address of IPv4.
        [0x2001, 0..=0x01ff, ..] | [0x2001, 0x0db8, ..] | [0x2002, ..] | [0x3fff, ..] => Reach::Nowhere,
        // All that is given out to the world. Outside of it are the unspecified address, those that map or wrap IPv4
        // (also for NAT64), links, sites, groups, and what is nobody's yet.
        [0x2000..=0x3fff, ..] => Reach::World,
        _ => Reach::Nowhere,
    }
}

/// Where a connection may lead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Guard {
    /// Where whoever names addresses is: they may name what they can reach themselves.
    pub(super) from: Reach,
    /// Whether nothing but this machine is fine.
    pub(super) only_machine: bool,
}

impl Guard {
    fn allows(self, address: IpAddr) -> bool {
        match Reach::of(address) {
            Reach::Machine => self.from == Reach::Machine,
            // Whoever is on this machine is in its networks.
            Reach::Network => self.from <= Reach::Network && !self.only_machine,
            Reach::World => !self.only_machine,
            Reach::Nowhere => false,
        }
    }

    /// Those of a host's addresses that may be connected to; an error when none may.
    pub(super) fn allowed(self, host: &str, addresses: Vec<SocketAddr>) -> Result<Vec<SocketAddr>, String> {
        let first = addresses.first().copied();
        let allowed: Vec<_> = addresses.into_iter().filter(|address| self.allows(address.ip())).collect();
        match first {
            Some(first) if allowed.is_empty() => {
                Err(format!("{host} is at {}, which is not for strangers to name", first.ip()))
            }
            _ => Ok(allowed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_as_near_as_they_are() {
        for (reach, addresses) in [
            (
                Reach::World,
                &["1.1.1.1", "8.8.8.8", "172.32.0.1", "100.128.0.1", "192.167.1.1", "198.20.0.1"][..],
            ),
            (Reach::World, &["2606:4700::1111", "2a00:1450::1", "2001:4860::8888", "2001:200::1"]),
            (Reach::Machine, &["127.0.0.1", "127.255.255.254", "::1"]),
            (Reach::Network, &["10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.0.1", "100.64.0.1"]),
            (Reach::Network, &["100.127.255.255", "fc00::1", "fd12:3456::1"]),
            (
                Reach::Nowhere,
                &["0.0.0.0", "0.1.2.3", "169.254.169.254", "192.0.0.1", "192.0.2.1", "198.18.0.1"],
            ),
            (Reach::Nowhere, &["198.51.100.1", "203.0.113.1", "224.0.0.1", "240.0.0.1", "255.255.255.255"]),
            (
                Reach::Nowhere,
                &["::", "::ffff:8.8.8.8", "::ffff:127.0.0.1", "::ffff:a9fe:a9fe", "::127.0.0.1"],
            ),
            (
                Reach::Nowhere,
                &["64:ff9b::8.8.8.8", "64:ff9b::a00:1", "64:ff9b:1::1", "2002:7f00:1::", "2001::1"],
            ),
            (
                Reach::Nowhere,
                &["fe80::1", "febf::1", "fec0::1", "ff02::1", "2001:db8::1", "3fff::1", "100::1"],
            ),
        ] {
            for address in addresses {
                assert_eq!(Reach::of(address.parse().unwrap()), reach, "{address}");
            }
        }
    }

    #[test]
    fn a_guard_lets_through_what_it_should() {
        let at = |text: &str| SocketAddr::new(text.parse().unwrap(), 1);
        let all = || vec![at("8.8.8.8"), at("10.0.0.1"), at("127.0.0.1"), at("169.254.169.254")];
        let allowed = |from, only_machine| Guard { from, only_machine }.allowed("h", all());
        for (from, count) in
            [(Reach::Machine, 3), (Reach::Network, 2), (Reach::World, 1), (Reach::Nowhere, 1)]
        {
            assert_eq!(allowed(from, false), Ok(all()[..count].to_vec()), "{from:?}");
        }
        assert_eq!(allowed(Reach::Machine, true), Ok(vec![at("127.0.0.1")]));
        for from in [Reach::Network, Reach::World, Reach::Nowhere] {
            assert!(allowed(from, true).unwrap_err().contains("8.8.8.8"), "{from:?}");
        }
        assert_eq!(
            Guard { from: Reach::World, only_machine: false }.allowed("h", Vec::new()),
            Ok(Vec::new())
        );
    }

    #[test]
    fn only_numbers_and_this_machine_are_near_by_their_names() {
        for (url, reach) in [
            ("http://127.0.0.1:1/mcp", Reach::Machine),
            ("http://[::1]/", Reach::Machine),
            ("https://a.localhost/", Reach::Machine),
            ("http://10.0.0.1/", Reach::Network),
            ("https://8.8.8.8/", Reach::World),
            ("https://mcp.lan/", Reach::World),
            ("https://127.0.0.1.example/", Reach::World),
            ("http://[::ffff:127.0.0.1]/", Reach::Nowhere),
        ] {
            assert_eq!(Reach::of_url(&Url::parse(url).unwrap()), reach, "{url}");
        }
    }
}
