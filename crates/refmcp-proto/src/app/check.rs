//! What makes a URI, an origin, a visibility and a page of an app valid.

use super::{AppError, URI_PREFIX};
use crate::jsonrpc::excerpt;
use crate::model::{UiCsp, UiVisibility};

/// Schemes of origins that are connected to, and of all others.
const CONNECT_SCHEMES: [&str; 4] = ["https", "wss", "http", "ws"];
const LOAD_SCHEMES: [&str; 2] = ["https", "http"];

/// Checks the URI of a page.
pub fn check_uri(uri: &str) -> Result<(), AppError> {
    let fault = |why| Err(AppError::Uri { uri: excerpt(uri), why });
    let Some(path) = uri.strip_prefix(URI_PREFIX) else { return fault("does not begin with \"ui://\"") };
    if path.trim_matches('/').is_empty() {
        return fault("names nothing");
    }
    if !path.bytes().all(|byte| {
        byte.is_ascii_graphic()
            && !matches!(byte, b'"' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}')
    }) {
        return fault("has characters that a URI has not");
    }
    if path.contains('#') {
        return fault("has a fragment");
    }
    Ok(())
}

/// Checks that a page is an HTML document: it begins with its document type, behind white space and comments.
pub fn check_page(html: &str) -> Result<(), AppError> {
    let mut rest = html.trim_start_matches('\u{feff}').trim_start();
    if rest.is_empty() {
        return Err(AppError::Page("is empty"));
    }
    while let Some(comment) = rest.strip_prefix("<!--") {
        let end = comment.find("-->").ok_or(AppError::Page("has a comment without an end"))?;
        rest = comment.get(end + 3..).unwrap_or_default().trim_start();
    }
    let doctype = rest.get(..14).unwrap_or_default();
    let name = rest.get(14..).unwrap_or_default().trim_start();
    if !doctype.eq_ignore_ascii_case("<!doctype html") || !name.starts_with('>') {
        return Err(AppError::Page("has no HTML5 document type"));
    }
    Ok(())
}

/// Checks every origin that a page declares.
pub fn check_csp(csp: &UiCsp) -> Result<(), AppError> {
    for (list, origins) in csp.lists() {
        for origin in origins {
            check_origin(list, origin)?;
        }
    }
    Ok(())
}

/// Checks who may call a tool: a list without anything in it would leave a tool that no party may call.
pub fn check_visibility(visibility: &[UiVisibility]) -> Result<(), AppError> {
    if visibility.is_empty() {
        return Err(AppError::Visibility("is empty, so that no party may call the tool".to_owned()));
    }
    match visibility.iter().find(|party| matches!(party, UiVisibility::Other(_))) {
        Some(other) => Err(AppError::Visibility(format!("has {:?}", excerpt(other.as_str())))),
        None => Ok(()),
    }
}

/// Checks an origin of a list: a scheme, a host, and perhaps a port. Since hosts write it into a policy, nothing else passes.
pub(super) fn check_origin(list: &'static str, origin: &str) -> Result<(), AppError> {
    let schemes: &[&str] = if list == "connectDomains" { &CONNECT_SCHEMES } else { &LOAD_SCHEMES };
    let why = match origin.split_once("://") {
        None => Some("has no scheme"),
        Some((scheme, _)) if !schemes.contains(&scheme) => Some("has a scheme that does not fit the list"),
        Some((_, authority)) => authority_fault(authority),
    };
    match why {
        Some(why) => Err(AppError::Origin { list, origin: excerpt(origin), why }),
        None => Ok(()),
    }
}

fn authority_fault(authority: &str) -> Option<&'static str> {
    if authority.contains(['/', '?', '#']) {
        return Some("has more than an origin: leave out the path");
    }
    if authority.contains('@') {
        return Some("has a user name");
    }
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (authority, None),
    };
    if port
        .is_some_and(|port| !port.bytes().all(|byte| byte.is_ascii_digit()) || port.parse::<u16>().is_err())
    {
        return Some("has a port that is none");
    }
    if let Some(address) = host.strip_prefix('[') {
        let address =
            address.strip_suffix(']').and_then(|address| address.parse::<std::net::Ipv6Addr>().ok());
        return address.is_none().then_some("has an address that is none");
    }
    let name = host.strip_prefix("*.").unwrap_or(host);
    if name.contains('*') {
        return Some("has a wildcard elsewhere than for a subdomain, as in \"https://*.example.com\"");
    }
    if name.len() < host.len() && !name.contains('.') {
        return Some("has a wildcard for a whole top-level domain");
    }
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    };
    (name.len() > 253 || !name.split('.').all(is_label)).then_some("has a host that is none")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_at_a_ui_uri() {
        for good in ["ui://a", "ui://shop/cart", "ui://shop/cart.html?x=1", "ui:///cart"] {
            assert_eq!(check_uri(good), Ok(()), "{good}");
        }
        for bad in [
            "",
            "ui:",
            "ui:/a",
            "ui://",
            "ui:///",
            "UI://a",
            "https://a",
            "ui://a b",
            "ui://a#b",
            "ui://ä",
            "ui://a\n",
        ] {
            let error = check_uri(bad).unwrap_err().to_string();
            assert!(error.contains("ui://shop/cart"), "{error}");
        }
    }

    #[test]
    fn a_page_is_an_html_document() {
        for good in [
            "<!doctype html>",
            "\u{feff} <!DOCTYPE HTML ><p>",
            "<!-- a --><!-- b -->\n<!doctype html><title>t</title>",
        ] {
            assert_eq!(check_page(good), Ok(()), "{good}");
        }
        for bad in [
            "",
            " \n",
            "<html></html>",
            "<p>hi",
            "<!-- never",
            "<!doctype htm>",
            "<!doctype html PUBLIC \"x\">",
            "<!doctype svgäää",
        ] {
            assert!(matches!(check_page(bad), Err(AppError::Page(_))), "{bad}");
        }
    }

    #[test]
    fn an_origin_is_a_scheme_a_host_and_a_port() {
        let good = [
            "https://a.example",
            "https://*.a.example",
            "http://localhost:3000",
            "https://[::1]:8443",
            "https://127.0.0.1",
        ];
        for origin in good {
            for list in ["connectDomains", "resourceDomains", "frameDomains", "baseUriDomains"] {
                assert_eq!(check_origin(list, origin), Ok(()), "{origin}");
            }
        }
        assert_eq!(check_origin("connectDomains", "wss://a.example"), Ok(()));
        let bad = [
            "",
            "*",
            "https:",
            "https://",
            "a.example",
            "'self'",
            "'unsafe-eval'",
            "data:",
            "blob:",
            "ftp://a.example",
            "https://a.example/",
            "https://a.example/x",
            "https://a.example?x",
            "https://a:b@c.example",
            "https://*",
            "https://*.com",
            "https://a.*.example",
            "https://a.example:x",
            "https://a.example:",
            "https://a.example:99999",
            "https://a.example; script-src *",
            "https://a.example,https://b.example",
            "https://a.example\r\nx: y",
            "https://a.example\"",
            "https://[::1",
            "https://ä.example",
            "https://a..example",
            "HTTPS://a.example",
        ];
        for origin in bad {
            assert!(check_origin("connectDomains", origin).is_err(), "{origin}");
        }
        assert!(check_origin("resourceDomains", "wss://a.example").is_err());
        let csp = UiCsp::default().frame_domains(["https://a.example".to_owned(), "*".to_owned()]);
        let error = check_csp(&csp).unwrap_err().to_string();
        assert!(error.contains("csp.frameDomains has \"*\""), "{error}");
    }

    #[test]
    fn a_tool_is_visible_to_one_party_at_least() {
        use UiVisibility::{App, Model};
        assert_eq!(check_visibility(&[App]), Ok(()));
        assert_eq!(check_visibility(&[Model, App]), Ok(()));
        assert!(check_visibility(&[]).is_err());
        assert!(check_visibility(&[Model, "apps".into()]).unwrap_err().to_string().contains("\"apps\""));
    }
}
