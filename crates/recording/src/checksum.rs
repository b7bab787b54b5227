//! CRC-32, as in gzip.

/// The checksum of some bytes, four bits at a time.
pub(crate) fn crc32(bytes: &[u8]) -> u32 {
    const TABLE: [u32; 16] = table();
    let step = |crc: u32, low: u32| (crc >> 4) ^ TABLE.get((low & 15) as usize).copied().unwrap_or_default();
    !bytes.iter().fold(!0, |crc, byte| {
        let crc = step(crc, crc ^ u32::from(*byte));
        step(crc, crc ^ u32::from(*byte >> 4))
    })
}

const fn table() -> [u32; 16] {
    let mut table = [0; 16];
    let mut index = 0;
    while index < 16 {
        let (mut value, mut bit) = (index as u32, 0);
        while bit < 4 {
            value = if value & 1 == 1 { (value >> 1) ^ 0xedb8_8320 } else { value >> 1 };
            bit += 1;
        }
        table[index] = value;
        index += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::crc32;

    #[test]
    fn known_values() {
        assert_eq!(crc32(b""), 0);
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    }
}
