//! TLS: whom to trust, and what is spoken inside.

use std::io;
use std::sync::{Arc, OnceLock};

use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{CertificateError, ClientConfig, Error, RootCertStore};

use super::given::{GivenOrRooted, is_authority_in_place};

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
    let given: Vec<_> = extra.iter().map(|der| CertificateDer::from(der.clone())).collect();
    for certificate in &given {
        roots
            .add(certificate.clone())
            .map_err(|fault| format!("a certificate that was given to be trusted is none: {fault}"))?;
    }
    if roots.is_empty() {
        return Err("there is no certificate to trust: the system has none and none was given".to_owned());
    }
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|fault| fault.to_string())?;
    let mut config = if given.is_empty() {
        builder.with_root_certificates(roots).with_no_client_auth()
    } else {
        let verifier = GivenOrRooted::new(roots, given, provider)?;
        builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth()
    };
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
    TlsConnector::from(config).connect(name, tcp).await.map_err(|fault| explain(&fault))
}

/// What went wrong, in words that say what to change.
fn explain(fault: &io::Error) -> String {
    let cause = fault.get_ref().and_then(|cause| cause.downcast_ref::<Error>());
    match cause {
        Some(Error::InvalidMessage(_)) => "TLS: the server does not speak TLS at this port".to_owned(),
        Some(Error::InvalidCertificate(CertificateError::UnknownIssuer)) => {
            "TLS: the server's certificate is signed by an authority that is not trusted here".to_owned()
        }
        Some(Error::InvalidCertificate(CertificateError::Other(why))) if is_authority_in_place(why) => {
            "TLS: the server's certificate is its own authority, and not trusted here".to_owned()
        }
        _ => format!("TLS: {fault}"),
    }
}
