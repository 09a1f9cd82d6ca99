//! TLS, with certificates that are read again when their files change.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use rustls::ServerConfig;
use rustls::crypto::CryptoProvider;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls_pki_types::pem::{self, PemObject as _};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

/// Accepts TLS connections.
pub(crate) type Acceptor = TlsAcceptor;

/// The reason why a certificate cannot be used. The texts contain nothing of the private key.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// A file cannot be read.
    #[error("the file {} with the {what} cannot be read", path.display())]
    File {
        /// The path of the file.
        path: PathBuf,
        /// The content that was expected: `certificate` or `private key`.
        what: &'static str,
        /// The cause of the failure.
        #[source]
        source: std::io::Error,
    },
    /// A file has no PEM (RFC 7468) of the expected kind.
    #[error("{} contains no {what}", path.display())]
    Unreadable {
        /// The path of the file.
        path: PathBuf,
        /// The content that was expected: `certificate` or `private key`.
        what: &'static str,
        /// The cause of the failure.
        #[source]
        source: pem::Error,
    },
    /// Key and certificate do not match, or the type of the key is not supported.
    #[error("the certificate {} and its key cannot be used together", path.display())]
    Unusable {
        /// The path of the certificate's file.
        path: PathBuf,
        /// The cause of the failure.
        #[source]
        source: rustls::Error,
    },
}

/// A certificate and its private key, from two PEM files. The files are read again when they
/// change.
#[derive(Clone)]
pub struct Certificate(Arc<Files>);

struct Files {
    certificate: PathBuf,
    key: PathBuf,
    provider: Arc<CryptoProvider>,
    current: RwLock<Arc<CertifiedKey>>,
    changed: RwLock<[Option<SystemTime>; 2]>,
}

impl Certificate {
    /// Reads a certificate chain and its private key (PKCS #8, PKCS #1 or SEC 1).
    ///
    /// # Errors
    ///
    /// If a file cannot be read, or if the key and the certificate do not match.
    pub fn read(certificate: &Path, key: &Path) -> Result<Self, CertificateError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let changed = RwLock::new([modified(certificate), modified(key)]);
        let current = RwLock::new(Arc::new(read(certificate, key, &provider)?));
        let (certificate, key) = (certificate.to_owned(), key.to_owned());
        Ok(Self(Arc::new(Files {
            certificate,
            key,
            provider,
            current,
            changed,
        })))
    }

    /// Reads the files again. Open connections keep their certificate.
    ///
    /// # Errors
    ///
    /// The errors of [`Certificate::read`]. After an error the current certificate remains in use.
    pub fn reload(&self) -> Result<(), CertificateError> {
        let files = &self.0;
        let fresh = Arc::new(read(&files.certificate, &files.key, &files.provider)?);
        *files
            .current
            .write()
            .unwrap_or_else(PoisonError::into_inner) = fresh;
        Ok(())
    }

    /// Checks the files every `interval`, and reloads them after a change. This future never
    /// completes.
    pub async fn watch(self, interval: Duration) {
        let mut ticks = tokio::time::interval(interval);
        loop {
            ticks.tick().await;
            if !self.0.has_changed() {
                continue;
            }
            match self.reload() {
                Ok(()) => tracing::info!("certificate reloaded"),
                Err(error) => {
                    tracing::error!(%error, "cannot read the new certificate; keeping the old one");
                }
            }
        }
    }

    pub(super) fn into_acceptor(self) -> Acceptor {
        let provider = Arc::clone(&self.0.provider);
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("the provider has suites for TLS 1.2 and 1.3")
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(self));
        // With session tickets, a client that reconnects saves most of the handshake. The service
        // also works without tickets.
        if let Ok(ticketer) = rustls::crypto::ring::Ticketer::new() {
            config.ticketer = ticketer;
        }
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        TlsAcceptor::from(Arc::new(config))
    }
}

impl Files {
    /// Whether the certificate or the key was modified since the previous call. Stores the times of
    /// modification for the next call.
    fn has_changed(&self) -> bool {
        let now = [modified(&self.certificate), modified(&self.key)];
        let mut changed = self.changed.write().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *changed, now) != now
    }
}

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(
            &self
                .0
                .current
                .read()
                .unwrap_or_else(PoisonError::into_inner),
        ))
    }
}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificate")
            .field("certificate", &self.0.certificate)
            .field("key", &self.0.key)
            .finish_non_exhaustive()
    }
}

fn modified(path: &Path) -> Option<SystemTime> {
    std::fs::metadata(path)
        .and_then(|data| data.modified())
        .ok()
}

fn read(
    certificate: &Path,
    key: &Path,
    provider: &CryptoProvider,
) -> Result<CertifiedKey, CertificateError> {
    let unreadable = |path: &Path, what| {
        let path = path.to_owned();
        move |source| match source {
            pem::Error::Io(source) => CertificateError::File { path, what, source },
            source => CertificateError::Unreadable { path, what, source },
        }
    };
    let chain = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .and_then(|chain| {
            if chain.is_empty() {
                return Err(pem::Error::NoItemsFound);
            }
            Ok(chain)
        })
        .map_err(unreadable(certificate, "certificate"))?;
    let private = PrivateKeyDer::from_pem_file(key).map_err(unreadable(key, "private key"))?;
    let unusable = |source| CertificateError::Unusable {
        path: certificate.to_owned(),
        source,
    };
    CertifiedKey::from_der(chain, private, provider).map_err(unusable)
}
