//! What a request's head presents: in its one `Authorization` header or, where a web page opens a WebSocket and can send
//! no such header, in the place of a subprotocol; and nowhere else.

use http::{HeaderMap, Uri, header};

use super::denied::Denied;
use crate::dpop::ProofFault;

/// How a token is presented.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// Whoever has it may use it.
    Bearer,
    /// Whoever proves to hold its key may.
    Dpop,
}

impl Scheme {
    /// Its name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bearer => "Bearer",
            Self::Dpop => "DPoP",
        }
    }
}

/// A token that somebody presents; it is not in what `Debug` writes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Presented<'a> {
    /// How.
    pub scheme: Scheme,
    /// The token.
    pub token: &'a str,
    /// The proof that goes with it.
    pub proof: Option<&'a str>,
}

impl std::fmt::Debug for Presented<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Presented").field("scheme", &self.scheme).finish_non_exhaustive()
    }
}

/// The header of proofs.
const DPOP: &str = "dpop";

/// What a web page's WebSocket, which can send no header of its own, offers as a subprotocol: this, and the token.
pub const WEBSOCKET_BEARER: &str = "mcp.bearer.";

/// What the head of a request presents.
///
/// # Errors
/// Nothing that is understood, or not as it should be; a token in the URL or in a form is never used.
pub fn presented<'a>(uri: &Uri, headers: &'a HeaderMap) -> Result<Presented<'a>, Denied> {
    if names_token(uri) {
        return Err(Denied::Malformed(
            "a token has no place in a URL; it goes into the Authorization header",
        ));
    }
    let mut given = headers.get_all(header::AUTHORIZATION).iter();
    let offered = subprotocol(headers)?;
    match (given.next(), given.next(), offered) {
        (Some(_), Some(_), _) => Err(Denied::Malformed("more than one Authorization header")),
        (Some(_), None, Some(_)) => Err(Denied::Malformed("more than one token")),
        (Some(value), None, None) => read(value.as_bytes(), headers),
        (None, _, Some(token)) => Ok(Presented { scheme: Scheme::Bearer, token, proof: None }),
        (None, _, None) => Err(Denied::Nothing),
    }
}

fn read<'a>(value: &'a [u8], headers: &'a HeaderMap) -> Result<Presented<'a>, Denied> {
    let malformed = Denied::Malformed("the Authorization header is not a scheme and a token");
    let value = std::str::from_utf8(value).map_err(|_| malformed.clone())?.trim_matches([' ', '\t']);
    let (scheme, token) = value.split_once(' ').unwrap_or((value, ""));
    let scheme = match scheme {
        bearer if bearer.eq_ignore_ascii_case("Bearer") => Scheme::Bearer,
        dpop if dpop.eq_ignore_ascii_case("DPoP") => Scheme::Dpop,
        "" => return Err(malformed),
        // Of another kind of credentials nothing is known, so they are none.
        _ => return Err(Denied::Nothing),
    };
    let token = token.trim_start_matches(' ');
    if !is_token68(token) {
        return Err(malformed);
    }
    let proof = match scheme {
        Scheme::Bearer => None,
        Scheme::Dpop => Some(proof(headers)?),
    };
    Ok(Presented { scheme, token, proof })
}

fn proof(headers: &HeaderMap) -> Result<&str, Denied> {
    let mut given = headers.get_all(DPOP).iter();
    match (given.next(), given.next()) {
        (Some(proof), None) => proof.to_str().map_err(|_| ProofFault::Malformed.into()),
        (Some(_), Some(_)) => Err(ProofFault::Several.into()),
        (None, _) => Err(ProofFault::Missing.into()),
    }
}

/// Letters, digits and what base64 has beside them, with padding at the end.
fn is_token68(text: &str) -> bool {
    let bare = text.trim_end_matches('=');
    !bare.is_empty() && bare.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~+/".contains(&byte))
}

/// Whether a URL has a token, however it is written there.
fn names_token(uri: &Uri) -> bool {
    let Some(query) = uri.query() else { return false };
    form_names_token(query.as_bytes())
}

/// What somebody is told who sends a token in a form.
pub const IN_A_FORM: Denied =
    Denied::Malformed("a token has no place in a form; it goes into the Authorization header");

/// Whether a body is a form, by its own account.
pub fn is_form(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case("application/x-www-form-urlencoded")
}

/// Whether a form has a token.
pub fn form_names_token(body: &[u8]) -> bool {
    url::form_urlencoded::parse(body).any(|(name, _)| name == "access_token")
}

/// The token that a WebSocket's handshake offers in the place of a subprotocol. Elsewhere that header means nothing.
fn subprotocol(headers: &HeaderMap) -> Result<Option<&str>, Denied> {
    if !is_handshake(headers) {
        return Ok(None);
    }
    let offered = headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).iter();
    let offered = offered.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
    let mut tokens = offered.filter_map(|offer| offer.trim().strip_prefix(WEBSOCKET_BEARER));
    match (tokens.next(), tokens.next()) {
        (None, _) => Ok(None),
        (Some(_), Some(_)) => Err(Denied::Malformed("more than one token")),
        (Some(token), None) if is_token68(token) => Ok(Some(token)),
        (Some(_), None) => Err(Denied::Malformed("the subprotocol of a token has none in it")),
    }
}

/// Whether a request asks to become a WebSocket.
fn is_handshake(headers: &HeaderMap) -> bool {
    let lists = |name, word: &str| {
        let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
        values.flat_map(|value| value.split(',')).any(|listed| listed.trim().eq_ignore_ascii_case(word))
    };
    lists(header::UPGRADE, "websocket") && lists(header::CONNECTION, "upgrade")
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn of(uri: &'static str, pairs: &[(&'static str, &'static str)]) -> Result<(Scheme, String), Denied> {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_static(value));
        }
        let presented = presented(&Uri::from_static(uri), &headers)?;
        assert!(!format!("{presented:?}").contains(presented.token));
        Ok((presented.scheme, presented.token.to_owned()))
    }

    #[test]
    fn a_token_is_read_from_its_header() {
        for (value, scheme) in [
            ("Bearer a.b-c_d~e+f/g==", Scheme::Bearer),
            ("bEARER  a.b-c_d~e+f/g==", Scheme::Bearer),
            ("DPoP a.b-c_d~e+f/g==", Scheme::Dpop),
        ] {
            let pairs = [("authorization", value), ("dpop", "proof")];
            assert_eq!(of("/mcp?a=b", &pairs), Ok((scheme, "a.b-c_d~e+f/g==".to_owned())), "{value}");
        }
    }

    const UPGRADE: (&str, &str) = ("upgrade", "WebSocket");
    const CONNECTION: (&str, &str) = ("connection", "keep-alive, Upgrade");

    #[test]
    fn a_token_is_a_subprotocol_on_handshakes_only() {
        let offered = ("sec-websocket-protocol", "mcp, mcp.bearer.a.b-c_d");
        let token = Ok((Scheme::Bearer, "a.b-c_d".to_owned()));
        assert_eq!(of("/mcp", &[UPGRADE, CONNECTION, offered]), token);
        for others in [
            &[offered][..],
            &[UPGRADE, offered],
            &[CONNECTION, offered],
            &[("upgrade", "h2c"), CONNECTION, offered],
        ] {
            assert_eq!(of("/mcp", others), Err(Denied::Nothing), "{others:?}");
        }
    }

    #[test]
    fn nothing_understood_is_nothing_presented() {
        assert_eq!(of("/mcp", &[]), Err(Denied::Nothing));
        assert_eq!(of("/mcp", &[("authorization", "Basic YTpi")]), Err(Denied::Nothing));
        assert_eq!(of("/mcp", &[("authorization", "Negotiate")]), Err(Denied::Nothing));
        assert_eq!(of("/mcp", &[("cookie", "access_token=a")]), Err(Denied::Nothing));
        assert_eq!(of("/mcp", &[("dpop", "proof")]), Err(Denied::Nothing));
    }

    #[test]
    fn a_token_anywhere_else_or_twice_is_malformed() {
        let bearer = ("authorization", "Bearer a");
        for (uri, pairs) in [
            ("/mcp?access_token=a", &[][..]),
            ("/mcp?x=1&access%5Ftoken=a", &[]),
            ("/mcp?access_token=a", &[bearer]),
            ("/mcp?access_token", &[bearer]),
            ("/mcp", &[bearer, bearer]),
            ("/mcp", &[bearer, ("authorization", "Basic YTpi")]),
            ("/mcp", &[("authorization", "")]),
            ("/mcp", &[("authorization", "Bearer")]),
            ("/mcp", &[("authorization", "Bearer ")]),
            ("/mcp", &[("authorization", "Bearer =")]),
            ("/mcp", &[("authorization", "Bearer a b")]),
            ("/mcp", &[("authorization", "Bearer a, Bearer b")]),
            ("/mcp", &[("authorization", "Bearer \"a\"")]),
            ("/mcp", &[("authorization", "Bearer\ta")]),
            ("/mcp", &[UPGRADE, CONNECTION, bearer, ("sec-websocket-protocol", "mcp.bearer.a")]),
            ("/mcp", &[UPGRADE, CONNECTION, ("sec-websocket-protocol", "mcp.bearer.a, mcp.bearer.a")]),
            ("/mcp", &[UPGRADE, CONNECTION, ("sec-websocket-protocol", "mcp, mcp.bearer.")]),
        ] {
            let denied = of(uri, pairs).unwrap_err();
            let fine = match denied {
                Denied::Malformed(_) => true,
                // A scheme of its own, whose name has a tab in it.
                Denied::Nothing => pairs.iter().any(|(_, value)| value.contains('\t')),
                _ => false,
            };
            assert!(fine, "{uri} {pairs:?}: {denied:?}");
        }
    }

    #[test]
    fn a_form_is_looked_into_only_to_say_so() {
        let form = [("content-type", "Application/x-www-form-urlencoded; charset=utf-8")];
        assert_eq!(of("/mcp", &form), Err(Denied::Nothing));
        let headers = HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_static(form[0].1))]);
        assert!(is_form(&headers) && !is_form(&HeaderMap::new()));
        assert!(
            form_names_token(b"a=b&access%5Ftoken=c") && !form_names_token(b"{}") && !form_names_token(b"")
        );
    }

    #[test]
    fn a_proof_comes_once() {
        let token = ("authorization", "DPoP a");
        assert_eq!(of("/mcp", &[token]), Err(ProofFault::Missing.into()));
        assert_eq!(of("/mcp", &[token, ("dpop", "a"), ("dpop", "b")]), Err(ProofFault::Several.into()));
    }
}
