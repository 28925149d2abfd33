//! `serve`: what several processes share that are one server.

use std::path::PathBuf;

use crate::args::value::memory;

#[derive(Debug, clap::Args)]
pub(crate) struct BackplaneOptions {
    /// Share sessions, streams and tasks with other processes, in the Redis (7.0 or later) or Valkey at this address: clients
    /// may send each request to another process. redis://USER@HOST:PORT/DATABASE, of which only HOST must be there; rediss:// over
    /// TLS; redis+unix://PATH.
    #[arg(
        long,
        value_name = "URL",
        env = "REFMCP_BACKPLANE",
        hide_env_values = true,
        requires = "state_key_file",
        conflicts_with_all = ["audit", "tour"]
    )]
    pub(crate) backplane: Option<String>,

    /// The file with the password for it.
    #[arg(long, value_name = "FILE", requires = "backplane")]
    pub(crate) backplane_password_file: Option<PathBuf>,

    /// The file with the authorities, in PEM, that its certificate may be from, in place of those that the system trusts.
    #[arg(long, value_name = "FILE", requires = "backplane")]
    pub(crate) backplane_ca: Option<PathBuf>,

    /// What its keys begin with. Servers that share a Redis and not their sessions need different ones.
    #[arg(long, value_name = "PREFIX", default_value = "refmcp", requires = "backplane")]
    pub(crate) backplane_prefix: String,

    /// How many bytes it may keep for all sessions together. A number with K, M or G.
    #[arg(long, value_name = "BYTES", default_value = "512M", value_parser = memory, requires = "backplane")]
    pub(crate) backplane_memory: usize,

    /// Use it even if it writes nothing to disk, and so forgets all sessions when it is restarted.
    #[arg(long, requires = "backplane")]
    pub(crate) backplane_volatile: bool,

    /// The file with the key that seals what clients carry between two requests: 32 random bytes in base64, as `openssl rand
    /// -base64 32` writes. All processes of one server need the same. A random one if left out.
    #[arg(long, value_name = "FILE")]
    pub(crate) state_key_file: Option<PathBuf>,
}
