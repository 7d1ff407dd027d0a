//! Documents as bytes.
//!
//! The writer of a document knows neither the clock of the store at the moment of its write, nor the number that the write
//! gets. So a document is bound by its reader: the store keeps the time and the number of the last write beside the bytes.
//! Each time in the bytes is relative to the time that the writer believed it was, and says whether this write has set it. A
//! time that the write has set moves by the difference between the two clocks. So each lease lasts at least its ttl from the
//! write on, and no lease is lengthened by the writes of others.

use std::sync::Arc;

use crate::base::clock::ServerTime;
use crate::base::identity::Identity;
use crate::base::record::StoredRecord;
use crate::base::share::ShareLimit;
use crate::base::token::Token;
use crate::protocol::{Closed, Document, Hold, Phase, Place, Shares, Waited, Waiter};

/// The version of the format, which is the first byte.
const VERSION: u8 = 1;
/// The first byte of the identity of a manager.
const CARD: u8 = b'h';
/// A fencing token is the number of a write times this number. In between are those of the tasks of one process.
pub(crate) const PASSES: u64 = 64;

/// The state of a key, with the fencing tokens of its owners.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Cell {
    pub(super) document: Document,
    /// 0: the owner gets the number of the write that brings it in.
    pub(super) fences: Vec<(Token, u64)>,
}

/// A document for the store.
pub(super) struct Encoded {
    pub(super) bytes: Vec<u8>,
    /// The time from which on the document says nothing, if its write has set no later end, in microseconds.
    pub(super) ends: u64,
    /// The same, relative to the write. 0: its write has set no end.
    pub(super) lasts: u64,
}

/// A write that changes one document into another.
pub(super) struct Change<'a> {
    pub(super) before: &'a Document,
    pub(super) after: &'a Cell,
    /// The lease that the operation is about. Its end counts from the write, also where the end has not changed.
    pub(super) touched: Option<Token>,
    /// The time that the writer believes it is. The clock of the store shows no less.
    pub(super) now: ServerTime,
}

impl Cell {
    /// Returns the fencing token of an owner; `None`: it is no owner.
    pub(super) fn fence_of(&self, token: Token) -> Option<u64> {
        let mut fences = self.fences.iter();
        fences.find(|(of, _)| *of == token).map(|(_, fence)| *fence)
    }

    /// Makes the cell of a later document. Each owner keeps its fencing token. `swapped`: the second token has that of the
    /// first one.
    pub(super) fn followed_by(&self, document: Document, swapped: Option<(Token, Token)>) -> Self {
        let fence = |token| {
            let before = swapped.and_then(|(from, to)| (to == token).then_some(from));
            let own = self.fence_of(token);
            own.or_else(|| self.fence_of(before?)).unwrap_or(0)
        };
        let fences = owners(&document).map(|token| (token, fence(token)));
        let fences = fences.collect();
        Self { document, fences }
    }

    /// Gives an owner another fencing token. Returns whether that changes anything.
    pub(super) fn raise(&mut self, (token, fence): (Token, u64)) -> bool {
        let mut fences = self.fences.iter_mut();
        let own = fences.find(|(of, _)| *of == token);
        own.is_some_and(|(_, own)| std::mem::replace(own, fence) != fence)
    }
}

/// The tokens of all owners.
pub(super) fn owners(document: &Document) -> impl Iterator<Item = Token> {
    let (one, several) = match &document.phase {
        Phase::Held(hold) => (Some(hold.token), &[][..]),
        Phase::Shared(shares) => (None, shares.inside.as_slice()),
        Phase::Free | Phase::Closed(_) => (None, &[][..]),
    };
    one.into_iter()
        .chain(several.iter().map(|place| place.token))
}

/// The end of one owner.
fn end_of(document: &Document, token: Token) -> Option<u64> {
    match &document.phase {
        Phase::Held(hold) => (hold.token == token).then_some(hold.ends),
        Phase::Shared(shares) => {
            let mut places = shares.inside.iter();
            let place = places.find(|place| place.token == token)?;
            Some(place.ends)
        }
        Phase::Free | Phase::Closed(_) => None,
    }
}

impl Change<'_> {
    pub(super) fn encode(&self) -> Encoded {
        let mut out = Writer {
            bytes: vec![VERSION],
            now: self.now,
            ends: 0,
            lasts: 0,
        };
        out.number(self.now.0);
        match &self.after.document.phase {
            Phase::Free => out.bytes.push(0),
            Phase::Held(hold) => {
                out.bytes.push(1);
                self.owner(&mut out, hold.token, hold.ends);
            }
            Phase::Shared(shares) => {
                out.bytes.push(2);
                out.number(shares.inside.len() as u64);
                for place in &shares.inside {
                    out.bytes.push(place.is_freed.into());
                    self.owner(&mut out, place.token, place.ends);
                }
                out.end(shares.ends, self.before.ends() != Some(shares.ends));
            }
            Phase::Closed(closed) => {
                let is_same = matches!(&self.before.phase, Phase::Closed(it) if it.of == closed.of && it.until == closed.until);
                out.bytes.push(if closed.record.is_some() { 4 } else { 3 });
                out.token(closed.of);
                out.end(closed.until, !is_same);
                if let Some(record) = &closed.record {
                    out.number(record.fence);
                    out.number(record.bytes.len() as u64);
                    out.bytes.extend_from_slice(&record.bytes);
                }
            }
        }
        self.queue(&mut out);
        Encoded {
            bytes: out.bytes,
            ends: out.ends,
            lasts: out.lasts,
        }
    }

    fn owner(&self, out: &mut Writer, token: Token, ends: u64) {
        let is_set = self.touched == Some(token) || end_of(self.before, token) != Some(ends);
        out.token(token);
        out.number(self.after.fence_of(token).unwrap_or(0));
        out.end(ends, is_set);
    }

    fn queue(&self, out: &mut Writer) {
        let document = &self.after.document;
        out.number(document.queue.len() as u64);
        if document.queue.is_empty() {
            return;
        }
        out.end(
            document.queue_ends,
            self.before.queue_ends != document.queue_ends,
        );
        for waiter in &document.queue {
            let is_set = !self.before.queue.contains(waiter);
            let (kind, micros) = match waiter.waited {
                Waited::Since(micros) => (0, micros),
                Waited::Asked(millis) => (1, millis * 1000),
                Waited::Answered(millis) => (2, millis * 1000),
            };
            out.bytes.push(kind);
            out.token(waiter.token);
            out.number(waiter.grant);
            out.time(micros, is_set);
        }
    }
}

struct Writer {
    bytes: Vec<u8>,
    now: ServerTime,
    ends: u64,
    lasts: u64,
}

impl Writer {
    fn number(&mut self, mut number: u64) {
        while number > 0x7f {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }

    fn token(&mut self, token: Token) {
        self.bytes.extend_from_slice(&token.bytes());
        self.number(token.share().map_or(0, |limit| limit.count().into()));
    }

    /// A time in microseconds.
    fn time(&mut self, micros: u64, is_set: bool) {
        let ahead = micros.wrapping_sub(self.now.0).cast_signed();
        let zigzag = (ahead << 1 ^ ahead >> 63).cast_unsigned();
        self.number(zigzag << 1 | u64::from(is_set));
    }

    /// An end in milliseconds. The document says something in the whole last millisecond.
    fn end(&mut self, millis: u64, is_set: bool) {
        let (micros, over) = (
            millis.saturating_mul(1000),
            millis.saturating_add(1).saturating_mul(1000),
        );
        self.time(micros, is_set);
        match is_set {
            // The clock of the store may show a part of a millisecond more than the reader of the document counts.
            true => self.lasts = self.lasts.max((over + 1000).saturating_sub(self.now.0)),
            false => self.ends = self.ends.max(over),
        }
    }
}

/// The identity of a manager as bytes.
pub(crate) fn card_bytes(identity: &Identity) -> Vec<u8> {
    [&[CARD], identity.text().as_bytes()].concat()
}

/// Reads the identity of a manager.
pub(crate) fn card_of(bytes: &[u8]) -> Option<Identity> {
    let text = bytes.strip_prefix(&[CARD])?;
    Identity::parse(std::str::from_utf8(text).ok()?)
}

/// Reads a document that was written as the number `revision` at this time of the store's clock.
///
/// `None`: a later version of the kit has written it, or another client.
pub(super) fn decode(bytes: &[u8], revision: u64, at: ServerTime) -> Option<Cell> {
    let (&version, rest) = bytes.split_first()?;
    if version != VERSION {
        return None;
    }
    let mut from = Reader {
        rest,
        now: 0,
        at: at.0,
        own: revision.checked_mul(PASSES)?,
    };
    from.now = from.number()?;
    let mut fences = Vec::new();
    let phase = match from.byte()? {
        0 => Phase::Free,
        1 => {
            let (token, ends) = from.owner(&mut fences)?;
            Phase::Held(Hold { token, ends })
        }
        2 => {
            let mut inside = Vec::new();
            for _ in 0..from.number()? {
                let is_freed = from.byte()? != 0;
                let (token, ends) = from.owner(&mut fences)?;
                inside.push(Place {
                    token,
                    ends,
                    is_freed,
                });
            }
            // A share that was renewed has moved, and may end later now.
            let ends = inside.iter().map(|place| place.ends).max();
            let ends = from.end()?.max(ends.unwrap_or(0));
            Phase::Shared(Shares { inside, ends })
        }
        kind @ (3 | 4) => {
            let of = from.token()?;
            let until = from.end()?;
            let record = match kind {
                4 => Some(Arc::new(from.record()?)),
                _ => None,
            };
            Phase::Closed(Closed { of, until, record })
        }
        _ => return None,
    };
    let mut document = Document {
        phase,
        ..Document::default()
    };
    let waiters = from.number()?;
    if waiters > 0 {
        document.queue_ends = from.end()?;
    }
    for _ in 0..waiters {
        document.queue.push(from.waiter()?);
    }
    from.rest.is_empty().then_some(Cell { document, fences })
}

struct Reader<'a> {
    rest: &'a [u8],
    /// The time that the writer believed it was, and the time of the store at the write.
    now: u64,
    at: u64,
    /// The fencing token of an owner that came in by the write.
    own: u64,
}

impl Reader<'_> {
    fn take(&mut self, count: usize) -> Option<&[u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|taken| taken[0])
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    fn token(&mut self) -> Option<Token> {
        let bytes: [u8; 24] = self.take(24)?.try_into().ok()?;
        let limit = u32::try_from(self.number()?).ok()?;
        Some(Token::from_bytes(bytes).with_share(ShareLimit::of(limit)))
    }

    /// A time in microseconds.
    fn time(&mut self) -> Option<u64> {
        let number = self.number()?;
        let zigzag = number >> 1;
        let ahead = (zigzag >> 1).cast_signed() ^ -((zigzag & 1).cast_signed());
        let base = match number & 1 {
            0 => self.now,
            _ => self.at,
        };
        Some(base.saturating_add_signed(ahead))
    }

    /// An end in milliseconds, which is never too early.
    fn end(&mut self) -> Option<u64> {
        self.time().map(|micros| micros.div_ceil(1000))
    }

    fn owner(&mut self, fences: &mut Vec<(Token, u64)>) -> Option<(Token, u64)> {
        let token = self.token()?;
        let fence = match self.number()? {
            0 => self.own,
            fence => fence,
        };
        fences.push((token, fence));
        Some((token, self.end()?))
    }

    fn record(&mut self) -> Option<StoredRecord> {
        let fence = self.number()?;
        let length = usize::try_from(self.number()?).ok()?;
        let bytes = self.take(length)?.into();
        Some(StoredRecord { fence, bytes })
    }

    fn waiter(&mut self) -> Option<Waiter> {
        let kind = self.byte()?;
        let token = self.token()?;
        let grant = self.number()?;
        let micros = self.time()?;
        let waited = match kind {
            0 => Waited::Since(micros),
            1 => Waited::Asked(micros / 1000),
            2 => Waited::Answered(micros / 1000),
            _ => return None,
        };
        Some(Waiter {
            token,
            grant,
            waited,
        })
    }
}

#[cfg(test)]
#[path = "codec_tests.rs"]
mod tests;
