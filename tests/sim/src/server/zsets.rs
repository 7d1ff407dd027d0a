//! Commands of sorted sets.

use std::borrow::Cow;
use std::rc::Rc;

use super::keys::unknown_option;
use super::keyspace::{Data, Entry};
use super::numbers::{float, integer};
use super::resp::{Answer, Failure, Reply};
use super::sorted::Bound;
use super::strings::SYNTAX;
use super::{Bytes, Server};

const NOT_A_FLOAT: Failure = Cow::Borrowed("ERR value is not a valid float");
const NO_BOUND: Failure = Cow::Borrowed("ERR min or max is not a float");

/// The options of `ZADD`.
#[derive(Default)]
struct Adding {
    only_new: bool,
    only_old: bool,
    only_greater: bool,
    only_less: bool,
    counts_changed: bool,
}

impl Adding {
    /// Reads the options, and returns what follows them.
    fn of<'a, 'w>(words: &'a [&'w [u8]]) -> Result<(Self, &'a [&'w [u8]]), Failure> {
        let mut options = Self::default();
        let mut rest = words;
        while let [option, behind @ ..] = rest {
            match option.to_ascii_uppercase().as_slice() {
                b"NX" => options.only_new = true,
                b"XX" => options.only_old = true,
                b"GT" => options.only_greater = true,
                b"LT" => options.only_less = true,
                b"CH" => options.counts_changed = true,
                b"INCR" => return Err(unknown_option(option)),
                _ => break,
            }
            rest = behind;
        }
        if rest.is_empty() || rest.len() % 2 == 1 {
            return Err(SYNTAX);
        }
        if options.only_new && options.only_old {
            return Err("ERR XX and NX options at the same time are not compatible".into());
        }
        let kinds = [options.only_greater, options.only_less, options.only_new];
        if kinds.into_iter().filter(|kind| *kind).count() > 1 {
            let why = "ERR GT, LT, and/or NX options at the same time are not compatible";
            return Err(why.into());
        }
        Ok((options, rest))
    }

    fn allows(&self, old: Option<f64>, score: f64) -> bool {
        match old {
            None => !self.only_old,
            Some(old) => {
                !(self.only_new
                    || self.only_greater && score <= old
                    || self.only_less && score >= old
                    || score == old)
            }
        }
    }
}

pub(super) fn add(server: &mut Server, words: &[&[u8]]) -> Answer {
    let (options, pairs) = Adding::of(&words[2..])?;
    let scores = pairs.chunks_exact(2);
    let scores: Vec<f64> = scores
        .map(|pair| float(pair[0]).ok_or(NOT_A_FLOAT))
        .collect::<Result<_, _>>()?;
    let key = words[1];
    if server.sorted(key)?.is_none() {
        if options.only_old {
            return Ok(Reply::Int(0));
        }
        let data = Data::Sorted(Rc::default());
        server.put(key, Entry { data, ends: None });
    }
    let (mut added, mut updated) = (0, 0);
    if let Some(set) = server.sorted(key)? {
        for (pair, score) in pairs.chunks_exact(2).zip(scores) {
            let old = set.score(pair[1]);
            if options.allows(old, score) {
                Rc::make_mut(set).insert(pair[1], score);
                added += i64::from(old.is_none());
                updated += i64::from(old.is_some());
            }
        }
    }
    if added + updated > 0 {
        server.changed(key);
    }
    let count = if options.counts_changed { updated } else { 0 };
    Ok(Reply::Int(added + count))
}

pub(super) fn remove(server: &mut Server, words: &[&[u8]]) -> Answer {
    let Some(set) = server.sorted(words[1])? else {
        return Ok(Reply::Int(0));
    };
    let mut removed = 0;
    for member in &words[2..] {
        if set.score(member).is_some() {
            Rc::make_mut(set).remove(member);
            removed += 1;
        }
    }
    if removed > 0 {
        server.shrunk(words[1]);
    }
    Ok(Reply::Int(removed))
}

pub(super) fn pop(server: &mut Server, words: &[&[u8]]) -> Answer {
    let count = match words.get(2) {
        Some(count) => match integer(count) {
            Ok(count @ 0..) => Some(count as usize),
            _ => return Err("ERR value is out of range, must be positive".into()),
        },
        None => None,
    };
    if words.len() > 3 {
        return Err(SYNTAX);
    }
    let Some(set) = server.sorted(words[1])? else {
        return Ok(Reply::Array(Vec::new()));
    };
    let popped = match count {
        Some(0) => Vec::new(),
        count => Rc::make_mut(set).pop(count.unwrap_or(1)),
    };
    if !popped.is_empty() {
        server.shrunk(words[1]);
    }
    // Only a call with a count answers in pairs.
    let layout = match count {
        Some(_) => server.layout(),
        None => Layout::Flat,
    };
    Ok(server.listed(&popped, Some(layout)))
}

pub(super) fn score(server: &mut Server, words: &[&[u8]]) -> Answer {
    let set = server.sorted(words[1])?;
    let score = set.and_then(|set| set.score(words[2]));
    Ok(score.map_or(Reply::Null, |score| server.number(score)))
}

pub(super) fn length(server: &mut Server, words: &[&[u8]]) -> Answer {
    let set = server.sorted(words[1])?;
    Ok(Reply::Int(set.map_or(0, |set| set.len() as i64)))
}

pub(super) fn count(server: &mut Server, words: &[&[u8]]) -> Answer {
    let (least, most) = (bound(words[2])?, bound(words[3])?);
    let set = server.sorted(words[1])?;
    let count = set.map_or(0, |set| set.between(least, most).len());
    Ok(Reply::Int(count as i64))
}

pub(super) fn range(server: &mut Server, words: &[&[u8]]) -> Answer {
    let with_scores = match &words[4..] {
        [] => false,
        [option] if option.eq_ignore_ascii_case(b"WITHSCORES") => true,
        [option, ..] => return Err(unknown_option(option)),
    };
    let (first, last) = (integer(words[2])?, integer(words[3])?);
    let layout = with_scores.then(|| server.layout());
    let Some(set) = server.sorted(words[1])? else {
        return Ok(Reply::Array(Vec::new()));
    };
    let length = set.len() as i64;
    let place = |index: i64| if index < 0 { index + length } else { index };
    let (first, last) = (place(first).max(0), place(last).min(length - 1));
    let set = Rc::clone(set);
    let members = match first <= last {
        true => &set.members()[first as usize..=last as usize],
        false => &[],
    };
    Ok(server.listed(members, layout))
}

pub(super) fn range_by_score(server: &mut Server, words: &[&[u8]]) -> Answer {
    let mut layout = None;
    let (mut skipped, mut limit) = (0, -1);
    let mut rest = &words[4..];
    loop {
        rest = match rest {
            [] => break,
            [option, behind @ ..] if option.eq_ignore_ascii_case(b"WITHSCORES") => {
                layout = Some(server.layout());
                behind
            }
            [option, from, count, behind @ ..] if option.eq_ignore_ascii_case(b"LIMIT") => {
                (skipped, limit) = (integer(from)?, integer(count)?);
                behind
            }
            _ => return Err(SYNTAX),
        };
    }
    let (least, most) = (bound(words[2])?, bound(words[3])?);
    let Some(set) = server.sorted(words[1])?.cloned() else {
        return Ok(Reply::Array(Vec::new()));
    };
    let members = set.between(least, most);
    let skipped = usize::try_from(skipped).unwrap_or(usize::MAX);
    let members = members.get(skipped..).unwrap_or_default();
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    Ok(server.listed(&members[..limit.min(members.len())], layout))
}

pub(super) fn remove_by_score(server: &mut Server, words: &[&[u8]]) -> Answer {
    let (least, most) = (bound(words[2])?, bound(words[3])?);
    let Some(set) = server.sorted(words[1])? else {
        return Ok(Reply::Int(0));
    };
    let removed = Rc::make_mut(set).remove_between(least, most);
    if removed > 0 {
        server.shrunk(words[1]);
    }
    Ok(Reply::Int(removed as i64))
}

fn bound(text: &[u8]) -> Result<Bound, Failure> {
    let (is_excluded, text) = match text.strip_prefix(b"(") {
        Some(text) => (true, text),
        None => (false, text),
    };
    // No digits are a zero.
    let number = if text.is_empty() {
        Some(0.0)
    } else {
        float(text)
    };
    let kind = if is_excluded {
        Bound::Excluded
    } else {
        Bound::Included
    };
    number.map(kind).ok_or(NO_BOUND)
}

/// How members are listed with their scores.
#[derive(Clone, Copy)]
enum Layout {
    Flat,
    Pairs,
}

impl Server {
    /// The layout of lists in this connection's version of the protocol.
    fn layout(&self) -> Layout {
        if self.speaks_resp3() {
            Layout::Pairs
        } else {
            Layout::Flat
        }
    }

    /// Lists members; with `layout` also their scores.
    fn listed(&self, members: &[(f64, Bytes)], layout: Option<Layout>) -> Reply {
        let mut items = Vec::with_capacity(2 * members.len());
        for (score, member) in members {
            let member = Reply::text(member);
            match layout {
                None => items.push(member),
                Some(Layout::Flat) => items.extend([member, self.number(*score)]),
                Some(Layout::Pairs) => {
                    items.push(Reply::Array(vec![member, self.number(*score)]));
                }
            }
        }
        Reply::Array(items)
    }
}
