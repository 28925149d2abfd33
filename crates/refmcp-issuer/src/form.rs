//! Form parameters of queries and bodies.

use http::{HeaderMap, StatusCode, header};
use url::form_urlencoded;

use crate::respond::ErrorResponse;
use crate::serve::Exchange;

/// Limit of bytes of a form.
const MAX_BYTES: usize = 64 << 10;

/// Limit of parameters of a form.
const MAX_PARAMETERS: usize = 64;

/// Parsed parameters.
pub(crate) struct Form {
    values: Vec<(String, String)>,
    repeated: Vec<String>,
}

impl Form {
    /// Parses parameters; a form beyond the limits is not parsed.
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        let mut form = Self { values: Vec::new(), repeated: Vec::new() };
        if text.len() > MAX_BYTES {
            return None;
        }
        for (name, value) in form_urlencoded::parse(text) {
            if form.values.len() + form.repeated.len() >= MAX_PARAMETERS {
                return None;
            }
            if form.values.iter().any(|(known, _)| *known == name) {
                form.repeated.push(name.into_owned());
            } else {
                form.values.push((name.into_owned(), value.into_owned()));
            }
        }
        Some(form)
    }

    /// The value of a parameter. An empty or repeated parameter has none.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        if self.is_repeated(name) {
            return None;
        }
        let found = self.values.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    /// True if a parameter is repeated.
    pub(crate) fn is_repeated(&self, name: &str) -> bool {
        self.repeated.iter().any(|repeated| repeated == name)
    }

    /// Refuses repeated parameters.
    pub(crate) fn check_repeated(&self) -> Result<(), ErrorResponse> {
        match self.repeated.first().map(String::as_str) {
            None => Ok(()),
            // RFC 8707 allows several resources; tokens are for one here.
            Some("resource") => {
                Err(ErrorResponse::new("invalid_target", "tokens are for one resource at a time"))
            }
            Some(_) => Err(ErrorResponse::new("invalid_request", "a parameter is there more than once")),
        }
    }

    /// A required parameter.
    pub(crate) fn need(&self, name: &str) -> Result<&str, ErrorResponse> {
        self.get(name).ok_or_else(|| ErrorResponse::new("invalid_request", format!("{name} is missing")))
    }
}

/// Reads the form of a request body.
pub(crate) fn read(exchange: Exchange<'_>) -> Result<Form, ErrorResponse> {
    if media_type(&exchange.head.headers) != "application/x-www-form-urlencoded" {
        let what = "the body must be application/x-www-form-urlencoded";
        return Err(
            ErrorResponse::new("invalid_request", what).with_status(StatusCode::UNSUPPORTED_MEDIA_TYPE)
        );
    }
    let form = Form::parse(exchange.body).ok_or_else(|| {
        ErrorResponse::new("invalid_request", "there are too many parameters")
            .with_status(StatusCode::PAYLOAD_TOO_LARGE)
    })?;
    form.check_repeated()?;
    Ok(form)
}

/// The media type of a body, without parameters and in lower case.
pub(crate) fn media_type(headers: &HeaderMap) -> String {
    let given = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    given.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn form_parameters_are_unique_and_not_empty() {
        let form = Form::parse(b"a=1&b=&c=2&c=2&d=x%20y+z").unwrap();
        assert_eq!((form.get("a"), form.get("b"), form.get("c")), (Some("1"), None, None));
        assert_eq!((form.get("d"), form.get("e")), (Some("x y z"), None));
        assert!(form.check_repeated().is_err());
    }

    #[test]
    fn oversized_forms_are_not_parsed() {
        assert!(Form::parse("a=1&".repeat(65).as_bytes()).is_none());
        assert!(Form::parse("a".repeat(MAX_BYTES + 1).as_bytes()).is_none());
    }
}
