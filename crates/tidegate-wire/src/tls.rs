//! TLS to PostgreSQL, with the same meaning of `sslmode` as in libpq.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};
use sha2::{Digest, Sha256, Sha384, Sha512};
use tokio_rustls::TlsConnector;

use crate::config::{Config, TlsMode};
use crate::connect_error::ConnectError;

/// The TLS connector of a configuration. Root certificates are read only once.
pub fn connector(config: &Config) -> Result<TlsConnector, ConnectError> {
    if let Some(connector) = config.connector.get() {
        return Ok(TlsConnector::from(connector.clone()));
    }
    let settings = build(config)?;
    Ok(TlsConnector::from(
        config.connector.get_or_init(|| settings).clone(),
    ))
}

/// The name that the server's certificate must contain.
pub fn server_name(host: &str) -> Result<ServerName<'static>, ConnectError> {
    ServerName::try_from(host.to_owned())
        .map_err(|_| ConnectError::Tls(format!("`{host}` is no name that a certificate can bear")))
}

fn build(config: &Config) -> Result<Arc<ClientConfig>, ConnectError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    // A root certificate turns `require` into `verify-ca`, as in libpq.
    let check = match (config.tls, &config.root_certificate) {
        (TlsMode::VerifyFull, _) => Check::Name,
        (TlsMode::VerifyCa, _) | (TlsMode::Require, Some(_)) => Check::Chain,
        _ => Check::Nothing,
    };
    let chain = match check {
        Check::Nothing => None,
        Check::Chain | Check::Name => {
            let roots = Arc::new(roots(config)?);
            let verifier = WebPkiServerVerifier::builder_with_provider(roots, provider.clone());
            Some(
                verifier
                    .build()
                    .map_err(|error| ConnectError::Tls(error.to_string()))?,
            )
        }
    };
    let verifier = Arc::new(Verifier {
        chain,
        check,
        provider: provider.clone(),
    });
    let settings = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| ConnectError::Tls(error.to_string()))?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    Ok(Arc::new(settings))
}

fn roots(config: &Config) -> Result<RootCertStore, ConnectError> {
    let mut store = RootCertStore::empty();
    if let Some(path) = &config.root_certificate {
        let unreadable =
            |error: &dyn std::fmt::Display| ConnectError::Tls(format!("sslrootcert: {error}"));
        let certificates =
            CertificateDer::pem_file_iter(path).map_err(|error| unreadable(&error))?;
        for certificate in certificates {
            let certificate = certificate.map_err(|error| unreadable(&error))?;
            store.add(certificate).map_err(|error| unreadable(&error))?;
        }
    } else {
        store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    }
    if store.is_empty() {
        return Err(ConnectError::Tls(
            "there is no root certificate to verify by".to_owned(),
        ));
    }
    Ok(store)
}

/// Which parts of a certificate are verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Check {
    /// The certificate is not verified.
    Nothing,
    /// The certificate's chain is verified.
    Chain,
    /// The certificate's chain and the host name are verified.
    Name,
}

#[derive(Debug)]
struct Verifier {
    chain: Option<Arc<WebPkiServerVerifier>>,
    check: Check,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(chain) = &self.chain else {
            return Ok(ServerCertVerified::assertion());
        };
        let verified =
            chain.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        match verified {
            // The chain is verified before the name, so an error about the name means that the
            // chain is valid.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if self.check == Check::Chain => Ok(ServerCertVerified::assertion()),
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}

/// The hash of a certificate (DER) with the hash function of its signature (RFC 5929 section 4.1).
/// `None` if the certificate cannot be parsed, or if the hash function is unknown.
pub fn server_end_point(certificate: &[u8]) -> Option<Vec<u8>> {
    // Certificate ::= SEQUENCE { tbsCertificate SEQUENCE, signatureAlgorithm SEQUENCE { OID … } … }
    let (body, _) = der(certificate)?;
    let (_, rest) = der(body)?;
    let (algorithm, _) = der(rest)?;
    let (oid, _) = der(algorithm)?;
    match oid {
        // RSA with MD5, SHA-1 or SHA-256, and ECDSA with SHA-1 or SHA-256. RFC 5929 replaces MD5
        // and SHA-1 by SHA-256.
        [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 4 | 5 | 11]
        | [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x01]
        | [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02] => {
            Some(Sha256::digest(certificate).to_vec())
        }
        [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 12]
        | [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x03] => {
            Some(Sha384::digest(certificate).to_vec())
        }
        [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 13]
        | [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x04] => {
            Some(Sha512::digest(certificate).to_vec())
        }
        _ => None,
    }
}

/// The contents of the first DER element, and the bytes after the element (X.690 section 8.1).
fn der(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&length, rest) = bytes.get(1..)?.split_first()?;
    let (length, rest) = match usize::from(length) {
        short @ 0..=0x7f => (short, rest),
        long => {
            let (digits, rest) = rest.split_at_checked(long & 0x7f)?;
            if digits.len() > 4 {
                return None;
            }
            (
                digits
                    .iter()
                    .fold(0, |sum, digit| sum << 8 | usize::from(*digit)),
                rest,
            )
        }
    };
    rest.split_at_checked(length)
}
