//! Tests every kind of pattern of a parameter.

use axum::extract::Path;
use lock_core::{Error, distributed_lock, lock_key};

use super::witness::at_work;

/// A pair of values.
#[derive(Clone, Debug)]
pub struct Pair {
    /// The first.
    pub first: (u64, String),
    /// The second.
    pub second: String,
}

/// A type without a value.
#[derive(Clone, Copy, Debug)]
pub struct Unit;

/// A type with a `Drop`, although all its fields are `Copy`.
#[derive(Debug)]
pub struct Ticket {
    /// Its number.
    pub number: u64,
}

impl Drop for Ticket {
    fn drop(&mut self) {
        DROPPED_UNDER_THE_LOCK.with(|seen| {
            let held = super::witness::manager().held();
            seen.set(seen.get() + u64::from(!held.is_empty()));
        });
    }
}

thread_local! {
    static DROPPED_UNDER_THE_LOCK: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

const fn half(n: u64) -> u64 {
    n / 2
}

/// A tuple struct.
#[distributed_lock(key = "uid:<uid>", ttl = "10s")]
pub async fn tuple_struct(Path(uid): Path<u64>) -> Result<u64, Error> {
    at_work().await;
    Ok(uid)
}

/// A tuple struct whose value only the key uses.
#[distributed_lock(key = "uid:<uid>", ttl = "10s")]
pub async fn read_by_the_key(Path(uid): Path<u64>) -> Result<(), Error> {
    at_work().await;
    Ok(())
}

/// A number in a pattern is a number in the arguments.
#[allow(clippy::cast_lossless)]
#[distributed_lock(key = lock_key!("half:<half(uid)>:<uid as u128>:<uid % 3>"), ttl = "10s")]
pub async fn by_value(Path(uid): Path<u64>) -> Result<u64, Error> {
    at_work().await;
    Ok(uid)
}

/// A number in a pattern with an ignored part is a number too.
#[allow(clippy::cast_lossless)]
#[distributed_lock(key = "half:<half(uid)>:<uid as u128>:<name.len()>", ttl = "10s")]
pub async fn partly_by_value(
    Path((uid, name, _)): Path<(u64, &str, String)>,
) -> Result<u64, Error> {
    at_work().await;
    Ok(uid)
}

/// Parts that the pattern ignores.
#[distributed_lock(key = "uid:<uid>", ttl = "10s")]
pub async fn left_out(Path((uid, _)): Path<(u64, String)>) -> Result<(), Error> {
    at_work().await;
    Ok(())
}

/// A struct in a struct, with `..` for the rest.
#[distributed_lock(key = "pair:<id>:<name>", ttl = "10s")]
pub async fn nested(
    Pair {
        first: (mut id, ref name),
        ..
    }: Pair,
) -> Result<(u64, usize), Error> {
    at_work().await;
    id += 1;
    Ok((id, name.len()))
}

/// Whole fields, in short form and renamed.
#[distributed_lock(key = "pair:<id>:<second>", ttl = "10s")]
pub async fn fields(
    Pair {
        first: (id, name),
        second,
    }: Pair,
) -> Result<String, Error> {
    at_work().await;
    Ok(format!("{id}{name}{second}"))
}

/// `mut`, also in a tuple.
#[distributed_lock(key = "mut:<a>:<b>", ttl = "10s")]
pub async fn mutable(mut a: u64, (mut b, c): (u64, u64)) -> Result<u64, Error> {
    at_work().await;
    a += 1;
    b += a;
    Ok(b + c)
}

/// `ref` and `ref mut`.
#[distributed_lock(key = "ref:<text>", ttl = "10s")]
pub async fn by_ref(ref text: String, ref mut list: Vec<u64>) -> Result<usize, Error> {
    at_work().await;
    list.push(1);
    Ok(text.len() + list.len())
}

/// `_` and `_name`.
#[distributed_lock(key = "underscores", ttl = "10s")]
pub async fn underscores(_: String, _unused: String, (_, _b): (u8, u8)) -> Result<(), Error> {
    at_work().await;
    Ok(())
}

/// A name for the whole value and names for its parts.
#[distributed_lock(key = "at:<whole.0>:<b>", ttl = "10s")]
pub async fn at(whole @ (_, b): (u64, u64), rest @ [first, ..]: [u64; 3]) -> Result<u64, Error> {
    at_work().await;
    Ok(whole.0 + b + first + rest[2])
}

/// An array with a rest in the middle.
#[distributed_lock(key = "array:<first>:<last>", ttl = "10s")]
pub async fn array([first, middle @ .., last]: [String; 4]) -> Result<usize, Error> {
    at_work().await;
    Ok(first.len() + middle.len() + last.len())
}

/// Patterns behind a reference.
#[distributed_lock(key = "behind:<id>:<name>", ttl = "10s")]
pub async fn behind(&(id, ref name): &(u64, String), &[a, b]: &[u64; 2]) -> Result<u64, Error> {
    at_work().await;
    Ok(id + a + b + u64::from(name.is_empty()))
}

/// Patterns by the default binding mode.
#[distributed_lock(key = "ergonomic:<id>:<name>", ttl = "10s")]
pub async fn ergonomic(
    (id, name): &(u64, String),
    Pair { second, .. }: &Pair,
) -> Result<usize, Error> {
    at_work().await;
    Ok(name.len() + second.len())
}

/// Patterns without a name.
#[distributed_lock(key = "units", ttl = "10s")]
pub async fn units((): (), Unit: Unit, Path(()): Path<()>) -> Result<(), Error> {
    at_work().await;
    Ok(())
}

/// An or-pattern, of which both sides bind.
#[distributed_lock(key = "either:<n>", ttl = "10s")]
pub async fn either((Ok(n) | Err(n)): Result<u64, u64>) -> Result<u64, Error> {
    at_work().await;
    Ok(n)
}

/// Patterns in parentheses.
#[allow(unused_parens)]
#[distributed_lock(key = "parens:<a>:<b>", ttl = "10s")]
pub async fn parens((a): u64, ((b), _): (u64, u64)) -> Result<u64, Error> {
    at_work().await;
    Ok(a + b)
}

/// Raw names.
#[distributed_lock(key = "raw:<r#type>:<r#match.r#fn>", ttl = "10s")]
pub async fn raw(r#type: u64, r#match: Raw, Raw { r#fn }: Raw) -> Result<u64, Error> {
    at_work().await;
    Ok(r#type + r#match.r#fn + r#fn)
}

/// A field with a raw name.
#[derive(Clone, Debug)]
pub struct Raw {
    /// The field.
    pub r#fn: u64,
}

/// Parameters with their own conditions and lints.
#[distributed_lock(key = "conditional:<a>", ttl = "10s")]
pub async fn conditional(
    a: u64,
    #[cfg(any())] missing: Missing,
    #[cfg(any())] (_, gone): (u64, Missing),
    #[cfg(not(any()))] b: u64,
    #[cfg(not(any()))] Pair { second, .. }: Pair,
    #[allow(unused_variables)] c: u64,
    #[allow(unused_mut)] mut d: u64,
    #[cfg_attr(all(), allow(unused_variables))] (e, _): (u64, u64),
) -> Result<u64, Error> {
    at_work().await;
    Ok(a + b + d + u64::from(second.is_empty()))
}

/// A type with a `Drop`, matched as a whole.
#[distributed_lock(key = "ticket:<number>", ttl = "10s")]
pub async fn ticket(Ticket { number }: Ticket) -> Result<u64, Error> {
    at_work().await;
    Ok(number)
}

#[cfg(test)]
mod tests {
    use super::super::witness::locked;
    use super::*;

    fn pair() -> Pair {
        Pair {
            first: (4, "tea".into()),
            second: "cup".into(),
        }
    }

    #[tokio::test]
    async fn tuple_structs_are_destructured() {
        let call = || tuple_struct(Path(4));
        assert_eq!(locked("uid:4", call(), call()).await.expect("free"), 4);
        let call = || read_by_the_key(Path(4));
        locked("uid:4", call(), call()).await.expect("free");
        let call = || left_out(Path((4, "x".into())));
        locked("uid:4", call(), call()).await.expect("free");
        let call = || by_value(Path(259));
        let done = locked("half:129:259:1", call(), call()).await;
        assert_eq!(done.expect("free"), 259);
        let call = || partly_by_value(Path((259, "abc", "x".into())));
        let done = locked("half:129:259:3", call(), call()).await;
        assert_eq!(done.expect("free"), 259);
    }

    #[tokio::test]
    async fn structs_are_destructured() {
        let done = locked("pair:4:tea", nested(pair()), nested(pair())).await;
        assert_eq!(done.expect("free"), (5, 3));
        let done = locked("pair:4:cup", fields(pair()), fields(pair())).await;
        assert_eq!(done.expect("free"), "4teacup");
        let call = || raw(1, Raw { r#fn: 2 }, Raw { r#fn: 3 });
        assert_eq!(locked("raw:1:2", call(), call()).await.expect("free"), 6);
    }

    #[tokio::test]
    async fn modifiers_work_as_without_the_attribute() {
        let call = || mutable(1, (2, 3));
        assert_eq!(locked("mut:1:2", call(), call()).await.expect("free"), 7);
        let call = || by_ref("abc".into(), vec![]);
        assert_eq!(locked("ref:abc", call(), call()).await.expect("free"), 4);
        let call = || underscores("a".into(), "b".into(), (1, 2));
        locked("underscores", call(), call()).await.expect("free");
        let call = || at((1, 2), [3, 4, 5]);
        assert_eq!(locked("at:1:2", call(), call()).await.expect("free"), 11);
        let call = || parens(1, (2, 3));
        assert_eq!(locked("parens:1:2", call(), call()).await.expect("free"), 3);
    }

    #[tokio::test]
    async fn arrays_and_references_are_destructured() {
        let words = || ["a", "b", "c", "d"].map(String::from);
        let done = locked("array:a:d", array(words()), array(words())).await;
        assert_eq!(done.expect("free"), 4);
        let pair_ = (1, "x".to_owned());
        let call = || behind(&pair_, &[2, 3]);
        assert_eq!(locked("behind:1:x", call(), call()).await.expect("free"), 6);
        let other = pair();
        let call = || ergonomic(&pair_, &other);
        let done = locked("ergonomic:1:x", call(), call()).await;
        assert_eq!(done.expect("free"), 4);
    }

    #[tokio::test]
    async fn rare_patterns_are_destructured() {
        let call = || units((), Unit, Path(()));
        locked("units", call(), call()).await.expect("free");
        let done = locked("either:3", either(Ok(3)), either(Err(3))).await;
        assert_eq!(done.expect("free"), 3);
        let call = || conditional(1, 2, pair(), 3, 4, (5, 6));
        let done = locked("conditional:1", call(), call()).await;
        assert_eq!(done.expect("free"), 7);
    }

    #[tokio::test]
    async fn a_type_with_a_drop_is_dropped_under_the_lock() {
        let call = || ticket(Ticket { number: 8 });
        let done = locked("ticket:8", call(), call()).await;
        assert_eq!(done.expect("free"), 8);
        // The value of the refused call is dropped while the first call holds the lock.
        assert_eq!(DROPPED_UNDER_THE_LOCK.with(std::cell::Cell::get), 2);
    }
}
