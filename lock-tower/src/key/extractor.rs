//! The trait of what makes keys, and how extractors are put together.

use std::future::Future;

use super::{HeadOnly, KeyError, KeyPart, KeyRequest, NoKey, WithBody};

/// Finds a part of a request's key.
///
/// The [ready ones](super) need nothing to be written. An own one may wait for somebody (a session's
/// store), may fail, and may read the body.
///
/// Several in a tuple are one extractor: in their order, told apart whatever the values are. What
/// refuses cheaply belongs first, what reads the body last.
///
/// # Examples
///
/// ```
/// use lock_tower::LockLayer;
/// use lock_tower::key::{self, HeadOnly, KeyError, KeyExtractor, KeyPart, KeyRequest};
///
/// struct Account(Sessions);
///
/// impl KeyExtractor for Account {
///     type Reads = HeadOnly;
///
///     async fn extract(&self, request: &mut KeyRequest<'_>) -> Result<KeyPart, KeyError> {
///         let id = request.headers().get("x-session").ok_or(KeyError::missing("x-session"))?;
///         let found = self.0.account_of(id.as_bytes()).await;
///         let account = found.map_err(|_| KeyError::unavailable())?;
///         KeyPart::new("account", account)
///     }
/// }
/// # struct Sessions;
/// # impl Sessions { async fn account_of(&self, _: &[u8]) -> Result<u64, ()> { Ok(7) } }
/// # let (locks, sessions) = (lock_core::LockManager::in_memory(), Sessions);
///
/// let layer = LockLayer::extractor(locks, (key::constant("pay"), Account(sessions), key::route()));
/// # let _ = layer;
/// ```
pub trait KeyExtractor: Send + Sync + 'static {
    /// [`HeadOnly`], or [`WithBody`] for what calls [`KeyRequest::body`]: that goes into a
    /// [`LockLayer::body_extractor`](crate::LockLayer::body_extractor) only.
    type Reads: Reads;

    /// The part of this request's key.
    ///
    /// # Errors
    ///
    /// [`KeyError`] says what the client is told.
    fn extract(
        &self,
        request: &mut KeyRequest<'_>,
    ) -> impl Future<Output = Result<KeyPart, KeyError>> + Send;

    /// This one and then another.
    #[must_use]
    fn and<E: KeyExtractor>(self, next: E) -> (Self, E)
    where
        Self: Sized,
    {
        (self, next)
    }

    /// A request without it has a key all the same, and another one than any request with it; an
    /// empty value is not an absent one. A request in which *nothing* that could tell callers apart
    /// is there has no key, as before: no lock is shared by all who leave everything out.
    #[must_use]
    fn optional(self) -> Optional<Self>
    where
        Self: Sized,
    {
        Optional(self)
    }

    /// Its SHA-256 in its place: for what is secret, or long. Not for what can be guessed: whoever
    /// reads the key of a user's number can try all numbers.
    #[must_use]
    fn digested(self) -> Digested<Self>
    where
        Self: Sized,
    {
        Digested(self)
    }

    /// In lower case: `Alice` and `alice` are one.
    #[must_use]
    fn lowercase(self) -> Lowercase<Self>
    where
        Self: Sized,
    {
        Lowercase(self)
    }
}

/// What an extractor reads: [`HeadOnly`] or [`WithBody`].
pub trait Reads: sealed::Reads {
    /// What it and another one read together.
    type With<Other: Reads>: Reads;
}

impl Reads for HeadOnly {
    type With<Other: Reads> = Other;
}

impl Reads for WithBody {
    type With<Other: Reads> = WithBody;
}

/// Goes into a layer that asks nothing of the type of bodies.
#[diagnostic::on_unimplemented(
    message = "this extractor reads the body of the request",
    label = "reads the body",
    note = "use `LockLayer::body_extractor(locks, extractor, limit)`"
)]
pub trait ReadsNoBody: Reads {}

impl ReadsNoBody for HeadOnly {}

mod sealed {
    pub trait Reads: Send + Sync + 'static {}
    impl Reads for super::HeadOnly {}
    impl Reads for super::WithBody {}
}

/// Made by [`KeyExtractor::optional`].
#[derive(Clone, Copy, Debug)]
pub struct Optional<E>(E);

impl<E: KeyExtractor> KeyExtractor for Optional<E> {
    type Reads = E::Reads;

    async fn extract(&self, request: &mut KeyRequest<'_>) -> Result<KeyPart, KeyError> {
        optional(self.0.extract(request).await.map_err(KeyError::into_inner))
            .map_err(KeyError::from)
    }
}

/// Also the `?` of templates.
pub(super) fn optional(part: Result<KeyPart, NoKey>) -> Result<KeyPart, NoKey> {
    match part {
        Ok(part) => Ok(part.present()),
        Err(NoKey::Missing { stand_in, .. }) => Ok(KeyPart::stand_in(stand_in)),
        Err(no_key) => Err(no_key),
    }
}

/// Made by [`KeyExtractor::digested`].
#[derive(Clone, Copy, Debug)]
pub struct Digested<E>(E);

impl<E: KeyExtractor> KeyExtractor for Digested<E> {
    type Reads = E::Reads;

    async fn extract(&self, request: &mut KeyRequest<'_>) -> Result<KeyPart, KeyError> {
        self.0.extract(request).await.map(KeyPart::digested)
    }
}

/// Made by [`KeyExtractor::lowercase`].
#[derive(Clone, Copy, Debug)]
pub struct Lowercase<E>(E);

impl<E: KeyExtractor> KeyExtractor for Lowercase<E> {
    type Reads = E::Reads;

    async fn extract(&self, request: &mut KeyRequest<'_>) -> Result<KeyPart, KeyError> {
        self.0.extract(request).await.map(KeyPart::lowercase)
    }
}

macro_rules! tuple {
    ($first:ident, $($next:ident),+ => $reads:ty) => {
        #[allow(non_snake_case, reason = "one letter is the type and its value")]
        impl<$first: KeyExtractor, $($next: KeyExtractor),+> KeyExtractor for ($first, $($next),+) {
            type Reads = $reads;

            async fn extract(&self, request: &mut KeyRequest<'_>) -> Result<KeyPart, KeyError> {
                let ($first, $($next),+) = self;
                let part = $first.extract(request).await?;
                $(let part = part.and($next.extract(request).await?);)+
                Ok(part)
            }
        }
    };
}

type With<A, B> = <A as Reads>::With<B>;

tuple!(A, B => With<A::Reads, B::Reads>);
tuple!(A, B, C => With<A::Reads, With<B::Reads, C::Reads>>);
tuple!(A, B, C, D => With<A::Reads, With<B::Reads, With<C::Reads, D::Reads>>>);
tuple!(A, B, C, D, E => With<A::Reads, With<B::Reads, With<C::Reads, With<D::Reads, E::Reads>>>>);
tuple!(A, B, C, D, E, F =>
    With<A::Reads, With<B::Reads, With<C::Reads, With<D::Reads, With<E::Reads, F::Reads>>>>>);

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use http::Request;
    use http::request::Builder;
    use lock_core::LockKey;

    use super::*;
    use crate::key::kind::{Extract, Whole};
    use crate::key::{constant, header, method};

    async fn made(extractor: impl KeyExtractor, request: Builder) -> Result<String, NoKey> {
        let (mut parts, ()) = request.body(()).unwrap().into_parts();
        let whole = Whole(extractor);
        let key: LockKey = whole.key(&mut KeyRequest::new(&mut parts, None)).await?;
        Ok(key.as_str().unwrap().to_owned())
    }

    fn with(headers: &[(&str, Option<&str>)]) -> Builder {
        let present = headers
            .iter()
            .filter_map(|(name, value)| Some((name, (*value)?)));
        present.fold(Request::post("/"), |request, (name, value)| {
            request.header(*name, value)
        })
    }

    #[tokio::test]
    async fn parts_stand_in_their_order_and_as_a_template_writes_them() {
        let request = || with(&[("a", Some("X:1")), ("b", Some("Y"))]);
        let tuple = (
            constant("pay"),
            header("a"),
            header("b").lowercase(),
            method(),
        );
        assert_eq!(made(tuple, request()).await.unwrap(), "pay:X%3A1:y:POST");
        let chain = header("a").and(header("b")).and(header("x").optional());
        assert_eq!(made(chain, request()).await.unwrap(), "X%3A1:Y:%-");
        let digested = (constant("k"), header("a").and(header("b")).digested());
        let one = made(digested, request()).await.unwrap();
        let other = (constant("k"), header("b").and(header("a")).digested());
        assert_eq!(one.len(), 2 + 64);
        assert_ne!(one, made(other, request()).await.unwrap());
    }

    #[tokio::test]
    async fn who_leaves_out_all_that_is_optional_has_no_key() {
        let nothing = (constant("k"), header("a").optional(), method());
        assert_eq!(made(nothing, with(&[])).await, Err(NoKey::missing(None)));
        let missing = (constant("k"), header("a"));
        assert_eq!(
            made(missing, with(&[])).await,
            Err(NoKey::missing(Some("header.a")))
        );
    }

    /// Pairs in pairs, and each of them perhaps not there: no way to be in doubt what was.
    #[tokio::test]
    async fn nested_optional_parts_can_be_told_apart() {
        let values = [
            None,
            Some(""),
            Some("q"),
            Some("%-"),
            Some(":"),
            Some("%("),
            Some("%)"),
        ];
        let mut keys = HashMap::new();
        for index in 0..values.len().pow(4) {
            let value = |place: u32| values[index / values.len().pow(place) % values.len()];
            let all = [value(0), value(1), value(2), value(3)];
            let one = header("a").optional().and(header("b")).optional();
            let other = header("c").and(header("d").optional()).optional();
            let extractor = (constant("k"), one, other);
            let request = with(&[("a", all[0]), ("b", all[1]), ("c", all[2]), ("d", all[3])]);
            // A pair without what it needs is not there as a whole, or empty as a whole.
            let pair = |needed: Option<&'static str>, other| {
                let there = needed.filter(|text| !text.is_empty());
                there.map(|text| (text, other)).ok_or(needed)
            };
            let meant = (pair(all[1], all[0]), pair(all[2], all[3]));
            let Ok(made) = made(extractor, request).await else {
                assert!(meant.0.is_err() && meant.1.is_err(), "{meant:?}");
                continue;
            };
            if let Some(earlier) = keys.insert(made.clone(), meant) {
                assert_eq!(earlier, meant, "{made}");
            }
        }
        assert!(keys.len() > 1000, "{}", keys.len());
    }
}
