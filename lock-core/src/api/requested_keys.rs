//! The key of a request, or its keys.

use std::sync::Arc;

use crate::base::error::Error;
use crate::base::key::LockKey;

/// The most keys of one lock.
pub(crate) const MOST_KEYS: usize = 16;

#[derive(Clone)]
pub(crate) enum RequestedKeys {
    One(LockKey),
    All(Vec<LockKey>),
}

impl RequestedKeys {
    /// Returns the keys in the order of their bytes, each once: the first, and the others.
    ///
    /// # Errors
    ///
    /// `Invalid` for a key that cannot be used, and for no key or too many.
    pub(crate) fn in_order(self) -> Result<(Arc<str>, Vec<Arc<str>>), Error> {
        let keys = match self {
            RequestedKeys::One(key) => return Ok((key.into_result()?, Vec::new())),
            RequestedKeys::All(keys) => keys,
        };
        let keys = keys.into_iter().map(LockKey::into_result);
        let mut keys = keys.collect::<Result<Vec<_>, _>>()?;
        keys.sort_unstable();
        keys.dedup();
        let count = keys.len();
        if count > MOST_KEYS {
            return Err(Error::invalid(format!(
                "a lock has {count} keys; the most are {MOST_KEYS} (lock what they have in common instead)"
            )));
        }
        let mut keys = keys.into_iter();
        let first = keys.next().ok_or_else(|| {
            Error::invalid("a lock has no key; name at least one thing that is to be locked")
        })?;
        Ok((first, keys.collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    fn in_order(keys: &[&str]) -> Result<Vec<String>, Error> {
        let keys = keys.iter().map(|key| LockKey::from(*key)).collect();
        let (first, others) = RequestedKeys::All(keys).in_order()?;
        let all = std::iter::once(first).chain(others);
        Ok(all.map(|key| key.to_string()).collect())
    }

    #[test]
    fn keys_stand_in_the_order_of_their_bytes_and_each_once() {
        assert_eq!(in_order(&["b", "a", "b"]).unwrap(), ["a", "b"]);
        assert_eq!(
            in_order(&["é", "z", "Z", "10", "9"]).unwrap(),
            ["10", "9", "Z", "z", "é"]
        );
        assert_eq!(in_order(&["only"]).unwrap(), ["only"]);
    }

    #[test]
    fn no_key_and_more_than_sixteen_are_invalid_and_duplicates_do_not_count() {
        let error = in_order(&[]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        let many: Vec<String> = (0..17).map(|number| format!("k{number}")).collect();
        let mut many: Vec<&str> = many.iter().map(String::as_str).collect();
        let error = in_order(&many).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains("16"), "{error}");
        many[16] = many[0];
        assert_eq!(in_order(&many).unwrap().len(), 16);
    }

    #[test]
    fn one_key_that_cannot_be_used_spoils_all() {
        let error = in_order(&["a", "order:<id>"]).unwrap_err();
        assert!(error.to_string().contains("template"), "{error}");
    }
}
