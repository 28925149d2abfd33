//! What proxies say of the requests that they pass on: who asked, and by which name. It is believed only of those that
//! were named as trusted, since everybody can send these headers.
//!
//! Each proxy adds the address that it was called from at the end of a list. So the list is read from its end, past the
//! addresses of proxies that are trusted, and the first other one is the client's; whatever stands before it is the
//! client's own word, and worth nothing.

use std::borrow::Cow;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::extract::Request;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, header};

use crate::access::caller::Client;
use crate::refusal::{Reason, Refusal};

/// Addresses that one request may have come by.
const MOST_HOPS: usize = 64;

const FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const HOST: HeaderName = HeaderName::from_static("x-forwarded-host");

/// A proxy, or a network of them, whose word about its clients is taken: `192.0.2.1`, `10.0.0.0/8`, `fd00::/8`, or `unix`
/// for whatever comes by a Unix socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrustedProxy(Kind);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Network { address: IpAddr, bits: u32 },
    Unix,
}

/// Why a text is no proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected an address, a network such as 10.0.0.0/8, or unix")]
pub struct TrustedProxyError;

impl TrustedProxy {
    /// Whatever comes by a Unix socket.
    pub const UNIX: Self = Self(Kind::Unix);

    fn has(&self, other: IpAddr) -> bool {
        let Kind::Network { address, bits } = self.0 else { return false };
        let network = |address: IpAddr| match address {
            IpAddr::V4(address) => (true, u128::from(address.to_bits()).checked_shr(32 - bits)),
            IpAddr::V6(address) => (false, address.to_bits().checked_shr(128 - bits)),
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
        // Addresses are compared as what they are: one of version 4 in the form of version 6 is one of version 4.
        let (address, bits) = match address.to_canonical() {
            plain if address.is_ipv6() && plain.is_ipv4() && bits >= 96 => (plain, bits - 96),
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

/// By which name and how a client called the proxy, as far as the proxy says; kept with the request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ForwardedOrigin {
    pub(crate) scheme: Option<&'static str>,
    pub(crate) host: Option<String>,
}

/// What is said of the client.
#[derive(Debug, Default, PartialEq, Eq)]
struct Claim {
    address: Option<IpAddr>,
    called: ForwardedOrigin,
}

/// Who asks, as far as trusted proxies say; from others nothing is believed, and the request is as it came.
///
/// # Errors
/// A trusted proxy passes on what cannot be read, or contradicts itself.
pub(crate) fn resolve(
    trusted: &[TrustedProxy],
    client: Client,
    request: &mut Request,
) -> Result<Client, Refusal> {
    if !is_trusted(trusted, client) {
        if client.is_local() {
            warn_of_unknown_proxy(request.headers());
        }
        return Ok(client);
    }
    let refused = |why: &'static str| Refusal::bad(Reason::Forwarded, why);
    let Some(claim) = claimed(trusted, request.headers()).map_err(refused)? else {
        warn_of_silent_proxy();
        return Ok(Client { forwarded: true, ..client });
    };
    request.extensions_mut().insert(claim.called);
    let address = claim.address.or(client.address);
    Ok(Client { address, forwarded: true, ..client })
}

/// The scheme and the host by which a client called, where a trusted proxy says so; the host was checked by then.
pub(crate) fn origin(request: &Request) -> Option<Arc<str>> {
    let called = request.extensions().get::<ForwardedOrigin>()?;
    let kept = || request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
    let target = || request.uri().authority().map(Authority::as_str);
    let host = called.host.as_deref().or_else(kept).or_else(target)?;
    Some(format!("{}://{host}", called.scheme?).into())
}

/// Says once that a proxy on this machine is not believed: its clients are taken to be on this machine as well.
fn warn_of_unknown_proxy(headers: &HeaderMap) {
    static SAID: AtomicBool = AtomicBool::new(false);
    let is_proxy = || headers.contains_key(&FOR) || headers.contains_key(header::FORWARDED);
    if !SAID.load(Ordering::Relaxed) && is_proxy() && !SAID.swap(true, Ordering::Relaxed) {
        tracing::warn!(
            "a proxy on this machine says who its clients are and is not believed, so they are taken to be on this machine \
             too; name it as a trusted proxy (--trusted-proxy)"
        );
    }
}

/// Warns once that a trusted proxy does not say who its clients are: they are counted together, and none is local.
fn warn_of_silent_proxy() {
    static SAID: AtomicBool = AtomicBool::new(false);
    if !SAID.load(Ordering::Relaxed) && !SAID.swap(true, Ordering::Relaxed) {
        tracing::warn!(
            "a request of a trusted proxy says neither in Forwarded nor in X-Forwarded-For who its client is; such clients \
             share one rate limit, and none is taken to be on this machine"
        );
    }
}

fn is_trusted(trusted: &[TrustedProxy], client: Client) -> bool {
    match client.address {
        Some(address) => trusted.iter().any(|proxy| proxy.has(address)),
        None => client.unix && trusted.contains(&TrustedProxy::UNIX),
    }
}

/// What the headers say, if they say anything. A proxy that sets one kind of header may pass on the other kind as the
/// client sent it; which is which cannot be told, so the two must not contradict each other.
fn claimed(trusted: &[TrustedProxy], headers: &HeaderMap) -> Result<Option<Claim>, &'static str> {
    match (by_x_headers(trusted, headers)?, by_forwarded(trusted, headers)?) {
        (Some(one), Some(other)) => {
            let contradiction =
                "Forwarded and X-Forwarded-… contradict each other; the proxy must set or remove both";
            merged(one, other).ok_or(contradiction).map(Some)
        }
        (one, other) => Ok(one.or(other)),
    }
}

fn merged(one: Claim, other: Claim) -> Option<Claim> {
    fn same<T>(one: Option<T>, other: Option<T>, equal: impl Fn(&T, &T) -> bool) -> Option<Option<T>> {
        match (one, other) {
            (Some(one), Some(other)) => equal(&one, &other).then_some(Some(one)),
            (one, other) => Some(one.or(other)),
        }
    }
    Some(Claim {
        address: same(one.address, other.address, IpAddr::eq)?,
        called: ForwardedOrigin {
            scheme: same(one.called.scheme, other.called.scheme, |one, other| one == other)?,
            host: same(one.called.host, other.called.host, |one, other| one.eq_ignore_ascii_case(other))?,
        },
    })
}

fn by_x_headers(trusted: &[TrustedProxy], headers: &HeaderMap) -> Result<Option<Claim>, &'static str> {
    let [addresses, schemes, hosts] = [&FOR, &PROTO, &HOST].map(|name| listed(headers, name));
    let (addresses, schemes, hosts) = (addresses?, schemes?, hosts?);
    if addresses.is_empty() && schemes.is_empty() && hosts.is_empty() {
        return Ok(None);
    }
    let (hop, address) = client_of(trusted, addresses.iter().map(|node| address(node)));
    // Proxies either add to a list, as to that of the addresses, or set the one value.
    let at = |list: &[&str]| {
        list.iter().rev().nth(hop.min(list.len().saturating_sub(1))).copied().map(str::to_owned)
    };
    let called = ForwardedOrigin { scheme: at(&schemes).and_then(|name| scheme(&name)), host: at(&hosts) };
    Ok(Some(Claim { address, called }))
}

fn by_forwarded(trusted: &[TrustedProxy], headers: &HeaderMap) -> Result<Option<Claim>, &'static str> {
    let mut elements = Vec::new();
    for line in headers.get_all(header::FORWARDED) {
        let line = line.to_str().map_err(|_| "an unreadable Forwarded header")?;
        parse(line, &mut elements).ok_or("a Forwarded header that is none")?;
    }
    if elements.is_empty() {
        return Ok(None);
    }
    let nodes = elements.iter().map(|element| element.node.as_deref().and_then(address));
    let (hop, address) = client_of(trusted, nodes);
    let element = elements.into_iter().rev().nth(hop).unwrap_or_default();
    let called = ForwardedOrigin {
        scheme: element.proto.as_deref().and_then(scheme),
        host: element.host.map(Cow::into_owned),
    };
    Ok(Some(Claim { address, called }))
}

/// The values of a header that is a list, in order.
fn listed<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Vec<&'a str>, &'static str> {
    let mut list = Vec::new();
    for line in headers.get_all(name) {
        let line = line.to_str().map_err(|_| "an unreadable X-Forwarded-… header")?;
        list.extend(line.split(',').map(str::trim).filter(|value| !value.is_empty()).take(MOST_HOPS + 1));
        if list.len() > MOST_HOPS {
            return Err("too many proxies");
        }
    }
    Ok(list)
}

/// The client's address, and how many stand behind it: the last one that is not a trusted proxy's, or the first, if all
/// are. An address that is hidden or is none ends the search; then the last that is known is nearest to it.
fn client_of(
    trusted: &[TrustedProxy],
    nodes: impl DoubleEndedIterator<Item = Option<IpAddr>>,
) -> (usize, Option<IpAddr>) {
    let mut nearest = (0, None);
    for (hop, node) in nodes.rev().enumerate() {
        let Some(address) = node else { return (hop, nearest.1) };
        nearest = (hop, Some(address));
        if !trusted.iter().any(|proxy| proxy.has(address)) {
            break;
        }
    }
    nearest
}

/// An address, with or without a port.
fn address(node: &str) -> Option<IpAddr> {
    let bare = node.strip_prefix('[').and_then(|node| node.strip_suffix(']')).unwrap_or(node);
    let with_port = || node.parse::<SocketAddr>().ok().map(|address| address.ip());
    bare.parse::<IpAddr>().ok().or_else(with_port).map(|address| address.to_canonical())
}

fn scheme(name: &str) -> Option<&'static str> {
    ["http", "https"].into_iter().find(|known| known.eq_ignore_ascii_case(name))
}

/// What one proxy says in `Forwarded` (RFC 7239).
#[derive(Debug, Default)]
struct Element<'a> {
    node: Option<Cow<'a, str>>,
    proto: Option<Cow<'a, str>>,
    host: Option<Cow<'a, str>>,
}

/// Reads one line; nothing where it is not one.
fn parse<'a>(line: &'a str, elements: &mut Vec<Element<'a>>) -> Option<()> {
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
            let (value, after) = value(after)?;
            let place = match name {
                _ if name.eq_ignore_ascii_case("for") => &mut element.node,
                _ if name.eq_ignore_ascii_case("proto") => &mut element.proto,
                _ if name.eq_ignore_ascii_case("host") => &mut element.host,
                _ if !name.is_empty() && name.bytes().all(is_token) => &mut None,
                _ => return None,
            };
            if place.replace(value).is_some() {
                return None;
            }
            rest = after.trim_start();
            if !rest.is_empty() && !rest.starts_with([';', ',']) {
                return None;
            }
        }
        rest = rest.strip_prefix(',').unwrap_or(rest).trim_start();
        elements.push(element);
        if elements.len() > MOST_HOPS {
            return None;
        }
    }
    Some(())
}

/// A word or a text in quotes, and what follows.
fn value(text: &str) -> Option<(Cow<'_, str>, &str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.bytes().position(|byte| !is_token(byte)).unwrap_or(text.len());
        return (end > 0).then(|| (Cow::from(&text[..end]), &text[end..]));
    };
    let mut value = String::new();
    let mut chars = quoted.char_indices();
    while let Some((at, char)) = chars.next() {
        match char {
            '"' => return Some((value.into(), &quoted[at + 1..])),
            '\\' => value.push(chars.next()?.1),
            _ => value.push(char),
        }
    }
    None
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::http::HeaderValue;

    use super::*;

    fn proxies(named: &[&str]) -> Vec<TrustedProxy> {
        named.iter().map(|name| name.parse().unwrap()).collect()
    }

    /// What becomes of a request from this address with these headers.
    fn resolved(peer: &str, headers: &[(&str, &str)]) -> Result<(String, ForwardedOrigin), &'static str> {
        let trusted = proxies(&["10.0.0.0/8", "2001:db8::/32"]);
        let mut request = Request::new(Body::empty());
        for (name, value) in headers {
            let name: HeaderName = name.parse().unwrap();
            request.headers_mut().append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        let client = Client::new(SocketAddr::new(peer.parse().unwrap(), 1), None);
        let client = resolve(&trusted, client, &mut request).map_err(|_| "refused")?;
        let called = request.extensions().get::<ForwardedOrigin>().cloned().unwrap_or_default();
        Ok((client.address.unwrap().to_string(), called))
    }

    fn address_of(peer: &str, headers: &[(&str, &str)]) -> String {
        resolved(peer, headers).map_or_else(str::to_owned, |(address, _)| address)
    }

    #[test]
    fn networks_are_read_as_they_are_written() {
        for (network, inside, outside) in [
            ("192.0.2.1", "192.0.2.1", "192.0.2.2"),
            ("10.0.0.0/8", "10.255.0.1", "11.0.0.1"),
            ("10.1.2.3/8", "10.255.0.1", "::ffff:b00:1"),
            ("::1", "::1", "127.0.0.1"),
            ("fd00::/8", "fdff::1", "fe00::1"),
            ("::ffff:10.0.0.0/104", "10.9.9.9", "11.0.0.1"),
        ] {
            let proxy: TrustedProxy = network.parse().unwrap();
            let has = |text: &str| proxy.has(text.parse::<IpAddr>().unwrap().to_canonical());
            assert!(has(inside) && !has(outside), "{network}");
        }
        assert!(proxies(&["0.0.0.0/0"])[0].has("203.0.113.1".parse().unwrap()));
        assert!(!proxies(&["0.0.0.0/0"])[0].has("::1".parse().unwrap()));
        assert!(proxies(&["::/0"])[0].has("2001:db8::1".parse().unwrap()));
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

    #[test]
    fn strangers_say_nothing_of_others() {
        let claims = [("x-forwarded-for", "203.0.113.9"), ("forwarded", "for=203.0.113.9;host=evil")];
        assert_eq!(resolved("192.0.2.7", &claims), Ok(("192.0.2.7".to_owned(), ForwardedOrigin::default())));
        assert_eq!(
            resolved("192.0.2.7", &[("forwarded", "\"")]),
            Ok(("192.0.2.7".to_owned(), ForwardedOrigin::default()))
        );
    }

    #[test]
    fn the_last_address_that_is_no_proxy_counts() {
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
    fn the_name_is_the_one_that_this_client_used() {
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
    fn what_contradicts_itself_or_is_nonsense_is_refused() {
        let long = "1.1.1.1,".repeat(MOST_HOPS + 1);
        let long_forwarded = "for=1.1.1.1,".repeat(MOST_HOPS + 1);
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
    fn whatever_a_client_says_first_it_is_who_the_proxy_says() {
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
