//! Look-ups at test servers on this machine.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::sync::{Arc, Mutex};

use super::*;

/// How a test server behaves.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Behaviour {
    Answers,
    /// Truncates datagrams before the first record.
    Truncates,
    /// Forged answers arrive first.
    AmongForgeries,
    /// Never answers for IPv6.
    OnlyV4,
    Fails,
    Silent,
}

/// A test server and the names in its queries.
struct Server {
    at: SocketAddr,
    queries: Arc<Mutex<Vec<String>>>,
}

type Zone = HashMap<&'static str, Vec<[u8; 4]>>;

fn serve(behaviour: Behaviour, names: &[(&'static str, [u8; 4])]) -> Server {
    let mut zone = Zone::new();
    for (name, address) in names {
        zone.entry(name).or_default().push(*address);
    }
    // The same port for both protocols; another process may have taken one of them.
    let (socket, listener) = loop {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        if let Ok(listener) = TcpListener::bind(socket.local_addr().unwrap()) {
            break (socket, listener);
        }
    };
    let at = socket.local_addr().unwrap();
    let queries = Arc::new(Mutex::new(Vec::new()));
    let (log, for_streams) = (Arc::clone(&queries), zone.clone());
    std::thread::spawn(move || {
        let mut buffer = [0; 512];
        loop {
            let (length, from) = socket.recv_from(&mut buffer).unwrap();
            let question = &buffer[..length];
            let (name, kind) = parts(question);
            if kind == 1 {
                log.lock().unwrap().push(name);
            }
            if behaviour == Behaviour::Silent || (behaviour == Behaviour::OnlyV4 && kind == 28) {
                continue;
            }
            let answer = reply(question, &zone, behaviour);
            if behaviour == Behaviour::AmongForgeries {
                let mut wrong = answer.clone();
                wrong[0] ^= 0xff;
                socket.send_to(&wrong, from).unwrap();
                socket.send_to(b"", from).unwrap();
                socket.send_to(&answer[..answer.len() - 1], from).unwrap();
            }
            socket.send_to(&answer, from).unwrap();
        }
    });
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut length = [0; 2];
            stream.read_exact(&mut length).unwrap();
            let mut question = vec![0; u16::from_be_bytes(length).into()];
            stream.read_exact(&mut question).unwrap();
            let answer = reply(&question, &for_streams, Behaviour::Answers);
            stream.write_all(&u16::try_from(answer.len()).unwrap().to_be_bytes()).unwrap();
            // Byte by byte.
            for byte in answer {
                stream.write_all(&[byte]).unwrap();
            }
        }
    });
    Server { at, queries }
}

fn parts(question: &[u8]) -> (String, u8) {
    let mut labels = Vec::new();
    let mut at = 12;
    while question[at] > 0 {
        let end = at + 1 + usize::from(question[at]);
        labels.push(String::from_utf8(question[at + 1..end].to_vec()).unwrap());
        at = end;
    }
    (labels.join("."), question[at + 2])
}

fn reply(question: &[u8], zone: &Zone, behaviour: Behaviour) -> Vec<u8> {
    let (name, kind) = parts(question);
    let mut bytes = question.to_vec();
    let known = zone.get(name.as_str());
    let code = match known {
        _ if behaviour == Behaviour::Fails => 2,
        Some(_) => 0,
        None => 3,
    };
    let truncated = behaviour == Behaviour::Truncates;
    bytes[2..4].copy_from_slice(&[if truncated { 0x83 } else { 0x81 }, 0x80 | code]);
    if code == 0 && kind == 1 && !truncated {
        let addresses = known.unwrap();
        bytes[6..8].copy_from_slice(&u16::try_from(addresses.len()).unwrap().to_be_bytes());
        for address in addresses {
            bytes.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 1, 0, 4]);
            bytes.extend(address);
        }
    }
    bytes
}

fn settings_for(servers: &[&Server], more: &str) -> ResolverSettings {
    let mut settings = ResolverSettings::parse(more.as_bytes(), "pod");
    settings.servers = servers.iter().map(|server| server.at).collect();
    settings
}

fn look(host: &str, settings: &ResolverSettings) -> Result<String, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let found = runtime.block_on(async {
        look_up_in(host, b"10.9.9.9 fromfile\n", settings, Instant::now() + Duration::from_secs(60)).await
    });
    let found = found.map_err(|error| error.to_string())?;
    Ok(found.iter().map(IpAddr::to_string).collect::<Vec<_>>().join(" "))
}

#[test]
fn d5_the_hosts_file_is_read_before_a_query_is_sent() {
    let server = serve(
        Behaviour::Answers,
        &[("consul", [10, 0, 0, 1]), ("consul", [10, 0, 0, 2]), ("fromfile", [1, 1, 1, 1])],
    );
    let settings = settings_for(&[&server], "");
    assert_eq!(look("consul", &settings).unwrap(), "10.0.0.1 10.0.0.2");
    assert_eq!(look("Consul.", &settings).unwrap(), "10.0.0.1 10.0.0.2");
    assert_eq!(look("FromFile", &settings).unwrap(), "10.9.9.9");
    assert_eq!(look("::1", &settings).unwrap(), "::1");
    assert_eq!(look("localhost", &settings).unwrap(), "127.0.0.1 ::1");
    assert_eq!(server.queries.lock().unwrap().len(), 2);
    let error = look("unknown", &settings).unwrap_err();
    assert_eq!(error, "not found in /etc/hosts or at the name server");
    assert!(look("a b", &settings).unwrap_err().starts_with("only letters"), "no query is sent");
}

#[test]
fn d5_short_names_get_the_search_domains() {
    let server = serve(Behaviour::Answers, &[("consul.b.example", [10, 0, 0, 1])]);
    let settings = settings_for(&[&server], "search a.example b.example");
    assert_eq!(look("consul", &settings).unwrap(), "10.0.0.1");
    assert_eq!(*server.queries.lock().unwrap(), ["consul.a.example", "consul.b.example"]);
}

#[test]
fn d5_a_truncated_answer_is_requested_again_by_tcp() {
    let many: Vec<_> = (0..200).map(|number| ("many", [10, 0, 1, number])).collect();
    let server = serve(Behaviour::Truncates, &many);
    let found = look("many", &settings_for(&[&server], "")).unwrap();
    assert!(found.starts_with("10.0.1.0 10.0.1.1 "), "{found}");
    assert_eq!(found.split(' ').count(), MAX_ADDRESSES);
    assert_eq!(look("many", &settings_for(&[&server], "options use-vc")).unwrap(), found);
}

#[test]
fn d5_forged_and_broken_answers_are_ignored() {
    let server = serve(Behaviour::AmongForgeries, &[("consul", [10, 0, 0, 1])]);
    assert_eq!(look("consul", &settings_for(&[&server], "")).unwrap(), "10.0.0.1");
}

#[test]
fn d5_a_server_that_never_answers_for_ipv6_does_not_delay_ipv4() {
    let server = serve(Behaviour::OnlyV4, &[("consul", [10, 0, 0, 1])]);
    let before = Instant::now();
    assert_eq!(look("consul", &settings_for(&[&server], "options timeout:30")).unwrap(), "10.0.0.1");
    assert!(before.elapsed() < Duration::from_secs(25), "{:?}", before.elapsed());
}

#[test]
fn d5_the_next_server_is_queried_when_one_fails_or_is_silent() {
    let (failing, silent) = (serve(Behaviour::Fails, &[]), serve(Behaviour::Silent, &[]));
    let good = serve(Behaviour::Answers, &[("consul", [10, 0, 0, 1])]);
    assert_eq!(look("consul", &settings_for(&[&failing, &good], "")).unwrap(), "10.0.0.1");
    assert_eq!(look("consul", &settings_for(&[&silent, &good], "options timeout:1")).unwrap(), "10.0.0.1");
    let error = look("consul", &settings_for(&[&failing], "")).unwrap_err();
    assert_eq!(error, "name server 127.0.0.1 answered SERVFAIL");
    // One question per look-up: a server that fails gets no second query.
    assert_eq!(failing.queries.lock().unwrap().len(), 2);
}

#[test]
fn d5_a_look_up_without_any_answer_times_out() {
    let silent = serve(Behaviour::Silent, &[]);
    let settings = settings_for(&[&silent], "search a.example b.example\noptions timeout:1 attempts:1");
    let error = look("consul", &settings).unwrap_err();
    assert_eq!(error, "name server 127.0.0.1: timed out");
    assert_eq!(*silent.queries.lock().unwrap(), ["consul.a.example", "consul.b.example", "consul"]);
    let unused = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut settings = settings_for(&[&silent], "options timeout:1 attempts:1");
    settings.servers = vec![unused];
    let error = look("consul", &settings).unwrap_err();
    assert!(error.contains("refused"), "{error}");
}
