//! The slots of a cluster: the slot of a key, and a name that belongs to a given slot. Pure.

use std::sync::LazyLock;

/// One of the parts into which a cluster divides its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::store::redis) struct HashSlot(u16);

impl HashSlot {
    pub(in crate::store::redis) const COUNT: usize = 16_384;

    /// The slot of a key's full name.
    pub(in crate::store::redis) fn of(name: &str) -> Self {
        let hashed = hash_tag(name).unwrap_or(name);
        Self(crc16(hashed.as_bytes()) % 16_384)
    }

    pub(in crate::store::redis) fn numbered(number: u64) -> Option<Self> {
        let number = u16::try_from(number).ok()?;
        (usize::from(number) < Self::COUNT).then_some(Self(number))
    }

    pub(in crate::store::redis) fn index(self) -> usize {
        usize::from(self.0)
    }

    /// The smallest number whose decimal digits belong to this slot. Every client finds the same one.
    pub(in crate::store::redis) fn tag(self) -> u32 {
        static TAGS: LazyLock<Vec<u32>> = LazyLock::new(tags);
        TAGS[self.index()]
    }
}

fn tags() -> Vec<u32> {
    let mut tags = vec![u32::MAX; HashSlot::COUNT];
    let mut left = HashSlot::COUNT;
    for number in 0.. {
        let slot = HashSlot::of(&number.to_string()).index();
        if tags[slot] == u32::MAX {
            tags[slot] = number;
            left -= 1;
            if left == 0 {
                break;
            }
        }
    }
    tags
}

/// The CRC-16 of clusters: polynomial 0x1021, from 0 (XMODEM).
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(crc ^ (u16::from(*byte) << 8), |crc: u16, _| {
            let shifted = crc << 1;
            if crc & 0x8000 == 0 {
                shifted
            } else {
                shifted ^ 0x1021
            }
        })
    })
}

/// The part of a name that a cluster hashes, if it is not the whole: the first `{…}` that is not empty.
pub(in crate::store::redis) fn hash_tag(name: &str) -> Option<&str> {
    // A search by bytes, because most names are short.
    let start = name.bytes().position(|byte| byte == b'{')? + 1;
    let length = name[start..].bytes().position(|byte| byte == b'}')?;
    let tag = &name[start..start + length];
    (!tag.is_empty()).then_some(tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_those_of_the_clusters_specification() {
        assert_eq!(crc16(b"123456789"), 0x31c3);
        for (name, slot) in [
            ("", 0),
            ("foo", 12_182),
            ("somekey", 11_058),
            ("foo{hash_tag}", 2_515),
            ("bar{hash_tag}", 2_515),
            ("{user1000}.following", HashSlot::of("user1000").0),
            ("foo{{bar}}zap", HashSlot::of("{bar").0),
            ("foo{bar}{zap}", HashSlot::of("bar").0),
        ] {
            assert_eq!(HashSlot::of(name), HashSlot(slot), "{name}");
        }
    }

    #[test]
    fn an_empty_or_open_tag_is_none() {
        for name in ["foo{}{bar}", "a{b", "a}b", "}{"] {
            assert_eq!(hash_tag(name), None, "{name}");
        }
    }

    #[test]
    fn every_slot_has_a_tag_of_its_own() {
        for number in 0..HashSlot::COUNT as u64 {
            let slot = HashSlot::numbered(number).expect("a slot");
            let name = format!("lockkit:!f:{{{}}}", slot.tag());
            assert_eq!(HashSlot::of(&name), slot);
        }
        assert_eq!(HashSlot::numbered(HashSlot::COUNT as u64), None);
    }
}
