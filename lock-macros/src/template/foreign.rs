//! Finds placeholders of other languages: `{uid}`, `%s`, `:uid`.
//!
//! In a template they are plain text, so every call would acquire the same lock. A name between
//! separators (`order:uid`), a hash tag that is not a parameter (`{tag}`) and `100%` are ordinary text.

use super::Makes;

/// The names that a placeholder of another language may contain.
pub(crate) enum KnownNames<'a> {
    /// The parameters of the function.
    Are {
        params: &'a [String],
        has_self: bool,
    },
    /// Any name, because `lock_key!` does not see the names in scope.
    Unknown,
}

#[derive(Debug, PartialEq)]
pub(crate) struct ForeignPlaceholder {
    /// The placeholder as written.
    pub(crate) written: String,
    /// The name in it, if there is one.
    pub(crate) value: Option<String>,
}

impl ForeignPlaceholder {
    /// Returns the error message; `alone` means that the template has no other placeholder.
    pub(crate) fn problem(&self, makes: Makes, alone: bool) -> String {
        let (place, effect) = match (makes, alone) {
            (Makes::Key, true) => ("a key", "so every call would acquire the same lock"),
            (Makes::Key, false) => ("a key", "the same for every call"),
            (Makes::Fingerprint, _) => ("a fingerprint", "the same for every call"),
        };
        let advice = match &self.value {
            Some(value) => format!("write `<{value}>`"),
            None => "write a name between angle brackets, as in `<id>`".to_owned(),
        };
        format!(
            "`{}` is plain text in {place}, {effect}; {advice}",
            self.written
        )
    }
}

/// Stands for a placeholder of the template between two texts. It counts as a part of a word.
pub(crate) const PLACEHOLDER: &str = "\0";

/// `text` is the whole template, with [`PLACEHOLDER`] for each placeholder.
pub(crate) fn find(text: &str, names: &KnownNames<'_>) -> Option<ForeignPlaceholder> {
    let finder = Finder { text, names };
    text.char_indices().find_map(|(at, c)| finder.at(at, c))
}

struct Finder<'a> {
    text: &'a str,
    names: &'a KnownNames<'a>,
}

impl Finder<'_> {
    fn at(&self, at: usize, c: char) -> Option<ForeignPlaceholder> {
        let before = self.text[..at].chars().next_back();
        let rest = &self.text[at + c.len_utf8()..];
        match c {
            '{' => self.bracketed(at, '}').or_else(|| self.nameless_braces(at)),
            '(' => self.bracketed(at, ')').filter(|_| self.knows_names()),
            '[' => self.bracketed(at, ']').filter(|_| self.knows_names()),
            '$' => self.named(at, rest).or_else(|| self.positional(at, rest)),
            '#' => self.named(at, rest).filter(|_| self.knows_names()),
            '%' if begins(before) => self
                .named(at, rest)
                .filter(|_| self.knows_names())
                .or_else(|| self.conversion(at, rest)),
            '@' | '&' | '*' | '\'' | '`' | '"' | '|' if begins(before) => {
                self.named(at, rest).filter(|_| self.knows_names())
            }
            // Routes have `/:uid`, and queries have `::uid`.
            ':' if matches!(before, None | Some(':' | '/')) => {
                self.named(at, rest).filter(|_| self.knows_names())
            }
            // `self.` has no other meaning in a key.
            's' if begins(before) && path(&self.text[at..]).starts_with("self.") => {
                let path = path(&self.text[at..]);
                (self.knows_names() && self.is_name(path)).then(|| found(path, path))
            }
            _ => None,
        }
    }

    fn knows_names(&self) -> bool {
        matches!(self.names, KnownNames::Are { .. })
    }

    fn has_placeholder(&self) -> bool {
        self.text.contains(PLACEHOLDER)
    }

    /// Returns whether the path begins with the name of a parameter.
    fn is_name(&self, path: &str) -> bool {
        let root = path.split('.').next().unwrap_or(path);
        match self.names {
            KnownNames::Are { params, has_self } => {
                (*has_self && root == "self" && path != root)
                    || params.iter().any(|param| param == root)
            }
            KnownNames::Unknown => {
                !self.has_placeholder() && root.starts_with(|c: char| c == '_' || c.is_lowercase())
            }
        }
    }

    /// Finds a mark and a name: `$uid`, `%uid%`.
    fn named(&self, at: usize, rest: &str) -> Option<ForeignPlaceholder> {
        let path = path(rest);
        if path.is_empty() || !self.is_name(path) {
            return None;
        }
        let mark = self.text[at..].chars().next()?;
        let end = at + mark.len_utf8() + path.len();
        let closed = mark != ':' && self.text[end..].starts_with(mark);
        let end = end + usize::from(closed) * mark.len_utf8();
        Some(found(&self.text[at..end], path))
    }

    /// Finds names in brackets: `{uid}`, `{uid:?}`, `{{uid}}`, `${uid}`, `#{uid}`, `(uid, cart)`.
    fn bracketed(&self, at: usize, closing: char) -> Option<ForeignPlaceholder> {
        let inside = &self.text[at + 1..];
        let length = inside.find(closing)?;
        let inside = &inside[..length];
        let names = inside.split([',', ';']).map(|part| {
            let part = part.trim_start_matches([' ', '$', '#', '@', '%', '&', '*', '{', '\'', '"']);
            let path = path(part);
            let after = part[path.len()..].trim_start();
            // A name in braces may have a format. Prose in parentheses is ordinary text.
            let ends = after.is_empty() || closing == '}' || after.starts_with(['\'', '"', '(']);
            if ends { path } else { "" }
        });
        let path = names
            .into_iter()
            .find(|path| !path.is_empty() && self.is_name(path))?;
        Some(found(self.around(at, at + 1 + length + 1), path))
    }

    /// Finds `{}` and `{:?}`, and `{0}` if there are enough parameters and no other placeholder.
    fn nameless_braces(&self, at: usize) -> Option<ForeignPlaceholder> {
        let inside = &self.text[at + 1..];
        let length = inside.find('}')?;
        let (value, _) = inside[..length]
            .split_once(':')
            .unwrap_or((&inside[..length], ""));
        let value = value.trim();
        let is_nameless = value.is_empty() || self.is_position(value, 0);
        is_nameless.then(|| ForeignPlaceholder {
            written: self.around(at, at + 1 + length + 1).to_owned(),
            value: match value.parse() {
                Ok(index) => self.param(index),
                Err(_) => self.param(0),
            },
        })
    }

    /// Finds `$1`, as in a shell or SQL.
    fn positional(&self, at: usize, rest: &str) -> Option<ForeignPlaceholder> {
        let digits = &rest[..rest
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(rest.len())];
        self.is_position(digits, 1)
            .then(|| ForeignPlaceholder {
                written: format!("${digits}"),
                value: digits
                    .parse()
                    .ok()
                    .and_then(|position: usize| self.param(position - 1)),
            })
            .filter(|_| begins(self.text[..at].chars().next_back()))
    }

    /// Finds `%s` and `%05d`, as in C.
    fn conversion(&self, at: usize, rest: &str) -> Option<ForeignPlaceholder> {
        let after = rest.trim_start_matches(|c: char| c.is_ascii_digit() || "-+.#".contains(c));
        let after = after.trim_start_matches('l');
        let end = self.text.len() - after.len() + after.chars().next().map_or(0, char::len_utf8);
        let is_conversion = after.starts_with(['s', 'd', 'i', 'u', 'x', 'v', 'f', 'q']);
        (is_conversion && ends(&self.text[end..]) && self.has_any()).then(|| ForeignPlaceholder {
            written: self.text[at..end].to_owned(),
            value: self.param(0),
        })
    }

    /// Returns whether the function has a value for a placeholder.
    fn has_any(&self) -> bool {
        match self.names {
            KnownNames::Are { params, has_self } => *has_self || !params.is_empty(),
            KnownNames::Unknown => true,
        }
    }

    /// Returns whether the digits number a parameter, in a template without a placeholder.
    fn is_position(&self, digits: &str, first: usize) -> bool {
        let Ok(position) = digits.parse::<usize>() else {
            return false;
        };
        let last = match self.names {
            KnownNames::Are { params, .. } => params.len(),
            KnownNames::Unknown => 9,
        };
        !self.has_placeholder() && digits.len() == 1 && (first..first + last).contains(&position)
    }

    fn param(&self, index: usize) -> Option<String> {
        match self.names {
            KnownNames::Are { params, .. } => params.get(index).cloned(),
            KnownNames::Unknown => None,
        }
    }

    /// Returns the bracket with its marks on both sides.
    fn around(&self, start: usize, end: usize) -> &str {
        let before = self.text[..start].chars().next_back();
        let mark = before.filter(|c| "$#%@\\&".contains(*c));
        let double = self.text[start..].starts_with("{{") && self.text[end..].starts_with('}');
        &self.text[start - mark.map_or(0, char::len_utf8)..end + usize::from(double)]
    }
}

fn found(written: &str, value: &str) -> ForeignPlaceholder {
    ForeignPlaceholder {
        written: written.to_owned(),
        value: Some(value.to_owned()),
    }
}

/// Returns whether a word or a mark may begin after this character.
fn begins(before: Option<char>) -> bool {
    before.is_none_or(|c| !is_word(c) && !")]}%".contains(c))
}

fn ends(rest: &str) -> bool {
    !rest.starts_with(is_word)
}

fn is_word(c: char) -> bool {
    c == '_' || c == '\0' || c.is_alphanumeric()
}

/// Returns the name, with its fields, at the beginning of `text`.
fn path(text: &str) -> &str {
    let end = text.find(|c: char| !(c == '_' || c == '.' || c.is_alphanumeric()));
    let path = text[..end.unwrap_or(text.len())].trim_end_matches('.');
    match path.starts_with(|c: char| c.is_ascii_digit())
        || text[path.len()..].starts_with(PLACEHOLDER)
    {
        true => "",
        false => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Option<(String, Option<String>)> {
        let params = ["uid", "cart", "off"].map(str::to_owned);
        let names = KnownNames::Are {
            params: &params,
            has_self: true,
        };
        find(text, &names).map(|found| (found.written, found.value))
    }

    fn in_lock_key(text: &str) -> Option<String> {
        find(text, &KnownNames::Unknown).map(|found| found.written)
    }

    #[test]
    fn a_parameter_is_found_as_other_languages_write_it() {
        for (text, written) in [
            ("order:{uid}", "{uid}"),
            ("order:{uid:?}", "{uid:?}"),
            ("order:{uid + 1}", "{uid + 1}"),
            ("order:{{uid}}", "{{uid}}"),
            ("order:${uid}", "${uid}"),
            ("order:#{uid}", "#{uid}"),
            ("order:%{uid}", "%{uid}"),
            ("order:\\(uid)", "\\(uid)"),
            ("order:%(uid)s", "%(uid)"),
            ("order:$uid", "$uid"),
            ("order#uid", "#uid"),
            ("order:%uid%", "%uid%"),
            ("order:%uid", "%uid"),
            ("order:@uid", "@uid"),
            ("order:&uid", "&uid"),
            ("order:*uid", "*uid"),
            ("order:'uid'", "'uid'"),
            ("order::uid", ":uid"),
            ("/order/:uid", ":uid"),
            (":uid", ":uid"),
            ("order:[uid]", "[uid]"),
            ("order:(uid)", "(uid)"),
            ("order:[0, uid]", "[0, uid]"),
            ("\0:{uid}", "{uid}"),
        ] {
            let expected = Some((written.to_owned(), Some("uid".to_owned())));
            assert_eq!(of(text), expected, "{text}");
        }
        for (text, value) in [
            ("order:{cart.id}", "cart.id"),
            ("order:{self.id}", "self.id"),
            ("order:self.id", "self.id"),
            ("order:(self.id)", "self.id"),
            ("order:[uid]:(cart)", "uid"),
        ] {
            assert_eq!(of(text).unwrap().1.as_deref(), Some(value), "{text}");
        }
    }

    #[test]
    fn a_placeholder_without_a_name_is_found() {
        for (text, written, value) in [
            ("order:{}", "{}", Some("uid")),
            ("order:{:?}", "{:?}", Some("uid")),
            ("order:{:04}", "{:04}", Some("uid")),
            ("order:{0}", "{0}", Some("uid")),
            ("order:{1}", "{1}", Some("cart")),
            ("order:{0:?}", "{0:?}", Some("uid")),
            ("order:$1", "$1", Some("uid")),
            ("order:%s", "%s", Some("uid")),
            ("order:%d:x", "%d", Some("uid")),
            ("order:%05d", "%05d", Some("uid")),
            ("order:%lu", "%lu", Some("uid")),
            ("order:\0:{}", "{}", Some("uid")),
        ] {
            let expected = Some((written.to_owned(), value.map(str::to_owned)));
            assert_eq!(of(text), expected, "{text}");
        }
    }

    #[test]
    fn ordinary_text_is_none() {
        for text in [
            "order",
            "order:uid",
            "uid",
            "rebuild-cart",
            "a.uid.b",
            "order::x",
            "jobs::nightly",
            "{tag}:order",
            "{shop-1}",
            "{7}:order",
            "{0}:\0",
            "100%",
            "100%off",
            "50%d",
            "5%-s-x",
            "$5:cheap",
            "user@uid",
            "cart&uid",
            "(of all uid)",
            "[x]",
            "self",
            "itself.id",
            "\0:uid",
            "{\0}:uid",
            "{\0}::x",
            "user:{\0}",
            "[\0]",
            "(uid\0)",
            "{a",
            "a}b",
            "%",
            "größe:%ä",
        ] {
            assert_eq!(of(text), None, "{text}");
        }
    }

    #[test]
    fn without_known_names_only_unmistakable_placeholders_are_found() {
        for text in [
            "{uid}", "a:${uid}", "a:$uid", "a:{}", "a:{0}", "a:$1", "a:%s",
        ] {
            assert!(in_lock_key(text).is_some(), "{text}");
        }
        for text in [
            "a::x", "a:@x", "(x)", "[x]", "{x}:\0", "{7a}:x", "{A}:x", "self.x", "100%",
        ] {
            assert_eq!(in_lock_key(text), None, "{text}");
        }
    }
}
