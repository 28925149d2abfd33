//! OAuth metadata documents, registrations and token responses: read, written and read again, they are the same, and
//! secrets are not shown.

use std::fmt::Debug;

use refmcp_auth::Secret;
use refmcp_auth::metadata::{
    ClientMetadata, ClientRegistration, OAuthError, ResourceMetadata, ServerMetadata, TokenResponse,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The bytes are a document.
pub fn run(bytes: &[u8]) {
    read::<ResourceMetadata>(bytes);
    if let Some(server) = read::<ServerMetadata>(bytes) {
        assert!(server.extensions().len() <= 2);
    }
    read::<ClientMetadata>(bytes);
    if let Some(client) = read::<ClientRegistration>(bytes) {
        assert_hidden(&client, client.client_secret.as_ref());
    }
    if let Some(tokens) = read::<TokenResponse>(bytes) {
        assert_hidden(&tokens, Some(&tokens.access_token));
        assert_hidden(&tokens, tokens.refresh_token.as_ref());
    }
    read::<OAuthError>(bytes);
}

fn read<T: DeserializeOwned + Serialize + PartialEq + Debug>(bytes: &[u8]) -> Option<T> {
    let document: T = serde_json::from_slice(bytes).ok()?;
    let text = serde_json::to_vec(&document).expect("a document is JSON");
    let again = serde_json::from_slice::<T>(&text);
    let again = again.unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&text)));
    assert_eq!(again, document);
    Some(document)
}

/// A secret is not in what is shown, unless it is there by chance or as another member.
fn assert_hidden(document: &impl Debug, secret: Option<&Secret>) {
    let Some(secret) = secret.map(Secret::reveal).filter(|secret| secret.starts_with("hush-")) else {
        return;
    };
    let shown = format!("{document:?}");
    assert!(!shown.contains(&format!("Secret({secret:?}")), "{shown}");
}
