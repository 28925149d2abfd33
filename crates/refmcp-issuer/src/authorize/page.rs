//! HTML pages without scripts.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use bytes::Bytes;
use http::{Response, StatusCode, header};
use refmcp_auth::dpop::token_digest;
use refmcp_auth::uri;
use url::{Host, Url};

use super::request::AuthorizationRequest;
use crate::faults::Faults;
use crate::respond;
use crate::settings::Settings;

const STYLE: &str = "\
:root{color-scheme:light dark;font:1rem/1.5 system-ui,sans-serif}\
body{max-width:36rem;margin:0 auto;padding:1.5rem 1rem;overflow-wrap:anywhere}\
h1{font-size:1.5rem;line-height:1.25}\
dt{font-weight:600;margin-top:.75rem}dd{margin:0}\
ul{margin:0;padding-left:1.25rem}\
.note{border-left:.25rem solid;padding:.25rem .75rem}\
label{display:block;font-weight:600;margin-top:1rem}\
input{font:inherit;padding:.5rem;width:100%;box-sizing:border-box}\
button{font:inherit;padding:.5rem 1.25rem;margin:1rem .75rem 0 0;min-height:2.75rem}";

const NOTE: &str = "This is the authorization server that is built into refmcp. It is a test tool: it asks for no \
                    password, believes every name, and forgets everything when it stops.";

/// Without this, browsers send `Origin: null` with the form, which any page can produce and origin checks refuse. The policy
/// tells the origin to this server alone.
const SAME_ORIGIN: &str = "<meta name=\"referrer\" content=\"same-origin\">\n";

/// The consent page.
pub(super) fn consent(asked: &AuthorizationRequest, issuer: &str, token: &str) -> Response<Bytes> {
    let redirect = Url::parse(&asked.place.redirect_uri).ok();
    let client = &asked.client;
    let name = client.name.as_deref().map(str::trim).filter(|name| !name.is_empty()).unwrap_or(&client.id);
    let mut facts = String::new();
    let mut fact = |name: &str, value: &str| facts.push_str(&format!("<dt>{name}</dt><dd>{value}</dd>\n"));
    fact("Client", &escape(name));
    match Url::parse(&client.id).ok().and_then(|url| host(&url)) {
        Some(host) => {
            fact("Its document is at", &escape(&host));
            fact("Client ID", &escape(&client.id));
        }
        None => fact("Client ID", &escape(&client.id)),
    }
    fact("Wants to use", &escape(&asked.resource));
    fact("For", &scopes(asked));
    let place = redirect.as_ref().and_then(host).unwrap_or_else(|| "nowhere".to_owned());
    fact("The answer goes to", &escape(&place));
    fact("This server", &escape(issuer));
    let near = redirect.as_ref().is_some_and(uri::is_loopback);
    let warning = if near {
        "<p class=\"note\"><strong>Attention:</strong> the answer goes to a program on this computer. Any program \
         here could have asked under this name; go on only if you have just started it yourself.</p>\n"
    } else {
        ""
    };
    let body = format!(
        "<h1>Allow {name} to use the server?</h1>\n<dl>\n{facts}</dl>\n{warning}\
         <form method=\"post\" action=\"/authorize\">\n\
         <input type=\"hidden\" name=\"form_token\" value=\"{token}\">\n\
         <label for=\"user\">User name</label>\n\
         <input id=\"user\" name=\"user\" value=\"{user}\" maxlength=\"100\" autocomplete=\"username\" required>\n\
         <button type=\"submit\" name=\"decision\" value=\"allow\">Allow</button>\n\
         <button type=\"submit\" name=\"decision\" value=\"deny\">Deny</button>\n\
         </form>\n",
        name = escape(name),
        token = escape(token),
        user = escape(&asked.expected_user()),
    );
    let form_action = redirect.as_ref().map(source).unwrap_or_default();
    let page =
        Page { title: "Allow access?", head: SAME_ORIGIN, form_action: &format!("'self' {form_action}") };
    html(StatusCode::OK, &page, &body)
}

fn scopes(asked: &AuthorizationRequest) -> String {
    if asked.scopes.is_empty() {
        return "no particular scope".to_owned();
    }
    let items = asked.scopes.iter().map(|scope| format!("<li><code>{}</code></li>", escape(scope)));
    format!("<ul>{}</ul>", items.collect::<String>())
}

/// An error page.
pub(super) fn error(what: &str) -> Response<Bytes> {
    error_with(StatusCode::BAD_REQUEST, what)
}

/// An error page with a status.
pub(super) fn error_with(status: StatusCode, what: &str) -> Response<Bytes> {
    let body = format!(
        "<h1>This request cannot be granted</h1>\n<p>{}.</p>\n\
         <p>No client was informed. You can close this page.</p>\n",
        escape(what)
    );
    html(status, &Page { title: "Request refused", head: "", form_action: "'none'" }, &body)
}

/// The page that explains this server.
pub(crate) fn about(settings: &Settings) -> Response<Bytes> {
    let on = settings.faults.to_string();
    let items = Faults::NAMES.iter().filter(|(word, _)| on.split(' ').any(|known| known == *word));
    let items: String = items.map(|(word, what)| format!("<li><code>{word}</code>: {what}</li>\n")).collect();
    let faults = if items.is_empty() {
        "<p>Nothing is made to go wrong.</p>\n".to_owned()
    } else {
        format!("<h2>What is made to go wrong</h2>\n<ul>\n{items}</ul>\n")
    };
    let body = format!(
        "<h1>An authorization server for tests</h1>\n<p>It issues tokens for {}.</p>\n{faults}",
        escape(&settings.resources.join(", "))
    );
    let page = Page { title: "About this authorization server", head: "", form_action: "'none'" };
    html(StatusCode::OK, &page, &body)
}

/// A page without its body.
struct Page<'a> {
    title: &'a str,
    /// Additional HTML of the head.
    head: &'a str,
    /// Allowed form targets.
    form_action: &'a str,
}

fn html(status: StatusCode, page: &Page<'_>, body: &str) -> Response<Bytes> {
    let Page { title, head, form_action } = page;
    let text = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title} – refmcp (test)</title>\n<link rel=\"icon\" href=\"data:,\">\n{head}<style>{STYLE}</style>\n</head>\n\
         <body>\n<main>\n{body}<p><small>{NOTE}</small></p>\n</main>\n</body>\n</html>\n"
    );
    let mut response = respond::typed(status, "text/html; charset=utf-8", text);
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{}'; img-src data:; form-action {form_action}; base-uri 'none'; \
         frame-ancestors 'none'",
        style_digest()
    );
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, policy.as_str()),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
    ] {
        respond::set(headers, name, value);
    }
    response
}

/// The digest of the style in the base64 of a content security policy.
fn style_digest() -> String {
    let digest = URL_SAFE_NO_PAD.decode(token_digest(STYLE)).unwrap_or_default();
    STANDARD.encode(digest)
}

/// The source expression of a redirect URI. Chromium applies `form-action` also to redirects after a form submission, so the
/// redirect URI must be allowed. Policies know no IP addresses except 127.0.0.1; other addresses are allowed by scheme.
fn source(redirect: &Url) -> String {
    let nameable = match redirect.host() {
        Some(Host::Domain(_)) => true,
        Some(Host::Ipv4(address)) => address == std::net::Ipv4Addr::LOCALHOST,
        Some(Host::Ipv6(_)) | None => false,
    };
    if nameable { redirect.origin().ascii_serialization() } else { format!("{}:", redirect.scheme()) }
}

/// The host of a URL, with its port unless it is the default.
fn host(url: &Url) -> Option<String> {
    url.has_host().then(|| uri::authority(url))
}

/// Escapes text for HTML. Bidirectional control characters are removed, since they make names look like others.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' | '\u{200E}' | '\u{200F}' => {
                escaped.push('\u{FFFD}');
            }
            control if control.is_control() => escaped.push('\u{FFFD}'),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn html_is_escaped() {
        assert_eq!(escape("<b a='x' c=\"y\">&"), "&lt;b a=&#39;x&#39; c=&quot;y&quot;&gt;&amp;");
        assert_eq!(escape("a\u{202E}b\u{0}c\n"), "a\u{FFFD}b\u{FFFD}c\u{FFFD}");
    }

    #[test]
    fn form_action_allows_every_redirect_uri() {
        for (redirect, named) in [
            ("https://app.example/cb?x", "https://app.example"),
            ("https://app.example:8443/cb", "https://app.example:8443"),
            ("http://127.0.0.1:33/cb", "http://127.0.0.1:33"),
            ("http://localhost:33/cb", "http://localhost:33"),
            ("http://[::1]:33/cb", "http:"),
            ("http://127.0.0.2:33/cb", "http:"),
        ] {
            assert_eq!(source(&Url::parse(redirect).unwrap()), named);
        }
    }
}
