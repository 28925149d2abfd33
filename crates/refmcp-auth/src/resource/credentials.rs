//! Credentials of a request: the `Authorization` header, or a WebSocket subprotocol where a browser cannot set headers. A
//! token anywhere else is rejected.

use http::{HeaderMap, Uri, header};

use super::access_error::AccessError;
use crate::client::TokenType;
use crate::dpop::ProofError;
use crate::header_value::{list, lists};

/// The credentials of a request. `Debug` does not print them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PresentedToken<'a> {
    /// The scheme.
    pub scheme: TokenType,
    /// The access token.
    pub token: &'a str,
    /// The DPoP proof.
    pub proof: Option<&'a str>,
}

impl std::fmt::Debug for PresentedToken<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Presented").field("scheme", &self.scheme).finish_non_exhaustive()
    }
}

/// The header of DPoP proofs.
const DPOP: &str = "dpop";

/// The prefix of the WebSocket subprotocol that carries a token.
pub const WEBSOCKET_BEARER: &str = "mcp.bearer.";

/// Reads the credentials of a request head.
///
/// # Errors
/// There are none, or they are malformed. A token in a URL or in a form is never used.
pub fn read_credentials<'a>(uri: &Uri, headers: &'a HeaderMap) -> Result<PresentedToken<'a>, AccessError> {
    if names_token(uri) {
        return Err(AccessError::Malformed(
            "a token has no place in a URL; it goes into the Authorization header",
        ));
    }
    let mut given = headers.get_all(header::AUTHORIZATION).iter();
    let offered = subprotocol(headers)?;
    match (given.next(), given.next(), offered) {
        (Some(_), Some(_), _) => Err(AccessError::Malformed("more than one Authorization header")),
        (Some(_), None, Some(_)) => Err(AccessError::Malformed("more than one token")),
        (Some(value), None, None) => read(value.as_bytes(), headers),
        (None, _, Some(token)) => Ok(PresentedToken { scheme: TokenType::Bearer, token, proof: None }),
        (None, _, None) => Err(AccessError::NoCredentials),
    }
}

fn read<'a>(value: &'a [u8], headers: &'a HeaderMap) -> Result<PresentedToken<'a>, AccessError> {
    let malformed = AccessError::Malformed("the Authorization header is not a scheme and a token");
    let value = std::str::from_utf8(value).map_err(|_| malformed.clone())?.trim_matches([' ', '\t']);
    let (scheme, token) = value.split_once(' ').unwrap_or((value, ""));
    let scheme = match scheme {
        bearer if bearer.eq_ignore_ascii_case("Bearer") => TokenType::Bearer,
        dpop if dpop.eq_ignore_ascii_case("DPoP") => TokenType::Dpop,
        "" => return Err(malformed),
        _ => return Err(AccessError::Scheme),
    };
    let token = token.trim_start_matches(' ');
    if !is_token68(token) {
        return Err(malformed);
    }
    let proof = match scheme {
        TokenType::Bearer => None,
        TokenType::Dpop => Some(proof(headers)?),
    };
    Ok(PresentedToken { scheme, token, proof })
}

fn proof(headers: &HeaderMap) -> Result<&str, AccessError> {
    let mut given = headers.get_all(DPOP).iter();
    match (given.next(), given.next()) {
        (Some(proof), None) => proof.to_str().map_err(|_| ProofError::Malformed.into()),
        (Some(_), Some(_)) => Err(ProofError::Several.into()),
        (None, _) => Err(ProofError::Missing.into()),
    }
}

/// True for the token68 syntax (RFC 9110).
fn is_token68(text: &str) -> bool {
    let bare = text.trim_end_matches('=');
    !bare.is_empty() && bare.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~+/".contains(&byte))
}

/// True if a URL's query has an access token.
fn names_token(uri: &Uri) -> bool {
    let Some(query) = uri.query() else { return false };
    form_names_token(query.as_bytes())
}

/// The error for a token in a form.
pub const IN_A_FORM: AccessError =
    AccessError::Malformed("a token has no place in a form; it goes into the Authorization header");

/// True if the body is a form, by its content type.
pub fn is_form(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case("application/x-www-form-urlencoded")
}

/// True if a form has an access token.
pub fn form_names_token(body: &[u8]) -> bool {
    url::form_urlencoded::parse(body).any(|(name, _)| name == "access_token")
}

/// The token of a WebSocket handshake's subprotocol. In other requests that header means nothing.
fn subprotocol(headers: &HeaderMap) -> Result<Option<&str>, AccessError> {
    if !is_handshake(headers) {
        return Ok(None);
    }
    let offered = list(headers, &header::SEC_WEBSOCKET_PROTOCOL);
    let mut tokens = offered.filter_map(|offer| offer.strip_prefix(WEBSOCKET_BEARER));
    match (tokens.next(), tokens.next()) {
        (None, _) => Ok(None),
        (Some(_), Some(_)) => Err(AccessError::Malformed("more than one token")),
        (Some(token), None) if is_token68(token) => Ok(Some(token)),
        (Some(_), None) => Err(AccessError::Malformed("the subprotocol of a token has none in it")),
    }
}

/// True if a request is a WebSocket handshake.
fn is_handshake(headers: &HeaderMap) -> bool {
    lists(headers, &header::UPGRADE, "websocket") && lists(headers, &header::CONNECTION, "upgrade")
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn of(
        uri: &'static str,
        pairs: &[(&'static str, &'static str)],
    ) -> Result<(TokenType, String), AccessError> {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_static(value));
        }
        let read_credentials = read_credentials(&Uri::from_static(uri), &headers)?;
        assert!(!format!("{read_credentials:?}").contains(read_credentials.token));
        Ok((read_credentials.scheme, read_credentials.token.to_owned()))
    }

    #[test]
    fn credentials_are_read_from_the_authorization_header() {
        for (value, scheme) in [
            ("Bearer a.b-c_d~e+f/g==", TokenType::Bearer),
            ("bEARER  a.b-c_d~e+f/g==", TokenType::Bearer),
            ("DPoP a.b-c_d~e+f/g==", TokenType::Dpop),
        ] {
            let pairs = [("authorization", value), ("dpop", "proof")];
            assert_eq!(of("/mcp?a=b", &pairs), Ok((scheme, "a.b-c_d~e+f/g==".to_owned())), "{value}");
        }
    }

    const UPGRADE: (&str, &str) = ("upgrade", "WebSocket");
    const CONNECTION: (&str, &str) = ("connection", "keep-alive, Upgrade");

    #[test]
    fn a_subprotocol_token_is_read_in_websocket_handshakes_only() {
        let offered = ("sec-websocket-protocol", "mcp, mcp.bearer.a.b-c_d");
        let token = Ok((TokenType::Bearer, "a.b-c_d".to_owned()));
        assert_eq!(of("/mcp", &[UPGRADE, CONNECTION, offered]), token);
        for others in [
            &[offered][..],
            &[UPGRADE, offered],
            &[CONNECTION, offered],
            &[("upgrade", "h2c"), CONNECTION, offered],
        ] {
            assert_eq!(of("/mcp", others), Err(AccessError::NoCredentials), "{others:?}");
        }
    }

    #[test]
    fn unknown_schemes_are_told_from_no_credentials() {
        assert_eq!(of("/mcp", &[]), Err(AccessError::NoCredentials));
        assert_eq!(of("/mcp", &[("authorization", "Basic YTpi")]), Err(AccessError::Scheme));
        assert_eq!(of("/mcp", &[("authorization", "Negotiate")]), Err(AccessError::Scheme));
        assert_eq!(of("/mcp", &[("cookie", "access_token=a")]), Err(AccessError::NoCredentials));
        assert_eq!(of("/mcp", &[("dpop", "proof")]), Err(AccessError::NoCredentials));
    }

    #[test]
    fn misplaced_or_repeated_tokens_are_malformed() {
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
                AccessError::Malformed(_) => true,
                // A tab is part of the scheme, which is then unknown.
                AccessError::Scheme => pairs.iter().any(|(_, value)| value.contains('\t')),
                _ => false,
            };
            assert!(fine, "{uri} {pairs:?}: {denied:?}");
        }
    }

    #[test]
    fn a_token_in_a_form_is_detected() {
        let form = [("content-type", "Application/x-www-form-urlencoded; charset=utf-8")];
        assert_eq!(of("/mcp", &form), Err(AccessError::NoCredentials));
        let headers = HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_static(form[0].1))]);
        assert!(is_form(&headers) && !is_form(&HeaderMap::new()));
        assert!(
            form_names_token(b"a=b&access%5Ftoken=c") && !form_names_token(b"{}") && !form_names_token(b"")
        );
    }

    #[test]
    fn one_dpop_header_is_required() {
        let token = ("authorization", "DPoP a");
        assert_eq!(of("/mcp", &[token]), Err(ProofError::Missing.into()));
        assert_eq!(of("/mcp", &[token, ("dpop", "a"), ("dpop", "b")]), Err(ProofError::Several.into()));
    }
}
