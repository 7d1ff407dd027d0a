//! The bytes of a record.
//!
//! | field | bytes |
//! | --- | --- |
//! | version | 1 |
//! | 1 if the rest up to the checksum is sealed, and otherwise 0 | 1 |
//! | flags: has trailers, the request's body ended | 1 |
//! | SHA-256 of the request | 32 |
//! | bytes of the request's body in it | varint |
//! | status | 2 |
//! | headers: their number; for each its place in the table, or 0 and its name, and its value | varint, … |
//! | body | varint, … |
//! | trailers, as headers | varint, … |
//! | checksum: the beginning of the SHA-256 of all bytes before | 8 |
//!
//! A seal encrypts everything behind the first two bytes and before the checksum. Without a seal, a client that can write to
//! the store can make every record, and with one it can make none.
//!
//! Decoding is total. Bytes that this file has not written are unreadable, and cause no panic.

use bytes::Bytes;
use http::header::HeaderName;
use http::{HeaderMap, StatusCode};
use lock_core::middleware::MAX_RECORD;
use sha2::{Digest, Sha256};

use super::cursor::{Cursor, push_bytes, push_varint};
use super::{Fingerprinted, ReplayRules, Seal, headers};

const VERSION: u8 = 1;

const OPEN: u8 = 0;
const SEALED: u8 = 1;

const TRAILERS: u8 = 1;
const ENDED: u8 = 2;

/// The version, and whether the rest is sealed. No seal encrypts these bytes.
const CLEAR: usize = 2;
const CHECKSUM: usize = 8;

/// The answer to a request, before it is encoded.
pub(crate) struct Draft<'a> {
    pub(crate) request: Fingerprinted,
    pub(crate) status: StatusCode,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) body: &'a [u8],
    pub(crate) trailers: Option<&'a HeaderMap>,
}

/// The answer to a request, as it was recorded.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) request: Fingerprinted,
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) trailers: Option<HeaderMap>,
}

/// The reason why a record cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unreadable {
    /// A newer version of the kit wrote it.
    Version,
    /// It is sealed and the layer has no seal, or the other way round, or the seal does not open it.
    Seal,
    Corrupt,
}

/// Encrypts records for one lock.
#[derive(Clone, Copy)]
pub(crate) struct Sealing<'a> {
    pub(crate) seal: &'a dyn Seal,
    /// The name of the lock.
    pub(crate) context: &'a [u8],
}

impl<'a> Sealing<'a> {
    pub(crate) fn of(rules: &'a ReplayRules, context: &'a [u8]) -> Option<Self> {
        let seal = rules.seal.as_deref()?;
        Some(Self { seal, context })
    }
}

impl Draft<'_> {
    /// Encodes the answer with the headers that are kept.
    ///
    /// It returns `None` if the headers are too large, if the seal fails, or if it makes more of the answer than a record has
    /// room for.
    pub(crate) fn encode(
        &self,
        more_headers: &[HeaderName],
        sealing: Option<Sealing<'_>>,
    ) -> Option<Vec<u8>> {
        let mut output = Vec::with_capacity(256 + self.body.len());
        let mut flags = 0;
        flags |= if self.trailers.is_some() { TRAILERS } else { 0 };
        flags |= if self.request.ended { ENDED } else { 0 };
        let sealed = if sealing.is_some() { SEALED } else { OPEN };
        output.extend_from_slice(&[VERSION, sealed, flags]);
        output.extend_from_slice(&self.request.digest);
        push_varint(&mut output, self.request.read);
        output.extend_from_slice(&self.status.as_u16().to_be_bytes());
        headers::push(&mut output, self.headers, more_headers)?;
        push_bytes(&mut output, self.body);
        if let Some(trailers) = self.trailers {
            headers::push(&mut output, trailers, more_headers)?;
        }
        if let Some(Sealing { seal, context }) = sealing {
            let sealed = seal.seal(context, &output[CLEAR..])?;
            output.truncate(CLEAR);
            output.extend_from_slice(&sealed);
        }
        output.extend_from_slice(&checksum(&output));
        (output.len() <= MAX_RECORD).then_some(output)
    }
}

impl Record {
    pub(crate) fn decode(bytes: &[u8], sealing: Option<Sealing<'_>>) -> Result<Self, Unreadable> {
        if *bytes.first().ok_or(Unreadable::Corrupt)? != VERSION {
            return Err(Unreadable::Version);
        }
        let length = bytes.len().checked_sub(CHECKSUM);
        let (record, sum) = bytes.split_at(length.ok_or(Unreadable::Corrupt)?);
        if *sum != checksum(record) {
            return Err(Unreadable::Corrupt);
        }
        let (clear, rest) = record.split_at_checked(CLEAR).ok_or(Unreadable::Corrupt)?;
        match (clear[1], sealing) {
            (OPEN, None) => Self::read(rest),
            (SEALED, Some(Sealing { seal, context })) => {
                let plain = seal.open(context, rest).ok_or(Unreadable::Seal)?;
                Self::read(&plain)
            }
            // A layer with a seal trusts no open record, because another client could have written it.
            _ => Err(Unreadable::Seal),
        }
    }

    fn read(plain: &[u8]) -> Result<Self, Unreadable> {
        let mut rest = Cursor(plain);
        let [flags] = rest.array()?;
        let request = Fingerprinted {
            digest: rest.array()?,
            read: rest.varint()?,
            ended: flags & ENDED != 0,
        };
        let status = u16::from_be_bytes(rest.array()?);
        let record = Self {
            request,
            status: StatusCode::from_u16(status).map_err(|_| Unreadable::Corrupt)?,
            headers: headers::read(&mut rest)?,
            body: Bytes::copy_from_slice(rest.bytes()?),
            trailers: match flags & TRAILERS {
                0 => None,
                _ => Some(headers::read(&mut rest)?),
            },
        };
        match rest.0 {
            [] => Ok(record),
            _ => Err(Unreadable::Corrupt),
        }
    }
}

impl Unreadable {
    /// Returns a word for the log.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Version => "another version of the kit wrote it",
            Self::Seal => "the seal of this layer does not open it",
            Self::Corrupt => "it is corrupt",
        }
    }
}

fn checksum(bytes: &[u8]) -> [u8; CHECKSUM] {
    let digest: [u8; 32] = Sha256::digest(bytes).into();
    std::array::from_fn(|index| digest[index])
}
