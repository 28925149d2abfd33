//! Which addresses a stranger may make us connect to.
//!
//! A server names addresses that we then ask: of its authorization server, of documents. It must not make us ask what is
//! only reachable from where we are: services of this machine, of the local network, of the cloud that we run in.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// From where an address can be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Reach {
    /// From nowhere that we know of, or from too near: links, groups, addresses that wrap others.
    Nowhere,
    /// From this machine.
    Machine,
    /// From a private network.
    Network,
    /// From everywhere.
    World,
}

impl Reach {
    fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => of_v4(address),
            IpAddr::V6(address) => of_v6(address),
        }
    }
}

/// Whether an address is this machine or in a network of ours.
#[cfg(feature = "auth")]
pub(super) fn is_near(address: IpAddr) -> bool {
    matches!(Reach::of(address), Reach::Machine | Reach::Network)
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
    /// Whether this machine and networks of ours are fine.
    pub(super) near: bool,
    /// Whether nothing but this machine is.
    pub(super) only_machine: bool,
}

impl Guard {
    fn allows(self, address: IpAddr) -> bool {
        match Reach::of(address) {
            Reach::Machine => self.near,
            Reach::Network => self.near && !self.only_machine,
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
        let count =
            |near, only_machine| Guard { near, only_machine }.allowed("h", all()).map(|some| some.len());
        assert_eq!((count(false, false), count(true, false), count(true, true)), (Ok(1), Ok(3), Ok(1)));
        assert!(count(false, true).unwrap_err().contains("8.8.8.8"));
        assert_eq!(Guard { near: false, only_machine: false }.allowed("h", Vec::new()), Ok(Vec::new()));
    }
}
