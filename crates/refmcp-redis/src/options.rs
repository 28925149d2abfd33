//! Where Redis is, and how it is used.

use std::any::Any;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use redis::{Client, ConnectionAddr, ConnectionInfo, ProtocolVersion, TlsCertificates};
use refmcp_server::backplane::BackplaneSettings;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use url::Url;

use crate::ConnectError;

/// Schemes of addresses.
const SCHEMES: [&str; 5] = ["redis", "rediss", "valkey", "valkeys", "redis+unix"];

/// The time since 1970 of a test, and something that is held until a command has its reply: paused time can stand still
/// meanwhile.
pub type TestTime = dyn Fn() -> (Duration, Box<dyn Any + Send + Sync>) + Send + Sync;

/// Where Redis is, and how it is used.
#[derive(Clone)]
pub struct RedisOptions {
    connection: ConnectionInfo,
    address: String,
    root_certificates: Option<Vec<u8>>,
    /// What all keys begin with, before the version of their format. Servers that share a Redis and not their sessions
    /// have different ones. Letters, digits, `-`, `_`, `.` and `:`.
    pub prefix: String,
    /// For how long a connection is tried, and a command waits for its reply.
    pub timeout: Duration,
    /// The longest time until a change is noticed whose hint was lost.
    pub poll: Duration,
    /// Accepts a Redis that writes nothing to disk, and so forgets all sessions when it is restarted.
    pub allow_volatile: bool,
    /// How much is kept. All replicas should have the same.
    pub settings: BackplaneSettings,
    /// A digest of what all replicas must have in common besides, such as a key. One that has another is warned of.
    pub fingerprint: Option<String>,
    /// For tests: scripts decide by this time, in place of that of Redis.
    pub time: Option<Arc<TestTime>>,
}

impl RedisOptions {
    /// For this address: `redis://[user[:password]@]host[:port][/database]`, `rediss://` over TLS, `redis+unix:///path`
    /// for a socket.
    pub fn new(address: &str) -> Result<Self, ConnectError> {
        let bad = |why: &str| ConnectError::Address(why.to_owned());
        let url = Url::parse(address).map_err(|error| bad(&error.to_string()))?;
        if !SCHEMES.contains(&url.scheme()) {
            return Err(bad(&format!("its scheme must be one of {}", SCHEMES.join(", "))));
        }
        if url.fragment().is_some() {
            return Err(bad("it must not have a fragment: certificates are always checked"));
        }
        let connection = ConnectionInfo::from_str(address).map_err(|error| bad(&error.to_string()))?;
        let redis = connection.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
        let connection = connection.set_redis_settings(redis);
        Ok(Self {
            connection,
            address: masked(url),
            root_certificates: None,
            prefix: "refmcp".to_owned(),
            timeout: Duration::from_secs(2),
            poll: Duration::from_secs(5),
            allow_volatile: false,
            settings: BackplaneSettings::default(),
            fingerprint: None,
            time: None,
        })
    }

    /// With this password, in place of one in the address.
    #[must_use]
    pub fn password(mut self, password: &str) -> Self {
        let redis = self.connection.redis_settings().clone().set_password(password);
        self.connection = self.connection.set_redis_settings(redis);
        self
    }

    /// Trusts the authorities of these certificates (PEM), in place of those that the system trusts.
    #[must_use]
    pub fn root_certificates(mut self, pem: Vec<u8>) -> Self {
        self.root_certificates = Some(pem);
        self
    }

    /// The address without its secrets.
    pub fn address(&self) -> &str {
        &self.address
    }

    pub(crate) fn client(&self) -> Result<Client, ConnectError> {
        let info = self.connection.clone();
        if matches!(info.addr(), ConnectionAddr::TcpTls { .. }) && CryptoProvider::get_default().is_none() {
            // The client of Redis uses the one of the process. Another task may have set it meanwhile, which is as good.
            let _ = ring::default_provider().install_default();
        }
        let opened = match &self.root_certificates {
            None => Client::open(info),
            Some(pem) => {
                let certificates = TlsCertificates { client_tls: None, root_cert: Some(pem.clone()) };
                Client::build_with_tls(info, certificates)
            }
        };
        opened.map_err(|error| ConnectError::Address(error.to_string()))
    }

    /// What all keys begin with.
    pub(crate) fn key_prefix(&self) -> Result<String, ConnectError> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.:".contains(c);
        if self.prefix.is_empty() || !self.prefix.chars().all(allowed) || self.prefix.len() > 64 {
            return Err(ConnectError::Prefix);
        }
        Ok(format!("{}:1:", self.prefix))
    }
}

impl fmt::Debug for RedisOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisOptions")
            .field("address", &self.address)
            .field("prefix", &self.prefix)
            .field("timeout", &self.timeout)
            .field("poll", &self.poll)
            .field("allow_volatile", &self.allow_volatile)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

/// The address without user, password and parameters, which may have one too.
fn masked(mut url: Url) -> String {
    if !url.username().is_empty() || url.password().is_some() {
        // An address without a host has neither.
        let _ = url.set_username("").and_then(|()| url.set_password(None));
    }
    url.set_query(None);
    url.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_shown() {
        for address in [
            "redis://ann:SECRET@example.com:7000/3",
            "rediss://:SECRET@example.com",
            "redis+unix:///run/redis.sock?user=ann&pass=SECRET",
        ] {
            let options = RedisOptions::new(address).unwrap();
            let shown = format!("{options:?} {}", options.address());
            assert!(!shown.contains("SECRET") && !shown.contains("ann"), "{shown}");
        }
        let options = RedisOptions::new("redis://example.com:7000/3").unwrap().password("SECRET");
        assert_eq!(options.address(), "redis://example.com:7000/3");
        assert!(!format!("{options:?}").contains("SECRET"));
    }

    #[test]
    fn bad_addresses_are_refused_without_their_secrets() {
        for address in [
            "",
            "localhost:6379",
            "http://:SECRET@example.com",
            "redis://",
            "redis://:SECRET@example.com/database",
            "rediss://:SECRET@example.com#insecure",
            "redis://:SECRET@example.com:99999",
        ] {
            let error = RedisOptions::new(address).unwrap_err().to_string();
            assert!(!error.contains("SECRET"), "{error}");
            assert!(error.contains("address"), "{error}");
        }
    }

    #[test]
    fn a_prefix_is_plain() {
        let mut options = RedisOptions::new("redis://example.com").unwrap();
        assert_eq!(options.key_prefix().unwrap(), "refmcp:1:");
        for bad in ["", "a b", "a'b", "{a}", "a*"] {
            options.prefix = bad.to_owned();
            assert!(options.key_prefix().is_err(), "{bad}");
        }
    }
}
