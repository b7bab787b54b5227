//! Fuzz target: any bytes as a response of Consul. The instances are sorted and unique, or there is a short error.

use super::api::{instances, is_not_registered};

pub(crate) fn run(body: &[u8]) {
    match instances(body) {
        Ok(found) => {
            assert!(
                found.is_sorted() && found.iter().zip(found.iter().skip(1)).all(|(one, next)| one != next)
            );
            let text: usize = found.iter().map(|one| one.id.len() + one.address.len()).sum();
            // Escaped text is never shorter than its meaning.
            assert!(text <= body.len());
        }
        Err(why) => assert!(why.to_string().len() < 200, "{why}"),
    }
    assert!(is_not_registered(404, body) && !is_not_registered(403, body) && !is_not_registered(200, body));
    let _ = is_not_registered(500, body);
}
