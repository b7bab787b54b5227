//! Fuzz target: any bytes as a response of Consul. The instances are sorted and unique, or there is a short error.

use std::time::Duration;

use bytes::Bytes;
use containerpilot_core::catalog::lock_requests::LockRequest;
use containerpilot_core::plan::Lock;

use super::api::{instances, is_not_registered};
use super::client::ConsulResponse;
use super::lock_api;

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
    for slots in [1, 2] {
        let lock = Lock { name: "a".into(), key: "k".into(), ttl: Duration::from_secs(10), slots };
        let look = LockRequest::Look { index: None, wait: Duration::ZERO };
        for request in [look, LockRequest::CreateSession, LockRequest::Acquire { index: 1 }] {
            let response = ConsulResponse { status: 200, index: Some(1), body: Bytes::copy_from_slice(body) };
            let _ = lock_api::outcome(&lock, &request, &response);
        }
    }
}
