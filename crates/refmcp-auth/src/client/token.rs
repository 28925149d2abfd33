//! Asking a token endpoint, and what it answers.

use std::sync::Arc;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use serde_json::Value;
use url::{Url, form_urlencoded};

use super::discovery::request;
use super::identity::{AuthMethod, Client, Form};
use super::step::{Step, brief, place};
use super::{Blame, BoundKey, FlowError, Grant, TokenType};
use crate::Seconds;
use crate::dpop;
use crate::fetch::Unfetched;
use crate::jose::PrivateKey;
use crate::metadata::{OAuthError, TokenResponse};
use crate::scope::Scopes;
use crate::secret::Secret;

/// The longest token that is taken.
const LONGEST: usize = 64 << 10;

/// The longest nonce that is taken.
const LONGEST_NONCE: usize = 1024;

/// Fields of a request that are nobody else's business, not even when the answer repeats them.
const SECRETS: [&str; 7] = [
    "code",
    "code_verifier",
    "refresh_token",
    "client_secret",
    "assertion",
    "subject_token",
    "client_assertion",
];

/// A request to a token endpoint, which may have to be sent twice.
pub(crate) struct Errand {
    /// What is asked for, in words.
    pub(crate) what: &'static str,
    pub(crate) issuer: String,
    pub(crate) endpoint: Url,
    pub(crate) client: Client,
    pub(crate) form: Form,
    /// The key that the token is to be bound to.
    pub(crate) key: Option<Arc<PrivateKey>>,
    /// What the endpoint asked to have in the proof.
    pub(crate) nonce: Option<String>,
}

/// What a token endpoint answered.
pub(crate) enum Answer {
    /// Tokens.
    Tokens(Box<TokenResponse>),
    /// It wants the same once more, with a fresh proof.
    Again(Box<Request<Bytes>>),
    /// No.
    Refused(OAuthError),
}

impl Errand {
    /// The request, with fresh proofs of whatever has to be proven.
    pub(crate) fn request(&self, now: Seconds) -> Result<Request<Bytes>, FlowError> {
        let mut headers = HeaderMap::new();
        let mut form = self.form.clone();
        self.client.prove(&self.issuer, &mut form, &mut headers, now)?;
        if let Some(key) = &self.key {
            let proof = dpop::prove(key, "POST", &self.endpoint, None, self.nonce.as_deref(), now);
            let proof = proof.map_err(|fault| FlowError::NoKeys(fault.to_string()))?;
            let proof = HeaderValue::try_from(proof).map_err(|fault| FlowError::NoKeys(fault.to_string()))?;
            headers.insert("dpop", proof);
        }
        let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(&form).finish();
        let mut request = request(Method::POST, &self.endpoint, Blame::Issuer, body.into())?;
        let kind = HeaderValue::from_static("application/x-www-form-urlencoded");
        request.headers_mut().insert(CONTENT_TYPE, kind);
        request.headers_mut().extend(headers);
        Ok(request)
    }

    /// Reads what came.
    pub(crate) fn answer(
        &mut self,
        response: Result<Response<Bytes>, Unfetched>,
        now: Seconds,
        steps: &mut Vec<Step>,
    ) -> Result<Answer, FlowError> {
        let nothing = |why| FlowError::Unfetched { url: place(&self.endpoint), whose: Blame::Issuer, why };
        let response = response.map_err(nothing);
        let answer = match response {
            Ok(response) => self.read(&response, now),
            Err(fault) => Err(fault),
        };
        let came = match &answer {
            Ok(Answer::Tokens(tokens)) => in_words(tokens),
            Ok(Answer::Again(_)) => "it wants a nonce in the proof, so it gets a fresh one".to_owned(),
            Ok(Answer::Refused(refusal)) => format!("it refused: {refusal}"),
            Err(_) => "nothing that can be used".to_owned(),
        };
        steps.push(Step::new(format!("asked for {} at", self.what), came).at(&self.endpoint));
        answer
    }

    fn read(&mut self, response: &Response<Bytes>, now: Seconds) -> Result<Answer, FlowError> {
        let status = response.status();
        if status == StatusCode::OK {
            let tokens = tokens(response.body()).map_err(|why| self.bad(why))?;
            return Ok(Answer::Tokens(Box::new(tokens)));
        }
        let said = serde_json::from_slice::<OAuthError>(response.body()).ok();
        let Some(said) = said.filter(|_| is_final(status)) else {
            return Err(self.bad(format!("status {}", status.as_u16())));
        };
        if said.error == "use_dpop_nonce" && self.key.is_some() && self.nonce.is_none() {
            let nonce = response.headers().get("dpop-nonce").and_then(|value| value.to_str().ok());
            if let Some(nonce) = nonce.filter(|nonce| (1..=LONGEST_NONCE).contains(&nonce.len())) {
                self.nonce = Some(nonce.to_owned());
                return self.request(now).map(|request| Answer::Again(Box::new(request)));
            }
        }
        Ok(Answer::Refused(self.discreet(said)))
    }

    /// A refusal without what it may repeat of our request.
    fn discreet(&self, said: OAuthError) -> OAuthError {
        let fields =
            self.form.iter().filter(|(name, _)| SECRETS.contains(name)).map(|(_, value)| value.as_str());
        let secrets: Vec<&str> = fields.chain(self.client.secret.as_ref().map(Secret::reveal)).collect();
        let hide = |text: String| {
            let hidden = secrets.iter().filter(|secret| !secret.is_empty());
            brief(&hidden.fold(text, |text, secret| text.replace(secret, "…")))
        };
        OAuthError { error: hide(said.error), error_description: said.error_description.map(hide) }
    }

    /// Something that is no answer.
    pub(crate) fn bad(&self, why: impl Into<String>) -> FlowError {
        FlowError::BadTokenResponse { issuer: brief(&self.issuer), why: why.into() }
    }

    /// The grant that tokens make.
    pub(crate) fn grant(
        &self,
        tokens: TokenResponse,
        resource: &str,
        asked: &Scopes,
        revocation: Option<Url>,
        now: Seconds,
    ) -> Result<Grant, FlowError> {
        let expected = if self.key.is_some() { TokenType::Dpop } else { TokenType::Bearer };
        if !tokens.token_type.eq_ignore_ascii_case(expected.name()) {
            let (got, name) = (brief(&tokens.token_type), expected.name());
            return Err(self.bad(format!("a token of the type {got:?}, where {name} was asked for")));
        }
        let keeps = self.client.dynamic && matches!(self.client.method, AuthMethod::Basic | AuthMethod::Post);
        Ok(Grant {
            issuer: self.issuer.clone(),
            resource: resource.to_owned(),
            client_id: self.client.id.clone(),
            client_secret: self.client.secret.clone().filter(|_| keeps),
            method: self.client.method,
            token: tokens.access_token,
            token_type: expected,
            scope: tokens.scope.unwrap_or_else(|| asked.clone()),
            asked: asked.clone(),
            expires_at: tokens.expires_in.map(|seconds| now.saturating_add(seconds)),
            refresh_token: tokens.refresh_token,
            token_endpoint: self.endpoint.clone(),
            revocation_endpoint: revocation,
            key: self.key.as_deref().map(BoundKey::of),
        })
    }
}

/// Whether a refusal is one that trying later does not change.
fn is_final(status: StatusCode) -> bool {
    let later = [StatusCode::TOO_MANY_REQUESTS, StatusCode::REQUEST_TIMEOUT];
    status.is_client_error() && !later.contains(&status)
}

/// Reads tokens; some servers write the number of seconds as a text or with a point in it.
fn tokens(body: &[u8]) -> Result<TokenResponse, String> {
    let mut value: Value = serde_json::from_slice(body).map_err(|_| "it is not JSON".to_owned())?;
    let Some(members) = value.as_object_mut() else { return Err("it is not an object".to_owned()) };
    if let Some(seconds) = members.remove("expires_in") {
        let number = match &seconds {
            Value::String(text) => text.parse().ok(),
            Value::Number(number) => number.as_u64().or_else(|| whole(number.as_f64()?)),
            _ => None,
        };
        if let Some(number) = number {
            members.insert("expires_in".to_owned(), number.into());
        }
    }
    if members.get("scope").is_some_and(|scope| !scope.is_string()) {
        members.remove("scope");
    }
    let tokens: TokenResponse =
        serde_json::from_value(value).map_err(|_| "it lacks what makes a token".to_owned())?;
    let fits =
        |text: &str| (1..=LONGEST).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
    if !fits(tokens.access_token.reveal()) {
        return Err("its token fits into no header".to_owned());
    }
    let refresh = tokens.refresh_token.as_ref();
    if refresh.is_some_and(|token| token.reveal().len() > LONGEST) {
        return Err("its refresh token is too long".to_owned());
    }
    Ok(TokenResponse {
        refresh_token: tokens.refresh_token.filter(|token| !token.reveal().is_empty()),
        ..tokens
    })
}

/// The whole number in a number with a point.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is checked to be in range")]
fn whole(number: f64) -> Option<u64> {
    (0.0..1e15).contains(&number).then_some(number as u64)
}

fn in_words(tokens: &TokenResponse) -> String {
    let life = tokens.expires_in.map(|seconds| format!(", good for {seconds} s")).unwrap_or_default();
    let refresh = if tokens.refresh_token.is_some() { ", and a refresh token" } else { "" };
    format!("a token of the type {}{life}{refresh}", brief(&tokens.token_type))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_read_as_servers_write_them() {
        let life = |text: &str| {
            let body = format!(r#"{{"access_token":"t","token_type":"Bearer","expires_in":{text}}}"#);
            tokens(body.as_bytes()).unwrap().expires_in
        };
        assert_eq!((life("60"), life("\"60\""), life("60.0")), (Some(60), Some(60), Some(60)));
        assert_eq!((life("-1"), life("null"), life("1e300"), life("\"soon\"")), (None, None, None, None));
        for bad in ["", "[]", "{}", "<html>", r#"{"access_token":"","token_type":"Bearer"}"#] {
            assert!(tokens(bad.as_bytes()).is_err(), "{bad}");
        }
        let strange = r#"{"access_token":"a\r\nb","token_type":"Bearer"}"#;
        assert!(tokens(strange.as_bytes()).is_err());
    }
}
