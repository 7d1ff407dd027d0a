//! Tickets: the right to go on with a held lock in another process.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use data_encoding::BASE64URL_NOPAD;

use crate::base::error::Error;
use crate::base::fence::FencingToken;
use crate::base::token::Token;

/// The right to go on with a held lock, once, in any process.
///
/// [`LockHandle::ticket`](crate::LockHandle::ticket) makes it, and
/// [`LockManager::resume`](crate::LockManager::resume) makes a guard of it, with the same fencing token. On the way, a
/// ticket is text, of letters, digits, `-` and `_`: [`Display`](fmt::Display) writes it, and [`FromStr`] reads it.
///
/// The text is a secret, because its bearer can take over the lock. `Debug` does not show it. It contains the key of the
/// lock, unencrypted.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), lock_core::Error> {
/// # let locks = lock_core::LockManager::in_memory();
/// use std::time::Duration;
/// use lock_core::Ticket;
///
/// let guard = locks.lock("report:7").acquire().await?;
/// let ticket = guard.ticket(Duration::from_secs(300)).await?;
/// let text = ticket.to_string(); // travels in a job
/// let ticket: Ticket = text.parse()?;
/// assert_eq!(ticket.key(), "report:7");
/// assert_eq!(ticket.fencing_token(), guard.fencing_token());
/// assert!("a ticket that was cut off".parse::<Ticket>().is_err());
/// # Ok(()) }
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Ticket {
    pub(crate) key: Arc<str>,
    pub(crate) token: Token,
    pub(crate) fence: FencingToken,
    /// The ttl of the lock, which the next owner has too.
    pub(crate) ttl: Duration,
}

/// The first byte of every ticket, so that a later format can be told apart.
const FORMAT: u8 = 1;

impl Ticket {
    /// Returns the key of the lock.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Returns the fencing token of the lock, which its next owner has too.
    #[must_use]
    pub fn fencing_token(&self) -> FencingToken {
        self.fence
    }

    fn bytes(&self) -> Vec<u8> {
        let ttl = u32::try_from(self.ttl.as_millis()).unwrap_or(u32::MAX);
        let length = u16::try_from(self.key.len()).expect("a key is short");
        let mut bytes = vec![FORMAT];
        bytes.extend(self.token.bytes());
        bytes.extend(u64::from(self.fence).to_be_bytes());
        bytes.extend(ttl.to_be_bytes());
        bytes.extend(length.to_be_bytes());
        bytes.extend(self.key.as_bytes());
        bytes
    }

    /// Reads the bytes of a ticket. The length of the key shows a text that was cut off.
    fn read(mut bytes: &[u8]) -> Option<Self> {
        let [FORMAT] = take(&mut bytes)? else {
            return None;
        };
        let token = Token::from_bytes(take(&mut bytes)?);
        let fence = FencingToken::new(u64::from_be_bytes(take(&mut bytes)?))?;
        let ttl = Duration::from_millis(u32::from_be_bytes(take(&mut bytes)?).into());
        let length = u16::from_be_bytes(take(&mut bytes)?);
        let whole = bytes.len() == usize::from(length) && length > 0;
        let key = std::str::from_utf8(bytes).ok().filter(|_| whole)?;
        Some(Self {
            key: key.into(),
            token,
            fence,
            ttl,
        })
    }
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(*first)
}

impl fmt::Display for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        BASE64URL_NOPAD.encode_display(&self.bytes()).fmt(f)
    }
}

impl FromStr for Ticket {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let read = || {
            let mut bytes = vec![0; BASE64URL_NOPAD.decode_len(text.len()).ok()?];
            let length = BASE64URL_NOPAD.decode_mut(text.as_bytes(), &mut bytes);
            bytes.truncate(length.ok()?);
            Self::read(&bytes)
        };
        read().ok_or_else(|| {
            Error::invalid(
                "the text is no ticket; pass on the whole text that `Display` has written",
            )
        })
    }
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Ticket(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::token::{Address, TokenSource};

    fn ticket(key: &str) -> Ticket {
        Ticket {
            key: key.into(),
            token: TokenSource::new(Address::random()).fresh(),
            fence: FencingToken::new(FencingToken::LIMIT - 1).expect("in bounds"),
            ttl: Duration::from_secs(86_400),
        }
    }

    #[test]
    fn a_ticket_reads_back_whatever_its_key_contains() {
        for key in ["k", "order:{42}/Ärger \0\n", &"x".repeat(1_024)] {
            let ticket = ticket(key);
            let text = ticket.to_string();
            let safe = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
            assert!(text.bytes().all(safe), "it needs no escape anywhere");
            let read: Ticket = text.parse().expect("its own text");
            assert!(read == ticket);
            assert_eq!(read.ttl, ticket.ttl);
        }
    }

    #[test]
    fn a_text_that_was_cut_off_or_changed_in_length_is_no_ticket() {
        let text = ticket("order:42").to_string();
        for end in 0..text.len() {
            assert!(text[..end].parse::<Ticket>().is_err(), "{end}");
        }
        for other in [format!("{text}A"), format!(" {text}"), format!("A{text}")] {
            assert!(other.parse::<Ticket>().is_err());
        }
    }

    #[test]
    fn neither_the_debug_text_nor_an_error_shows_a_ticket() {
        let ticket = ticket("account:alice");
        let text = ticket.to_string();
        let error = text[1..].parse::<Ticket>().expect_err("cut off");
        assert_eq!(error.kind(), crate::ErrorKind::Invalid);
        let shown = format!("{ticket:?} {error} {error:?}");
        assert!(!shown.contains(&text[1..9]) && !shown.contains("alice"));
    }
}
