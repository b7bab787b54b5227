//! HTTP servers that stand for instances of an app.

use std::io::{Read, Write};
use std::net::TcpListener;

/// An instance of an app, which answers each request with its address. Returns its port.
pub(crate) fn instance(ip: &str, port: u16) -> u16 {
    let listener = TcpListener::bind((ip, port)).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 4096]);
            let body = address.ip().to_string();
            let _ = write!(
                stream,
                "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            );
        }
    });
    address.port()
}
