//! The hash that recordings have in place of texts (B1).

use containerpilot_core::redaction::Redactor;
use ring::hmac;
use ring::rand::SystemRandom;

/// A redactor with a new key, which is in the memory of this process only: readers of a recording cannot guess a text
/// by its hash, however short it is. `None` if the system has no random numbers; then nothing may be recorded.
pub(crate) fn new_redactor() -> Option<Redactor> {
    let key = hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new()).ok()?;
    Some(Redactor::new(move |text| first_bytes(hmac::sign(&key, text).as_ref())))
}

/// 64 bits are enough to tell the texts of one supervisor apart.
fn first_bytes(tag: &[u8]) -> u64 {
    tag.first_chunk().copied().map_or(0, u64::from_be_bytes)
}

#[cfg(test)]
mod tests {
    use containerpilot_core::Input;
    use serde::Serialize;

    use super::*;

    /// What is recorded for an input.
    fn recorded(redactor: &mut Redactor, text: &str) -> String {
        let mut json = serde_json::Serializer::new(Vec::new());
        redactor.input(&Input::TelemetryListens(Err(text.into()))).serialize(&mut json).unwrap();
        String::from_utf8(json.into_inner()).unwrap()
    }

    #[test]
    fn b1_each_supervisor_has_a_key_of_its_own() {
        let [mut one, mut other] = [(); 2].map(|()| new_redactor().unwrap());
        assert_eq!(recorded(&mut one, "hush"), recorded(&mut one, "hush"));
        assert_ne!(recorded(&mut one, "hush"), recorded(&mut one, "hush."));
        assert_ne!(recorded(&mut one, "hush"), recorded(&mut other, "hush"));
        assert!(!recorded(&mut one, "hush").contains("hush"));
    }

    #[test]
    fn b1_the_hash_is_a_part_of_hmac_sha_256() {
        // RFC 4231, test case 2.
        let key = hmac::Key::new(hmac::HMAC_SHA256, b"Jefe");
        let tag = hmac::sign(&key, b"what do ya want for nothing?");
        assert_eq!(first_bytes(tag.as_ref()), 0x5bdc_c146_bf60_754e);
    }
}
