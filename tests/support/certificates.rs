//! Certificates for tests of TLS, made by openssl.

use super::deadline::InTime;
use super::program::programs;
use std::path::Path;
use std::process::Command;

/// Creates a certificate authority, a server and a client certificate in a directory.
pub(crate) fn certificates(folder: &Path, ip: &str) {
    let program = format!("{}/certificates.sh", programs());
    assert!(Command::new(program).arg(folder).arg(ip).status_in_time().unwrap().success());
}
