//! SHA-256 (FIPS 180-4). With `ring` as a build dependency, a first build would compile it twice, for 8 s of processor
//! time. A test of the page compares the hashes with those of `ring`.

/// The first 32 bits of the fractional part of a root of the first primes.
fn constants<const N: usize>(root: fn(f64) -> f64) -> [u32; N] {
    let mut primes = (2_u32..).filter(|number| (2..*number).all(|divisor| number % divisor != 0));
    std::array::from_fn(|_| (root(primes.next().map_or(0.0, f64::from)).fract() * 2_f64.powi(32)) as u32)
}

/// The hash of a text.
pub(crate) fn digest(text: &[u8]) -> [u8; 32] {
    let mut padded = text.to_vec();
    padded.push(0x80);
    while padded.len() % 64 != 56 {
        padded.push(0);
    }
    padded.extend((text.len() as u64 * 8).to_be_bytes());
    let keys: [u32; 64] = constants(f64::cbrt);
    let mut hash: [u32; 8] = constants(f64::sqrt);
    for block in padded.chunks_exact(64) {
        let mut words = [0_u32; 64];
        for (word, bytes) in words.iter_mut().zip(block.chunks_exact(4)) {
            *word = bytes.iter().fold(0, |word, byte| word << 8 | u32::from(*byte));
        }
        for at in 16..64 {
            let (one, two) = (words[at - 15], words[at - 2]);
            let one = one.rotate_right(7) ^ one.rotate_right(18) ^ one >> 3;
            let two = two.rotate_right(17) ^ two.rotate_right(19) ^ two >> 10;
            words[at] = words[at - 16].wrapping_add(one).wrapping_add(words[at - 7]).wrapping_add(two);
        }
        let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = hash;
        for (key, word) in keys.iter().zip(words) {
            let choice = e & f ^ !e & g;
            let mixed = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
            let first = [mixed, choice, *key, word].into_iter().fold(h, u32::wrapping_add);
            let majority = a & b ^ a & c ^ b & c;
            let second = (a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22)).wrapping_add(majority);
            (h, g, f, e, d, c, b, a) = (g, f, e, d.wrapping_add(first), c, b, a, first.wrapping_add(second));
        }
        for (part, value) in hash.iter_mut().zip([a, b, c, d, e, f, g, h]) {
            *part = part.wrapping_add(value);
        }
    }
    let mut bytes = [0; 32];
    for (place, part) in bytes.chunks_exact_mut(4).zip(hash) {
        place.copy_from_slice(&part.to_be_bytes());
    }
    bytes
}
