//! The Redis that several processes share, and the key that they have in common.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use refmcp_http::Options;
use refmcp_redis::{ConnectError, RedisBackplane, RedisOptions};
use ring::digest;

use crate::args::{BackplaneOptions, usage};

/// The key of `--state-key-file`.
pub(super) fn state_key(options: &BackplaneOptions) -> Result<Option<[u8; 32]>> {
    let Some(file) = &options.state_key_file else { return Ok(None) };
    let bytes = STANDARD.decode(read(file)?).ok();
    let key = bytes.and_then(|bytes| <[u8; 32]>::try_from(bytes).ok());
    let key = key.ok_or_else(|| {
        usage!(
            "--state-key-file {}: expected 32 bytes in base64, as `openssl rand -base64 32` writes",
            file.display()
        )
    })?;
    Ok(Some(key))
}

/// Connects to the Redis of `--backplane`, with the limits that the options of the endpoint have.
pub(super) async fn connect(
    options: &BackplaneOptions,
    http: &Options,
    key: Option<&[u8; 32]>,
) -> Result<Option<Arc<RedisBackplane>>> {
    let Some(address) = &options.backplane else { return Ok(None) };
    let mut redis = RedisOptions::new(address).map_err(|error| usage!("--backplane: {error}"))?;
    if let Some(file) = &options.backplane_password_file {
        redis = redis.password(&read(file)?);
    }
    if let Some(file) = &options.backplane_ca {
        redis = redis.root_certificates(read(file)?.into_bytes());
    }
    redis.prefix.clone_from(&options.backplane_prefix);
    redis.allow_volatile = options.backplane_volatile;
    redis.settings = http.backplane_settings();
    redis.settings.total_bytes = options.backplane_memory;
    // Tells whether keys are the same, and nothing else of them: they are random.
    let fingerprint = |key: &[u8; 32]| {
        let digest = digest::digest(&digest::SHA256, &[b"refmcp state key", &key[..]].concat());
        URL_SAFE_NO_PAD.encode(&digest.as_ref()[..9])
    };
    redis.fingerprint = key.map(fingerprint);
    let backplane = RedisBackplane::connect(redis).await.map_err(|error| match error {
        ConnectError::Prefix => usage!("--backplane-prefix: {error}").into(),
        ConnectError::Volatile => usage!("--backplane: {error} (--backplane-volatile)").into(),
        _ => anyhow::Error::new(error).context("--backplane"),
    })?;
    tracing::info!(address = backplane.address(), version = backplane.version(), "sessions are shared");
    Ok(Some(Arc::new(backplane)))
}

/// What is in a file, without the line break at its end.
fn read(file: &Path) -> Result<String> {
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}
