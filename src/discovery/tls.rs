//! The encrypted connection's settings (D1): whom to trust, who we are, and for whom the other must have a certificate.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use containerpilot_core::plan::Tls;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

use super::{ciphers, read};

/// Where systems keep the certificates they trust, in the order in which Go looks for them.
const SYSTEM_BUNDLES: [&str; 6] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/pki/tls/cacert.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// Reads the files and makes a configuration of them. Says what is wrong with which file.
pub(super) fn configuration(tls: &Tls) -> Result<Arc<ClientConfig>, String> {
    let provider = Arc::new(ciphers::provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let builder = if tls.verify {
        builder.with_root_certificates(roots(tls)?)
    } else {
        builder.dangerous().with_custom_certificate_verifier(Arc::new(Anybody(provider)))
    };
    let config = match (&tls.client_cert, &tls.client_key) {
        (Some(certificate), Some(key)) => {
            let chain = certificates(Path::new(certificate))?;
            let key = PrivateKeyDer::from_pem_slice(&read(Path::new(key))?)
                .map_err(|error| format!("there is no private key in {key}: {error}"))?;
            builder
                .with_client_auth_cert(chain, key)
                .map_err(|error| format!("the client's certificate {certificate} cannot be used: {error}"))?
        }
        _ => builder.with_no_client_auth(),
    };
    Ok(Arc::new(config))
}

/// The name that the other's certificate must be for.
pub(super) fn server_name(tls: &Tls, host: &str) -> Result<ServerName<'static>, String> {
    let name = tls.server_name.as_deref().unwrap_or(host);
    ServerName::try_from(name.to_owned()).map_err(|_| format!("`{name}` cannot be the name of a server"))
}

fn roots(tls: &Tls) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    let mut trusted = Vec::new();
    if let Some(file) = &tls.ca_file {
        trusted.extend(certificates(Path::new(file))?);
    }
    if let Some(folder) = &tls.ca_path {
        trusted.extend(certificates_in(Path::new(folder))?);
    }
    if tls.ca_file.is_none() && tls.ca_path.is_none() {
        trusted.extend(certificates(&system_bundle()?)?);
    }
    let (taken, refused) = roots.add_parsable_certificates(trusted);
    if taken == 0 {
        return Err(format!("none of the {refused} certificates to trust can be used"));
    }
    Ok(roots)
}

fn system_bundle() -> Result<PathBuf, String> {
    let named = std::env::var_os("SSL_CERT_FILE").filter(|name| name != OsStr::new("")).map(PathBuf::from);
    let usual = || SYSTEM_BUNDLES.map(PathBuf::from).into_iter().find(|path| path.exists());
    named.or_else(usual).ok_or_else(|| {
        "this system has no certificates to trust: set `cafile`, or install them (ca-certificates)".to_owned()
    })
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&read(path)?).collect();
    match found {
        Ok(found) if found.is_empty() => Err(format!("there is no certificate in {}", path.display())),
        Ok(found) => Ok(found),
        Err(error) => Err(format!("a certificate in {} is broken: {error}", path.display())),
    }
}

/// The certificates in all files of a folder; files without any are passed over.
fn certificates_in(folder: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let unreadable = |error: std::io::Error| format!("{} cannot be read: {error}", folder.display());
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    let found: Vec<_> = files.iter().filter_map(|file| certificates(file).ok()).flatten().collect();
    if found.is_empty() {
        return Err(format!("there is no certificate in any file of {}", folder.display()));
    }
    Ok(found)
}

/// Takes every certificate, because it was told to in so many words (`verify: false`).
#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
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

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
