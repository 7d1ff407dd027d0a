//! Patterns of keys, channels and settings: `*`, `?`, `[…]` and `\`.

pub(super) fn matches(pattern: &[u8], text: &[u8]) -> bool {
    match (pattern, text) {
        ([], _) => text.is_empty(),
        ([b'*', rest @ ..], _) => (0..=text.len()).any(|from| matches(rest, &text[from..])),
        ([b'?', rest @ ..], [_, text @ ..]) => matches(rest, text),
        ([b'[', set @ ..], [byte, text @ ..]) => {
            let (is_inside, rest) = in_set(set, *byte);
            is_inside && matches(rest, text)
        }
        ([b'\\', quoted, rest @ ..], [byte, text @ ..]) => quoted == byte && matches(rest, text),
        ([plain, rest @ ..], [byte, text @ ..]) => plain == byte && matches(rest, text),
        (_, []) => false,
    }
}

/// Returns whether a byte is in a set such as `a-c^]`, and the pattern behind the set.
fn in_set(set: &[u8], byte: u8) -> (bool, &[u8]) {
    let (negated, mut set) = match set {
        [b'^', set @ ..] => (true, set),
        set => (false, set),
    };
    let mut is_inside = false;
    loop {
        match set {
            [] => break,
            [b']', rest @ ..] => {
                set = rest;
                break;
            }
            [b'\\', quoted, rest @ ..] => {
                is_inside |= *quoted == byte;
                set = rest;
            }
            [from, b'-', to, rest @ ..] => {
                is_inside |= (*from.min(to)..=*from.max(to)).contains(&byte);
                set = rest;
            }
            [plain, rest @ ..] => {
                is_inside |= *plain == byte;
                set = rest;
            }
        }
    }
    (is_inside != negated, set)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_those_of_redis() {
        for (pattern, good, bad) in [
            ("lockkit:*", "lockkit:a", "lockki"),
            ("*", "", ""),
            ("a?c", "abc", "ac"),
            ("[a-c]x", "bx", "dx"),
            ("[^a]x", "bx", "ax"),
            ("\\*", "*", "a"),
            ("*a*b*", "xaxbx", "xbxax"),
        ] {
            assert!(matches(pattern.as_bytes(), good.as_bytes()), "{pattern}");
            let is_all = pattern == "*";
            assert_eq!(
                matches(pattern.as_bytes(), bad.as_bytes()),
                is_all,
                "{pattern}"
            );
        }
    }
}
