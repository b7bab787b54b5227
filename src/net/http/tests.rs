use super::*;

fn head(text: &str) -> Result<Option<(Head, usize)>, Fault> {
    Head::read(text.as_bytes())
}

fn request(text: &str) -> Result<Request, Fault> {
    let (head, length) = head(text)?.expect("it is whole");
    assert_eq!(length, text.len());
    let request = Request::of(head)?;
    request.framing()?;
    Ok(request)
}

fn is_garbled<T>(read: Result<T, Fault>) -> bool {
    matches!(read, Err(Fault::Garbled(_)))
}

#[test]
fn x1_a_head_is_read_when_it_is_whole_and_not_before() {
    let text = "\r\nPOST /a?b=c#d HTTP/1.1\r\nHost: x\r\nX-Two:\t one\t\r\nempty:\r\n\r\n";
    for length in 0..text.len() {
        assert!(head(&text[..length]).unwrap().is_none(), "{length}");
    }
    let read = request(text).unwrap();
    assert_eq!(
        (read.method.as_str(), read.path.as_str(), read.query.as_deref()),
        ("POST", "/a", Some("b=c"))
    );
    assert_eq!(read.fields.get("x-two"), Some("one"));
    assert_eq!(read.fields.get("empty"), Some(""));
    assert_eq!(read.fields.get("X-Two"), None, "names are in small letters");
    let (_, length) = head(&format!("{text}rest")).unwrap().unwrap();
    assert_eq!(length, text.len());
    assert_eq!(request("GET / HTTP/1.0\nhost: x\n\n").unwrap().path, "/", "line feeds alone do");
}

#[test]
fn x1_whoever_names_the_whole_address_means_its_path() {
    let path = |target: &str| request(&format!("GET {target} HTTP/1.1\r\n\r\n")).map(|read| read.path);
    assert_eq!(path("http://control/v3/ping?x").unwrap(), "/v3/ping");
    assert_eq!(path("http://control/").unwrap(), "/");
    assert_eq!(path("http://control?x=/v3/ping").unwrap(), "/", "that is no path");
    assert_eq!(path("/a://b/c").unwrap(), "/a://b/c");
    assert_eq!(path("*").unwrap(), "*");
    assert!(is_garbled(path("nothing")) && is_garbled(path("")) && is_garbled(path("/a /b")));
}

#[test]
fn x1_what_is_no_request_or_could_be_two_is_refused() {
    for text in [
        "GET / HTTP/9.9\r\n\r\n",
        "GET / HTTP/2.0\r\n\r\n",
        "GET /\r\n\r\n",
        "GET  / HTTP/1.1\r\n\r\n",
        "G(T / HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nno field\r\n\r\n",
        "GET / HTTP/1.1\r\n: x\r\n\r\n",
        "GET / HTTP/1.1\r\nname : x\r\n\r\n",
        "GET / HTTP/1.1\r\na: b\r\n folded\r\n\r\n",
        "GET / HTTP/1.1\r\na: \0\r\n\r\n",
        "GET / HTTP/1.1\r\na: b\rc\r\n\r\n",
        "GET / HTTP/1.1\r\ncontent-length: +1\r\n\r\n",
        "GET / HTTP/1.1\r\ncontent-length: 1 1\r\n\r\n",
        "GET / HTTP/1.1\r\ncontent-length:\r\n\r\n",
        "GET / HTTP/1.1\r\ncontent-length: 99999999999999999999\r\n\r\n",
        "GET / HTTP/1.1\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
        "GET / HTTP/1.1\r\ncontent-length: 1, 1\r\n\r\n",
        "GET / HTTP/1.1\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n",
        "GET / HTTP/1.1\r\ntransfer-encoding: gzip, chunked\r\n\r\n",
        "GET / HTTP/1.1\r\ntransfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n",
        "GET / HTTP/1.1\r\ntransfer-encoding: identity\r\n\r\n",
        "GET / HTTP/1.0\r\ntransfer-encoding: chunked\r\n\r\n",
    ] {
        assert!(is_garbled(request(text)), "{text:?}");
    }
    let same = "GET / HTTP/1.1\r\ncontent-length: 7\r\nContent-Length: 7\r\n\r\n";
    assert_eq!(request(same).unwrap().framing().unwrap(), Rest::Length(7));
}

#[test]
fn x1_a_head_has_an_end() {
    let endless = format!("GET / HTTP/1.1\r\na: {}", "b".repeat(HEAD_BYTES));
    assert!(matches!(head(&endless), Err(Fault::Long)));
    let fields = |count: usize| format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(count));
    assert!(request(&fields(HEAD_FIELDS)).is_ok());
    assert!(matches!(head(&fields(HEAD_FIELDS + 1)), Err(Fault::Long)));
    assert!(matches!(head(&"\n".repeat(HEAD_BYTES)), Err(Fault::Long)), "nothing but empty lines");
}

#[test]
fn x1_who_stays() {
    let stays = |text: &str, must_ask: bool| request(text).unwrap().stays(must_ask);
    let (plain, old) = ("GET / HTTP/1.1\r\n\r\n", "GET / HTTP/1.0\r\n\r\n");
    assert!(stays(plain, false) && !stays(plain, true) && !stays(old, false));
    let asks = "GET / HTTP/1.0\r\nConnection: x, Keep-Alive\r\n\r\n";
    assert!(stays(asks, false) && stays(asks, true));
    assert!(!stays("GET / HTTP/1.1\r\nconnection: close\r\n\r\n", false));
}

/// All of a body that comes in pieces of some length, and how many bytes it was made of.
fn body(mut rest: Rest, bytes: &[u8], step: usize) -> Result<(Vec<u8>, usize), Fault> {
    let (mut all, mut at, mut come) = (Vec::new(), 0, 0);
    loop {
        let found = rest.find(&bytes[at..come])?;
        at += found.skip;
        all.extend_from_slice(&bytes[at..at + found.data]);
        at += found.data;
        if found.over || (found.data == 0 && come == bytes.len()) {
            return Ok((all, at));
        }
        if found.data == 0 {
            come = (come + step).min(bytes.len());
        }
    }
}

#[test]
fn d1_bodies_are_the_same_in_whatever_pieces_they_come() {
    let chunked =
        b"4;ext=1\r\nwiki\r\n5 \r\npedia\r\nE\r\n in\r\n\r\nchunks.\r\n0\r\nx-trailer: y\r\n\r\nrest";
    for step in 1..chunked.len() {
        let (all, used) = body(Rest::ChunkSize, chunked, step).unwrap();
        assert_eq!(all, b"wikipedia in\r\n\r\nchunks.", "{step}");
        assert_eq!(used, chunked.len() - "rest".len());
        assert_eq!(body(Rest::Length(3), b"abcdef", step).unwrap(), (b"abc".to_vec(), 3));
        assert_eq!(body(Rest::Close, b"abcdef", step).unwrap(), (b"abcdef".to_vec(), 6));
    }
    assert_eq!(body(Rest::Length(0), b"next", 9).unwrap(), (Vec::new(), 0));
    for wrong in ["x\r\n", "\r\n", "-1\r\n", "0x1\r\n", "11111111111111111\r\n", "1\r\nab\r\n", ";\r\n"] {
        assert!(is_garbled(body(Rest::ChunkSize, wrong.as_bytes(), 1)), "{wrong:?}");
    }
    // What some take for the end of a line, and others do not.
    for wrong in ["1\nx\r\n", "1\r\nx\n0\r\n\r\n", "1;a\rb\r\nx\r\n", "0\n\n", "0\r\n\n", "0\r\nx: y\n\r\n"] {
        assert!(is_garbled(body(Rest::ChunkSize, wrong.as_bytes(), 1)), "{wrong:?}");
    }
    let trailers = |count: usize| format!("0\r\n{}\r\n", "x: y\r\n".repeat(count));
    assert!(body(Rest::ChunkSize, trailers(TRAILERS.into()).as_bytes(), 7).is_ok());
    assert!(is_garbled(body(Rest::ChunkSize, trailers(usize::from(TRAILERS) + 1).as_bytes(), 7)));
    let long = format!("1;{}\r\nx\r\n0\r\n\r\n", "y".repeat(CHUNK_LINE));
    for step in [1, 100, long.len()] {
        assert!(is_garbled(body(Rest::ChunkSize, long.as_bytes(), step)), "a line without end, by {step}");
    }
}

#[test]
fn d1_answers_and_where_they_end() {
    let read = |text: &str| answered(&head(text).unwrap().unwrap().0);
    assert_eq!(read("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n").unwrap(), (200, Rest::Length(5)));
    assert_eq!(read("HTTP/1.1 500\r\nTransfer-Encoding: Chunked\r\n\r\n").unwrap(), (500, Rest::ChunkSize));
    assert_eq!(read("HTTP/1.0 200 ok\r\n\r\n").unwrap(), (200, Rest::Close));
    assert_eq!(read("HTTP/1.1 204 No Content\r\n\r\n").unwrap(), (204, Rest::Length(0)));
    assert_eq!(read("HTTP/1.1 100 Continue\r\n\r\n").unwrap(), (100, Rest::Length(0)));
    for text in [
        "SSH-2.0-x\r\n\r\n",
        "HTTP/2 200\r\n\r\n",
        "HTTP/1.1 20\r\n\r\n",
        "HTTP/1.1 +20 x\r\n\r\n",
        "HTTP/1.1 099\r\n\r\n",
    ] {
        assert!(is_garbled(read(text)), "{text:?}");
    }
}

#[test]
fn x1_a_date_is_written_as_http_does() {
    let at = |seconds: u64| date(UNIX_EPOCH + std::time::Duration::from_secs(seconds));
    assert_eq!(at(784_111_777), "Sun, 06 Nov 1994 08:49:37 GMT");
    assert_eq!(at(0), "Thu, 01 Jan 1970 00:00:00 GMT");
    assert_eq!(at(951_782_400), "Tue, 29 Feb 2000 00:00:00 GMT");
}
