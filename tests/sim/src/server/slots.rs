//! The slots of a cluster: where the keys of a command have to be, and what a node refuses for that.

use super::commands::Command;
use super::resp::Failure;
use super::{Bytes, Server};

/// The number of slots.
pub const SLOTS: usize = 16_384;

/// Why a node does not serve the keys of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Misplaced {
    /// The node knows no node that has the slot.
    Unbound,
    CrossSlot,
    /// The node takes the cluster for one that does not serve.
    Down,
    /// Some of the keys have moved to another node.
    Unstable,
    /// All of the keys have moved, or do not exist.
    Ask(usize, usize),
    Moved(usize, usize),
}

impl Server {
    /// Returns why this node of a cluster does not serve a command of a client.
    pub(super) fn misplaced(&mut self, command: &Command, words: &[&[u8]]) -> Option<Failure> {
        let why = self.place(command.keys(words))?;
        let redirection = |code: &str, slot: usize, node: usize| {
            let node = &self.cluster.as_ref().expect("a node of a cluster").nodes[node];
            format!("{code} {slot} {}:{}", node.host, node.port).into()
        };
        Some(match why {
            Misplaced::Unbound => "CLUSTERDOWN Hash slot not served".into(),
            Misplaced::CrossSlot => "CROSSSLOT Keys in request don't hash to the same slot".into(),
            Misplaced::Down => "CLUSTERDOWN The cluster is down".into(),
            Misplaced::Unstable => "TRYAGAIN Multiple keys request during rehashing of slot".into(),
            Misplaced::Ask(slot, node) => redirection("ASK", slot, node),
            Misplaced::Moved(slot, node) => redirection("MOVED", slot, node),
        })
    }

    /// As [`Server::misplaced`], for a command that a script calls.
    pub(super) fn misplaced_in_script(
        &mut self,
        command: &Command,
        words: &[&[u8]],
    ) -> Option<Failure> {
        let why = self.place(command.keys(words))?;
        let name = command.name.to_lowercase();
        Some(match why {
            Misplaced::Down => {
                "ERR Script attempted to execute a command while the cluster is down".into()
            }
            Misplaced::CrossSlot if self.version.is_7_2() => format!(
                "ERR Command '{name}' in script attempted to access keys that don't hash to the \
                 same slot"
            )
            .into(),
            _ => "ERR Script attempted to access a non local key in a cluster node".into(),
        })
    }

    fn place(&mut self, keys: &[&[u8]]) -> Option<Misplaced> {
        let cluster = self.cluster.as_ref()?;
        let first = keys.first()?;
        let slot = slot_of(first);
        let Some(owner) = cluster.owner(slot) else {
            return Some(Misplaced::Unbound);
        };
        if keys.iter().any(|key| slot_of(key) != slot) {
            return Some(Misplaced::CrossSlot);
        }
        if !cluster.serves {
            return Some(Misplaced::Down);
        }
        let here = cluster.me;
        let target = cluster.target(slot).filter(|_| owner == here);
        let is_importing = target.is_none() && cluster.is_importing(slot);
        // A key whose end is over counts as missing, and is not deleted for that.
        let is_missing = |key: &&&[u8]| {
            let entry = self.entries.get(**key);
            entry.is_none_or(|entry| entry.is_over(self.now))
        };
        let missing = match target.is_some() || is_importing {
            true => keys.iter().filter(is_missing).count(),
            false => 0,
        };
        match target {
            Some(target) if missing == keys.len() => return Some(Misplaced::Ask(slot, target)),
            Some(_) if missing > 0 => return Some(Misplaced::Unstable),
            _ => {}
        }
        if is_importing && self.session().asking {
            let are_several = keys.iter().any(|key| key != first);
            return (are_several && missing > 0).then_some(Misplaced::Unstable);
        }
        (owner != here).then_some(Misplaced::Moved(slot, owner))
    }

    /// Returns the keys of a slot.
    pub fn keys_in(&self, slot: usize) -> Vec<Bytes> {
        let keys = self.entries.keys();
        keys.filter(|key| slot_of(key) == slot).cloned().collect()
    }
}

/// The slot of a key: of its first `{…}` that is not empty, or else of the whole.
pub fn slot_of(key: &[u8]) -> usize {
    let tag = key.iter().position(|byte| *byte == b'{').and_then(|open| {
        let behind = &key[open + 1..];
        let length = behind.iter().position(|byte| *byte == b'}')?;
        (length > 0).then_some(&behind[..length])
    });
    usize::from(crc16(tag.unwrap_or(key))) % SLOTS
}

/// CRC-16 with the polynomial 0x1021, from 0 (XMODEM).
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(crc ^ (u16::from(*byte) << 8), |crc: u16, _| {
            let carry = crc & 0x8000 != 0;
            (crc << 1) ^ if carry { 0x1021 } else { 0 }
        })
    })
}
