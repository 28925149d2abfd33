//! Logins that fail, and what is said of them.

use std::sync::Arc;
use std::time::Duration;

use refmcp_auth::client::{ClientIdentity, GrantKind, PreRegistered, StoreUpdate, StoredState};
use refmcp_client::auth::{
    Authorization, Browser, BrowserError, TokenStore, TokenStoreError, TokenStoreGuard,
};
use refmcp_client::http::{AddressScope, Fetcher, StreamableHttp};
use refmcp_client::transport::BoxFuture;
use refmcp_client::transport::TransportError;
use refmcp_client::{Client, VersionPolicy};
use url::Url;

use super::servers::{Desk, TestServers};
use super::user::User;
use crate::messages::{ALONE, connect, request, result};
use crate::raw_server::Server;

/// What a request ends with.
async fn outcome(servers: &TestServers, authorization: &Authorization) -> String {
    let (transport, mut sink) = connect(&servers.server(authorization)).await;
    transport.clone().send(request(1, "tools/list", ALONE));
    let (_, why) = sink.ended().await;
    let TransportError::NotAuthorized { why } = why else { panic!("{why:?}") };
    for secret in ["code-", "token-", "refresh-", "verifier"] {
        assert!(!why.contains(secret), "{why}");
    }
    why
}

#[tokio::test]
async fn a_broken_token_endpoint() {
    for (desk, said) in
        [(Desk::Hangs, "no response in time"), (Desk::Fails, "status 500"), (Desk::Html, "token")]
    {
        let servers = TestServers::start().await;
        servers.state().desk = desk;
        let fetcher = Arc::new(Fetcher::guarded(AddressScope::Loopback).within(Duration::from_millis(200)));
        let authorization = Authorization::new(User::new(&servers)).fetcher(fetcher);
        let why = outcome(&servers, &authorization).await;
        assert!(why.contains(said) && why.contains(&servers.origin), "{desk:?}: {why}");
    }
}

#[derive(Debug)]
struct Unwilling;

impl Browser for Unwilling {
    fn redirect_uri(&self) -> BoxFuture<'_, Result<Url, BrowserError>> {
        Box::pin(async { Ok(Url::parse("http://127.0.0.1:1/callback").unwrap()) })
    }

    fn visit(&self, _: Url) -> BoxFuture<'_, Result<Url, BrowserError>> {
        Box::pin(async { Err(BrowserError::Declined) })
    }
}

#[tokio::test]
async fn declined_and_unavailable_browsers() {
    let servers = TestServers::start().await;
    assert!(outcome(&servers, &Authorization::new(Unwilling)).await.contains("declined"));
    assert!(outcome(&servers, &Authorization::without_browser()).await.contains("no user here"));
    assert!(servers.grants().is_empty());
    let failed = Client::builder("test", "1").version_policy(VersionPolicy::Legacy);
    let failed = failed.connect(servers.server(&Authorization::without_browser())).await.unwrap_err();
    assert!(failed.needs_authorization(), "{failed}");
}

#[tokio::test]
async fn all_who_wait_hear_of_one_failure() {
    let servers = TestServers::start().await;
    servers.state().desk = Desk::Fails;
    let user = User::slow(&servers);
    let (transport, mut sink) = connect(&servers.server(&Authorization::new(user.clone()))).await;
    for number in 0..5 {
        transport.clone().send(request(number, "tools/list", ALONE));
    }
    user.is_asked().await;
    while servers.came_to("/mcp").len() < 5 {
        tokio::task::yield_now().await;
    }
    user.agree();
    for _ in 0..5 {
        assert!(matches!(sink.ended().await.1, TransportError::NotAuthorized { .. }));
    }
    assert_eq!(user.visits(), 1);
}

/// A store that fails at one of its tasks.
#[derive(Debug)]
struct Broken(&'static str);

impl Broken {
    fn fails<T>(&self, task: &str, works: T) -> BoxFuture<'_, Result<T, TokenStoreError>>
    where
        T: Send + 'static,
    {
        let error = Err(TokenStoreError::new(format!("cannot {task}: the file makes no sense")));
        Box::pin(std::future::ready(if self.0 == task { error } else { Ok(works) }))
    }
}

impl TokenStore for Broken {
    fn lock<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<TokenStoreGuard, TokenStoreError>> {
        self.fails("lock", TokenStoreGuard::new(()))
    }

    fn load<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<StoredState, TokenStoreError>> {
        self.fails("load", StoredState::default())
    }

    fn save<'a>(&'a self, _: &'a str, _: &'a StoreUpdate) -> BoxFuture<'a, Result<(), TokenStoreError>> {
        self.fails("save", ())
    }
}

#[tokio::test]
async fn a_store_that_fails() {
    for task in ["lock", "load", "save"] {
        let servers = TestServers::start().await;
        let why = outcome(&servers, &Authorization::new(User::new(&servers)).store(Broken(task))).await;
        assert!(why.contains("store of tokens") && why.contains(task), "{why}");
        assert_eq!(servers.grants().len(), 0, "nothing is got that cannot be kept");
    }
}

#[tokio::test]
async fn a_server_without_authorization_works_when_the_store_fails() {
    let server = Server::start().await;
    let connector = StreamableHttp::new(&server.url()).unwrap();
    let authorization = Authorization::without_browser().store(Broken("load"));
    let (transport, mut sink) = connect(&connector.authorization(authorization)).await;
    transport.clone().send(request(1, "tools/list", ALONE));
    let (mut peer, seen) = server.request().await;
    assert_eq!(seen.header("authorization"), None);
    peer.json(&result(1)).await;
    assert_eq!(sink.message().await, (Some(1), result(1)));
}

#[tokio::test]
async fn a_client_that_speaks_for_itself_needs_no_person() {
    let servers = TestServers::start().await;
    let registered = PreRegistered::new("me", Some(refmcp_auth::Secret::new("hush")));
    let identity = ClientIdentity { registered: Some(registered), ..ClientIdentity::default() };
    let authorization =
        Authorization::without_browser().identity(identity).grant(GrantKind::ClientCredentials);
    let (transport, mut sink) = connect(&servers.server(&authorization)).await;
    transport.clone().send(request(1, "tools/list", ALONE));
    assert_eq!(sink.message().await, (Some(1), result(1)));
    assert_eq!(servers.grants(), ["client_credentials"]);
}
