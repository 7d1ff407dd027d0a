//! Lease tokens: the store keeps one for each owner and each waiter of a key.

use std::fmt;
#[cfg(feature = "redis")]
use std::hash::BuildHasher;
use std::sync::Mutex;
use std::time::Duration;

use data_encoding::HEXLOWER;
#[cfg(feature = "redis")]
use foldhash::quality::FixedState;

use crate::base::clock::Moment;
use crate::base::machine;
use crate::base::share::ShareLimit;
use crate::base::sync::lock;

/// The receiver of a store's pushes.
///
/// It is a manager, or one runtime on which the manager is used.
///
/// It names the push channel. It does not name the process, because two managers of one process
/// must not take each other's pushes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Address(u64);

impl Address {
    /// The bits that name a runtime of the manager. They are 0 in the manager's own address.
    const RUNTIME: u64 = 0xfff;

    pub(crate) fn random() -> Self {
        let mut bytes = [0; 8];
        machine::fill(&mut bytes);
        Self(u64::from_be_bytes(bytes) & !Self::RUNTIME)
    }

    /// Reads an address that [`Display`](fmt::Display) wrote.
    #[cfg(any(feature = "redis", feature = "postgres"))]
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut number = [0; 8];
        if text.len() != 16 {
            return None;
        }
        HEXLOWER.decode_mut(text.as_bytes(), &mut number).ok()?;
        Some(Self(u64::from_be_bytes(number)))
    }

    /// Returns the address of the same manager on one application runtime.
    #[cfg(feature = "redis")]
    pub(crate) fn on(self, runtime: machine::Id) -> Self {
        // Two runtimes that have one address only receive each other's pushes, which their manager understands.
        let number = FixedState::default().hash_one(runtime) % Self::RUNTIME;
        Self(self.0 | (number + 1))
    }

    /// Returns the address of the manager of this runtime. The manager always listens there.
    pub(crate) fn manager(self) -> Self {
        Self(self.0 & !Self::RUNTIME)
    }

    /// Returns a number that spreads managers over servers.
    #[cfg(feature = "redis")]
    pub(crate) fn spread(self) -> usize {
        // The upper 32 bits fit into a `usize` on 32-bit machines too, so the number is the same
        // everywhere.
        (self.0 >> 32) as usize
    }
}

#[cfg(feature = "postgres")]
impl From<u64> for Address {
    fn from(number: u64) -> Self {
        Self(number)
    }
}

#[cfg(feature = "postgres")]
impl From<Address> for u64 {
    fn from(address: Address) -> Self {
        address.0
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Address(..)")
    }
}

/// The value of a held lock, fresh for every lease and compared whole.
///
/// The text is `<address, 16 hex digits>/<128 random bits, 32 hex digits>`. A share adds its limit as
/// 8 hex digits, so that the store knows it wherever it meets the token. The text is ASCII, because
/// clients handle values as UTF-8.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Token {
    address: Address,
    lease: [u64; 2],
    share: Option<ShareLimit>,
}

impl Token {
    /// The length of the text of a lock that one owner has.
    pub(crate) const LENGTH: usize = 16 + 1 + 32;
    /// The token of an owner that has no process. No lease gets it, because a lease has random bits.
    pub(crate) const NOBODY: Self = Self {
        address: Address(0),
        lease: [0; 2],
        share: None,
    };

    /// The length of the text of a share.
    const SHARE_LENGTH: usize = Self::LENGTH + 8;

    fn of(address: Address, bytes: [u8; 16]) -> Self {
        let number = u128::from_ne_bytes(bytes);
        Self {
            address,
            lease: [(number >> 64) as u64, number as u64],
            share: None,
        }
    }

    /// Makes it the token of a share.
    pub(crate) fn with_share(self, share: Option<ShareLimit>) -> Self {
        Self { share, ..self }
    }

    /// Returns the limit of a share; `None`: the lock has one owner.
    pub(crate) fn share(&self) -> Option<ShareLimit> {
        self.share
    }

    pub(crate) fn address(&self) -> Address {
        self.address
    }

    /// Returns a random number that only this lease has.
    pub(crate) fn seed(&self) -> u64 {
        self.lease[0]
    }

    /// Returns the address and the random bits, for a ticket. A share has no ticket.
    pub(crate) fn bytes(&self) -> [u8; 24] {
        let [first, second] = self.lease;
        let mut bytes = [0; 24];
        let parts = [self.address.0, first, second].map(u64::to_be_bytes);
        bytes.copy_from_slice(parts.as_flattened());
        bytes
    }

    /// Reads what [`bytes`](Self::bytes) has written.
    pub(crate) fn from_bytes(bytes: [u8; 24]) -> Self {
        let number = |index: usize| {
            let mut part = [0; 8];
            part.copy_from_slice(&bytes[8 * index..8 * index + 8]);
            u64::from_be_bytes(part)
        };
        Self {
            address: Address(number(0)),
            lease: [number(1), number(2)],
            share: None,
        }
    }

    /// Parses a token that a manager of this kit wrote. Returns `None` for a foreign value.
    pub(crate) fn parse(text: &str) -> Option<Token> {
        let (address, lease) = text.split_once('/')?;
        let (lease, share) = lease.split_at_checked(32)?;
        if address.len() != 16 {
            return None;
        }
        let share = match share {
            "" => None,
            limit => Some(ShareLimit::parse(limit)?),
        };
        let (mut number, mut random) = ([0; 8], [[0; 8]; 2]);
        HEXLOWER.decode_mut(address.as_bytes(), &mut number).ok()?;
        HEXLOWER
            .decode_mut(lease.as_bytes(), random.as_flattened_mut())
            .ok()?;
        Some(Token {
            address: Address(u64::from_be_bytes(number)),
            lease: random.map(u64::from_be_bytes),
            share,
        })
    }

    /// Returns the text without an allocation.
    pub(crate) fn text(&self) -> TokenText {
        let mut text = TokenText {
            bytes: [b'/'; Self::SHARE_LENGTH],
            length: Self::LENGTH,
        };
        let mut digits = [0; 48];
        HEXLOWER.encode_mut(&self.bytes(), &mut digits);
        text.bytes[..16].copy_from_slice(&digits[..16]);
        text.bytes[17..Self::LENGTH].copy_from_slice(&digits[16..]);
        if let Some(share) = self.share {
            let limit = share.count().to_be_bytes();
            HEXLOWER.encode_mut(&limit, &mut text.bytes[Self::LENGTH..]);
            text.length = Self::SHARE_LENGTH;
        }
        text
    }
}

/// The text of a [`Token`].
pub(crate) struct TokenText {
    bytes: [u8; Token::SHARE_LENGTH],
    length: usize,
}

impl TokenText {
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    pub(crate) fn as_str(&self) -> &str {
        std::str::from_utf8(self.as_bytes()).expect("hex digits and a slash are ASCII")
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text().as_str())
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

/// Makes the tokens of one manager.
///
/// The bytes of a token come from the operating system. If many tokens are made at once, the source
/// draws bytes for several tokens and uses them within [`PREFETCH_AGE`]. A process can be copied,
/// by `fork` or as a virtual machine that is resumed twice. The copies then share at most the
/// tokens of leases made at that very moment; they share the leases that were held or requested at
/// that moment anyway. The operating system must not repeat its bytes either: Linux reseeds when
/// the hypervisor reports the copy (VM generation id).
pub(crate) struct TokenSource {
    /// The manager's own address.
    manager: Address,
    drawn: Mutex<Drawn>,
}

/// The time for which bytes that were drawn together may be used.
const PREFETCH_AGE: Duration = Duration::from_micros(100);
/// The number of tokens for which bytes are drawn together.
const PREFETCH_COUNT: usize = 16;

#[derive(Clone, Copy, Default)]
struct Drawn {
    bytes: [[u8; 16]; PREFETCH_COUNT],
    left: usize,
    at: Moment,
}

impl TokenSource {
    pub(crate) fn new(manager: Address) -> Self {
        Self {
            manager,
            drawn: Mutex::default(),
        }
    }

    /// Makes a token with the manager's own address.
    pub(crate) fn fresh(&self) -> Token {
        let mut bytes = [0; 16];
        machine::fill(&mut bytes);
        Token::of(self.manager, bytes)
    }

    pub(crate) fn manager(&self) -> Address {
        self.manager
    }

    /// Makes a token for a waiter that receives pushes at `address`.
    pub(crate) fn fresh_at(&self, address: Address, now: Moment) -> Token {
        let mut drawn = lock(&self.drawn);
        let soon = now.since(drawn.at) < PREFETCH_AGE;
        if drawn.left == 0 || !soon {
            // The first token after a pause may be the only one.
            let count = if soon { PREFETCH_COUNT } else { 1 };
            machine::fill(drawn.bytes[..count].as_flattened_mut());
            drawn.left = count;
            drawn.at = now;
        }
        drawn.left -= 1;
        Token::of(address, drawn.bytes[drawn.left])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_reads_back_and_names_its_manager() {
        let manager = Address::random();
        let token = TokenSource::new(manager).fresh();
        let text = token.to_string();
        assert_eq!(text.len(), Token::LENGTH);
        assert!(text.starts_with(&manager.to_string()));
        assert_eq!(Token::parse(&text), Some(token));
    }

    #[cfg(feature = "redis")]
    #[tokio::test]
    async fn the_address_of_a_runtime_leads_to_its_manager() {
        let manager = Address::random();
        let runtime = manager.on(tokio::runtime::Handle::current().id());
        assert_ne!(runtime, manager);
        assert_eq!((runtime.manager(), manager.manager()), (manager, manager));
        assert_ne!(Address::random().manager(), manager);
    }

    #[test]
    fn the_token_of_a_share_reads_back_with_its_limit() {
        let token = TokenSource::new(Address::random()).fresh();
        let permits = ShareLimit::permits(10_000).expect("in bounds");
        for share in [ShareLimit::READERS, permits] {
            let token = token.with_share(Some(share));
            let text = token.to_string();
            assert_eq!(Token::parse(&text), Some(token));
            assert_eq!(text.len(), Token::SHARE_LENGTH);
        }
        for limit in ["00000000", "0000000", "0000000A", "+0000001"] {
            assert_eq!(Token::parse(&format!("{token}{limit}")), None);
        }
    }

    #[test]
    fn strangers_values_are_not_tokens() {
        let token = TokenSource::new(Address::random()).fresh().to_string();
        for text in [
            "",
            "1",
            "cooling/abc",
            &token[1..],
            &token.replace('/', "A/"),
            &format!("{}A", &token[..token.len() - 1]),
            &format!("{token}0"),
        ] {
            assert_eq!(Token::parse(text), None);
        }
    }

    #[test]
    fn a_thousand_leases_have_a_thousand_tokens() {
        let source = TokenSource::new(Address::random());
        let tokens: std::collections::HashSet<_> = (0..1000).map(|_| source.fresh()).collect();
        assert_eq!(tokens.len(), 1000);
    }

    #[test]
    fn a_copy_of_the_process_repeats_no_token() {
        let address = Address::random();
        let source = TokenSource::new(address);
        let now = Moment(1_000_000_000);
        // Several tokens of one moment leave drawn bytes over.
        for _ in 0..3 {
            source.fresh_at(address, now);
        }
        let copy = TokenSource {
            manager: address,
            drawn: Mutex::new(*lock(&source.drawn)),
        };
        let drawn = [copy, source].map(|source| {
            let later = |index| now + Duration::from_millis(1) + Duration::from_micros(index);
            (0..100).map(move |index| source.fresh_at(address, later(index)))
        });
        let different: std::collections::HashSet<_> = drawn.into_iter().flatten().collect();
        assert_eq!(different.len(), 200);
    }
}
