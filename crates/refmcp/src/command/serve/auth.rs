//! Who may use the server: the options of `--auth` as what decides it, and the authorization server for tests.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use bytes::Bytes;
use hyper::{Request, Response};
use refmcp_auth::fetch::{BoxFuture, Fetch};
use refmcp_auth::jose::Jwks;
use refmcp_auth::resource::{DpopNonces, Introspection, ResourceNames};
use refmcp_auth::{Scopes, Secret};
use refmcp_client::http::{AddressScope, Fetcher};
use refmcp_http::{ExtraRoutes, Options, ResourceServer, ResourceServerOptions};
use refmcp_issuer::{Client, Fault, Faults, InProcessFetch, Issuer, Login, Settings, TrustedIssuer};
use url::Url;

use super::addresses::ServerAddresses;
use crate::args::{AuthorizationOptions, BuiltinLogin, DpopPolicy, TokenIssuer, UsageError, usage};
use crate::command::scoped_fetch::ScopedFetcher;

/// What is said about it, line by line.
type Lines = Vec<(&'static str, String)>;

/// What others are told about who may use the server.
#[derive(Debug, Default)]
pub(super) struct About {
    /// To the operator.
    pub(super) lines: Lines,
    /// To its clients: the extensions of the protocol by which they can get in.
    pub(super) extensions: Vec<&'static str>,
}

/// Makes the endpoint take only those with a token, where that is asked for; gives what to say about it.
///
/// # Errors
///
/// The options do not fit together, or a file cannot be read.
pub(super) fn set(
    options: &AuthorizationOptions,
    addresses: &ServerAddresses,
    http: &mut Options,
) -> Result<About> {
    let Some(issuer) = &options.auth else {
        addresses.check_public()?;
        return Ok(About::default());
    };
    let origin = addresses.origin()?;
    let resource = origin.join(addresses.path.as_str()).context("no address")?;
    match issuer {
        TokenIssuer::Builtin => builtin(options, &origin, resource, http),
        TokenIssuer::External(name) => elsewhere(options, name, resource, http),
    }
}

fn builtin(options: &AuthorizationOptions, origin: &Url, resource: Url, http: &mut Options) -> Result<About> {
    let mut settings = Settings::new(origin.clone(), refmcp_auth::uri::canonical(&resource));
    // By every name that clients may know it.
    let names = ResourceNames::new(resource.clone(), http.path.as_str(), &[http.path.websocket(), "/sse"]);
    let hosts: &[String] = if http.trusted_proxies.is_empty() { &[] } else { &http.hosts };
    settings.resources = names.and_hosts(hosts.iter().map(String::as_str)).audiences();
    settings.resources.extend(options.auth_resources.iter().map(refmcp_auth::uri::canonical));
    settings.scopes = options.auth_scopes.clone().unwrap_or_else(own_scopes);
    settings.default_scopes = first_of(&settings.scopes);
    settings.login = match options.auth_login {
        BuiltinLogin::Ask => Login::Ask,
        BuiltinLogin::Auto => Login::Auto,
    };
    if let Some(lifetime) = options.auth_token_lifetime {
        settings.lifetime = lifetime;
    }
    settings.clients = options
        .auth_clients
        .iter()
        .map(|client| match &client.secret {
            Some(secret) => Client::with_secret(&client.id, secret.reveal()),
            None => Client::public(&client.id),
        })
        .collect();
    for (id, file) in &options.auth_client_keys {
        settings.clients.push(Client::with_keys(id, keys_in(file, &format!("the client {id}"))?));
    }
    settings.workload_issuers = trusted(&options.auth_workload_issuers)?;
    settings.identity_providers = trusted(&options.auth_identity_providers)?;
    // Clients that are named by their documents are strangers: they name what they can reach themselves.
    let reach = AddressScope::of_url(origin);
    settings.fetch = Some(Arc::new(Fetcher::guarded(reach)));
    settings.near_documents = reach == AddressScope::Loopback;
    settings.dpop_nonce = options.auth_dpop == DpopPolicy::Nonce;
    for word in &options.auth_faults {
        settings.faults =
            settings.faults.and_named(word).map_err(|error| UsageError::new(error.to_string()))?;
    }
    let asked = options.auth_introspect || settings.faults.has(Fault::OpaqueTokens);
    let lines = described(&settings);
    let (supported, faults) = (settings.scopes.clone(), settings.faults.clone());
    let issuer = Issuer::new(settings).context("the authorization server cannot start")?;
    let fetch: Arc<dyn Fetch> = Arc::new(InProcessFetch::new(issuer.clone(), None));
    let mut demands = demands(supported, options)?;
    // Both read the same clock, and tests of token renewal should not wait a minute longer.
    demands.clock_skew = Duration::ZERO;
    if asked {
        let (client_id, secret) = issuer.resource_credentials();
        let client_secret =
            secret.cloned().context("the authorization server has no credentials for introspection")?;
        demands.introspection = Some(Introspection { client_id: client_id.to_owned(), client_secret });
    }
    http.resource_server = Some(ResourceServer::new(resource, issuer.name(), fetch).options(demands));
    let extensions = issuer.metadata().extensions();
    if let Some(path) =
        issuer.paths().iter().find(|path| [http.path.as_str(), http.path.websocket()].contains(&&***path))
    {
        let what = format!("--path: the built-in authorization server is at {path}; choose another");
        return Err(UsageError::new(what).into());
    }
    http.extra_routes = Some(Arc::new(AtPort(issuer)));
    if faults != Faults::default() {
        tracing::warn!(
            faults = options.auth_faults.join(", "),
            "the authorization server goes wrong, as it was told"
        );
    }
    Ok(About { lines, extensions })
}

fn elsewhere(options: &AuthorizationOptions, name: &str, resource: Url, http: &mut Options) -> Result<About> {
    for (given, option) in [
        (options.auth_login == BuiltinLogin::Auto, "--auth-login"),
        (!options.auth_faults.is_empty(), "--auth-fault"),
        (options.auth_token_lifetime.is_some(), "--auth-token-lifetime"),
        (!options.auth_clients.is_empty(), "--auth-client"),
        (!options.auth_client_keys.is_empty(), "--auth-client-keys"),
        (!options.auth_resources.is_empty(), "--auth-resource"),
        (!options.auth_workload_issuers.is_empty(), "--auth-workload-issuer"),
        (!options.auth_identity_providers.is_empty(), "--auth-identity-provider"),
    ] {
        if given {
            let what = "is for the authorization server that is built in: --auth builtin";
            return Err(usage!("{option} {what}").into());
        }
    }
    // The operator names the issuer's URL, so it may be local.
    let url = Url::parse(name).context("the issuer's URL")?;
    let mut demands = demands(options.auth_scopes.clone().unwrap_or_else(own_scopes), options)?;
    match (&options.auth_introspect_id, &options.auth_introspect_secret_file) {
        (Some(id), Some(file)) => {
            let secret = std::fs::read_to_string(file)
                .with_context(|| format!("--auth-introspect-secret-file {}", file.display()))?;
            let client_secret = Secret::new(secret.trim_end());
            demands.introspection = Some(Introspection { client_id: id.clone(), client_secret });
        }
        _ if options.auth_introspect => {
            let what = "--auth-introspect: another issuer needs --auth-introspect-id as well";
            return Err(UsageError::new(what).into());
        }
        _ => {}
    }
    let resource_server = ResourceServer::new(resource, name, Arc::new(ScopedFetcher::trusted(&url)));
    http.resource_server = Some(resource_server.options(demands));
    // Which grants an issuer elsewhere gives is in its metadata. Those may not be there yet when the server starts, and may
    // change while it runs; what it can do is said once. Clients read the metadata anyway.
    Ok(About { lines: vec![("issuer", name.to_owned())], extensions: Vec::new() })
}

/// What tokens have to be, and the scopes that there are.
fn demands(supported: Scopes, options: &AuthorizationOptions) -> Result<ResourceServerOptions> {
    let nonces = (options.auth_dpop == DpopPolicy::Nonce).then(DpopNonces::new).transpose();
    Ok(ResourceServerOptions {
        challenge_scopes: first_of(&supported),
        scopes: supported,
        allow_other_audiences: options.auth_other_audiences,
        recheck_every: options.auth_introspect_every,
        require_dpop: options.auth_dpop != DpopPolicy::Optional,
        dpop_nonces: nonces.context("no random numbers")?,
        ..ResourceServerOptions::default()
    })
}

/// What clients ask for at first; any token will do for most tools.
const FIRST_SCOPE: &str = "mcp:read";

/// That and the scopes of the server's tools.
fn own_scopes() -> Scopes {
    std::iter::once(FIRST_SCOPE).chain(refmcp_reference::SCOPES).collect()
}

/// The scope that clients are told to ask for at first; the others they learn of when they need them.
fn first_of(scopes: &Scopes) -> Scopes {
    scopes.iter().take(1).collect()
}

/// Those whose word is taken, with the keys in their files.
fn trusted(named: &[(String, String)]) -> Result<Vec<TrustedIssuer>> {
    let read = |(issuer, file): &(String, String)| {
        Ok(TrustedIssuer { issuer: issuer.clone(), keys: keys_in(file, issuer)? })
    };
    named.iter().map(read).collect()
}

/// The key set in a file.
fn keys_in(file: &str, whose: &str) -> Result<Jwks> {
    let text = std::fs::read(file).with_context(|| format!("the keys of {whose}: {file}"))?;
    serde_json::from_slice(&text).with_context(|| format!("{file} is no JWKS"))
}

fn described(settings: &Settings) -> Lines {
    let login = match settings.login {
        Login::Ask => "people are asked on a page",
        Login::Auto => "everybody is let in at once",
    };
    let mut lines = vec![
        ("issuer", format!("{} (built in, for tests: it checks no password)", settings.issuer())),
        ("login", login.to_owned()),
        ("scopes", settings.scopes.to_string()),
    ];
    if settings.faults != Faults::default() {
        lines.push(("faults", settings.faults.to_string()));
    }
    lines
}

/// The authorization server on the same port.
#[derive(Debug)]
struct AtPort(Issuer);

impl ExtraRoutes for AtPort {
    fn paths(&self) -> Vec<String> {
        self.0.paths()
    }

    fn answer(&self, request: Request<Bytes>) -> BoxFuture<'_, Response<Bytes>> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        self.0.answer(request, now)
    }
}
