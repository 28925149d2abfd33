//! Connections to the server of a test.

use redis::aio::MultiplexedConnection;
use refmcp_redis::{RedisBackplane, RedisOptions};
use refmcp_testkit::redis::RedisServer;

/// How to reach it.
pub(crate) fn options(server: &RedisServer) -> RedisOptions {
    RedisOptions::new(&server.address("")).unwrap()
}

/// A connection to it.
pub(crate) async fn connect(server: &RedisServer) -> RedisBackplane {
    RedisBackplane::connect(options(server)).await.unwrap()
}

/// A connection for commands.
pub(crate) async fn commands(server: &RedisServer) -> MultiplexedConnection {
    let client = redis::Client::open(server.address("")).unwrap();
    client.get_multiplexed_async_connection().await.unwrap()
}
