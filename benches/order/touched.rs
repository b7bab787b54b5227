//! What an instruction reads or writes, as far as it is written in the instruction and the registers.
//!
//! Not everything is understood (vectors of addresses, what has its own segment), and nothing has to be: what is missed lies
//! where the linker would have put it anyway.

use nix::libc::user_regs_struct;

/// What the processor knows before an instruction.
pub(crate) struct Registers {
    /// Where the instruction is.
    at: u64,
    /// By their numbers.
    general: [u64; 16],
}

impl From<&user_regs_struct> for Registers {
    fn from(all: &user_regs_struct) -> Self {
        let general = [
            all.rax, all.rcx, all.rdx, all.rbx, all.rsp, all.rbp, all.rsi, all.rdi, all.r8, all.r9, all.r10,
            all.r11, all.r12, all.r13, all.r14, all.r15,
        ];
        Self { at: all.rip, general }
    }
}

impl Registers {
    fn general(&self, number: u8) -> u64 {
        self.general.get(usize::from(number)).copied().unwrap_or_default()
    }
}

const RDX: u8 = 2;
const RSI: u8 = 6;
const RDI: u8 = 7;
const R10: u8 = 10;

/// Where the operands of an instruction lie in memory. The code begins with the instruction, and may go on.
pub(crate) fn touched(code: &[u8], registers: &Registers) -> Vec<u64> {
    read(&mut Bytes { code, at: 0 }, registers).unwrap_or_default()
}

/// Stops unless an instruction of each kind is understood. `cargo test` does not come here.
pub(crate) fn check() {
    // Each register has a value that is nobody else's.
    let general: [u64; 16] = std::array::from_fn(|number| (number as u64 + 1) << 12);
    let registers = Registers { at: 0x30_0000, general };
    let of = |number| registers.general(number);
    let known: [(&[u8], &[u64]); 10] = [
        // mov eax, [rip+16]
        (&[0x8b, 0x05, 16, 0, 0, 0], &[0x30_0000 + 6 + 16]),
        // cmp byte [rip+16], 5
        (&[0x80, 0x3d, 16, 0, 0, 0, 5], &[0x30_0000 + 7 + 16]),
        // mov rax, [rbx+8*rcx+8]
        (&[0x48, 0x8b, 0x44, 0xcb, 8], &[of(3) + 8 * of(1) + 8]),
        // mov eax, [r9-8]
        (&[0x41, 0x8b, 0x41, 0xf8], &[of(9) - 8]),
        // jmp [8*rax+0x200000]
        (&[0xff, 0x24, 0xc5, 0, 0, 0x20, 0], &[8 * of(0) + 0x20_0000]),
        // vmovdqu ymm0, [rsp]
        (&[0xc5, 0xfe, 0x6f, 0x04, 0x24], &[of(4)]),
        // vmovdqu32 zmm0, [rsi+64]
        (&[0x62, 0xf1, 0x7e, 0x48, 0x6f, 0x46, 1], &[of(RSI) + 64]),
        // rep movsb
        (&[0xf3, 0xa4], &[of(RSI), of(RDI)]),
        // lea rax, [rip+16]
        (&[0x48, 0x8d, 0x05, 16, 0, 0, 0], &[]),
        // mov rbx, rax
        (&[0x48, 0x89, 0xc3], &[]),
    ];
    for (code, expected) in known {
        assert_eq!(touched(code, &registers), expected, "{code:02x?}");
    }
}

/// Reads on; nothing when there is no more.
struct Bytes<'a> {
    code: &'a [u8],
    at: usize,
}

impl Bytes<'_> {
    fn next(&mut self) -> Option<u8> {
        let byte = *self.code.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    fn small(&mut self) -> Option<u64> {
        Some(i64::from(self.next()?.cast_signed()).cast_unsigned())
    }

    fn large(&mut self) -> Option<u64> {
        let bytes = [self.next()?, self.next()?, self.next()?, self.next()?];
        Some(i64::from(i32::from_le_bytes(bytes)).cast_unsigned())
    }
}

/// How the numbers of registers go on: what prefixes add to the index and to the base.
struct Prefixes {
    index: u8,
    base: u8,
    /// A small displacement counts in vectors.
    vector: Option<u64>,
}

/// Which table an operation is looked up in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Table {
    One,
    /// After `0F`.
    Two,
    /// After `0F 38`.
    Three,
    /// After `0F 3A`; all of these have an immediate byte.
    Four,
}

fn read(bytes: &mut Bytes<'_>, registers: &Registers) -> Option<Vec<u64>> {
    let mut first = bytes.next()?;
    while matches!(first, 0x66 | 0x67 | 0xf0 | 0xf2 | 0xf3 | 0x2e | 0x36 | 0x3e | 0x26) {
        first = bytes.next()?;
    }
    let mut prefixes = Prefixes { index: 0, base: 0, vector: None };
    if first & 0xf0 == 0x40 {
        prefixes.index = (first >> 1 & 1) << 3;
        prefixes.base = (first & 1) << 3;
        first = bytes.next()?;
    }
    let table = |number: u8| match number {
        1 => Some(Table::Two),
        2 => Some(Table::Three),
        3 => Some(Table::Four),
        _ => None,
    };
    let (table, operation) = match first {
        0xc5 => {
            bytes.next()?;
            (Table::Two, bytes.next()?)
        }
        0xc4 | 0x62 => {
            let second = bytes.next()?;
            prefixes.index = (!second >> 6 & 1) << 3;
            prefixes.base = (!second >> 5 & 1) << 3;
            bytes.next()?;
            if first == 0x62 {
                prefixes.vector = Some(16 << (bytes.next()? >> 5 & 3));
            }
            (table(second & if first == 0x62 { 7 } else { 31 })?, bytes.next()?)
        }
        0x0f => match bytes.next()? {
            0x38 => (Table::Three, bytes.next()?),
            0x3a => (Table::Four, bytes.next()?),
            operation => (Table::Two, operation),
        },
        operation => (Table::One, operation),
    };
    match (table, operation) {
        // The source and the target of strings.
        (Table::One, 0xa4..=0xa7) => return Some(vec![registers.general(RSI), registers.general(RDI)]),
        (Table::One, 0xaa | 0xab | 0xae | 0xaf) => return Some(vec![registers.general(RDI)]),
        (Table::One, 0xac | 0xad) => return Some(vec![registers.general(RSI)]),
        // What a system call may be given.
        (Table::Two, 0x05) => {
            return Some([RDI, RSI, RDX, R10].map(|number| registers.general(number)).to_vec());
        }
        // An address that is only computed, and what does nothing.
        (Table::One, 0x8d) | (Table::Two, 0x18..=0x1f) => return None,
        _ => {}
    }
    if !has_operands(table, operation) {
        return None;
    }
    let operands = bytes.next()?;
    address(bytes, operands, &prefixes, registers, immediate(table, operation, operands))
        .map(|found| vec![found])
}

/// Whether a byte follows that tells of operands.
fn has_operands(table: Table, operation: u8) -> bool {
    match table {
        Table::One => {
            operation < 0x40 && operation & 7 < 4
                || matches!(operation, 0x63 | 0x69 | 0x6b | 0x80..=0x8f | 0xc0 | 0xc1 | 0xc6 | 0xc7)
                || matches!(operation, 0xd0..=0xd3 | 0xd8..=0xdf | 0xf6 | 0xf7 | 0xfe | 0xff)
        }
        Table::Two => !matches!(
            operation,
            0x05..=0x09 | 0x0b | 0x0e | 0x30..=0x37 | 0x77 | 0x80..=0x8f | 0xa0..=0xa2 | 0xa8..=0xaa | 0xc8..=0xcf
        ),
        Table::Three | Table::Four => true,
    }
}

/// How many bytes follow the operands; an address may count from behind them.
fn immediate(table: Table, operation: u8, operands: u8) -> u64 {
    let tests = operands >> 3 & 7 < 2;
    match (table, operation) {
        (Table::One, 0x80 | 0x83 | 0xc0 | 0xc1 | 0xc6 | 0x6b) | (Table::Four, _) => 1,
        (Table::One, 0xf6) if tests => 1,
        (Table::One, 0x81 | 0xc7 | 0x69) => 4,
        (Table::One, 0xf7) if tests => 4,
        (Table::Two, 0x70..=0x73 | 0xa4 | 0xac | 0xba | 0xc2 | 0xc4..=0xc6) => 1,
        _ => 0,
    }
}

/// The one operand that may lie in memory.
fn address(
    bytes: &mut Bytes<'_>,
    operands: u8,
    prefixes: &Prefixes,
    registers: &Registers,
    immediate: u64,
) -> Option<u64> {
    let (mode, low) = (operands >> 6, operands & 7);
    if mode == 3 {
        return None;
    }
    let mut sum = 0_u64;
    if low == 4 {
        let scaled = bytes.next()?;
        let (index, base) = (scaled >> 3 & 7 | prefixes.index, scaled & 7);
        if index != 4 {
            sum = registers.general(index) << (scaled >> 6);
        }
        if base == 5 && mode == 0 {
            return Some(sum.wrapping_add(bytes.large()?));
        }
        sum = sum.wrapping_add(registers.general(base | prefixes.base));
    } else if low == 5 && mode == 0 {
        let distance = bytes.large()?;
        let after = registers.at + bytes.at as u64 + immediate;
        return Some(after.wrapping_add(distance));
    } else {
        sum = registers.general(low | prefixes.base);
    }
    let distance = match mode {
        1 => bytes.small()?.wrapping_mul(prefixes.vector.unwrap_or(1)),
        2 => bytes.large()?,
        _ => 0,
    };
    Some(sum.wrapping_add(distance))
}
