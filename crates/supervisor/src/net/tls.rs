//! TLS settings (D1, H10): which certificates to trust, which one to present, and the expected server name.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use containerpilot_core::plan::Tls;
use containerpilot_core::sort_by;
use containerpilot_process::error_text::describe;
use containerpilot_process::regular_file;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{
    AlertDescription, ClientConfig, DigitallySignedStruct, InvalidMessage, RootCertStore, SignatureScheme,
};
use thiserror::Error;

/// Longest file of certificates or tokens. The certificate bundle of a Linux distribution has about 250 KiB.
const FILE_BYTES: u64 = 8 * 1024 * 1024;

/// The files with the trusted certificates of a system, in the order of Go.
const SYSTEM_BUNDLES: [&str; 6] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/pki/tls/cacert.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// What `ring` can verify, for errors.
pub(crate) const SUPPORTED: &str = "supported are RSA keys of 2048 to 8192 bits, P-256, P-384 and Ed25519, signed with SHA-256, \
     SHA-384 or (by RSA) SHA-512; not P-521, Ed448 and the key type RSA-PSS";

/// Why TLS cannot be set up.
#[derive(Debug, Error)]
pub(crate) enum TlsError {
    #[error(transparent)]
    File(#[from] TlsFileError),
    #[error("cannot read the directory {}: {}", path.display(), describe(source))]
    Directory { path: PathBuf, source: io::Error },
    #[error("no certificate in {}", .0.display())]
    NoCertificate(PathBuf),
    #[error("invalid certificate in {}: {source}", path.display())]
    InvalidCertificate { path: PathBuf, source: pem::Error },
    #[error("no usable certificate among the {0} trusted ones")]
    NoTrustAnchor(usize),
    #[error("no trusted certificates on this system: set `cafile`, or install the package ca-certificates")]
    NoSystemBundle,
    #[error("no private key in {}: {source}", path.display())]
    NoPrivateKey { path: PathBuf, source: pem::Error },
    #[error("the key {} does not belong to the client certificate {}", key.display(), certificate.display())]
    KeyMismatch { certificate: PathBuf, key: PathBuf },
    #[error("cannot use the client certificate {}: its key is not valid or not supported; {SUPPORTED}", .0.display())]
    ClientKey(PathBuf),
    #[error("`{0}` is not a valid server name")]
    ServerName(String),
    #[error(transparent)]
    Rustls(#[from] rustls::Error),
}

impl TlsError {
    /// Returns true if a client certificate and its key can never be used. Files that cannot be read may appear later.
    pub(crate) const fn is_about_client_key(&self) -> bool {
        matches!(self, Self::KeyMismatch { .. } | Self::ClientKey(_) | Self::NoPrivateKey { .. })
    }
}

/// Reads the certificates and keys that the settings name.
pub(crate) fn client_config(tls: &Tls) -> Result<Arc<ClientConfig>, TlsError> {
    let certified = client_certificate(tls)?;
    let provider = Arc::new(ring::default_provider());
    let builder =
        ClientConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions()?;
    let builder = if tls.verify {
        builder.with_root_certificates(trust_anchors(tls)?)
    } else {
        builder.dangerous().with_custom_certificate_verifier(Arc::new(AcceptAny(provider)))
    };
    let config = match certified {
        Some(certified) => builder.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(certified))),
        None => builder.with_no_client_auth(),
    };
    Ok(Arc::new(config))
}

/// The certificate to present, with its key. It may be of X.509 version 1, which the library cannot read and need not.
fn client_certificate(tls: &Tls) -> Result<Option<CertifiedKey>, TlsError> {
    let (Some(certificate), Some(key)) = (&tls.client_cert, &tls.client_key) else { return Ok(None) };
    let (certificate, key) = (Path::new(certificate), Path::new(key));
    let chain = certificates(certificate)?;
    let private = PrivateKeyDer::from_pem_slice(&read_file(key)?)
        .map_err(|source| TlsError::NoPrivateKey { path: key.to_owned(), source })?;
    let private = ring::default_provider().key_provider.load_private_key(private);
    let private = private.map_err(|_| TlsError::ClientKey(certificate.to_owned()))?;
    // A certificate contains its public key as it is.
    let is_in_certificate = |public: &[u8]| chain.first().is_some_and(|first| contains(first, public));
    if private.public_key().is_some_and(|public| !is_in_certificate(&public)) {
        return Err(TlsError::KeyMismatch { certificate: certificate.to_owned(), key: key.to_owned() });
    }
    Ok(Some(CertifiedKey::new(chain, private)))
}

/// Returns true if the text contains the part.
fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

/// Why a handshake failed. If a missing algorithm may be the reason, the error lists the supported ones.
pub(crate) fn handshake_error(error: &io::Error) -> String {
    use rustls::CertificateError::{
        UnsupportedSignatureAlgorithmContext, UnsupportedSignatureAlgorithmForPublicKeyContext,
    };
    match error.get_ref().and_then(|error| error.downcast_ref()) {
        Some(rustls::Error::InvalidCertificate(
            UnsupportedSignatureAlgorithmContext { .. }
            | UnsupportedSignatureAlgorithmForPublicKeyContext { .. },
        )) => format!("the key or signature algorithm of a certificate is not supported; {SUPPORTED}"),
        Some(rustls::Error::InvalidCertificate(rustls::CertificateError::UnknownIssuer)) => {
            format!("{error}: name the certificate of the authority that issued it with `cafile`")
        }
        Some(rustls::Error::InvalidCertificate(other)) if other.to_string().contains("UnsupportedCertVersion") => {
            "the certificate of the server, or of an authority that it names, is of X.509 version 1: make one of version 3, \
             for example with `openssl x509 -req -extfile`, or do not verify it (`verify: false`)"
                .to_owned()
        }
        // The first bytes of the answer are no TLS record.
        Some(rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType)) => {
            "that port does not speak TLS, try http://".to_owned()
        }
        // The client says what it supports, and the server has nothing of that.
        Some(rustls::Error::AlertReceived(AlertDescription::HandshakeFailure)) => {
            format!("{error}; perhaps the server has no certificate with a supported key; {SUPPORTED}")
        }
        _ => error.to_string(),
    }
}

/// The name that the server's certificate must be valid for.
pub(crate) fn server_name(tls: &Tls, host: &str) -> Result<ServerName<'static>, TlsError> {
    let name = tls.server_name.as_deref().unwrap_or(host);
    ServerName::try_from(name.to_owned()).map_err(|_| TlsError::ServerName(name.to_owned()))
}

fn trust_anchors(tls: &Tls) -> Result<RootCertStore, TlsError> {
    let mut anchors = RootCertStore::empty();
    let mut trusted = Vec::new();
    if let Some(file) = &tls.ca_file {
        trusted.extend(certificates(Path::new(file))?);
    }
    if let Some(directory) = &tls.ca_path {
        trusted.extend(certificates_in(Path::new(directory))?);
    }
    if tls.ca_file.is_none() && tls.ca_path.is_none() {
        trusted.extend(certificates(&system_bundle()?)?);
    }
    let (added, ignored) = anchors.add_parsable_certificates(trusted);
    if added == 0 {
        return Err(TlsError::NoTrustAnchor(ignored));
    }
    Ok(anchors)
}

fn system_bundle() -> Result<PathBuf, TlsError> {
    let named = std::env::var_os("SSL_CERT_FILE").filter(|name| name != OsStr::new("")).map(PathBuf::from);
    let usual = || SYSTEM_BUNDLES.map(PathBuf::from).into_iter().find(|path| path.exists());
    named.or_else(usual).ok_or(TlsError::NoSystemBundle)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&read_file(path)?).collect();
    match found {
        Ok(found) if found.is_empty() => Err(TlsError::NoCertificate(path.to_owned())),
        Ok(found) => Ok(found),
        Err(source) => Err(TlsError::InvalidCertificate { path: path.to_owned(), source }),
    }
}

/// The certificates in all files of a directory. Files without certificates are ignored.
fn certificates_in(directory: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let unreadable = |source| TlsError::Directory { path: directory.to_owned(), source };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.is_file() {
            files.push(path);
        }
    }
    sort_by(&mut files, Ord::cmp);
    let found: Vec<_> = files.iter().filter_map(|file| certificates(file).ok()).flatten().collect();
    if found.is_empty() {
        return Err(TlsError::NoCertificate(directory.to_owned()));
    }
    Ok(found)
}

/// Accepts every certificate, for `verify: false`.
#[derive(Debug)]
struct AcceptAny(Arc<CryptoProvider>);

impl ServerCertVerifier for AcceptAny {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    /// Any server has the key of a certificate that it made itself, so a valid signature proves nothing. With a
    /// certificate of X.509 version 1 it could not be verified at all.
    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.verify_tls12_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// A file of certificates or tokens cannot be read.
#[derive(Debug, Error)]
#[error("cannot read {}: {}", path.display(), describe(source))]
pub(crate) struct TlsFileError {
    path: PathBuf,
    source: io::Error,
}

/// Reads a file of certificates or tokens.
pub(crate) fn read_file(path: &Path) -> Result<Vec<u8>, TlsFileError> {
    regular_file::read(path, FILE_BYTES).map_err(|source| TlsFileError { path: path.to_owned(), source })
}
