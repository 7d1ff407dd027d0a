//! Checks that no two locks, queues, marks, registers or channels share a name, for any keys and namespaces.

use std::collections::HashMap;

use super::Keyspace;
use crate::base::key::LockKey;
use crate::base::token::Address;

const NAMESPACES: [&str; 10] = [
    "",
    "a",
    "a:",
    "a:b:",
    "lockkit:",
    "lockkit:x",
    "{a}",
    "{a}:",
    "q:",
    "a{b}c}:",
];

/// All texts of up to four of these pieces, as far as they are keys.
fn keys(namespace: &str) -> Vec<String> {
    let pieces = ["a", "{", "}", ":", "!", "q:", "qt:", "s:", "f", namespace];
    let (mut keys, mut longest) = (vec![], vec![String::new()]);
    for _ in 0..4 {
        let longer = longest
            .iter()
            .flat_map(|text| pieces.iter().map(move |piece| format!("{text}{piece}")));
        longest = longer.collect();
        keys.extend(longest.iter().cloned());
    }
    keys.extend(
        ["!f", "!r", "!q:{a}", "!qt:{a}", "!s:{a}", "!st:{a}"]
            .map(|own| format!("{namespace}{own}")),
    );
    keys.retain(|key| LockKey::exact(key.as_str()).into_result().is_ok());
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// One server, and a cluster, for those that can be used there.
fn modes(namespace: &str) -> Vec<Keyspace> {
    let names = Keyspace::checked(namespace.to_owned()).expect("no `!`");
    if let Ok(in_slots) = names.clone().in_slots() {
        return vec![names, in_slots];
    }
    vec![names]
}

fn takes(names: &Keyspace, key: &str) -> bool {
    names.check(key).is_ok()
}

/// Its companions that belong to no key alone.
fn common(names: &Keyspace) -> Vec<String> {
    let address = Address::random();
    let registers = names.registers().to_owned();
    let card = names.card(&address.into());
    vec![names.mark.clone(), registers, names.channel(address), card]
}

#[test]
fn no_two_keys_of_a_namespace_share_a_name() {
    for namespace in NAMESPACES {
        for names in modes(namespace) {
            let mut owners = HashMap::new();
            for name in common(&names) {
                assert_eq!(owners.insert(name, ("all of them", String::new())), None);
            }
            for key in keys(namespace).into_iter().filter(|key| takes(&names, key)) {
                for (what, name) in [
                    ("lock", names.lock(&key)),
                    ("queue", names.queue(&key)),
                    ("set of shares", names.shares(&key)),
                ] {
                    let other = owners.insert(name.clone(), (what, key.clone()));
                    assert_eq!(
                        other, None,
                        "{name} is the {what} of {key} in {namespace} too"
                    );
                }
                // Marks are shared by slot, and are nothing else.
                let mark = names.mark_for(&key);
                if let Some((what, other)) = owners.get(&*mark) {
                    assert_eq!(*what, "all of them", "{mark} is the {what} of {other}");
                }
            }
        }
    }
}

#[test]
fn companions_of_two_namespaces_share_no_name() {
    let mut owners = HashMap::new();
    for namespace in NAMESPACES {
        let names = Keyspace::new(namespace.to_owned());
        let of_keys = keys(namespace).into_iter();
        let of_keys = of_keys.flat_map(|key| [names.queue(&key), names.shares(&key)]);
        for name in common(&names).into_iter().chain(of_keys) {
            let other = owners.insert(name.clone(), namespace);
            assert_eq!(other, None, "{name} stands in {namespace} too");
        }
    }
    // A lock is a companion of another namespace only where that one is longer and begins with its own.
    for namespace in NAMESPACES {
        let names = Keyspace::new(namespace.to_owned());
        for key in keys(namespace) {
            if let Some(other) = owners.get(&names.lock(&key)) {
                assert!(other.len() > namespace.len() && other.starts_with(namespace));
            }
        }
    }
}

#[test]
fn a_namespace_that_could_hold_another_ones_queues_is_invalid() {
    for namespace in ["!", "!q:", "a!q:{", "lockkit:!"] {
        let error = Keyspace::checked(namespace.to_owned()).expect_err("it contains `!`");
        assert_eq!(error.kind(), crate::base::error::ErrorKind::Invalid);
        assert!(error.to_string().contains("leave it out"), "{error}");
    }
}
