//! Reads the fields of a record, and never beyond its end.

use super::codec::Unreadable;

/// The bytes of a record that are not read yet.
pub(super) struct Cursor<'a>(pub(super) &'a [u8]);

impl<'a> Cursor<'a> {
    pub(super) fn take(&mut self, length: usize) -> Result<&'a [u8], Unreadable> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(Unreadable::Corrupt)?;
        self.0 = rest;
        Ok(taken)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], Unreadable> {
        let taken = self.take(N)?;
        taken.try_into().map_err(|_| Unreadable::Corrupt)
    }

    /// Reads a number of up to 64 bits, seven in each byte, the lowest first.
    pub(super) fn varint(&mut self) -> Result<u64, Unreadable> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let [byte] = self.array()?;
            let bits = u64::from(byte & 0x7F);
            if bits << shift >> shift != bits {
                return Err(Unreadable::Corrupt);
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(Unreadable::Corrupt)
    }

    /// Reads bytes behind their length.
    pub(super) fn bytes(&mut self) -> Result<&'a [u8], Unreadable> {
        let length = usize::try_from(self.varint()?).map_err(|_| Unreadable::Corrupt)?;
        self.take(length)
    }
}

pub(super) fn push_varint(output: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        output.push(number as u8 | 0x80);
        number >>= 7;
    }
    output.push(number as u8);
}

pub(super) fn push_bytes(output: &mut Vec<u8>, bytes: &[u8]) {
    push_varint(output, bytes.len() as u64);
    output.extend_from_slice(bytes);
}
