//! Forwarding headers (`Forwarded`, `X-Forwarded-*`): the address of a client, and the scheme and host it used, as a proxy
//! reports them. Only trusted proxies are believed, since any client can send these headers.
//!
//! Each proxy appends the address of its peer to a list. So the list is read from its end, past the addresses of trusted
//! proxies; the first other address is the client's. Entries before it are the client's own claims and are ignored.

use std::borrow::Cow;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Once};

use axum::http::request::Parts;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, header};
use refmcp_auth::header_value::{is_token, token_or_quoted};

use crate::access::caller::Client;
use crate::access::trusted_proxy::TrustedProxy;
use crate::refusal::{Reason, Refusal};

/// Proxies that one request may have passed.
const MAX_HOPS: usize = 64;

const FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const HOST: HeaderName = HeaderName::from_static("x-forwarded-host");

/// The scheme and host by which a client called the proxy, as far as the proxy reports them; an extension of the request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ForwardedOrigin {
    pub(crate) scheme: Option<&'static str>,
    pub(crate) host: Option<String>,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Claim {
    address: Option<IpAddr>,
    origin: ForwardedOrigin,
}

/// The client of a request, as trusted proxies report it; headers of others are ignored.
///
/// # Errors
/// The headers of a trusted proxy are malformed or contradict each other.
pub(crate) fn resolve(trusted: &[TrustedProxy], client: Client, head: &mut Parts) -> Result<Client, Refusal> {
    if !is_trusted(trusted, client) {
        if client.is_local() {
            warn_of_untrusted_proxy(&head.headers);
        }
        return Ok(client);
    }
    let refused = |why: &'static str| Refusal::bad_request(Reason::Forwarded, why);
    let Some(claim) = read_claim(trusted, &head.headers).map_err(refused)? else {
        warn_of_silent_proxy();
        return Ok(Client { forwarded: true, ..client });
    };
    head.extensions.insert(claim.origin);
    let address = claim.address.or(client.address);
    Ok(Client { address, forwarded: true, ..client })
}

/// The scheme and the host by which a client called, where a trusted proxy reports them; the host was checked by then.
pub(crate) fn origin(head: &Parts) -> Option<Arc<str>> {
    let scheme = head.extensions.get::<ForwardedOrigin>()?.scheme?;
    Some(format!("{scheme}://{}", requested_host(head)?).into())
}

/// The host of a request: as a proxy reports it, as `Host` names it, or as its target does.
pub(crate) fn requested_host(head: &Parts) -> Option<&str> {
    let forwarded = head.extensions.get::<ForwardedOrigin>().and_then(|origin| origin.host.as_deref());
    let header = || head.headers.get(header::HOST).and_then(|host| host.to_str().ok());
    forwarded.or_else(header).or_else(|| head.uri.authority().map(Authority::as_str))
}

/// Warns once of a proxy on this machine that is not trusted: its clients are taken to be local as well.
fn warn_of_untrusted_proxy(headers: &HeaderMap) {
    static WARNED: Once = Once::new();
    let is_proxy = || headers.contains_key(&FOR) || headers.contains_key(header::FORWARDED);
    if !WARNED.is_completed() && is_proxy() {
        WARNED.call_once(|| {
            tracing::warn!(
                "a proxy on this machine says who its clients are and is not believed, so they are taken to be on this \
                 machine too; name it as a trusted proxy (--trusted-proxy)"
            );
        });
    }
}

/// Warns once of a trusted proxy that does not report its clients: they share one rate limit, and none is local.
fn warn_of_silent_proxy() {
    static WARNED: Once = Once::new();
    WARNED.call_once(|| {
        tracing::warn!(
            "a request of a trusted proxy says neither in Forwarded nor in X-Forwarded-For who its client is; such clients \
             share one rate limit, and none is taken to be on this machine"
        );
    });
}

fn is_trusted(trusted: &[TrustedProxy], client: Client) -> bool {
    match client.address {
        Some(address) => trusted.iter().any(|proxy| proxy.contains(address)),
        None => client.unix && trusted.contains(&TrustedProxy::UNIX),
    }
}

/// The claim of the headers, if there is any. A proxy that sets one kind of header may pass on the other kind from the
/// client; which is which cannot be known, so the two must not contradict each other.
fn read_claim(trusted: &[TrustedProxy], headers: &HeaderMap) -> Result<Option<Claim>, &'static str> {
    match (read_x_forwarded(trusted, headers)?, read_forwarded(trusted, headers)?) {
        (Some(one), Some(other)) => {
            let contradiction =
                "Forwarded and X-Forwarded-… contradict each other; the proxy must set or remove both";
            merge(one, other).ok_or(contradiction).map(Some)
        }
        (one, other) => Ok(one.or(other)),
    }
}

fn merge(one: Claim, other: Claim) -> Option<Claim> {
    let (origin, other_origin) = (one.origin, other.origin);
    let hosts = origin.host.as_ref().zip(other_origin.host.as_ref());
    let contradict = one.address.zip(other.address).is_some_and(|(one, other)| one != other)
        || origin.scheme.zip(other_origin.scheme).is_some_and(|(one, other)| one != other)
        || hosts.is_some_and(|(one, other)| !one.eq_ignore_ascii_case(other));
    (!contradict).then(|| Claim {
        address: one.address.or(other.address),
        origin: ForwardedOrigin {
            scheme: origin.scheme.or(other_origin.scheme),
            host: origin.host.or(other_origin.host),
        },
    })
}

fn read_x_forwarded(trusted: &[TrustedProxy], headers: &HeaderMap) -> Result<Option<Claim>, &'static str> {
    let [addresses, schemes, hosts] = [&FOR, &PROTO, &HOST].map(|name| list(headers, name));
    let (addresses, schemes, hosts) = (addresses?, schemes?, hosts?);
    if addresses.is_empty() && schemes.is_empty() && hosts.is_empty() {
        return Ok(None);
    }
    let (hop, address) = find_client(trusted, addresses.iter().map(|node| parse_address(node)));
    // A proxy either appends to the list, as it does to the addresses, or replaces it by one value.
    let at = |list: &[&str]| {
        list.iter().rev().nth(hop.min(list.len().saturating_sub(1))).copied().map(str::to_owned)
    };
    let scheme = at(&schemes).and_then(|name| known_scheme(&name));
    Ok(Some(Claim { address, origin: ForwardedOrigin { scheme, host: at(&hosts) } }))
}

fn read_forwarded(trusted: &[TrustedProxy], headers: &HeaderMap) -> Result<Option<Claim>, &'static str> {
    let mut elements = Vec::new();
    for line in headers.get_all(header::FORWARDED) {
        let line = line.to_str().map_err(|_| "an unreadable Forwarded header")?;
        parse_forwarded(line, &mut elements).ok_or("a Forwarded header that is none")?;
    }
    if elements.is_empty() {
        return Ok(None);
    }
    let nodes = elements.iter().map(|element| element.node.as_deref().and_then(parse_address));
    let (hop, address) = find_client(trusted, nodes);
    let element = elements.into_iter().rev().nth(hop).unwrap_or_default();
    let scheme = element.proto.as_deref().and_then(known_scheme);
    Ok(Some(Claim { address, origin: ForwardedOrigin { scheme, host: element.host.map(Cow::into_owned) } }))
}

/// The values of a list header, in order.
fn list<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Vec<&'a str>, &'static str> {
    let mut list = Vec::new();
    for line in headers.get_all(name) {
        let line = line.to_str().map_err(|_| "an unreadable X-Forwarded-… header")?;
        list.extend(line.split(',').map(str::trim).filter(|value| !value.is_empty()).take(MAX_HOPS + 1));
        if list.len() > MAX_HOPS {
            return Err("too many proxies");
        }
    }
    Ok(list)
}

/// The client's address and its position from the end: the last one that is not a trusted proxy's, or the first if all
/// are. An address that is hidden or malformed ends the search; then the nearest known one counts.
fn find_client(
    trusted: &[TrustedProxy],
    nodes: impl DoubleEndedIterator<Item = Option<IpAddr>>,
) -> (usize, Option<IpAddr>) {
    let mut nearest = (0, None);
    for (hop, node) in nodes.rev().enumerate() {
        let Some(address) = node else { return (hop, nearest.1) };
        nearest = (hop, Some(address));
        if !trusted.iter().any(|proxy| proxy.contains(address)) {
            break;
        }
    }
    nearest
}

/// An address, with or without a port.
fn parse_address(node: &str) -> Option<IpAddr> {
    let bare = node.strip_prefix('[').and_then(|node| node.strip_suffix(']')).unwrap_or(node);
    let with_port = || node.parse::<SocketAddr>().ok().map(|address| address.ip());
    bare.parse::<IpAddr>().ok().or_else(with_port).map(|address| address.to_canonical())
}

fn known_scheme(name: &str) -> Option<&'static str> {
    ["http", "https"].into_iter().find(|known| known.eq_ignore_ascii_case(name))
}

/// One element of `Forwarded` (RFC 7239): the parameters of one proxy.
#[derive(Debug, Default)]
struct Element<'a> {
    node: Option<Cow<'a, str>>,
    proto: Option<Cow<'a, str>>,
    host: Option<Cow<'a, str>>,
}

/// Parses one line; none if it is malformed.
fn parse_forwarded<'a>(line: &'a str, elements: &mut Vec<Element<'a>>) -> Option<()> {
    let mut rest = line.trim();
    while !rest.is_empty() {
        let mut element = Element::default();
        loop {
            rest = rest.trim_start();
            if let Some(after) = rest.strip_prefix(';') {
                rest = after;
                continue;
            }
            if rest.is_empty() || rest.starts_with(',') {
                break;
            }
            let (name, after) = rest.split_once('=')?;
            let (value, after) = token_or_quoted(after)?;
            let slot = match name {
                _ if name.eq_ignore_ascii_case("for") => &mut element.node,
                _ if name.eq_ignore_ascii_case("proto") => &mut element.proto,
                _ if name.eq_ignore_ascii_case("host") => &mut element.host,
                _ if is_token(name) => &mut None,
                _ => return None,
            };
            if slot.replace(value).is_some() {
                return None;
            }
            rest = after.trim_start();
            if !rest.is_empty() && !rest.starts_with([';', ',']) {
                return None;
            }
        }
        rest = rest.strip_prefix(',').unwrap_or(rest).trim_start();
        elements.push(element);
        if elements.len() > MAX_HOPS {
            return None;
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn proxies(named: &[&str]) -> Vec<TrustedProxy> {
        named.iter().map(|name| name.parse().unwrap()).collect()
    }

    /// The client and the origin of a request from this address with these headers.
    fn resolved(peer: &str, headers: &[(&str, &str)]) -> Result<(String, ForwardedOrigin), &'static str> {
        let trusted = proxies(&["10.0.0.0/8", "2001:db8::/32"]);
        let (mut head, ()) = axum::http::Request::new(()).into_parts();
        for (name, value) in headers {
            let name: HeaderName = name.parse().unwrap();
            head.headers.append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        let client = Client::new(SocketAddr::new(peer.parse().unwrap(), 1), None);
        let client = resolve(&trusted, client, &mut head).map_err(|_| "refused")?;
        let called = head.extensions.get::<ForwardedOrigin>().cloned().unwrap_or_default();
        Ok((client.address.unwrap().to_string(), called))
    }

    fn address_of(peer: &str, headers: &[(&str, &str)]) -> String {
        resolved(peer, headers).map_or_else(str::to_owned, |(address, _)| address)
    }

    #[test]
    fn headers_of_untrusted_peers_are_ignored() {
        let claims = [("x-forwarded-for", "203.0.113.9"), ("forwarded", "for=203.0.113.9;host=evil")];
        assert_eq!(resolved("192.0.2.7", &claims), Ok(("192.0.2.7".to_owned(), ForwardedOrigin::default())));
        assert_eq!(
            resolved("192.0.2.7", &[("forwarded", "\"")]),
            Ok(("192.0.2.7".to_owned(), ForwardedOrigin::default()))
        );
    }

    #[test]
    fn the_last_address_that_is_no_trusted_proxy_is_the_client() {
        for (header, value, client) in [
            ("x-forwarded-for", "203.0.113.9", "203.0.113.9"),
            ("x-forwarded-for", "1.1.1.1, 203.0.113.9", "203.0.113.9"),
            ("x-forwarded-for", "1.1.1.1, 203.0.113.9, 10.0.0.2,10.0.0.3", "203.0.113.9"),
            ("x-forwarded-for", "10.0.0.9, 10.0.0.2", "10.0.0.9"),
            ("x-forwarded-for", "nonsense, 203.0.113.9", "203.0.113.9"),
            ("x-forwarded-for", "203.0.113.9:4711", "203.0.113.9"),
            ("x-forwarded-for", "[2001:db9::1]:80", "2001:db9::1"),
            ("x-forwarded-for", "::ffff:203.0.113.9", "203.0.113.9"),
            ("x-forwarded-for", "unknown", "10.0.0.1"),
            ("x-forwarded-for", "203.0.113.9, unknown, 10.0.0.2", "10.0.0.2"),
            ("x-forwarded-for", ",,", "10.0.0.1"),
            ("forwarded", "for=203.0.113.9", "203.0.113.9"),
            (
                "forwarded",
                "for=1.1.1.1, for=\"203.0.113.9:80\";proto=http , For=10.0.0.2;by=_x",
                "203.0.113.9",
            ),
            ("forwarded", "for=\"[2001:db9::1]:47\"", "2001:db9::1"),
            ("forwarded", "for=_hidden", "10.0.0.1"),
            ("forwarded", "for=\"\\1.1.1.1\"", "1.1.1.1"),
        ] {
            assert_eq!(address_of("10.0.0.1", &[(header, value)]), client, "{header}: {value}");
        }
        let lines = [("x-forwarded-for", "1.1.1.1"), ("x-forwarded-for", "203.0.113.9")];
        assert_eq!(address_of("10.0.0.1", &lines), "203.0.113.9");
    }

    #[test]
    fn scheme_and_host_are_those_of_the_client() {
        let called = |headers: &[(&str, &str)]| resolved("10.0.0.1", headers).unwrap().1;
        let is = |scheme, host: &str| ForwardedOrigin { scheme: Some(scheme), host: Some(host.to_owned()) };
        let set = [
            ("x-forwarded-for", "203.0.113.9, 10.0.0.2"),
            ("x-forwarded-proto", "HTTPS"),
            ("x-forwarded-host", "a"),
        ];
        assert_eq!(called(&set), is("https", "a"));
        let added = [
            ("x-forwarded-for", "203.0.113.9, 10.0.0.2"),
            ("x-forwarded-proto", "https, http"),
            ("x-forwarded-host", "evil, a, b"),
        ];
        assert_eq!(called(&added), is("https", "a"));
        let element = [(
            "forwarded",
            "for=1.1.1.1;host=evil;proto=http, for=203.0.113.9;proto=https;host=\"a:8443\", for=10.0.0.2;proto=http;host=b",
        )];
        assert_eq!(called(&element), is("https", "a:8443"));
        assert_eq!(called(&[("x-forwarded-proto", "gopher")]), ForwardedOrigin::default());
    }

    #[test]
    fn contradictory_and_malformed_headers_are_refused() {
        let long = "1.1.1.1,".repeat(MAX_HOPS + 1);
        let long_forwarded = "for=1.1.1.1,".repeat(MAX_HOPS + 1);
        for headers in [
            &[("x-forwarded-for", "203.0.113.9"), ("forwarded", "for=1.1.1.1")][..],
            &[("x-forwarded-proto", "http"), ("forwarded", "for=1.1.1.1;proto=https")],
            &[("x-forwarded-host", "a"), ("forwarded", "host=b")],
            &[("x-forwarded-for", &long)],
            &[("forwarded", &long_forwarded)],
            &[("forwarded", "for=\"1.1.1.1, for=203.0.113.9")],
            &[("forwarded", "for=1.1.1.1;for=1.1.1.2")],
            &[("forwarded", "for=1.1.1.1 for=1.1.1.2")],
            &[("forwarded", "nonsense")],
            &[("forwarded", "for=")],
            &[("forwarded", "=x")],
            &[("forwarded", "for=\"\\")],
            &[("x-forwarded-for", "é")],
        ] {
            assert_eq!(resolved("10.0.0.1", headers), Err("refused"), "{headers:?}");
        }
        let agree = [
            ("x-forwarded-for", "203.0.113.9"),
            ("x-forwarded-host", "A"),
            ("forwarded", "for=203.0.113.9;host=a"),
        ];
        assert_eq!(address_of("10.0.0.1", &agree), "203.0.113.9");
    }

    #[test]
    fn entries_of_the_client_never_hide_the_entry_of_the_proxy() {
        const PIECES: [&str; 18] = [
            "for=",
            "1.1.1.1",
            "\"",
            "\\",
            ",",
            ";",
            " ",
            "=",
            "host=evil",
            "proto=https",
            "[::1]",
            "unknown",
            "10.0.0.2",
            "é",
            "\t",
            "x",
            "for=1.1.1.1;x=\"",
            "1.1.1.1, ",
        ];
        // Every text of three pieces.
        for number in 0..PIECES.len().pow(3) {
            let piece = |place: u32| PIECES[number / PIECES.len().pow(place) % PIECES.len()];
            let said: String = (0..3).map(piece).collect();
            for (header, proxy) in [("x-forwarded-for", "203.0.113.9"), ("forwarded", "for=203.0.113.9")] {
                let client = address_of("10.0.0.1", &[(header, &format!("{said}, {proxy}"))]);
                assert!(client == "203.0.113.9" || client == "refused", "{header}: {said}: {client}");
                let client = address_of("10.0.0.1", &[(header, &said), (header, proxy)]);
                assert!(client == "203.0.113.9" || client == "refused", "{header}: {said}: {client}");
            }
        }
    }
}
