//! Any bytes as what Consul answers: instances in order, each once, or a few words.

use super::api::{instances, is_forgotten};

pub(crate) fn run(body: &[u8]) {
    match instances(body) {
        Ok(found) => {
            assert!(
                found.is_sorted() && found.iter().zip(found.iter().skip(1)).all(|(one, next)| one != next)
            );
            let text: usize = found.iter().map(|one| one.id.len() + one.address.len()).sum();
            // What stands there escaped is longer than what it means, never the other way round.
            assert!(text <= body.len());
        }
        Err(why) => assert!(why.to_string().len() < 200, "{why}"),
    }
    assert!(is_forgotten(404, body) && !is_forgotten(403, body) && !is_forgotten(200, body));
    let _ = is_forgotten(500, body);
}
