//! `serve`: Unix socket, path, trusted proxies, draining.

#[cfg(unix)]
use std::path::PathBuf;
use std::time::Duration;

use clap::ArgMatches;
use clap::parser::ValueSource;
use refmcp_http::{EndpointPath, TrustedProxy};
use url::Url;

use crate::args::UsageError;
use crate::args::value::{public_url, seconds};

#[derive(Debug, clap::Args)]
pub(crate) struct ListenOptions {
    /// Listen on a Unix socket at this path instead of a port. A socket that a dead server left there is replaced.
    #[cfg(unix)]
    #[arg(long, value_name = "PATH", visible_alias = "unix-socket", conflicts_with_all = ["host", "tls_cert", "tls_key"])]
    pub(crate) unix: Option<PathBuf>,

    /// The permissions of the Unix socket's file, in octal; who may write to it may connect.
    #[cfg(unix)]
    #[arg(long, value_name = "MODE", default_value = "600", value_parser = mode, requires = "unix")]
    pub(crate) unix_mode: u32,

    /// The path of the streamable HTTP endpoint; WebSocket is at PATH/ws. /sse and all other paths stay as they are.
    #[arg(long, value_name = "PATH", default_value_t = EndpointPath::default())]
    pub(crate) path: EndpointPath,

    /// A proxy whose Forwarded and X-Forwarded-For, -Proto and -Host headers are believed: an address, a network such as
    /// 10.0.0.0/8, or unix for all that comes by the Unix socket; can be repeated. From others they are ignored.
    #[arg(long = "trusted-proxy", value_name = "ADDR|CIDR|unix")]
    pub(crate) trusted_proxies: Vec<TrustedProxy>,

    /// The address by which clients know the server, where it is not the one that is listened on: it may be called by
    /// that name, and tells it to others. With --auth, tokens are for it.
    #[arg(long, value_name = "URL", value_parser = public_url)]
    pub(crate) public_url: Option<Url>,

    /// How many seconds everything is still served after the server was told to stop, while /readyz says that it is not
    /// ready: as long as a load balancer takes to notice. A second signal ends it at once.
    #[arg(long, value_name = "SECONDS", default_value = "0", value_parser = seconds)]
    pub(crate) drain: Duration,
}

/// Checks the options of the listener against each other. `PORT` in the environment does not contradict a Unix socket,
/// `--port` does.
pub(in crate::args) fn check_together(serve: &ArgMatches) -> Result<(), UsageError> {
    let is_typed = |id| serve.value_source(id) == Some(ValueSource::CommandLine);
    let has_unix = cfg!(unix) && is_typed("unix");
    if has_unix && is_typed("port") {
        return Err(UsageError::new("--unix listens on a Unix socket instead of a port; leave out --port"));
    }
    let with_relay = |id| serve.value_source(id).is_some();
    if with_relay("faults") && (with_relay("tls_cert") || has_unix || with_relay("trusted_proxies")) {
        return Err(UsageError::new(
            "--faults stands on a port without TLS and without a proxy in front; leave out --tls-cert, --unix and \
             --trusted-proxy, or start the server without --faults and run `refmcp relay --faults PLAN URL` beside it",
        ));
    }
    let mut proxies = serve.get_many::<TrustedProxy>("trusted_proxies").into_iter().flatten();
    if !has_unix && proxies.any(|proxy| *proxy == TrustedProxy::UNIX) {
        return Err(UsageError::new(
            "--trusted-proxy unix is for what comes by a Unix socket; add --unix PATH, or write the proxy's address",
        ));
    }
    Ok(())
}

/// Permissions in octal.
#[cfg(unix)]
fn mode(text: &str) -> Result<u32, String> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let mode = u32::from_str_radix(text, 8).ok().filter(|mode| digits && *mode <= 0o777);
    mode.ok_or_else(|| "expected permissions in octal, such as 600 or 660".to_owned())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn permissions_are_octal() {
        assert_eq!((mode("600"), mode("0660")), (Ok(0o600), Ok(0o660)));
        for bad in ["", "8", "1777", "rw", "+600", "0o600"] {
            assert!(mode(bad).is_err(), "{bad}");
        }
    }
}
