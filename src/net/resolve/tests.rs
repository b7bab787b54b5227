//! Looking names up at servers made for the purpose, on this machine.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::sync::{Arc, Mutex};

use super::*;

/// How a server answers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Manner {
    Knows,
    /// Datagrams are cut off before the first record.
    CutsOff,
    /// Others send something first.
    AmongLiars,
    /// It never answers for IPv6.
    OnlyV4,
    Fails,
    Silent,
}

/// A server, and what it was asked.
struct Server {
    at: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
}

type Zone = HashMap<&'static str, Vec<[u8; 4]>>;

fn serve(manner: Manner, names: &[(&'static str, [u8; 4])]) -> Server {
    let mut zone = Zone::new();
    for (name, address) in names {
        zone.entry(name).or_default().push(*address);
    }
    // The same number for both, which another process may have taken.
    let (socket, listener) = loop {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        if let Ok(listener) = TcpListener::bind(socket.local_addr().unwrap()) {
            break (socket, listener);
        }
    };
    let at = socket.local_addr().unwrap();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let (log, for_streams) = (Arc::clone(&asked), zone.clone());
    std::thread::spawn(move || {
        let mut buffer = [0; 512];
        loop {
            let (length, from) = socket.recv_from(&mut buffer).unwrap();
            let question = &buffer[..length];
            let (name, kind) = parts(question);
            if kind == 1 {
                log.lock().unwrap().push(name);
            }
            if manner == Manner::Silent || (manner == Manner::OnlyV4 && kind == 28) {
                continue;
            }
            let answer = reply(question, &zone, manner);
            if manner == Manner::AmongLiars {
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
            let answer = reply(&question, &for_streams, Manner::Knows);
            stream.write_all(&u16::try_from(answer.len()).unwrap().to_be_bytes()).unwrap();
            // A slow one.
            for byte in answer {
                stream.write_all(&[byte]).unwrap();
            }
        }
    });
    Server { at, asked }
}

fn parts(question: &[u8]) -> (String, u8) {
    let mut words = Vec::new();
    let mut at = 12;
    while question[at] > 0 {
        let end = at + 1 + usize::from(question[at]);
        words.push(String::from_utf8(question[at + 1..end].to_vec()).unwrap());
        at = end;
    }
    (words.join("."), question[at + 2])
}

fn reply(question: &[u8], zone: &Zone, manner: Manner) -> Vec<u8> {
    let (name, kind) = parts(question);
    let mut bytes = question.to_vec();
    let known = zone.get(name.as_str());
    let code = match known {
        _ if manner == Manner::Fails => 2,
        Some(_) => 0,
        None => 3,
    };
    let cut_off = manner == Manner::CutsOff;
    bytes[2..4].copy_from_slice(&[if cut_off { 0x83 } else { 0x81 }, 0x80 | code]);
    if code == 0 && kind == 1 && !cut_off {
        let addresses = known.unwrap();
        bytes[6..8].copy_from_slice(&u16::try_from(addresses.len()).unwrap().to_be_bytes());
        for address in addresses {
            bytes.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 1, 0, 4]);
            bytes.extend(address);
        }
    }
    bytes
}

fn asking(servers: &[&Server], more: &str) -> Settings {
    let mut settings = Settings::read(more.as_bytes(), "pod");
    settings.servers = servers.iter().map(|server| server.at).collect();
    settings
}

fn look(host: &str, settings: &Settings) -> Result<String, String> {
    let found = found_in(host, b"10.9.9.9 fromfile\n", settings, Instant::now() + Duration::from_secs(60))?;
    Ok(found.iter().map(IpAddr::to_string).collect::<Vec<_>>().join(" "))
}

#[test]
fn d5_a_name_is_found_in_the_file_first_and_then_at_the_server() {
    let server = serve(
        Manner::Knows,
        &[("consul", [10, 0, 0, 1]), ("consul", [10, 0, 0, 2]), ("fromfile", [1, 1, 1, 1])],
    );
    let settings = asking(&[&server], "");
    assert_eq!(look("consul", &settings).unwrap(), "10.0.0.1 10.0.0.2");
    assert_eq!(look("Consul.", &settings).unwrap(), "10.0.0.1 10.0.0.2");
    assert_eq!(look("FromFile", &settings).unwrap(), "10.9.9.9");
    assert_eq!(look("::1", &settings).unwrap(), "::1");
    assert_eq!(look("localhost", &settings).unwrap(), "127.0.0.1 ::1");
    assert_eq!(server.asked.lock().unwrap().len(), 2);
    let words = look("nobody", &settings).unwrap_err();
    assert_eq!(words, "there is no such name in /etc/hosts, and none at the name server");
    assert!(look("a b", &settings).unwrap_err().starts_with("only letters"), "it is not even asked for");
}

#[test]
fn d5_short_names_get_the_domains_of_the_settings() {
    let server = serve(Manner::Knows, &[("consul.b.example", [10, 0, 0, 1])]);
    let settings = asking(&[&server], "search a.example b.example");
    assert_eq!(look("consul", &settings).unwrap(), "10.0.0.1");
    assert_eq!(*server.asked.lock().unwrap(), ["consul.a.example", "consul.b.example"]);
}

#[test]
fn d5_what_does_not_fit_into_a_datagram_comes_through_a_connection() {
    let many: Vec<_> = (0..200).map(|number| ("many", [10, 0, 1, number])).collect();
    let server = serve(Manner::CutsOff, &many);
    let found = look("many", &asking(&[&server], "")).unwrap();
    assert!(found.starts_with("10.0.1.0 10.0.1.1 "), "{found}");
    assert_eq!(found.split(' ').count(), MOST_ADDRESSES);
    assert_eq!(look("many", &asking(&[&server], "options use-vc")).unwrap(), found);
}

#[test]
fn d5_forged_and_broken_answers_are_passed_over() {
    let server = serve(Manner::AmongLiars, &[("consul", [10, 0, 0, 1])]);
    assert_eq!(look("consul", &asking(&[&server], "")).unwrap(), "10.0.0.1");
}

#[test]
fn d5_a_server_that_never_answers_for_ipv6_does_not_hold_up_ipv4() {
    let server = serve(Manner::OnlyV4, &[("consul", [10, 0, 0, 1])]);
    let before = Instant::now();
    assert_eq!(look("consul", &asking(&[&server], "options timeout:30")).unwrap(), "10.0.0.1");
    assert!(before.elapsed() < Duration::from_secs(25), "{:?}", before.elapsed());
}

#[test]
fn d5_the_next_server_is_asked_when_one_fails_or_is_silent() {
    let (failing, silent) = (serve(Manner::Fails, &[]), serve(Manner::Silent, &[]));
    let good = serve(Manner::Knows, &[("consul", [10, 0, 0, 1])]);
    assert_eq!(look("consul", &asking(&[&failing, &good], "")).unwrap(), "10.0.0.1");
    assert_eq!(look("consul", &asking(&[&silent, &good], "options timeout:1")).unwrap(), "10.0.0.1");
    let words = look("consul", &asking(&[&failing], "")).unwrap_err();
    assert_eq!(words, "the name server 127.0.0.1 could not find out");
    // It said no once, and was not asked again in vain.
    assert_eq!(failing.asked.lock().unwrap().len(), 2);
}

#[test]
fn d5_where_nobody_answers_the_wait_ends() {
    let silent = serve(Manner::Silent, &[]);
    let settings = asking(&[&silent], "search a.example b.example\noptions timeout:1 attempts:1");
    let words = look("consul", &settings).unwrap_err();
    assert_eq!(words, "the name server 127.0.0.1: no answer in time");
    assert_eq!(*silent.asked.lock().unwrap(), ["consul.a.example", "consul.b.example", "consul"]);
    let nobody = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut settings = asking(&[&silent], "options timeout:1 attempts:1");
    settings.servers = vec![nobody];
    let words = look("consul", &settings).unwrap_err();
    assert!(words.contains("refused"), "{words}");
}
