//! The state that replicas of an MCP server share, in Redis (7.0 or later) or Valkey: an implementation of
//! [`Backplane`](refmcp_server::backplane::Backplane).
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use refmcp_redis::{RedisBackplane, RedisOptions};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let options = RedisOptions::new("redis://redis.example:6379")?;
//! let backplane = Arc::new(RedisBackplane::connect(options).await?);
//! // EndpointBuilder::backplane(backplane), at every replica.
//! # Ok(())
//! # }
//! ```
//!
//! Each method is one script, which Redis runs as a whole: one round trip, nothing half done. Scripts decide by the time of
//! Redis, so the clocks of replicas make no difference. Waiting is by hints, which are published, and by looking again now and
//! then; a hint that is lost costs time and no data.
//!
//! Keys begin with a prefix and the version of their format (`refmcp:1:`). Those of a session have one hash tag, the
//! digest of its id: the id itself, which is a secret, is nowhere in Redis. Every key has an expiry well behind the time
//! until which it is needed, so that Redis forgets what no replica sweeps.
//!
//! | file | what it is |
//! |---|---|
//! | `options`, `check` | the address and the options; what a Redis must be like |
//! | `link`, `hints` | the connection; who waits for what |
//! | `scripts`, `lua/` | the scripts |
//! | `backplane`, `invocation`, `reply` | the methods; running a script; what it gives back |
//! | `keys` | names of sessions and tasks, ids of requests |

mod backplane;
mod check;
mod hints;
mod invocation;
mod keys;
mod link;
mod options;
mod reply;
mod scripts;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use redis::{Cmd, RedisError, Value, cmd};
use refmcp_server::backplane::{BackplaneSettings, Unavailable};

use link::Link;
use scripts::{Scripts, settings_list};

pub use options::{RedisOptions, TestTime};

/// For how long the settings of a replica are remembered.
const SETTINGS_SECONDS: u64 = 30 * 24 * 3600;

/// The shared state, in Redis.
pub struct RedisBackplane {
    link: Link,
    scripts: Scripts,
    prefix: String,
    poll: Duration,
    settings: BackplaneSettings,
    fingerprint: Option<String>,
    version: String,
    is_volatile: bool,
}

/// Why a Redis is not used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The address cannot be understood. The message has no secrets.
    #[error("the address of Redis is wrong: {0}")]
    Address(String),
    /// The prefix of the keys has other characters, or is too long.
    #[error("the prefix of keys must be 1 to 64 letters, digits and -_.:")]
    Prefix,
    /// It does not answer, or refuses the user or a command.
    #[error("Redis cannot be used at {address}")]
    Unreachable {
        /// The address without secrets.
        address: String,
        /// What happened.
        source: RedisError,
    },
    /// It did not run a command of the preparations.
    #[error("Redis cannot be prepared")]
    Unprepared(#[source] Unavailable),
    /// It does not say something of itself.
    #[error("INFO has no {0}: the user of Redis must be allowed to see it")]
    Silent(&'static str),
    /// Scripts need commands that it does not have.
    #[error("{0} is too old: it must be Redis 7.0 or later, or Valkey")]
    TooOld(String),
    /// It is part of a cluster.
    #[error(
        "this Redis is part of a cluster; scripts check limits of all sessions in one step, so they must be in one Redis"
    )]
    Cluster,
    /// It is no store.
    #[error("this is a Redis Sentinel; give the address of the primary, or one that leads there")]
    Sentinel,
    /// It cannot be written.
    #[error(
        "this Redis is a replica of another one; give the address of the primary, or one that leads there"
    )]
    NotPrimary,
    /// It would drop sessions that are in use when it is full.
    #[error(
        "Redis would drop sessions that are in use when its memory is full (maxmemory-policy is {0}); set maxmemory-policy noeviction"
    )]
    Eviction(String),
    /// It forgets everything when it is restarted.
    #[error(
        "Redis writes nothing to disk, so it forgets all sessions when it is restarted; set appendonly yes, or allow that it is volatile"
    )]
    Volatile,
}

impl RedisBackplane {
    /// Connects, and checks that this Redis can be used.
    pub async fn connect(options: RedisOptions) -> Result<Self, ConnectError> {
        let (client, prefix) = (options.client()?, options.key_prefix()?);
        let address = options.address().to_owned();
        let channel = format!("{prefix}hints");
        let RedisOptions { timeout, poll, allow_volatile, settings, fingerprint, time, .. } = options;
        let (link, info) =
            Link::open(client, address, timeout, allow_volatile, channel, time.clone()).await?;
        if info.is_volatile {
            tracing::warn!(
                address = link.address(),
                "Redis writes nothing to disk: a restart ends all sessions"
            );
        }
        let scripts = Scripts::new(&prefix, &settings, time.is_some());
        let backplane = Self {
            link,
            scripts,
            prefix,
            poll,
            settings,
            fingerprint,
            version: info.version,
            is_volatile: info.is_volatile,
        };
        backplane.load_scripts().await.map_err(ConnectError::Unprepared)?;
        backplane.compare_settings().await.map_err(ConnectError::Unprepared)?;
        Ok(backplane)
    }

    /// The name and the version of the server: Redis or Valkey.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The address without its secrets.
    pub fn address(&self) -> &str {
        self.link.address()
    }

    /// Whether there is a connection now.
    pub fn is_connected(&self) -> bool {
        self.link.is_open()
    }

    /// Whether Redis forgets everything when it is restarted.
    pub fn is_volatile(&self) -> bool {
        self.is_volatile
    }

    /// Shows that each script can be run here, and saves sending it whole later.
    async fn load_scripts(&self) -> Result<(), Unavailable> {
        for script in self.scripts.all() {
            let mut load = cmd("SCRIPT");
            load.arg("LOAD").arg(&script.text);
            self.link.run("SCRIPT LOAD", &load).await?;
        }
        Ok(())
    }

    /// Warns when another replica was started with other settings, or with something else that all must have in common. Each
    /// holds its own calls to its own limits.
    async fn compare_settings(&self) -> Result<(), Unavailable> {
        let key = format!("{}settings", self.prefix);
        let mut ours: BTreeMap<String, String> = settings_list(&self.settings)
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value.to_string()))
            .collect();
        ours.extend(self.fingerprint.clone().map(|fingerprint| ("fingerprint".to_owned(), fingerprint)));
        let mut get = cmd("HGETALL");
        get.arg(&key);
        let theirs: BTreeMap<String, String> = match self.link.run("HGETALL", &get).await? {
            Value::Map(members) => {
                members.into_iter().map(|(name, value)| (text(name), text(value))).collect()
            }
            _ => BTreeMap::new(),
        };
        for (name, value) in &ours {
            if let Some(other) = theirs.get(name)
                && other != value
            {
                tracing::warn!(
                    setting = name,
                    ours = value,
                    theirs = other,
                    "another replica was started with something else; give all replicas the same options and keys"
                );
            }
        }
        let mut set = cmd("HSET");
        set.arg(&key);
        ours.iter().for_each(|(name, value)| {
            set.arg(name).arg(value);
        });
        self.link.run("HSET", &set).await?;
        let mut expire: Cmd = cmd("EXPIRE");
        expire.arg(&key).arg(SETTINGS_SECONDS);
        self.link.run("EXPIRE", &expire).await.map(drop)
    }
}

fn text(value: Value) -> String {
    match value {
        Value::BulkString(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Value::SimpleString(text) => text,
        _ => String::new(),
    }
}

impl fmt::Debug for RedisBackplane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisBackplane")
            .field("link", &self.link)
            .field("version", &self.version)
            .field("prefix", &self.prefix)
            .finish_non_exhaustive()
    }
}
