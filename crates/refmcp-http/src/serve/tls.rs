//! TLS by rustls, with certificates that can be reloaded.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::RwLock;
use refmcp_transport::file::{open_regular, read_limited};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, pem};
use tokio_rustls::server::TlsStream;
use tokio_rustls::{TlsAcceptor, rustls};

use super::HttpVersion;

/// Bytes of the longest file of a certificate or a key.
const MAX_BYTES: u64 = 1 << 20;

/// A certificate and its key. Clones share them: [`Tls::reload`] of one is for all.
#[derive(Clone)]
pub struct Tls {
    files: Arc<Files>,
    only_http1: bool,
}

/// The files of certificate and key, and their content.
struct Files {
    certificate: PathBuf,
    key: PathBuf,
    current: RwLock<Acceptors>,
}

/// Acceptors that offer both versions of HTTP, and HTTP/1.1 alone.
#[derive(Clone)]
struct Acceptors {
    any: TlsAcceptor,
    http1: TlsAcceptor,
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls").field("certificate", &self.files.certificate).finish_non_exhaustive()
    }
}

/// A certificate that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read {0}")]
    File(PathBuf, #[source] io::Error),
    /// A file has no valid certificate.
    #[error("{0} has no readable certificate")]
    Certificate(PathBuf, #[source] pem::Error),
    /// A file has no valid private key.
    #[error("{0} has no readable private key")]
    Key(PathBuf, #[source] pem::Error),
    /// They do not belong together, or are not supported.
    #[error("the certificate and the key cannot be used")]
    Pair(#[from] rustls::Error),
}

impl Tls {
    /// Reads two PEM files: a chain of certificates, the server's own first, and its private key.
    pub fn from_files(certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        let current = RwLock::new(Acceptors::read(certificate, key)?);
        let files = Files { certificate: certificate.to_owned(), key: key.to_owned(), current };
        Ok(Self { files: Arc::new(files), only_http1: false })
    }

    /// Reads the files again, for new connections.
    ///
    /// # Errors
    /// The files cannot be used; the certificate from before stays in use.
    pub fn reload(&self) -> Result<(), TlsError> {
        let read = Acceptors::read(&self.files.certificate, &self.files.key)?;
        *self.files.current.write() = read;
        Ok(())
    }

    /// The same certificate for a listener that offers HTTP/1.1 alone.
    #[must_use]
    pub fn only_http1(&self) -> Self {
        Self { only_http1: true, ..self.clone() }
    }

    fn acceptor(&self) -> TlsAcceptor {
        let current = self.files.current.read();
        if self.only_http1 { current.http1.clone() } else { current.any.clone() }
    }

    /// The TLS handshake, for a listener of an application.
    ///
    /// # Errors
    /// The handshake fails.
    pub async fn handshake(
        &self,
        stream: TcpStream,
    ) -> io::Result<impl AsyncRead + AsyncWrite + Unpin + Send + use<>> {
        Ok(self.accept(stream).await?.0)
    }

    /// The TLS handshake, in which the client chooses the version of HTTP.
    pub(super) async fn accept<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        stream: S,
    ) -> io::Result<(Box<TlsStream<S>>, HttpVersion)> {
        // Boxed, since it is large and most connections are plain.
        let stream = Box::new(self.acceptor().accept(stream).await?);
        let http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        Ok((stream, if http2 { HttpVersion::Http2 } else { HttpVersion::Http1 }))
    }
}

impl Acceptors {
    fn read(certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        // A reload must not hang: a pipe in place of the file would block, and a device has no end.
        let read = |path: &Path| {
            let read = open_regular(path).and_then(|file| read_limited(file, MAX_BYTES));
            read.map_err(|error| TlsError::File(path.to_owned(), error))
        };
        let bad_certificate = |error| TlsError::Certificate(certificate.to_owned(), error);
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&read(certificate)?).collect();
        let chain = chain.map_err(bad_certificate)?;
        if chain.is_empty() {
            return Err(bad_certificate(pem::Error::NoItemsFound));
        }
        let bad_key = |error| TlsError::Key(key.to_owned(), error);
        let key = PrivateKeyDer::from_pem_slice(&read(key)?).map_err(bad_key)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(chain, key)?;
        let offering = |protocols: &[&str]| {
            let mut config = config.clone();
            config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
            TlsAcceptor::from(Arc::new(config))
        };
        Ok(Self { any: offering(&["h2", "http/1.1"]), http1: offering(&["http/1.1"]) })
    }
}
