//! The bytes of a result.
//!
//! | field | bytes |
//! | --- | --- |
//! | version | 1 |
//! | `F`, for the result of a function | 1 |
//! | fingerprint of the arguments; zero: none | 16 |
//! | 0 for `Ok`, 1 for `Err` | 1 |
//! | the value as JSON | … |
//! | checksum: the beginning of the SHA-256 of all bytes before | 8 |
//!
//! A record without bytes says that the work is done and its result is not kept.
//!
//! The path of the function is not in it, so a function that is moved or renamed finds its results. The value is JSON and no
//! binary format, because its type changes from one deployment to the next: serde's `default` and `alias` then apply.
//!
//! Version 1 is that of lock-tower's answers. Decoding is total: other bytes are unreadable, and cause no panic.

use std::io;

use sha2::{Digest, Sha256};

use crate::base::record::MAX_RECORD;

const VERSION: u8 = 2;
const FUNCTION: u8 = b'F';

const HEAD: usize = 19;
const CHECKSUM: usize = 8;

/// The digest of a call's arguments. Zero: the call has none.
pub(crate) type Digest16 = [u8; 16];

/// A result, as its record has it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Stored<'a> {
    pub(crate) fingerprint: Digest16,
    pub(crate) is_error: bool,
    pub(crate) json: &'a [u8],
}

/// The reason why a record is no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unreadable {
    /// A newer version of the kit wrote it.
    Newer,
    /// Something other than a function with `#[idempotent]` left it.
    Foreign,
    Damaged,
}

/// Takes the JSON of a value, up to the size of the largest record.
#[doc(hidden)]
#[derive(Debug)]
pub struct Draft {
    bytes: Vec<u8>,
}

impl Draft {
    pub(super) fn new(fingerprint: Digest16, is_error: bool) -> Self {
        let mut bytes = Vec::with_capacity(256);
        bytes.extend_from_slice(&[VERSION, FUNCTION]);
        bytes.extend_from_slice(&fingerprint);
        bytes.push(u8::from(is_error));
        Self { bytes }
    }

    pub(super) fn json(&self) -> &[u8] {
        &self.bytes[HEAD..]
    }

    pub(super) fn finish(mut self) -> Vec<u8> {
        let sum = checksum(&self.bytes);
        self.bytes.extend_from_slice(&sum);
        self.bytes
    }
}

/// The one error of this writer is a value that is too large.
impl io::Write for Draft {
    fn write(&mut self, json: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + json.len() + CHECKSUM > MAX_RECORD {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(json);
        Ok(json.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> Stored<'a> {
    pub(crate) fn decode(record: &'a [u8]) -> Result<Self, Unreadable> {
        match record {
            [VERSION, FUNCTION, ..] => {}
            [version, FUNCTION, ..] if *version > VERSION => return Err(Unreadable::Newer),
            _ => return Err(Unreadable::Foreign),
        }
        let length = record.len().checked_sub(CHECKSUM);
        let (bytes, sum) = record.split_at(length.ok_or(Unreadable::Damaged)?);
        if *sum != checksum(bytes) {
            return Err(Unreadable::Damaged);
        }
        let (head, json) = bytes.split_at_checked(HEAD).ok_or(Unreadable::Damaged)?;
        let is_error = match head[HEAD - 1] {
            0 => false,
            1 => true,
            _ => return Err(Unreadable::Damaged),
        };
        Ok(Self {
            fingerprint: std::array::from_fn(|index| head[2 + index]),
            is_error,
            json,
        })
    }
}

fn checksum(bytes: &[u8]) -> [u8; CHECKSUM] {
    let digest: [u8; 32] = Sha256::digest(bytes).into();
    std::array::from_fn(|index| digest[index])
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn encoded(is_error: bool, json: &[u8]) -> Vec<u8> {
        let mut draft = Draft::new([7; 16], is_error);
        draft.write_all(json).unwrap();
        draft.finish()
    }

    #[test]
    fn what_was_encoded_is_decoded() {
        for is_error in [false, true] {
            let record = encoded(is_error, b"{\"id\":7}");
            let stored = Stored::decode(&record).unwrap();
            assert_eq!(stored.fingerprint, [7; 16]);
            assert_eq!(
                (stored.is_error, stored.json),
                (is_error, &b"{\"id\":7}"[..])
            );
        }
    }

    #[test]
    fn the_bytes_of_a_result_stay_as_they_are_documented() {
        let record = encoded(false, b"null");
        assert_eq!(record[..2], [2, b'F']);
        assert_eq!(record[2..18], [7; 16]);
        assert_eq!(record[18..23], *b"\0null");
        assert_eq!(record[23..], Sha256::digest(&record[..23])[..8]);
    }

    #[test]
    fn a_record_that_is_cut_or_changed_anywhere_is_unreadable() {
        let record = encoded(false, b"{\"id\":7}");
        for length in 0..record.len() {
            assert!(Stored::decode(&record[..length]).is_err(), "{length}");
        }
        for index in 0..record.len() {
            for bit in 0..8 {
                let mut changed = record.clone();
                changed[index] ^= 1 << bit;
                assert!(Stored::decode(&changed).is_err(), "{index}, {bit}");
            }
        }
    }

    #[test]
    fn a_newer_version_a_layers_answer_and_other_bytes_are_told_apart() {
        let newer = [&[VERSION + 1][..], &encoded(false, b"1")[1..]].concat();
        assert_eq!(Stored::decode(&newer), Err(Unreadable::Newer));
        for foreign in [&[1, 0, 0][..], &[0], &[2, b'G'], b"\x01receipt"] {
            assert_eq!(Stored::decode(foreign), Err(Unreadable::Foreign));
        }
    }

    #[test]
    fn a_draft_takes_a_value_up_to_the_largest_record_and_no_byte_more() {
        let room = MAX_RECORD - HEAD - CHECKSUM;
        assert_eq!(encoded(false, &vec![b'1'; room]).len(), MAX_RECORD);
        let mut draft = Draft::new([0; 16], false);
        assert!(draft.write_all(&vec![b'1'; room + 1]).is_err());
    }
}
