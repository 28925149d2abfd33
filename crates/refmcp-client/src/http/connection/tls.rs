//! TLS: which certificates are trusted, and which HTTP versions are offered (ALPN).
//!
//! A certificate that `openssl req -x509` makes is its own authority, and says so (`CA:TRUE`). Servers present it all
//! the same, and webpki refuses an authority's certificate in that place. Where the very certificate that the server
//! presents was added by hand, there is no chain to check, so only its name and the server's signature are.

use std::io;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use refmcp_transport::file::{open_regular, read_limited};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::client::{WebPkiServerVerifier, verify_server_name};
use tokio_rustls::rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::server::ParsedCertificate;
use tokio_rustls::rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, OtherError, RootCertStore, SignatureScheme,
};

/// Bytes of the longest file of certificates that is read.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// The certificates of the system; reading them takes a while, so it happens once.
static SYSTEM: OnceLock<Vec<CertificateDer<'static>>> = OnceLock::new();

fn system_certificates() -> &'static [CertificateDer<'static>] {
    SYSTEM.get_or_init(|| {
        let found = rustls_native_certs::load_native_certs();
        for error in &found.errors {
            tracing::warn!(%error, "a certificate of the system cannot be read");
        }
        found.certs
    })
}

/// A configuration that trusts the certificates of the system and those in `extra`.
pub(crate) fn config(extra: &[Vec<u8>], protocols: &[&[u8]]) -> Result<Arc<ClientConfig>, String> {
    let mut roots = RootCertStore::empty();
    // Certificates of the system that cannot be used are left out.
    roots.add_parsable_certificates(system_certificates().iter().cloned());
    let added: Vec<_> = extra.iter().map(|der| CertificateDer::from(der.clone())).collect();
    for certificate in &added {
        roots
            .add(certificate.clone())
            .map_err(|error| format!("a certificate that was given to be trusted is none: {error}"))?;
    }
    if roots.is_empty() {
        return Err("there is no certificate to trust: the system has none and none was given".to_owned());
    }
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let mut config = if added.is_empty() {
        builder.with_root_certificates(roots).with_no_client_auth()
    } else {
        let verifier = AddedOrRooted::new(roots, added, provider)?;
        builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth()
    };
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    Ok(Arc::new(config))
}

/// The TLS handshake over a connection.
pub(crate) async fn wrap(
    config: Arc<ClientConfig>,
    host: String,
    tcp: TcpStream,
) -> Result<TlsStream<TcpStream>, String> {
    let name = ServerName::try_from(host).map_err(|_| "no certificate can be for that host".to_owned())?;
    TlsConnector::from(config).connect(name, tcp).await.map_err(|error| explain(&error))
}

/// What went wrong, and what to change.
fn explain(error: &io::Error) -> String {
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<Error>());
    match cause {
        Some(Error::InvalidMessage(_)) => "TLS: the server does not speak TLS at this port".to_owned(),
        Some(Error::InvalidCertificate(CertificateError::UnknownIssuer)) => {
            "TLS: the server's certificate is signed by an authority that is not trusted here".to_owned()
        }
        Some(Error::InvalidCertificate(CertificateError::Other(why))) if is_authority_in_place(why) => {
            "TLS: the server's certificate is its own authority, and not trusted here".to_owned()
        }
        _ => format!("TLS: {error}"),
    }
}

/// True if an authority's certificate is the server's own, by the name that webpki has for it. webpki checks this after
/// the dates.
fn is_authority_in_place(why: &OtherError) -> bool {
    why.0.to_string() == "CaUsedAsEndEntity"
}

/// The certificates in a file in PEM, in DER, for
/// [`HttpSettings::ca_certificates`](crate::http::HttpSettings::ca_certificates).
///
/// # Errors
/// The file cannot be read, or has no certificate in it; the error names it.
pub fn read_certificates(file: &Path) -> Result<Vec<Vec<u8>>, String> {
    let shown = file.display();
    let pem = open_regular(file).and_then(|file| read_limited(file, MAX_FILE_BYTES));
    let pem = pem.map_err(|error| format!("{shown} cannot be read: {error}"))?;
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let certificates =
        certificates.map_err(|error| format!("{shown} has no certificates in PEM: {error}"))?;
    if certificates.is_empty() {
        let what = "expected a file with -----BEGIN CERTIFICATE-----";
        return Err(format!("{shown} has no certificate in it: {what}"));
    }
    Ok(certificates.into_iter().map(|certificate| certificate.to_vec()).collect())
}

/// Trusts certificates that lead to a root, and the very ones that were added.
#[derive(Debug)]
struct AddedOrRooted {
    rooted: Arc<WebPkiServerVerifier>,
    added: Vec<CertificateDer<'static>>,
    provider: Arc<CryptoProvider>,
}

impl AddedOrRooted {
    fn new(
        roots: RootCertStore,
        added: Vec<CertificateDer<'static>>,
        provider: Arc<CryptoProvider>,
    ) -> Result<Self, String> {
        let rooted = WebPkiServerVerifier::builder_with_provider(roots.into(), provider.clone()).build();
        Ok(Self { rooted: rooted.map_err(|error| error.to_string())?, added, provider })
    }
}

impl ServerCertVerifier for AddedOrRooted {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified =
            self.rooted.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        match verified {
            Err(Error::InvalidCertificate(CertificateError::Other(why)))
                if is_authority_in_place(&why)
                    && self.added.iter().any(|added| added.as_ref() == end_entity.as_ref()) =>
            {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.rooted.supported_verify_schemes()
    }
}
