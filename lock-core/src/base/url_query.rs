//! The parameters of a URL, as in `redis://host/0?replica_acks=1`.

use std::borrow::Cow;

use crate::base::error::Error;

/// Takes `name=<number>` out of a URL's query and returns the rest for the store.
pub(crate) fn take_number<'a>(
    url: &'a str,
    name: &str,
) -> Result<(Cow<'a, str>, Option<u16>), Error> {
    let Some((address, query)) = url.split_once('?') else {
        return Ok((url.into(), None));
    };
    let (own, others): (Vec<_>, Vec<_>) = query
        .split('&')
        .partition(|part| part.split('=').next() == Some(name));
    let number = match own.as_slice() {
        [] => return Ok((url.into(), None)),
        [one] => one
            .split_once('=')
            .and_then(|(_, value)| value.parse().ok()),
        _ => None,
    };
    let number = number.ok_or_else(|| {
        Error::invalid(format!(
            "`{name}` takes one number in a URL, as in redis://host:port?{name}=1"
        ))
    })?;
    let url = match others.as_slice() {
        [] => address.to_owned(),
        others => format!("{address}?{}", others.join("&")),
    };
    Ok((url.into(), Some(number)))
}

/// Parses a query whose parameters must all be known and given once.
///
/// An unknown parameter is an error, because the setting would silently not apply.
///
/// # Errors
///
/// `takes` lists the known parameters for the message. The message repeats no part of the query,
/// because the query may hold passwords.
pub(crate) fn known<'a>(
    query: &'a str,
    names: &[&str],
    takes: &str,
) -> Result<Vec<(&'a str, &'a str)>, Error> {
    let mut found: Vec<(&str, &str)> = Vec::new();
    for part in query.split('&').filter(|part| !part.is_empty()) {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        let again = found.iter().any(|(other, _)| *other == name);
        if again || !names.contains(&name) {
            let what = if again {
                "is given twice"
            } else {
                "is unknown"
            };
            return Err(Error::invalid(format!(
                "a parameter of the URL {what}; {takes}"
            )));
        }
        found.push((name, value));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    #[test]
    fn a_parameter_is_taken_out_of_its_url() {
        for (url, left, number) in [
            ("redis://a/0", "redis://a/0", None),
            ("redis://a?acks=2", "redis://a", Some(2)),
            (
                "redis://a/0?protocol=resp3&acks=0",
                "redis://a/0?protocol=resp3",
                Some(0),
            ),
            ("unix:///x?acks=1&db=3", "unix:///x?db=3", Some(1)),
            ("redis://a?backs=2", "redis://a?backs=2", None),
        ] {
            let taken = take_number(url, "acks").unwrap();
            assert_eq!(taken, (left.into(), number), "{url}");
        }
    }

    #[test]
    fn a_parameter_that_is_no_number_is_refused_without_its_url() {
        for url in [
            "redis://u:sesame@a?acks",
            "redis://u:sesame@a?acks=",
            "redis://u:sesame@a?acks=all",
            "redis://u:sesame@a?acks=-1",
            "redis://u:sesame@a?acks=1&acks=2",
        ] {
            let error = take_number(url, "acks").unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid, "{url}");
            assert!(!error.to_string().contains("sesame"));
        }
    }
}
