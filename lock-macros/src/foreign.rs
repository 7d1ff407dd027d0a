//! Placeholders as other languages write them: `{uid}`, `%s`, `:uid`. In the text of a template they
//! are plain text, so every call would take the same lock.
//!
//! Pure: text in, what was found out. Ordinary text stays ordinary: a name between separators
//! (`order:uid`), a hash tag that is no parameter (`{tag}`), `100%`.

/// What a placeholder of another language could name.
pub(crate) enum Names<'a> {
    /// The parameters of the function.
    Are {
        params: &'a [String],
        has_self: bool,
    },
    /// Any name: the text of `lock_key!` does not show what is in scope.
    Unknown,
}

#[derive(Debug, PartialEq)]
pub(crate) struct Foreign {
    /// As it was written.
    pub(crate) written: String,
    /// What it names, if it names anything.
    pub(crate) value: Option<String>,
}

impl Foreign {
    /// The sentence for the user; `alone` if nothing else in the template is a placeholder.
    pub(crate) fn problem(&self, alone: bool) -> String {
        let effect = match alone {
            true => "so every call would take the same lock",
            false => "the same for every call",
        };
        let advice = match &self.value {
            Some(value) => format!("write `<{value}>`"),
            None => "write a name between angle brackets, as in `<id>`".to_owned(),
        };
        format!(
            "`{}` is plain text in a key, {effect}; {advice}",
            self.written
        )
    }
}

/// Stands for a placeholder of ours between two texts. It counts as a part of a word.
pub(crate) const OURS: &str = "\0";

/// `text` is the whole template, with [`OURS`] for each placeholder.
pub(crate) fn find(text: &str, names: &Names<'_>) -> Option<Foreign> {
    let finder = Finder { text, names };
    text.char_indices().find_map(|(at, c)| finder.at(at, c))
}

struct Finder<'a> {
    text: &'a str,
    names: &'a Names<'a>,
}

impl Finder<'_> {
    fn at(&self, at: usize, c: char) -> Option<Foreign> {
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
            // In a route or a query: `/:uid`, and `::uid`.
            ':' if matches!(before, None | Some(':' | '/')) => {
                self.named(at, rest).filter(|_| self.knows_names())
            }
            // Only `self.` has no other meaning.
            's' if begins(before) && path(&self.text[at..]).starts_with("self.") => {
                let path = path(&self.text[at..]);
                (self.knows_names() && self.is_name(path)).then(|| found(path, path))
            }
            _ => None,
        }
    }

    fn knows_names(&self) -> bool {
        matches!(self.names, Names::Are { .. })
    }

    fn has_ours(&self) -> bool {
        self.text.contains(OURS)
    }

    /// Whether the path begins with the name of a parameter.
    fn is_name(&self, path: &str) -> bool {
        let root = path.split('.').next().unwrap_or(path);
        match self.names {
            Names::Are { params, has_self } => {
                (*has_self && root == "self" && path != root)
                    || params.iter().any(|param| param == root)
            }
            Names::Unknown => {
                !self.has_ours() && root.starts_with(|c: char| c == '_' || c.is_lowercase())
            }
        }
    }

    /// A mark and a name: `$uid`, `%uid%`.
    fn named(&self, at: usize, rest: &str) -> Option<Foreign> {
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

    /// `{uid}`, `{uid:?}`, `{{uid}}`, `${uid}`, `#{uid}`, `(uid, cart)`.
    fn bracketed(&self, at: usize, closing: char) -> Option<Foreign> {
        let inside = &self.text[at + 1..];
        let length = inside.find(closing)?;
        let inside = &inside[..length];
        let names = inside.split([',', ';']).map(|part| {
            let part = part.trim_start_matches([' ', '$', '#', '@', '%', '&', '*', '{', '\'', '"']);
            let path = path(part);
            let after = part[path.len()..].trim_start();
            // In braces a name may have a format; prose in parentheses is prose.
            let ends = after.is_empty() || closing == '}' || after.starts_with(['\'', '"', '(']);
            if ends { path } else { "" }
        });
        let path = names
            .into_iter()
            .find(|path| !path.is_empty() && self.is_name(path))?;
        Some(found(self.around(at, at + 1 + length + 1), path))
    }

    /// `{}`, `{:?}`, and `{0}` where there is as much to put in and nothing else in the template.
    fn nameless_braces(&self, at: usize) -> Option<Foreign> {
        let inside = &self.text[at + 1..];
        let length = inside.find('}')?;
        let (value, _) = inside[..length]
            .split_once(':')
            .unwrap_or((&inside[..length], ""));
        let value = value.trim();
        let is_nameless = value.is_empty() || self.is_position(value, 0);
        is_nameless.then(|| Foreign {
            written: self.around(at, at + 1 + length + 1).to_owned(),
            value: match value.parse() {
                Ok(index) => self.param(index),
                Err(_) => self.param(0),
            },
        })
    }

    /// `$1`, as a shell and SQL have it.
    fn positional(&self, at: usize, rest: &str) -> Option<Foreign> {
        let digits = &rest[..rest
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(rest.len())];
        self.is_position(digits, 1)
            .then(|| Foreign {
                written: format!("${digits}"),
                value: digits
                    .parse()
                    .ok()
                    .and_then(|position: usize| self.param(position - 1)),
            })
            .filter(|_| begins(self.text[..at].chars().next_back()))
    }

    /// `%s`, `%05d`, as C has it.
    fn conversion(&self, at: usize, rest: &str) -> Option<Foreign> {
        let after = rest.trim_start_matches(|c: char| c.is_ascii_digit() || "-+.#".contains(c));
        let after = after.trim_start_matches('l');
        let end = self.text.len() - after.len() + after.chars().next().map_or(0, char::len_utf8);
        let is_conversion = after.starts_with(['s', 'd', 'i', 'u', 'x', 'v', 'f', 'q']);
        (is_conversion && ends(&self.text[end..]) && self.has_any()).then(|| Foreign {
            written: self.text[at..end].to_owned(),
            value: self.param(0),
        })
    }

    /// Whether there is anything to put in.
    fn has_any(&self) -> bool {
        match self.names {
            Names::Are { params, has_self } => *has_self || !params.is_empty(),
            Names::Unknown => true,
        }
    }

    /// Whether the digits count a parameter, in a template that names none.
    fn is_position(&self, digits: &str, first: usize) -> bool {
        let Ok(position) = digits.parse::<usize>() else {
            return false;
        };
        let last = match self.names {
            Names::Are { params, .. } => params.len(),
            Names::Unknown => 9,
        };
        !self.has_ours() && digits.len() == 1 && (first..first + last).contains(&position)
    }

    fn param(&self, index: usize) -> Option<String> {
        match self.names {
            Names::Are { params, .. } => params.get(index).cloned(),
            Names::Unknown => None,
        }
    }

    /// The bracket with what belongs to it on both sides.
    fn around(&self, start: usize, end: usize) -> &str {
        let before = self.text[..start].chars().next_back();
        let mark = before.filter(|c| "$#%@\\&".contains(*c));
        let double = self.text[start..].starts_with("{{") && self.text[end..].starts_with('}');
        &self.text[start - mark.map_or(0, char::len_utf8)..end + usize::from(double)]
    }
}

fn found(written: &str, value: &str) -> Foreign {
    Foreign {
        written: written.to_owned(),
        value: Some(value.to_owned()),
    }
}

/// Whether a word or a mark may begin after this character.
fn begins(before: Option<char>) -> bool {
    before.is_none_or(|c| !is_word(c) && !")]}%".contains(c))
}

fn ends(rest: &str) -> bool {
    !rest.starts_with(is_word)
}

fn is_word(c: char) -> bool {
    c == '_' || c == '\0' || c.is_alphanumeric()
}

/// The name, or the name and its fields, that `text` begins with.
fn path(text: &str) -> &str {
    let end = text.find(|c: char| !(c == '_' || c == '.' || c.is_alphanumeric()));
    let path = text[..end.unwrap_or(text.len())].trim_end_matches('.');
    match path.starts_with(|c: char| c.is_ascii_digit()) || text[path.len()..].starts_with(OURS) {
        true => "",
        false => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Option<(String, Option<String>)> {
        let params = ["uid", "cart", "off"].map(str::to_owned);
        let names = Names::Are {
            params: &params,
            has_self: true,
        };
        find(text, &names).map(|found| (found.written, found.value))
    }

    fn in_lock_key(text: &str) -> Option<String> {
        find(text, &Names::Unknown).map(|found| found.written)
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
    fn a_place_without_a_name_is_found() {
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
    fn where_the_names_are_not_known_only_what_is_unmistakable_is_found() {
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
