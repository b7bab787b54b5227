//! TLS against `openssl s_server`, which can be limited to one version, group, cipher suite or signature algorithm.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use bytes::Bytes;
use containerpilot_core::plan::{Consul, ConsulAddress, Tls};
use containerpilot_test_support::openssl::{Server, certificate};
use hyper::Method;

use super::client::ConsulClient;
use crate::net::tls::SUPPORTED;

const TIMEOUT: Duration = Duration::from_secs(30);

/// Requests a file that exists; its content or the error.
fn request_file(server: &Server, tls: Tls) -> Result<String, String> {
    request(&server.address, tls)
}

fn request(address: &str, tls: Tls) -> Result<String, String> {
    let address = ConsulAddress::Network(address.to_owned());
    let client = ConsulClient::new(&Consul {
        address,
        https: true,
        token: None,
        token_file: None,
        token_source: None,
        tls,
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let response = runtime.block_on(client.send(Method::GET, "/file", Bytes::new(), TIMEOUT));
    response
        .map(|response| String::from_utf8_lossy(&response.body).into_owned())
        .map_err(|error| error.to_string())
}

const RSA: &[&str] = &["-newkey", "rsa:2048"];
const P256: &[&str] = &["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"];
const P384: &[&str] = &["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-384"];
const ED25519: &[&str] = &["-newkey", "ed25519"];

fn folder() -> PathBuf {
    let folder = containerpilot_test_support::folder();
    std::fs::write(folder.join("file"), "content").unwrap();
    for (name, kind) in [("rsa", RSA), ("p256", P256), ("p384", P384), ("ed25519", ED25519)] {
        certificate(&folder, name, kind);
    }
    folder
}

fn trusting(folder: &Path, name: &str) -> Tls {
    Tls {
        ca_file: Some(folder.join(format!("{name}.pem")).display().to_string()),
        ca_path: None,
        client_cert: None,
        client_key: None,
        server_name: None,
        verify: true,
    }
}

#[test]
fn d1_https_to_a_port_without_tls_says_what_to_do() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 1024]);
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n400 Bad Request");
        // Closed after the client has read it.
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let tls = Tls { ca_file: None, ..trusting(Path::new("/"), "none") };
    let error = request(&address, Tls { verify: false, ..tls }).unwrap_err();
    assert_eq!(error, "TLS handshake failed: that port does not speak TLS, try http://");
}

#[test]
fn d1_every_common_version_group_cipher_suite_and_signature_works() {
    let folder = folder();
    let cases: &[(&str, &[&str])] = &[
        ("rsa", &["-tls1_3"]),
        ("rsa", &["-tls1_2"]),
        ("p256", &["-tls1_3", "-groups", "P-256"]),
        ("p256", &["-tls1_2", "-groups", "P-256"]),
        ("p384", &["-tls1_3", "-groups", "P-384"]),
        ("p384", &["-tls1_2", "-groups", "P-384"]),
        ("rsa", &["-tls1_3", "-groups", "X25519"]),
        ("rsa", &["-tls1_2", "-groups", "X25519"]),
        ("ed25519", &["-tls1_3"]),
        ("ed25519", &["-tls1_2"]),
        ("p256", &["-tls1_3", "-ciphersuites", "TLS_AES_128_GCM_SHA256"]),
        ("p256", &["-tls1_3", "-ciphersuites", "TLS_AES_256_GCM_SHA384"]),
        ("p256", &["-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-GCM-SHA256"]),
        ("p256", &["-tls1_2", "-cipher", "ECDHE-ECDSA-AES256-GCM-SHA384"]),
        ("rsa", &["-tls1_2", "-cipher", "ECDHE-RSA-AES128-GCM-SHA256"]),
        ("rsa", &["-tls1_2", "-cipher", "ECDHE-RSA-AES256-GCM-SHA384"]),
        ("rsa", &["-tls1_3", "-ciphersuites", "TLS_CHACHA20_POLY1305_SHA256"]),
        ("rsa", &["-tls1_2", "-cipher", "ECDHE-RSA-CHACHA20-POLY1305"]),
        ("rsa", &["-tls1_2", "-sigalgs", "RSA-PSS+SHA512"]),
        ("rsa", &["-tls1_2", "-sigalgs", "RSA+SHA384"]),
    ];
    for (name, options) in cases {
        let server = Server::start(&folder, name, options);
        assert_eq!(
            request_file(&server, trusting(&folder, name)).as_deref(),
            Ok("content"),
            "{name} {options:?}"
        );
        let unverified = Tls { verify: false, ca_file: None, ..trusting(&folder, name) };
        assert_eq!(
            request_file(&server, unverified).as_deref(),
            Ok("content"),
            "{name} {options:?}, unverified"
        );
    }
    let _ = std::fs::remove_dir_all(folder);
}

#[test]
fn d1_client_keys_of_every_type_and_format_are_accepted() {
    let folder = folder();
    let rewritten = |key: &str, command: &[&str]| {
        let input = format!("{key}.key");
        let output = format!("{key}-old.key");
        let made = Command::new("openssl")
            .current_dir(&folder)
            .args(command)
            .args(["-in", &input, "-out", &output])
            .stderr(Stdio::null())
            .status();
        assert!(made.unwrap().success());
        output
    };
    let cases = [
        ("rsa", "rsa.key".to_owned(), "BEGIN PRIVATE KEY"),
        ("rsa", rewritten("rsa", &["rsa", "-traditional"]), "BEGIN RSA PRIVATE KEY"),
        ("p256", "p256.key".to_owned(), "BEGIN PRIVATE KEY"),
        ("p256", rewritten("p256", &["ec"]), "BEGIN EC PRIVATE KEY"),
        ("p384", "p384.key".to_owned(), "BEGIN PRIVATE KEY"),
        ("p384", rewritten("p384", &["ec"]), "BEGIN EC PRIVATE KEY"),
        ("ed25519", "ed25519.key".to_owned(), "BEGIN PRIVATE KEY"),
    ];
    for (name, key, form) in cases {
        assert!(std::fs::read_to_string(folder.join(&key)).unwrap().contains(form), "{key}");
        for version in ["-tls1_3", "-tls1_2"] {
            let trusted = format!("{name}.pem");
            let options = [version, "-Verify", "1", "-verify_return_error", "-CAfile", &trusted];
            let server = Server::start(&folder, "rsa", &options);
            let tls = Tls {
                client_cert: Some(folder.join(format!("{name}.pem")).display().to_string()),
                client_key: Some(folder.join(&key).display().to_string()),
                ..trusting(&folder, "rsa")
            };
            assert_eq!(request_file(&server, tls).as_deref(), Ok("content"), "{key} {version}");
            let without_certificate = request_file(&server, trusting(&folder, "rsa"));
            assert!(without_certificate.is_err(), "{key} {version}");
        }
    }
    let _ = std::fs::remove_dir_all(folder);
}

/// Creates a certificate `NAME.pem` with a P-256 key, signed by `ISSUER` with these options.
fn issued(folder: &Path, name: &str, issuer: &str, signature: &[&str]) {
    let issuer = [format!("{issuer}.pem"), format!("{issuer}.key")];
    certificate(folder, name, &[P256, &["-CA", &issuer[0], "-CAkey", &issuer[1]], signature].concat());
}

#[test]
fn d1_an_unsupported_key_is_named_in_the_error() {
    let folder = folder();
    let unsupported: [(&str, &[&str]); 3] = [
        ("p521", &["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-521"]),
        ("rsa-pss", &["-newkey", "rsa-pss"]),
        ("ed448", &["-newkey", "ed448"]),
    ];
    for (name, kind) in unsupported {
        certificate(&folder, name, kind);
        issued(&folder, "leaf", name, &[]);
        for version in ["-tls1_3", "-tls1_2"] {
            let server = Server::start(&folder, name, &[version]);
            for tls in [trusting(&folder, name), Tls { verify: false, ..trusting(&folder, name) }] {
                let error = request_file(&server, tls).unwrap_err();
                assert!(error.contains("no certificate with a supported key"), "{name} {version}: {error}");
                assert!(error.contains(SUPPORTED), "{name} {version}: {error}");
            }
            let server = Server::start(&folder, "leaf", &[version]);
            let error = request_file(&server, trusting(&folder, name)).unwrap_err();
            assert!(error.contains("is not supported") && error.contains(SUPPORTED), "by {name}: {error}");
            let tls = Tls {
                client_cert: Some(folder.join(format!("{name}.pem")).display().to_string()),
                client_key: Some(folder.join(format!("{name}.key")).display().to_string()),
                ..trusting(&folder, "leaf")
            };
            let error = request_file(&server, tls).unwrap_err();
            assert!(
                error.contains("cannot use the client certificate") && error.contains(SUPPORTED),
                "{error}"
            );
        }
    }
    let _ = std::fs::remove_dir_all(folder);
}

#[test]
fn d1_an_unsupported_signature_of_a_certificate_is_named_in_the_error() {
    let folder = folder();
    let pss: [&str; 2] = ["-sigopt", "rsa_padding_mode:pss"];
    let cases: [(&str, &[&str], bool); 9] = [
        ("rsa", &["-sha256"], true),
        ("rsa", &["-sha512"], true),
        ("rsa", &["-sha1"], false),
        // With a salt as long as the digest.
        ("rsa", &[&pss[..], &["-sigopt", "rsa_pss_saltlen:-1"]].concat(), true),
        ("rsa", &[&pss[..], &["-sigopt", "rsa_pss_saltlen:-2"]].concat(), false),
        ("p256", &["-sha384"], true),
        ("p256", &["-sha512"], false),
        ("p384", &["-sha512"], false),
        ("ed25519", &[], true),
    ];
    for (issuer, signature, is_supported) in cases {
        issued(&folder, "leaf", issuer, signature);
        // At this level it sends a certificate with any signature.
        let server = Server::start(&folder, "leaf", &["-cipher", "DEFAULT@SECLEVEL=0"]);
        match request_file(&server, trusting(&folder, issuer)) {
            Ok(content) => assert!(is_supported && content == "content", "{issuer} {signature:?}"),
            Err(error) => assert!(
                !is_supported && error.contains("is not supported") && error.contains(SUPPORTED),
                "{issuer} {signature:?}: {error}"
            ),
        }
    }
    let _ = std::fs::remove_dir_all(folder);
}

/// Runs `openssl` in a folder.
fn openssl(folder: &Path, args: &[&str]) {
    let status = Command::new("openssl").current_dir(folder).args(args).stderr(Stdio::null()).status();
    assert!(status.unwrap().success(), "{args:?}");
}

/// Creates a certificate of X.509 version 1 for the key `NAME.key`: one without extensions.
fn version_1(folder: &Path, name: &str) {
    let [key, request, made] = ["key", "csr", "pem"].map(|kind| format!("{name}.{kind}"));
    openssl(folder, &["req", "-new", "-key", &key, "-subj", "/CN=localhost", "-out", &request]);
    openssl(folder, &["x509", "-req", "-in", &request, "-signkey", &key, "-out", &made]);
}

#[test]
fn d1_certificates_of_x509_version_1_work_where_they_are_not_verified() {
    let folder = folder();
    for kind in ["rsa", "p256"] {
        version_1(&folder, kind);
        for version in ["-tls1_3", "-tls1_2"] {
            let trusted = format!("{kind}.pem");
            let options = [version, "-Verify", "1", "-verify_return_error", "-CAfile", &trusted];
            let server = Server::start(&folder, kind, &options);
            let tls = Tls {
                client_cert: Some(folder.join(&trusted).display().to_string()),
                client_key: Some(folder.join(format!("{kind}.key")).display().to_string()),
                ..trusting(&folder, kind)
            };
            let unverified = Tls { verify: false, ..tls.clone() };
            assert_eq!(request_file(&server, unverified).as_deref(), Ok("content"), "{kind} {version}");
            let error = request_file(&server, tls).unwrap_err();
            assert!(error.contains("of X.509 version 1: make one of version 3"), "{kind} {version}: {error}");
            assert!(error.contains("openssl x509 -req -extfile"), "{error}");
        }
    }
    let _ = std::fs::remove_dir_all(folder);
}

#[test]
fn d1_key_of_another_client_certificate_is_an_error() {
    let folder = folder();
    version_1(&folder, "p384");
    for (certificate, key) in [("p256", "rsa"), ("rsa", "ed25519"), ("p384", "p256")] {
        let tls = Tls {
            client_cert: Some(folder.join(format!("{certificate}.pem")).display().to_string()),
            client_key: Some(folder.join(format!("{key}.key")).display().to_string()),
            ..trusting(&folder, "rsa")
        };
        let error = crate::net::tls::client_config(&tls).unwrap_err().to_string();
        let expected = format!("{key}.key does not belong to the client certificate ");
        assert!(error.contains(&expected), "{certificate} {key}: {error}");
    }
    let _ = std::fs::remove_dir_all(folder);
}
