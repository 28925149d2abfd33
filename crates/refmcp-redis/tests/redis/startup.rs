//! Which servers are used, and which are refused with what to do.

use std::error::Error;
use std::time::Duration;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use refmcp_redis::{RedisBackplane, RedisOptions};
use refmcp_server::backplane::{Backplane, NewSession, SessionId};
use refmcp_testkit::ports::free_port;
use refmcp_testkit::redis::RedisServer;

use crate::server::{commands, options};

/// What a user of Redis needs; docs/scaling.md has the same.
const RIGHTS: &str = "~refmcp:1:* resetchannels &refmcp:1:hints -@all +@connection +@scripting +@hash +@sortedset +@list \
                      +@string +@keyspace -@dangerous +info +subscribe +publish +time";

async fn refusal(options: RedisOptions) -> String {
    let error = RedisBackplane::connect(options).await.unwrap_err();
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

async fn works(redis: &RedisBackplane) {
    let id = SessionId::new("a");
    redis.create_session(&id, NewSession::default(), Duration::from_secs(60)).await.unwrap();
    assert!(redis.session(&id).await.unwrap().is_some());
    redis.sweep().await.unwrap();
    redis.latest().await.unwrap();
    redis.renew_replica("a", Duration::from_secs(1)).await.unwrap();
    assert!(redis.is_replica_there("a").await.unwrap());
    assert!(redis.close_session(&id).await.unwrap());
}

#[tokio::test]
async fn a_server_that_forgets_is_refused_unless_that_is_allowed() {
    let server = RedisServer::start_with(&["--appendonly", "no"]);
    let mut options = options(&server);
    let refused = refusal(options.clone()).await;
    assert!(refused.contains("appendonly yes"), "{refused}");
    options.allow_volatile = true;
    let redis = RedisBackplane::connect(options).await.unwrap();
    assert!(redis.is_volatile() && redis.is_connected());
    assert!(redis.version().contains('7') || redis.version().contains("Valkey"), "{}", redis.version());
    works(&redis).await;
}

#[tokio::test]
async fn a_server_that_evicts_is_refused() {
    let server = RedisServer::start_with(&["--appendonly", "yes", "--maxmemory-policy", "allkeys-lru"]);
    let refused = refusal(options(&server)).await;
    assert!(
        refused.contains("allkeys-lru") && refused.contains("set maxmemory-policy noeviction"),
        "{refused}"
    );
}

#[tokio::test]
async fn a_cluster_is_refused() {
    let server = RedisServer::start_with(&["--appendonly", "yes", "--cluster-enabled", "yes"]);
    let refused = refusal(options(&server)).await;
    assert!(refused.contains("cluster"), "{refused}");
}

#[tokio::test]
async fn no_server_is_an_error_with_the_address() {
    let mut server = RedisServer::start();
    server.kill();
    let refused = refusal(options(&server)).await;
    assert!(refused.contains("redis.sock"), "{refused}");
}

#[tokio::test]
async fn a_password_is_needed_and_never_shown() {
    let server = RedisServer::start_with(&["--appendonly", "yes", "--requirepass", "SECRET"]);
    assert!(refusal(options(&server)).await.to_lowercase().contains("auth"), "it says what is missing");
    let wrong = refusal(options(&server).password("SECRETS")).await;
    assert!(!wrong.contains("SECRET"), "{wrong}");
    works(&RedisBackplane::connect(options(&server).password("SECRET")).await.unwrap()).await;
    let address = server.address("?pass=SECRET");
    works(&RedisBackplane::connect(RedisOptions::new(&address).unwrap()).await.unwrap()).await;
}

#[tokio::test]
async fn a_user_with_few_rights_is_enough() {
    let server = RedisServer::start();
    let mut commands = commands(&server).await;
    let mut user = redis::cmd("ACL");
    user.arg("SETUSER").arg("refmcp").arg("on").arg(">SECRET").arg("resetkeys");
    RIGHTS.split_whitespace().for_each(|right| {
        user.arg(right);
    });
    let _: () = user.query_async(&mut commands).await.unwrap();
    let options = RedisOptions::new(&server.address("?user=refmcp")).unwrap().password("SECRET");
    works(&RedisBackplane::connect(options.clone()).await.unwrap()).await;
    let mut elsewhere = options;
    elsewhere.prefix = "other".to_owned();
    let refused = refusal(elsewhere).await;
    assert!(refused.contains("NOPERM") || refused.contains("permission"), "{refused}");
}

#[tokio::test]
async fn tls_checks_the_certificate() {
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, pem: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, pem).unwrap();
        path.display().to_string()
    };
    let (certificate, key) = (write("cert.pem", &cert.pem()), write("key.pem", &signing_key.serialize_pem()));
    let port = free_port();
    let server = RedisServer::start_with(&[
        "--appendonly",
        "yes",
        "--tls-port",
        &port.to_string(),
        "--tls-cert-file",
        &certificate,
        "--tls-key-file",
        &key,
        "--tls-ca-cert-file",
        &certificate,
        "--tls-auth-clients",
        "no",
    ]);
    let options = RedisOptions::new(&format!("rediss://localhost:{port}")).unwrap();
    let refused = refusal(options.clone()).await;
    assert!(refused.to_lowercase().contains("certificate"), "{refused}");
    let trusting = options.root_certificates(cert.pem().into_bytes());
    works(&RedisBackplane::connect(trusting).await.unwrap()).await;
    drop(server);
}
