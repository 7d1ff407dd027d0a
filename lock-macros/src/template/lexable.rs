//! Decides whether a text can be passed to the lexer of the compiler.
//!
//! The parser of templates finds the end of a placeholder by trial. The lexer of the compiler reports
//! some malformed tokens as errors of its own, at places that mean nothing to the user. This module
//! therefore checks the text first. Text that passes causes no error of the lexer, and text that does not
//! pass is not an expression that a placeholder accepts.

/// Returns whether `text` consists of complete tokens with balanced brackets.
pub(crate) fn is_lexable(text: &str) -> bool {
    let mut rest = text.chars().peekable();
    let mut open = Vec::new();
    let mut previous = ' ';
    while let Some(c) = rest.next() {
        let fine = match c {
            '(' => push(&mut open, ')'),
            '[' => push(&mut open, ']'),
            '{' => push(&mut open, '}'),
            ')' | ']' | '}' => open.pop() == Some(c),
            // A quote after a word begins a byte string, a raw string or an unknown prefix.
            '"' => !is_word(previous) && string(&mut rest),
            '\'' => !is_word(previous) && character(&mut rest),
            '/' => !matches!(rest.peek(), Some('/' | '*')),
            '0'..='9' if !is_word(previous) => number(c, &mut rest),
            '#' => previous == 'r' && rest.peek().is_some_and(|next| next.is_ascii_lowercase()),
            _ => {
                c == '_'
                    || c.is_alphanumeric()
                    || c.is_whitespace()
                    || ".,:;+-*%&|^<>=!?".contains(c)
            }
        };
        if !fine {
            return false;
        }
        previous = c;
    }
    open.is_empty()
}

type Rest<'a> = std::iter::Peekable<std::str::Chars<'a>>;

fn push(open: &mut Vec<char>, closing: char) -> bool {
    open.push(closing);
    true
}

fn is_word(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

/// Reads to the end of a string, and accepts only the simplest escapes.
fn string(rest: &mut Rest<'_>) -> bool {
    while let Some(c) = rest.next() {
        match c {
            '"' => return !rest.peek().is_some_and(|next| is_word(*next)),
            '\\' if !escape(rest) => return false,
            '\r' => return false,
            _ => {}
        }
    }
    false
}

fn character(rest: &mut Rest<'_>) -> bool {
    let complete = match rest.next() {
        Some('\\') => escape(rest),
        Some('\'' | '\n' | '\r' | '\t') | None => false,
        Some(_) => true,
    };
    complete && rest.next() == Some('\'') && !rest.peek().is_some_and(|next| is_word(*next))
}

fn escape(rest: &mut Rest<'_>) -> bool {
    matches!(rest.next(), Some('\\' | '"' | '\'' | 'n' | 'r' | 't' | '0'))
}

/// Reads a decimal or hexadecimal integer with an optional type.
fn number(first: char, rest: &mut Rest<'_>) -> bool {
    let mut word = String::from(first);
    while let Some(c) = rest.next_if(|c| is_word(*c)) {
        word.push(c);
    }
    let is_digits = |text: &str| {
        text.starts_with(|c: char| c.is_ascii_digit())
            && text.chars().all(|c| c == '_' || c.is_ascii_digit())
    };
    if let Some(hex) = word.strip_prefix("0x") {
        return hex.starts_with(|c: char| c.is_ascii_hexdigit())
            && hex.chars().all(|c| c == '_' || c.is_ascii_hexdigit());
    }
    let digits = [
        "u8", "u16", "u32", "u64", "u128", "usize", "i8", "i16", "i32", "i64", "i128", "isize",
    ]
    .iter()
    .find_map(|suffix| word.strip_suffix(suffix))
    .unwrap_or(&word);
    is_digits(digits)
}

#[cfg(test)]
mod tests {
    use super::is_lexable;

    #[test]
    fn the_expressions_of_placeholders_pass() {
        for text in [
            "uid",
            "line.sku",
            "self.cart.lines[0].sku",
            "t.0.1",
            "f(\"a>b\", 'x', '\\'')",
            "a.get::<u8>()",
            "r#type",
            "uid % 16u64",
            "0xff",
            "größe",
            "x as u32",
            "\"a\\\"b\"",
        ] {
            assert!(is_lexable(text), "{text}");
        }
    }

    #[test]
    fn text_that_the_lexer_would_report_does_not_pass() {
        for text in [
            "f(",
            "f)",
            "(]",
            "\"open",
            "'a",
            "b\"bytes\"",
            "r#\"raw\"#",
            "a//b",
            "a/*b",
            "1e",
            "0x",
            "12abc",
            "a$b",
            "a@b",
            "a`b",
            "a\\b",
            "#",
            "\"\\x\"",
            "''",
            "\"a\"b",
        ] {
            assert!(!is_lexable(text), "{text}");
        }
    }
}
