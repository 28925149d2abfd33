//! `refmcp auth logout`: tokens are given back to whoever issued them (RFC 7009), where that can be done, and forgotten
//! in any case.

use anyhow::{Context, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hyper::{Request, header};
use refmcp_auth::Secret;
use refmcp_auth::client::{AuthMethod, Grant};
use refmcp_auth::fetch::Fetch;
use serde_json::json;
use url::Url;
use url::form_urlencoded::{Serializer, byte_serialize};

use super::store::UserStore;
use super::{fetcher, server_name, user_store};
use crate::args::{ExitReason, Shared, Target};
use crate::command::client::output::Printer;
use crate::command::client::{Person, Servers};
use crate::ui::progress::Bars;
use crate::ui::text::one_line;

pub(super) async fn logout(target: &Target, shared: &Shared) -> Result<ExitReason> {
    let person = Person::new(shared, &Bars::hidden());
    let place = Servers::new(shared, &person)?.place(target).await?;
    let server = server_name(&place.url);
    let store = user_store()?;
    let secret = secret_of(&store, &server);
    // Nobody renews meanwhile what is given back.
    let held = store.locked(&server).await?;
    let grants = store.forget(&server)?;
    drop(held);
    let fetcher = fetcher(&place.url).await;
    let mut kept: Vec<String> = Vec::new();
    for grant in &grants {
        if let Err(fault) = give_back(grant, secret.as_ref(), &*fetcher).await {
            kept.push(format!("{} did not take its token back: {fault:#}", grant.issuer));
        }
    }
    let shown = one_line(&target.to_string()).into_owned();
    let result = json!({ "server": server, "forgotten": grants.len(), "notRevoked": kept });
    Printer::new(shared).show(&result, |_| {
        if grants.is_empty() {
            return format!("you were not logged in to {shown}\n");
        }
        let faults: String = kept.iter().map(|fault| format!("{}\n", one_line(fault))).collect();
        format!("logged out of {shown}\n{faults}")
    })?;
    Ok(ExitReason::Done)
}

/// The secret of a client that was known before, which is not kept with the tokens.
fn secret_of(store: &UserStore, server: &str) -> Option<Secret> {
    let manner = store.manner(server).ok().flatten()?;
    match manner.secret() {
        Ok(secret) => secret,
        Err(fault) => {
            tracing::warn!("{fault:#}");
            None
        }
    }
}

/// Gives back what renews tokens, which ends all of them, or else the token.
async fn give_back(grant: &Grant, secret: Option<&Secret>, fetch: &dyn Fetch) -> Result<()> {
    let endpoint = grant.revocation_endpoint.as_ref().context("it says nowhere how")?;
    let tokens = [("refresh_token", grant.refresh_token.as_ref()), ("access_token", Some(&grant.token))];
    for (kind, token) in tokens {
        let Some(token) = token else { continue };
        let request = revocation(endpoint, grant, secret, kind, token)?;
        let response = fetch.fetch(request).await?;
        if !response.status().is_success() {
            anyhow::bail!("status {}", response.status().as_u16());
        }
    }
    Ok(())
}

fn revocation(
    endpoint: &Url,
    grant: &Grant,
    secret: Option<&Secret>,
    kind: &str,
    token: &Secret,
) -> Result<Request<Bytes>> {
    let mut form = Serializer::new(String::new());
    form.append_pair("token", token.reveal()).append_pair("token_type_hint", kind);
    let mut request = Request::post(endpoint.as_str())
        .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
        .header(header::ACCEPT, "application/json");
    let id = grant.client_id.as_deref();
    let secret = grant.client_secret.as_ref().or(secret);
    match (grant.method, id, secret) {
        (AuthMethod::Basic, Some(id), Some(secret)) => {
            let encoded = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
            let pair = STANDARD.encode(format!("{}:{}", encoded(id), encoded(secret.reveal())));
            let mut basic = header::HeaderValue::try_from(format!("Basic {pair}"))?;
            basic.set_sensitive(true);
            request = request.header(header::AUTHORIZATION, basic);
        }
        (AuthMethod::Post, Some(id), Some(secret)) => {
            form.append_pair("client_id", id).append_pair("client_secret", secret.reveal());
        }
        (AuthMethod::PrivateKey, ..) => anyhow::bail!("it wants a signature, which is made for logins only"),
        (_, Some(id), _) => {
            form.append_pair("client_id", id);
        }
        (_, None, _) => {}
    }
    Ok(request.body(form.finish().into())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grant(method: &str, secret: Option<&str>) -> Grant {
        let value = json!({
            "issuer": "https://i", "resource": "https://r", "client_id": "a b", "client_secret": secret,
            "method": method, "token": "t", "token_type": "Bearer", "scope": "",
            "token_endpoint": "https://i/token",
        });
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn tokens_are_given_back_by_whoever_got_them() {
        let endpoint = Url::parse("https://i/revoke").unwrap();
        let made = |grant: &Grant, secret: Option<&Secret>| {
            revocation(&endpoint, grant, secret, "access_token", &Secret::new("t")).map(|request| {
                let basic =
                    request.headers().get(header::AUTHORIZATION).map(|it| it.to_str().unwrap().to_owned());
                (basic, String::from_utf8(request.into_body().to_vec()).unwrap())
            })
        };
        let plain = "token=t&token_type_hint=access_token";
        let public = made(&grant("none", None), None).unwrap();
        assert_eq!(public, (None, format!("{plain}&client_id=a+b")));
        let basic = made(&grant("client_secret_basic", Some("s")), None).unwrap();
        assert_eq!(basic, (Some(format!("Basic {}", STANDARD.encode("a+b:s"))), plain.to_owned()));
        let post = made(&grant("client_secret_post", None), Some(&Secret::new("s"))).unwrap();
        assert_eq!(post, (None, format!("{plain}&client_id=a+b&client_secret=s")));
        assert!(made(&grant("private_key_jwt", None), None).is_err());
    }
}
