//! Trust in certificates that were given by hand, beside those of the system.
//!
//! A certificate that `openssl req -x509` makes is its own authority, and says so (`CA:TRUE`). Servers present it all
//! the same, and webpki refuses an authority's certificate in that place. Where the very certificate that the server
//! presents was given by hand, there is no chain to check, so only its name and the server's signature are.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use refmcp_transport::file::{open_regular, read_limited};
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::client::{WebPkiServerVerifier, verify_server_name};
use tokio_rustls::rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::server::ParsedCertificate;
use tokio_rustls::rustls::{
    CertificateError, DigitallySignedStruct, Error, OtherError, RootCertStore, SignatureScheme,
};

/// Bytes of the longest file of certificates.
const MAX_BYTES: u64 = 16 << 20;

/// Whether the fault is that an authority's certificate is the server's own, by the name that webpki has for it. It
/// comes after that of a certificate that has expired.
pub(super) fn is_authority_in_place(why: &OtherError) -> bool {
    why.0.to_string() == "CaUsedAsEndEntity"
}

/// The certificates in a file in PEM, in DER, for
/// [`HttpSettings::ca_certificates`](super::HttpSettings::ca_certificates).
///
/// # Errors
/// The file cannot be read, or has no certificate in it; the error names it.
pub fn read_certificates(file: &Path) -> Result<Vec<Vec<u8>>, String> {
    let shown = file.display();
    let pem = open_regular(file).and_then(|file| read_limited(file, MAX_BYTES));
    let pem = pem.map_err(|fault| format!("{shown} cannot be read: {fault}"))?;
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let certificates =
        certificates.map_err(|fault| format!("{shown} has no certificates in PEM: {fault}"))?;
    if certificates.is_empty() {
        let what = "expected a file with -----BEGIN CERTIFICATE-----";
        return Err(format!("{shown} has no certificate in it: {what}"));
    }
    Ok(certificates.into_iter().map(|certificate| certificate.to_vec()).collect())
}

/// Trusts what leads to a root, and the very certificates that were given.
pub(super) struct GivenOrRooted {
    rooted: Arc<WebPkiServerVerifier>,
    given: Vec<CertificateDer<'static>>,
    provider: Arc<CryptoProvider>,
}

impl GivenOrRooted {
    pub(super) fn new(
        roots: RootCertStore,
        given: Vec<CertificateDer<'static>>,
        provider: Arc<CryptoProvider>,
    ) -> Result<Self, String> {
        let rooted = WebPkiServerVerifier::builder_with_provider(roots.into(), provider.clone()).build();
        Ok(Self { rooted: rooted.map_err(|fault| fault.to_string())?, given, provider })
    }
}

impl fmt::Debug for GivenOrRooted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GivenOrRooted").field("given", &self.given.len()).finish_non_exhaustive()
    }
}

impl ServerCertVerifier for GivenOrRooted {
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
                    && self.given.iter().any(|given| given.as_ref() == end_entity.as_ref()) =>
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
