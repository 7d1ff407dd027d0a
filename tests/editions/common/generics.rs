//! Tests generics, lifetimes and `impl Trait`.

use std::collections::BTreeMap;
use std::fmt::{Debug, Display};
use std::marker::PhantomData;

use lock_core::{Error, distributed_lock};

use super::witness::at_work;

/// A type parameter with inline bounds.
#[distributed_lock(key = "value:<value>", ttl = "10s")]
pub async fn bounded<T: Display + Clone + Send>(value: T) -> Result<(T, T), Error> {
    at_work().await;
    Ok((value.clone(), value))
}

/// A type parameter with bounds in a `where` clause.
#[distributed_lock(key = "where:<id>", ttl = "10s")]
pub async fn with_where<T, E>(id: u64, value: T) -> Result<String, E>
where
    T: Debug,
    E: From<Error>,
{
    at_work().await;
    Ok(format!("{id} {value:?}"))
}

/// A const parameter.
#[distributed_lock(key = "const:<N>", ttl = "10s")]
pub async fn constant<const N: usize>(array: [u8; N]) -> Result<[u8; N], Error> {
    at_work().await;
    Ok(array)
}

/// An associated constant of a type parameter.
#[distributed_lock(key = "kind:<T::NAME>", ttl = "10s")]
pub async fn of_a_kind<T: Named>() -> Result<&'static str, Error> {
    at_work().await;
    Ok(T::NAME)
}

/// A type with a name.
pub trait Named {
    /// Its name.
    const NAME: &'static str;
    /// A type that belongs to it.
    type Item: Default;
}

impl Named for u8 {
    const NAME: &'static str = "u8";
    type Item = u16;
}

/// An associated type as the return type.
#[distributed_lock(key = "item:<T::NAME>", ttl = "10s")]
pub async fn item<T: Named>() -> Result<<T as Named>::Item, Error> {
    at_work().await;
    Ok(T::Item::default())
}

/// Named lifetimes, of which one outlives the other.
#[distributed_lock(key = "longest:<a.len()>", ttl = "10s")]
pub async fn longest<'a, 'b: 'a>(a: &'a str, b: &'b str) -> Result<&'a str, Error> {
    at_work().await;
    Ok(if a.len() > b.len() { a } else { b })
}

/// The elided lifetime of the only reference.
#[distributed_lock(key = "first:<words.len()>", ttl = "10s")]
pub async fn first(words: &[String]) -> Result<Option<&str>, Error> {
    at_work().await;
    Ok(words.first().map(String::as_str))
}

/// Lifetimes elided in paths.
#[distributed_lock(key = "counts:<word>", ttl = "10s")]
pub async fn count(counts: &mut BTreeMap<&'_ str, u64>, word: &'static str) -> Result<u64, Error> {
    at_work().await;
    let count = counts.entry(word).or_default();
    *count += 1;
    Ok(*count)
}

/// `impl Trait` as a parameter, beside type parameters.
#[distributed_lock(key = "impl:<name>:<N>", ttl = "10s")]
pub async fn takes_any<T: Into<u64>, const N: usize>(
    name: impl Display,
    items: impl FnOnce() -> [T; N],
) -> Result<u64, Error> {
    at_work().await;
    Ok(items().map(Into::into).iter().sum())
}

/// `impl Trait` as the return type.
#[distributed_lock(key = "gives:<up_to>", ttl = "10s")]
pub async fn gives_some(up_to: u64) -> Result<impl Iterator<Item = u64> + Debug, Error> {
    at_work().await;
    Ok(0..up_to)
}

/// `impl Trait` deep in the return type.
#[distributed_lock(key = "deep", ttl = "10s")]
pub async fn gives_deep() -> Result<(Option<impl Fn(u64) -> u64>, Vec<impl Display>), Error> {
    at_work().await;
    Ok((Some(|n| n + 1), vec!["a"]))
}

/// `impl Trait` inside a trait object.
#[distributed_lock(key = "hidden:<n>", ttl = "10s")]
pub async fn hidden(n: u64) -> Result<Box<dyn Iterator<Item = impl Display>>, Error> {
    at_work().await;
    Ok(Box::new(0..n))
}

/// A closure over every lifetime.
#[distributed_lock(key = "closure:<text>", ttl = "10s")]
pub async fn with_closure<F>(text: String, f: F) -> Result<usize, Error>
where
    F: for<'a> Fn(&'a str) -> &'a str,
{
    at_work().await;
    Ok(f(&text).len())
}

/// Trait objects.
#[distributed_lock(key = "dyn:<value>", ttl = "10s")]
pub async fn dynamic(
    value: &(dyn Display + Send + Sync),
    each: &mut dyn FnMut(&str),
) -> Result<(), Error> {
    at_work().await;
    each(&value.to_string());
    Ok(())
}

/// Methods of a generic type.
#[derive(Debug, Default)]
pub struct Shelf<'a, T> {
    label: &'a str,
    items: Vec<T>,
    of: PhantomData<fn() -> T>,
}

impl<'a, T: Clone> Shelf<'a, T> {
    /// A type parameter of the impl and one of the method.
    #[distributed_lock(key = "shelf:<self.label>:<by>", ttl = "10s")]
    pub async fn put<K: Display>(&mut self, by: K, item: T) -> Result<&'a str, Error> {
        at_work().await;
        self.items.push(item);
        Ok(self.label)
    }
}

impl<T> Shelf<'_, T> {
    /// A method of a type with an elided lifetime.
    #[distributed_lock(key = "shelf:<self.label>", ttl = "10s")]
    pub async fn all(&self) -> Result<&[T], Error> {
        at_work().await;
        Ok(&self.items)
    }
}

#[cfg(test)]
mod tests {
    use super::super::errors::ShopError;
    use super::super::witness::locked;
    use super::*;

    #[tokio::test]
    async fn type_parameters_and_constants_work() {
        let done = locked("value:3", bounded(3), bounded(3)).await;
        assert_eq!(done.expect("free"), (3, 3));
        let call = || with_where::<_, ShopError>(4, Some(1));
        assert_eq!(
            locked("where:4", call(), call()).await.expect("free"),
            "4 Some(1)"
        );
        let done = locked("const:2", constant([1, 2]), constant([1, 2])).await;
        assert_eq!(done.expect("free"), [1, 2]);
        let done = locked("kind:u8", of_a_kind::<u8>(), of_a_kind::<u8>()).await;
        assert_eq!(done.expect("free"), "u8");
        let done = locked("item:u8", item::<u8>(), item::<u8>()).await;
        assert_eq!(done.expect("free"), 0_u16);
    }

    #[tokio::test]
    async fn lifetimes_work() {
        let a = String::from("abc");
        let done = locked("longest:3", longest(&a, "d"), longest(&a, "d")).await;
        assert_eq!(done.expect("free"), "abc");
        let words = [a];
        let done = locked("first:1", first(&words), first(&words)).await;
        assert_eq!(done.expect("free"), Some("abc"));
        let (mut one, mut two) = (BTreeMap::new(), BTreeMap::new());
        let done = locked("counts:a", count(&mut one, "a"), count(&mut two, "a")).await;
        assert_eq!((done.expect("free"), one["a"], two.len()), (1, 1, 0));
    }

    #[tokio::test]
    async fn impl_trait_and_closures_work() {
        let call = || takes_any("x", || [1_u8, 2]);
        assert_eq!(locked("impl:x:2", call(), call()).await.expect("free"), 3);
        let done = locked("gives:4", gives_some(4), gives_some(4)).await;
        assert_eq!(done.expect("free").sum::<u64>(), 6);
        let (f, texts) = locked("deep", gives_deep(), gives_deep())
            .await
            .expect("free");
        assert_eq!(f.expect("some")(1), 2);
        assert_eq!(texts[0].to_string(), "a");
        let items = locked("hidden:3", hidden(3), hidden(3)).await;
        let items = items.expect("free").map(|item| item.to_string());
        assert_eq!(items.collect::<String>(), "012");
        let call = || with_closure("a b".into(), |text| &text[1..]);
        assert_eq!(
            locked("closure:a%20b", call(), call()).await.expect("free"),
            2
        );
        let mut seen = Vec::new();
        let mut see = |text: &str| seen.push(text.to_owned());
        let done = locked(
            "dyn:5",
            dynamic(&5, &mut see),
            dynamic(&5, &mut |_| panic!("the second does not run")),
        )
        .await;
        done.expect("free");
        assert_eq!(seen, ["5"]);
    }

    #[tokio::test]
    async fn methods_of_generic_types_work() {
        let shelf = || Shelf {
            label: "s",
            items: vec!['a'],
            of: PhantomData,
        };
        let (mut one, mut two) = (shelf(), shelf());
        let done = locked("shelf:s:9", one.put(9, 'b'), two.put(9, 'b')).await;
        assert_eq!(done.expect("free"), "s");
        let done = locked("shelf:s", one.all(), two.all()).await;
        assert_eq!(done.expect("free"), ['a', 'b']);
    }
}
