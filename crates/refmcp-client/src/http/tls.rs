//! TLS: whom to trust, and what is spoken inside.

use std::sync::{Arc, OnceLock};

use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// The certificates of the system; reading them takes a while, so it happens once.
static SYSTEM: OnceLock<Vec<CertificateDer<'static>>> = OnceLock::new();

fn system_certificates() -> &'static [CertificateDer<'static>] {
    SYSTEM.get_or_init(|| {
        let found = rustls_native_certs::load_native_certs();
        for fault in &found.errors {
            tracing::warn!(%fault, "a certificate of the system cannot be read");
        }
        found.certs
    })
}

/// A configuration that trusts the system and whoever else is named.
pub(crate) fn config(extra: &[Vec<u8>], protocols: &[&[u8]]) -> Result<Arc<ClientConfig>, String> {
    let mut roots = RootCertStore::empty();
    // The system's bag of certificates may hold some that are of no use; that concerns nobody.
    roots.add_parsable_certificates(system_certificates().iter().cloned());
    for der in extra {
        roots
            .add(CertificateDer::from(der.clone()))
            .map_err(|fault| format!("a certificate that was given to be trusted is none: {fault}"))?;
    }
    if roots.is_empty() {
        return Err("there is no certificate to trust: the system has none and none was given".to_owned());
    }
    let mut config = ClientConfig::builder_with_provider(ring::default_provider().into())
        .with_safe_default_protocol_versions()
        .map_err(|fault| fault.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    Ok(Arc::new(config))
}

/// Speaks TLS over a connection.
pub(crate) async fn wrap(
    config: Arc<ClientConfig>,
    host: String,
    tcp: TcpStream,
) -> Result<TlsStream<TcpStream>, String> {
    let name = ServerName::try_from(host).map_err(|_| "no certificate can be for that host".to_owned())?;
    TlsConnector::from(config).connect(name, tcp).await.map_err(|fault| format!("TLS: {fault}"))
}
