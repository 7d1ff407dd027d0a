//! Extractors that are made from other extractors.

use std::future::Future;
use std::pin::Pin;

use lock_core::LockKey;

use super::{KeyExtractor, Reads};
use crate::key::kind::AsyncKey;
use crate::key::part::KeyText;
use crate::key::{KeyError, KeyFailure, KeyPart, KeyRequest};

/// The extractor that [`KeyExtractor::optional`] makes.
#[derive(Clone, Copy, Debug)]
pub struct Optional<E>(pub(super) E);

impl<E: KeyExtractor> KeyExtractor for Optional<E> {
    type Reads = E::Reads;

    async fn extract(&self, request: &mut KeyRequest<'_>) -> Result<KeyPart, KeyError> {
        optional(self.0.extract(request).await.map_err(KeyError::into_inner))
            .map_err(KeyError::from)
    }
}

/// Makes a part optional. The `?` of templates uses it as well.
pub(crate) fn optional(part: Result<KeyPart, KeyFailure>) -> Result<KeyPart, KeyFailure> {
    match part {
        Ok(part) => Ok(part.present()),
        Err(KeyFailure::Missing { substitute, .. }) => Ok(KeyPart::substitute(substitute)),
        Err(failure) => Err(failure),
    }
}

/// The extractor that [`KeyExtractor::digested`] makes.
#[derive(Clone, Copy, Debug)]
pub struct Digested<E>(pub(super) E);

impl<E: KeyExtractor> KeyExtractor for Digested<E> {
    type Reads = E::Reads;

    async fn extract(&self, request: &mut KeyRequest<'_>) -> Result<KeyPart, KeyError> {
        self.0.extract(request).await.map(KeyPart::digested)
    }
}

/// The extractor that [`KeyExtractor::lowercase`] makes.
#[derive(Clone, Copy, Debug)]
pub struct Lowercase<E>(pub(super) E);

impl<E: KeyExtractor> KeyExtractor for Lowercase<E> {
    type Reads = E::Reads;

    async fn extract(&self, request: &mut KeyRequest<'_>) -> Result<KeyPart, KeyError> {
        self.0.extract(request).await.map(KeyPart::lowercase)
    }
}

macro_rules! tuple {
    ($first:ident, $($next:ident),+ => $reads:ty) => {
        #[allow(non_snake_case, reason = "one letter names both the type and its value")]
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

type Together<A, B> = <A as Reads>::With<B>;

tuple!(A, B => Together<A::Reads, B::Reads>);
tuple!(A, B, C => Together<A::Reads, Together<B::Reads, C::Reads>>);
tuple!(A, B, C, D => Together<A::Reads, Together<B::Reads, Together<C::Reads, D::Reads>>>);
tuple!(A, B, C, D, E => Together<A::Reads, Together<B::Reads, Together<C::Reads, Together<D::Reads, E::Reads>>>>);
tuple!(A, B, C, D, E, F =>
    Together<A::Reads, Together<B::Reads, Together<C::Reads, Together<D::Reads, Together<E::Reads, F::Reads>>>>>);

/// A key that consists of the part of one extractor.
pub(crate) struct WholeKey<E>(pub(crate) E);

impl<E: KeyExtractor> AsyncKey for WholeKey<E> {
    fn key<'a>(
        &'a self,
        request: &'a mut KeyRequest<'_>,
    ) -> Pin<Box<dyn Future<Output = Result<LockKey, KeyFailure>> + Send + 'a>> {
        Box::pin(async move {
            let part = self.0.extract(request).await;
            let mut key = KeyText::default();
            part.map_err(KeyError::into_inner)?.push_to(&mut key);
            key.finish()
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::key::{constant, header, method};
    use http::Request;
    use http::request::Builder;

    async fn made(extractor: impl KeyExtractor, request: Builder) -> Result<String, KeyFailure> {
        let (mut parts, ()) = request.body(()).unwrap().into_parts();
        let whole = WholeKey(extractor);
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
    async fn a_request_without_any_optional_part_has_no_key() {
        let nothing = (constant("k"), header("a").optional(), method());
        assert_eq!(
            made(nothing, with(&[])).await,
            Err(KeyFailure::missing(None))
        );
        let missing = (constant("k"), header("a"));
        assert_eq!(
            made(missing, with(&[])).await,
            Err(KeyFailure::missing(Some("header.a")))
        );
    }

    /// Nests optional pairs in optional pairs, and checks that all combinations differ.
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
            // A pair whose required part is absent or empty is absent or empty as a whole.
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
