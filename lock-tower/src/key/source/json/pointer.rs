//! JSON pointers (RFC 6901).

use std::fmt;

use super::tree::Json;

/// A pointer to a value in a document, such as `/order/sku`.
#[derive(Clone, Debug)]
pub(crate) struct Pointer {
    written: String,
    steps: Vec<String>,
}

impl Pointer {
    /// Parses a pointer, and returns `None` if it is malformed.
    pub(crate) fn parse(written: &str) -> Option<Self> {
        let steps = written.strip_prefix('/')?.split('/').map(unescaped);
        Some(Self {
            steps: steps.collect::<Option<_>>()?,
            written: written.to_owned(),
        })
    }

    pub(super) fn find<'a>(&self, document: &'a Json<'a>) -> Option<&'a Json<'a>> {
        self.steps
            .iter()
            .try_fold(document, |value, step| match value {
                Json::Object(members) => members.get(step.as_str()),
                Json::List(items) => items.get(index(step)?),
                _ => None,
            })
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written)
    }
}

/// Replaces `~1` by a slash and `~0` by a tilde.
fn unescaped(step: &str) -> Option<String> {
    let mut pieces = step.split('~');
    let mut text = pieces.next()?.to_owned();
    for piece in pieces {
        let (escaped, rest) = match piece.as_bytes().first()? {
            b'0' => ('~', &piece[1..]),
            b'1' => ('/', &piece[1..]),
            _ => return None,
        };
        text.push(escaped);
        text.push_str(rest);
    }
    Some(text)
}

/// Parses an index without a sign and without leading zeros.
fn index(step: &str) -> Option<usize> {
    let plain = step == "0" || !step.starts_with(['0', '+']);
    step.parse().ok().filter(|_| plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pointer_begins_with_a_slash_and_escapes_by_the_rules() {
        let steps = |written: &str| Pointer::parse(written).map(|pointer| pointer.steps);
        assert_eq!(steps("/a/b"), Some(vec!["a".into(), "b".into()]));
        assert_eq!(steps("/"), Some(vec![String::new()]));
        assert_eq!(steps("/~01~10"), Some(vec!["~1/0".into()]));
        for no_pointer in ["", "a", "a/b", "/~", "/~2", "/a~"] {
            assert_eq!(steps(no_pointer), None, "{no_pointer}");
        }
    }
}
