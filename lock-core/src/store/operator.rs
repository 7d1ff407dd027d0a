//! The questions and orders of an operator, who looks at locks and frees them.
//!
//! They are apart from the operations of a lock: an operator holds nothing, and no lock waits for it. A holder tells an
//! operator by messages how long it has held a lock, because the store does not know: the operator's manager sends a
//! [`Question`] to the address in the holder's token, and the holder's manager sends an [`Answer`] to the address in
//! the question.

use std::sync::Arc;
use std::time::Duration;

use crate::base::fence::FencingToken;
use crate::base::holder_token::HolderToken;
use crate::base::identity::Identity;
use crate::base::token::Address;

#[derive(Clone, Debug)]
pub(crate) enum OperatorOperation {
    /// Reads who has a key and who waits for it. Changes nothing.
    Inspect(Inspect),
    /// Takes the key, or one share of it, from the holder that was seen, and from no other.
    ///
    /// No later fencing token is below those of the holder, or nothing is done. The holder's process is told. If it
    /// listens, the key stays taken for the grace; otherwise it goes to the first waiter.
    Force(Force),
    /// Lists keys.
    Scan(Scan),
    /// Reads the identity of a manager.
    ReadCard(CardName),
    /// Writes the identity of this manager.
    WriteCard(CardName, Arc<Identity>),
    /// Asks a holder.
    Ask(Question),
    /// Answers an operator.
    Answer(Answer),
}

impl OperatorOperation {
    /// The operation's key; empty for one about the whole store.
    #[cfg(feature = "redis")]
    pub(crate) fn key(&self) -> &str {
        match self {
            OperatorOperation::Inspect(inspect) => &inspect.key,
            OperatorOperation::Force(force) => &force.key,
            OperatorOperation::Scan(_) => "",
            OperatorOperation::ReadCard(name) | OperatorOperation::WriteCard(name, _) => &name.text,
            OperatorOperation::Ask(question) => &question.key,
            OperatorOperation::Answer(answer) => &answer.key,
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Inspect {
    pub(crate) key: Arc<str>,
    /// The key's register, at a node of a quorum.
    pub(crate) register: Option<u16>,
}

#[derive(Clone, Debug)]
pub(crate) struct Force {
    pub(crate) key: Arc<str>,
    pub(crate) holder: HolderToken,
    /// The fencing token that the holder has named.
    pub(crate) fence: Option<FencingToken>,
    /// For how long the key stays taken if the holder's process listens.
    pub(crate) grace: Duration,
    /// The key's register and the highest number that was seen in it, at a node of a quorum. A node gives the key to
    /// no waiter.
    pub(crate) register: Option<(u16, u64)>,
}

/// Names the identity of the manager that receives pushes at an address.
#[derive(Clone, Debug)]
pub(crate) struct CardName {
    pub(crate) address: Address,
    /// The name within the namespace.
    pub(crate) text: Box<str>,
}

impl From<Address> for CardName {
    fn from(address: Address) -> Self {
        Self {
            address,
            text: format!("!h:{address}").into(),
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Scan {
    pub(crate) pattern: Pattern,
    pub(crate) from: ScanCursor,
}

/// Where a listing goes on. The default is the beginning.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ScanCursor {
    /// The server, by the store's own count.
    pub(crate) place: usize,
    /// The server's own cursor.
    pub(crate) cursor: u64,
    /// How many servers of a quorum were listed to the end.
    pub(crate) listed: usize,
    /// The last key, where the keys are listed in order.
    pub(crate) after: Option<Arc<str>>,
}

/// Some keys. In a pattern `*` stands for any text, and each other character for itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pattern(Arc<str>);

impl Pattern {
    pub(crate) fn new(text: &str) -> Self {
        Self(text.into())
    }

    /// The pattern of a server, in which other characters than `*` have a meaning too.
    #[cfg(feature = "redis")]
    pub(crate) fn glob(&self, namespace: &str) -> String {
        let mut glob = String::with_capacity(namespace.len() + self.0.len() + 4);
        let escaped = namespace.chars().map(|it| (it, true));
        for (character, escapes) in escaped.chain(self.0.chars().map(|it| (it, it != '*'))) {
            if escapes && matches!(character, '*' | '?' | '[' | ']' | '^' | '-' | '\\') {
                glob.push('\\');
            }
            glob.push(character);
        }
        glob
    }

    /// The text before the first star.
    #[cfg(feature = "postgres")]
    pub(crate) fn beginning(&self) -> &str {
        self.0.split('*').next().unwrap_or_default()
    }

    /// Returns whether the pattern stands for the key.
    pub(crate) fn matches(&self, key: &str) -> bool {
        let mut pieces = self.0.split('*');
        let Some(mut rest) = pieces.next().and_then(|first| key.strip_prefix(first)) else {
            return false;
        };
        let mut pieces = pieces.peekable();
        if pieces.peek().is_none() {
            return rest.is_empty();
        }
        while let Some(piece) = pieces.next() {
            if pieces.peek().is_none() {
                return rest.ends_with(piece);
            }
            match rest.find(piece) {
                Some(at) => rest = &rest[at + piece.len()..],
                None => return false,
            }
        }
        true
    }
}

/// A question to the process that holds a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Question {
    pub(crate) key: Arc<str>,
    pub(crate) holder: HolderToken,
    /// Where the answer is to be sent.
    pub(crate) reply_to: Address,
    pub(crate) number: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) key: Arc<str>,
    pub(crate) to: Address,
    /// The number of the question.
    pub(crate) number: u64,
    /// For how long the process has held the key, and its fencing token; `None`: it does not hold the key.
    pub(crate) held: Option<Held>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) held_for: Duration,
    pub(crate) fence: FencingToken,
}

#[derive(Clone, Debug)]
pub(crate) enum OperatorOutcome {
    Inspected(Box<Inspected>),
    Forced(Forced),
    Scanned(Scanned),
    Card(Option<Identity>),
    Told(Told),
}

/// Everything that the store knows of one key.
#[derive(Clone, Debug, Default)]
pub(crate) struct Inspected {
    pub(crate) holders: Vec<StoredHolder>,
    /// How many there are. The store may name fewer.
    pub(crate) holder_count: usize,
    /// The key is taken, and its owner has ended.
    pub(crate) closed: Option<ClosedFor>,
    /// The first waiters of the queue, each with the time since its arrival.
    pub(crate) waiters: Vec<(Address, Duration)>,
    pub(crate) waiter_count: usize,
    /// The highest fencing token that was noted, or 0.
    pub(crate) mark: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredHolder {
    pub(crate) token: HolderToken,
    /// The time until the store frees the key; `None`: it has no end.
    pub(crate) remaining: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClosedFor {
    pub(crate) remaining: Option<Duration>,
    /// Whether the owner has left a record.
    pub(crate) has_record: bool,
}

/// Says what became of an order to free a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use = "the holder may have changed"]
#[non_exhaustive]
pub enum Forced {
    /// No process listened for the holder. The key is free, or the first waiter's.
    Freed,
    /// The holder's process was told. The key cools down for a second, and is free then.
    Told,
    /// The holder that was seen does not hold the key any more. Nothing was done.
    Changed,
}

#[derive(Clone, Debug)]
pub(crate) struct Scanned {
    /// Keys may be named twice.
    pub(crate) keys: Vec<Arc<str>>,
    /// Where to go on; `None`: this was the end.
    pub(crate) next: Option<ScanCursor>,
}

/// Says whether a message has a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// A process listens there, or the store cannot count receivers.
    Maybe,
    /// No process listens there.
    NoReceiver,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_text_and_other_characters_for_themselves() {
        let hits = [
            ("order:*", "order:42"),
            ("order:*", "order:"),
            ("*", ""),
            ("*:42", "order:42"),
            ("a*b*c", "a1b2bc"),
            ("a*b*c", "abc"),
            ("**", "x"),
            ("a?[b]", "a?[b]"),
            ("order:42", "order:42"),
        ];
        for (pattern, key) in hits {
            assert!(Pattern::new(pattern).matches(key), "{pattern} {key}");
        }
        let misses = [
            ("order:*", "xorder:42"),
            ("order:42", "order:421"),
            ("a*b*c", "acb"),
            ("a*a", "a"),
            ("a?", "ab"),
            ("", "x"),
        ];
        for (pattern, key) in misses {
            assert!(!Pattern::new(pattern).matches(key), "{pattern} {key}");
        }
    }

    #[cfg(feature = "redis")]
    #[test]
    fn the_servers_pattern_escapes_all_but_the_star() {
        let glob = Pattern::new("a?[b-c]*\\^").glob("n*:");
        assert_eq!(glob, "n\\*:a\\?\\[b\\-c\\]*\\\\\\^");
    }
}
