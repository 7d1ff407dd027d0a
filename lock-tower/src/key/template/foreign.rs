//! Finds placeholders of other languages: `[uid]`, `{}`, `%s`, `${uid}`, `/:id`.
//!
//! In a template they are plain text, so they would be the same for every request. A hash tag
//! (`{tag}`), a name after `:` (`jobs::nightly`), prose in brackets and `100%` are ordinary text.

#[derive(Debug, PartialEq)]
pub(super) struct ForeignPlaceholder<'a> {
    /// The placeholder as written.
    pub(super) written: &'a str,
    /// The name in the placeholder, or an empty string.
    pub(super) name: &'a str,
}

/// Returns the placeholder at the beginning of `rest`; `before` is the character in front of it.
pub(super) fn at(before: Option<char>, rest: &str) -> Option<ForeignPlaceholder<'_>> {
    let found = |opening: &str, name: usize, closing: &str| {
        let start = opening.len();
        let whole = rest.starts_with(opening) && rest[start + name..].starts_with(closing);
        whole.then(|| ForeignPlaceholder {
            written: &rest[..start + name + closing.len()],
            name: &rest[start..start + name],
        })
    };
    let named = |opening: &str, closing: &str| {
        let name = name(rest.strip_prefix(opening)?);
        found(opening, name, closing).filter(|found| !found.name.is_empty())
    };
    let is_apart = before.is_none_or(|c| !is_word(c) && !")]}>%".contains(c));
    let is_whole = |found: &ForeignPlaceholder<'_>| {
        is_apart && !rest[found.written.len()..].starts_with(|c| is_word(c) || c == '<')
    };
    match rest.chars().next()? {
        '{' => named("{{", "}}").or_else(|| nameless_braces(rest)),
        '$' => named("${", "}").or_else(|| named("$", "").filter(is_whole)),
        '#' => named("#{", "}"),
        '%' => named("%{", "}").or_else(|| {
            let conversions = ["%s", "%d", "%i", "%u", "%v"].into_iter();
            let mut found = conversions.filter_map(|conversion| found(conversion, 0, ""));
            found.next().filter(is_whole)
        }),
        '[' => named("[", "]").filter(is_whole),
        '(' => named("(", ")").filter(is_whole),
        ':' => named(":", "").filter(|_| before == Some('/')),
        _ => None,
    }
}

/// Finds `{}`, and placeholders with a format such as `{:?}`.
fn nameless_braces(rest: &str) -> Option<ForeignPlaceholder<'_>> {
    let length = rest.find('}')?;
    let format = &rest[1..length];
    let is_format = |format: &str| {
        format
            .chars()
            .all(|c| c.is_ascii_digit() || "?#xX".contains(c))
    };
    let is_nameless = format.is_empty() || format.strip_prefix(':').is_some_and(is_format);
    is_nameless.then(|| ForeignPlaceholder {
        written: &rest[..=length],
        name: "",
    })
}

/// Returns the length of the name at the beginning of `text`, such as `header.x-user-id`.
fn name(text: &str) -> usize {
    if !text.starts_with(|c: char| c == '_' || c.is_ascii_lowercase()) {
        return 0;
    }
    let end = text.find(|c: char| !(is_word(c) || ".-".contains(c)));
    text[..end.unwrap_or(text.len())]
        .trim_end_matches(['.', '-'])
        .len()
}

fn is_word(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(text: &str) -> Option<(&str, &str)> {
        let mut before = None;
        text.char_indices().find_map(|(position, c)| {
            let found = at(before.replace(c), &text[position..])?;
            Some((found.written, found.name))
        })
    }

    #[test]
    fn a_placeholder_of_another_language_is_found() {
        for (text, found) in [
            ("k:[uid]:<method>", ("[uid]", "uid")),
            ("k:<method>:[uid]", ("[uid]", "uid")),
            ("k-(user.id)", ("(user.id)", "user.id")),
            (
                "[header.x-user-id]",
                ("[header.x-user-id]", "header.x-user-id"),
            ),
            ("k:{}:<method>", ("{}", "")),
            ("k:<method>:{:?}", ("{:?}", "")),
            ("k:{:04}", ("{:04}", "")),
            ("k:{{uid}}", ("{{uid}}", "uid")),
            ("k:%s", ("%s", "")),
            ("<method>:%d:x", ("%d", "")),
            ("k:%{uid}", ("%{uid}", "uid")),
            ("k:${uid}", ("${uid}", "uid")),
            ("k${uid}x", ("${uid}", "uid")),
            ("k:$uid", ("$uid", "uid")),
            ("k:#{uid}", ("#{uid}", "uid")),
            ("/orders/:id", (":id", "id")),
            ("k:/orders/:id/<method>", (":id", "id")),
        ] {
            assert_eq!(first(text), Some(found), "{text}");
        }
    }

    #[test]
    fn ordinary_text_is_none() {
        for text in [
            "submit",
            "submit:uid:<method>",
            "jobs::nightly:<method>",
            ":id",
            "{tag}:<method>",
            "{<header.a>}:x",
            "{shop-1}:<method>",
            "{0}:<method>",
            "{:tag}",
            "a[0]:<method>",
            "[1]:<method>",
            "[EU]:<method>",
            "(all of them):<method>",
            "list[uid]",
            "<method>[uid]",
            "[<method>]",
            "[uid]<method>",
            "(uid",
            "100%",
            "100%off",
            "50%d",
            "%20s",
            "%2d:<method>",
            "%",
            "%ä",
            "$5:<method>",
            "$",
            "US$uid",
            "#1",
            "a{b",
            "a}b",
            "http://:80",
            "größe:[ä]",
        ] {
            assert_eq!(first(text), None, "{text}");
        }
    }
}
