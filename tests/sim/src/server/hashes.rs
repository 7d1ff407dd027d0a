//! Commands of hashes.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::Server;
use super::keyspace::{Data, Entry};
use super::resp::{Answer, Reply};

pub(super) fn get(server: &mut Server, words: &[&[u8]]) -> Answer {
    let hash = server.hash(words[1])?;
    let value = hash.and_then(|hash| hash.get(words[2]));
    Ok(value.map_or(Reply::Null, Reply::text))
}

pub(super) fn get_several(server: &mut Server, words: &[&[u8]]) -> Answer {
    let hash = server.hash(words[1])?;
    let values = words[2..].iter().map(|field| {
        let value = hash.as_ref().and_then(|hash| hash.get(*field));
        value.map_or(Reply::Null, Reply::text)
    });
    Ok(Reply::Array(values.collect()))
}

pub(super) fn all(server: &mut Server, words: &[&[u8]]) -> Answer {
    let hash = server.hash(words[1])?.cloned().unwrap_or_default();
    let pairs = hash.iter();
    let pairs = pairs.map(|(field, value)| (Reply::text(field), Reply::text(value)));
    Ok(Reply::Map(pairs.collect()))
}

pub(super) fn set(server: &mut Server, words: &[&[u8]]) -> Answer {
    if words.len() % 2 == 1 {
        return Err("ERR wrong number of arguments for 'hset' command".into());
    }
    let key = words[1];
    if server.hash(key)?.is_none() {
        let data = Data::Hash(Rc::default());
        server.put(key, Entry { data, ends: None });
    }
    let mut new = 0;
    if let Some(hash) = server.hash(key)? {
        let hash: &mut BTreeMap<_, _> = Rc::make_mut(hash);
        for pair in words[2..].chunks_exact(2) {
            let before = hash.insert(pair[0].to_vec(), pair[1].to_vec());
            new += i64::from(before.is_none());
        }
    }
    server.changed(key);
    Ok(Reply::Int(new))
}
