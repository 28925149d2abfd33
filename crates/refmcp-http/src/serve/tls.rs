//! TLS, with rustls.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, pem};
use tokio_rustls::server::TlsStream;
use tokio_rustls::{TlsAcceptor, rustls};

use super::HttpVersion;

/// A certificate and its key, ready to be used.
#[derive(Clone)]
pub struct Tls(TlsAcceptor);

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tls")
    }
}

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BadTls {
    /// A file cannot be read.
    #[error("cannot read {0}")]
    File(PathBuf, #[source] io::Error),
    /// A file has no certificate in it, or a broken one.
    #[error("{0} has no readable certificate")]
    Certificate(PathBuf, #[source] pem::Error),
    /// A file has no private key in it, or a broken one.
    #[error("{0} has no readable private key")]
    Key(PathBuf, #[source] pem::Error),
    /// The two do not belong together, or are of a kind that is not supported.
    #[error("the certificate and the key cannot be used")]
    Pair(#[from] rustls::Error),
}

impl Tls {
    /// From two files in PEM: a chain of certificates, the server's own first, and its private key.
    pub fn from_files(certificate: &Path, key: &Path) -> Result<Self, BadTls> {
        let read = |path: &Path| fs::read(path).map_err(|fault| BadTls::File(path.to_owned(), fault));
        let bad_certificate = |fault| BadTls::Certificate(certificate.to_owned(), fault);
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&read(certificate)?).collect();
        let chain = chain.map_err(bad_certificate)?;
        if chain.is_empty() {
            return Err(bad_certificate(pem::Error::NoItemsFound));
        }
        let bad_key = |fault| BadTls::Key(key.to_owned(), fault);
        let key = PrivateKeyDer::from_pem_slice(&read(key)?).map_err(bad_key)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(chain, key)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self(TlsAcceptor::from(Arc::new(config))))
    }

    /// The same certificate for a listener that speaks HTTP/1.1 and nothing else.
    #[must_use]
    pub fn only_http1(&self) -> Self {
        let mut config = ServerConfig::clone(self.0.config());
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Self(TlsAcceptor::from(Arc::new(config)))
    }

    /// Shakes hands with a client of a listener of one's own.
    ///
    /// # Errors
    /// The client speaks no TLS, or none that is spoken here, or trusts somebody else.
    pub async fn handshake(
        &self,
        stream: TcpStream,
    ) -> io::Result<impl AsyncRead + AsyncWrite + Unpin + Send + use<>> {
        // Boxed, since it is large.
        Ok(Box::new(self.0.accept(stream).await?))
    }

    /// Shakes hands; the client has chosen its version of HTTP by then.
    pub(super) async fn accept(
        &self,
        stream: TcpStream,
    ) -> io::Result<(Box<TlsStream<TcpStream>>, HttpVersion)> {
        // Boxed, since it is large and most connections are plain.
        let stream = Box::new(self.0.accept(stream).await?);
        let two = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        Ok((stream, if two { HttpVersion::Two } else { HttpVersion::One }))
    }
}
