//! Reads HTTP requests, for servers that pretend to be a Consul agent.

use std::io::{BufRead, Result};

pub(crate) struct Request {
    pub(crate) path: String,
    pub(crate) body: Vec<u8>,
}

/// The next request of a connection; `None` when the client has closed it.
pub(crate) fn next(reader: &mut impl BufRead) -> Result<Option<Request>> {
    let (mut first, mut length) = (String::new(), 0);
    if reader.read_line(&mut first)? == 0 {
        return Ok(None);
    }
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let line = line.trim().to_lowercase();
        if let Some(number) = line.strip_prefix("content-length:") {
            length = number.trim().parse().unwrap_or(0);
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(Some(Request { path: first.split(' ').nth(1).unwrap_or_default().to_owned(), body }))
}
