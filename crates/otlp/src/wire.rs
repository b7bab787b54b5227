//! The protobuf encoding: varints, fixed numbers, texts and nested messages.

/// The fields of a message that is being written. Fields with the default value are left out, as protobuf allows.
pub(crate) struct Message<'a>(pub(crate) &'a mut Vec<u8>);

/// How the content of a field is written.
const VARINT: u32 = 0;
const FIXED64: u32 = 1;
const LENGTH: u32 = 2;
const FIXED32: u32 = 5;

pub(crate) fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push((value & 0x7f) as u8);
}

/// The number of bytes of a varint.
pub(crate) const fn varint_len(value: u64) -> usize {
    let bits = (u64::BITS - value.leading_zeros()) as usize;
    if bits == 0 { 1 } else { bits.div_ceil(7) }
}

impl Message<'_> {
    fn key(&mut self, field: u32, kind: u32) {
        varint(self.0, u64::from(field << 3 | kind));
    }

    pub(crate) fn int(&mut self, field: u32, value: u64) {
        if value != 0 {
            self.choice_int(field, value);
        }
    }

    /// A number in a choice of fields, where zero is a value.
    pub(crate) fn choice_int(&mut self, field: u32, value: u64) {
        self.key(field, VARINT);
        varint(self.0, value);
    }

    pub(crate) fn fixed32(&mut self, field: u32, value: u32) {
        if value != 0 {
            self.key(field, FIXED32);
            self.0.extend(value.to_le_bytes());
        }
    }

    pub(crate) fn fixed64(&mut self, field: u32, value: u64) {
        if value != 0 {
            self.key(field, FIXED64);
            self.0.extend(value.to_le_bytes());
        }
    }

    /// Always written, because zero is a value.
    pub(crate) fn double(&mut self, field: u32, value: f64) {
        self.key(field, FIXED64);
        self.0.extend(value.to_le_bytes());
    }

    pub(crate) fn bytes(&mut self, field: u32, value: &[u8]) {
        if !value.is_empty() {
            self.choice_bytes(field, value);
        }
    }

    /// Bytes in a choice of fields, where nothing is a value.
    pub(crate) fn choice_bytes(&mut self, field: u32, value: &[u8]) {
        self.key(field, LENGTH);
        varint(self.0, value.len() as u64);
        self.0.extend_from_slice(value);
    }

    pub(crate) fn text(&mut self, field: u32, value: &str) {
        self.bytes(field, value.as_bytes());
    }

    /// Several numbers of eight bytes.
    pub(crate) fn packed(&mut self, field: u32, values: impl ExactSizeIterator<Item = [u8; 8]>) {
        if values.len() > 0 {
            self.key(field, LENGTH);
            varint(self.0, values.len() as u64 * 8);
            values.for_each(|value| self.0.extend(value));
        }
    }

    /// A nested message.
    pub(crate) fn message(&mut self, field: u32, write: impl FnOnce(&mut Message<'_>)) {
        self.key(field, LENGTH);
        // One byte is enough for the length of most messages. Longer ones are moved.
        let start = self.0.len();
        self.0.push(0);
        write(&mut Message(self.0));
        let length = (self.0.len() - start - 1) as u64;
        match (u8::try_from(length), self.0.get_mut(start)) {
            (Ok(short @ ..0x80), Some(place)) => *place = short,
            _ => {
                let mut prefix = Vec::with_capacity(varint_len(length));
                varint(&mut prefix, length);
                drop(self.0.splice(start..=start, prefix));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t6_varints_have_as_many_bytes_as_expected() {
        for value in [0, 1, 127, 128, 300, 16_383, 16_384, u64::from(u32::MAX), u64::MAX] {
            let mut out = Vec::new();
            varint(&mut out, value);
            assert_eq!(out.len(), varint_len(value), "{value}");
            assert_eq!(prost::encoding::decode_varint(&mut out.as_slice()), Ok(value));
        }
    }

    #[test]
    fn t6_length_of_a_nested_message_may_need_several_bytes() {
        for length in [0, 1, 126, 127, 128, 200, 20_000, 3_000_000] {
            let text = "x".repeat(length);
            let mut out = vec![7];
            Message(&mut out).message(2, |inner| inner.text(1, &text));
            let mut rest = out.get(2..).unwrap();
            let inner = prost::encoding::decode_varint(&mut rest).unwrap();
            assert_eq!((rest.len() as u64, out.get(..2)), (inner, Some([7, 0x12].as_slice())));
            assert!(rest.ends_with(text.as_bytes()));
        }
    }
}
