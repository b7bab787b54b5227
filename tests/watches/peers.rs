//! `tcp` and `http`.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};

use super::{Watching, listen_again};
use crate::support::supervisor::wait_until;

/// A server that answers every request with a status and a body, which can be changed.
fn serve(answer: &Arc<Mutex<(u16, Vec<u8>)>>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let answer = Arc::clone(answer);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = [0; 4096];
            let _ = stream.read(&mut request);
            let (status, body) = answer.lock().unwrap().clone();
            let _ = write!(stream, "HTTP/1.1 {status} x\r\nContent-Length: {}\r\n\r\n", body.len());
            let _ = stream.write_all(&body);
        }
    });
    address
}

#[test]
fn d13_a_peer_is_healthy_while_it_accepts_connections() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let watching = Watching::start(&format!("tcp: '{address}', interval: '50ms'"));
    watching.wait_for(&["changed", "healthy"]);
    watching.wait_for_explanation("watch.it: accepts connections\n  tcp 127.0.0.1:");
    drop(listener);
    watching.wait_for(&["changed", "unhealthy"]);
    let refused = format!("watch.it: {address}: connection refused");
    watching.wait_for_explanation(&refused);
    let _listener = listen_again(address);
    watching.wait_for(&["changed", "healthy"]);
    let status = watching.command(&["status"]);
    assert!(status.contains("\nWATCH  KIND  FOUND\nit     tcp   accepts connections\n"), "{status}");
}

#[test]
fn d13_a_url_is_healthy_by_its_status_and_changes_with_its_body() {
    let answer = Arc::new(Mutex::new((200, b"one\n".to_vec())));
    let address = serve(&answer);
    let set = |status: u16, body: &[u8]| *answer.lock().unwrap() = (status, body.to_vec());
    let watching = Watching::start(&format!("http: 'http://{address}/config', interval: '50ms'"));
    watching.wait_for(&["changed one", "healthy one"]);
    set(200, b"two");
    watching.wait_for(&["changed two"]);
    // The body of an error does not count: the last good one stays.
    set(503, b"sorry");
    watching.wait_for(&["unhealthy two"]);
    let text = format!("watch.it: GET http://{address}/config: status 503, expected 2xx or 3xx");
    watching.wait_for_explanation(&text);
    set(200, b"two");
    watching.wait_for(&["healthy two"]);
    // Too long for an answer: the last one stays, and the reason is told.
    set(200, &vec![b'x'; 100 * 1024 * 1024]);
    watching.wait_for_explanation("watch.it: 3 bytes (as of ");
    wait_until("the reason is told", || watching.command(&["status"]).contains("more than 1 MiB"));
    assert_eq!(watching.seen(), [""; 0]);
    set(200, b"three");
    watching.wait_for(&["changed three"]);
}
