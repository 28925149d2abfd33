//! Requests that need a refreshed token, in thousands of orders.

use std::cell::RefCell;
use std::pin::pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use hyper::{Request, Response};
use refmcp_auth::client::StoreUpdate;
use refmcp_auth::fetch::{BoxFuture, Fetch, FetchError};
use refmcp_testkit::schedule::{Schedule, explore, step};

use super::super::super::store::{MemoryTokenStore, TokenStore};
use super::*;

/// Schedules of each scenario.
const SEEDS: std::ops::Range<u64> = 0..2_000;

/// An authorization server that takes its time.
#[derive(Debug)]
struct TokenEndpoint {
    refreshes: AtomicUsize,
    fails: bool,
}

impl Fetch for TokenEndpoint {
    fn fetch(&self, _: Request<Bytes>) -> BoxFuture<'_, Result<Response<Bytes>, FetchError>> {
        Box::pin(async {
            self.refreshes.fetch_add(1, Ordering::Relaxed);
            step().await;
            if self.fails {
                return Err(FetchError::Unreachable("it is away".to_owned()));
            }
            let tokens = json!({
                "access_token": "new", "token_type": "Bearer", "expires_in": 3600, "refresh_token": "next",
            });
            let response = Response::builder().header("content-type", "application/json");
            Ok(response.body(tokens.to_string().into()).unwrap())
        })
    }
}

/// The manager of a token that has expired, and the server that refreshes it.
fn manager(fails: bool) -> (Arc<TokenManager>, Arc<TokenEndpoint>) {
    let endpoint = Arc::new(TokenEndpoint { refreshes: AtomicUsize::new(0), fails });
    let store = MemoryTokenStore::new();
    let expired = token_set(now() - 1);
    let save = StoreUpdate::Tokens(Box::new(expired));
    let saved = pin!(store.save("server", &save)).poll(&mut Context::from_waker(Waker::noop()));
    assert_eq!(saved, Poll::Ready(Ok(())));
    let settings =
        Settings { store: Arc::new(store), fetcher: Some(endpoint.clone()), ..Settings::new(None) };
    let server = "https://h/mcp".parse().unwrap();
    let manager = TokenManager::new(Arc::new(settings), server, "server".to_owned(), HttpSettings::default());
    (Arc::new(manager), endpoint)
}

type Tokens = Rc<RefCell<Vec<String>>>;

/// Requests that want a token, and some that are dropped while they wait for one.
fn requests(schedule: &mut Schedule, manager: &Arc<TokenManager>) -> Tokens {
    let tokens = Tokens::default();
    for number in 0..5 {
        let (manager, tokens) = (manager.clone(), tokens.clone());
        let request = async move {
            let token = manager.token(LoginPolicy::Allow).await.unwrap().unwrap();
            tokens.borrow_mut().push(token.token_set.token.reveal().to_owned());
        };
        if number < 3 {
            schedule.task("request", request);
        } else {
            schedule.dropped_task("dropped request", request);
        }
    }
    tokens
}

#[test]
fn one_refresh_serves_all_requests() {
    explore(SEEDS, |schedule| {
        let (manager, endpoint) = manager(false);
        let tokens = requests(schedule, &manager);
        move || {
            let tokens = tokens.take();
            assert!(tokens.len() >= 3 && tokens.iter().all(|token| token == "new"), "{tokens:?}");
            assert_eq!(endpoint.refreshes.load(Ordering::Relaxed), 1);
        }
    });
}

#[test]
fn after_one_failed_refresh_all_requests_try_the_old_token() {
    explore(SEEDS, |schedule| {
        let (manager, endpoint) = manager(true);
        let tokens = requests(schedule, &manager);
        move || {
            let tokens = tokens.take();
            assert!(tokens.len() >= 3 && tokens.iter().all(|token| token == "t"), "{tokens:?}");
            assert_eq!(endpoint.refreshes.load(Ordering::Relaxed), 1);
        }
    });
}

#[test]
fn a_refresh_is_completed_though_all_requests_are_dropped() {
    explore(SEEDS, |schedule| {
        let (manager, endpoint) = manager(false);
        for _ in 0..2 {
            let manager = manager.clone();
            schedule.dropped_task("dropped request", async move {
                drop(manager.token(LoginPolicy::Allow).await);
            });
        }
        let late = manager.clone();
        schedule.task("late request", async move {
            for _ in 0..4 {
                step().await;
            }
            let token = late.token(LoginPolicy::Allow).await.unwrap().unwrap();
            assert_eq!(token.token_set.token.reveal(), "new");
        });
        move || {
            drop(manager);
            assert_eq!(endpoint.refreshes.load(Ordering::Relaxed), 1);
        }
    });
}
