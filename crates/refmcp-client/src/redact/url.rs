//! URLs without the secrets in them. A URL is taken apart as text, so that one which is wrong is redacted as well.

use super::MASK;
use super::name::is_random;

/// A URL without its user, password and fragment, without the values of its query, and without the segments of its
/// path that have the shape of a token. Text that is no URL comes back as it is.
pub fn url(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, rest) = rest.split_at_checked(end).unwrap_or((rest, ""));
    let mut shown = format!("{scheme}://");
    match authority.rsplit_once('@') {
        Some((_, host)) => shown.extend([MASK, "@", host]),
        None => shown.push_str(authority),
    }
    shown + &target(rest)
}

/// The path, query and fragment of a URL, as they stand in the head of a request, without their secrets.
pub fn target(text: &str) -> String {
    let (rest, fragment) = text.split_once('#').map_or((text, None), |(rest, part)| (rest, Some(part)));
    let (path, query) = rest.split_once('?').map_or((rest, None), |(path, query)| (path, Some(query)));
    let mut shown = path.split('/').map(segment).collect::<Vec<_>>().join("/");
    if let Some(query) = query {
        shown.push('?');
        shown.push_str(&masked_query(query));
    }
    if let Some(fragment) = fragment {
        shown.extend(["#", if fragment.is_empty() { "" } else { MASK }]);
    }
    shown
}

/// A segment of a path, without a token in its place and without the values of its parameters (`;name=value`).
fn segment(segment: &str) -> String {
    let mut parts = segment.split(';');
    let name = parts.next().unwrap_or_default();
    let name = if is_random(name) { MASK } else { name };
    let parameters = parts.map(parameter);
    std::iter::once(name.to_owned()).chain(parameters).collect::<Vec<_>>().join(";")
}

/// A query without the values in it.
pub(super) fn masked_query(query: &str) -> String {
    query.split('&').map(parameter).collect::<Vec<_>>().join("&")
}

fn parameter(parameter: &str) -> String {
    match parameter.split_once('=') {
        Some((_, "")) => parameter.to_owned(),
        Some((name, _)) => format!("{name}={MASK}"),
        // A value without a name.
        None if parameter.is_empty() => String::new(),
        None => MASK.to_owned(),
    }
}
