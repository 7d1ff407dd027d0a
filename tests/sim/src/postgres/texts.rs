//! The statements of the store, by their texts: `statements.sql` has each of them, or in what it differs from another one. White
//! space does not count.

use std::sync::LazyLock;

/// The statements that the store sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Session,
    Persistence,
    History,
    Recorded,
    Create,
    Raise,
    Clock,
    Keeping,
    Ending,
    Together,
    Read,
    Notify,
    Tell,
    Hears,
    Ping,
    List,
    ListBehind,
    Sweep,
    Findings,
    Listen,
}

/// Each kind with its name in the file.
const KINDS: [(&str, Kind); 20] = [
    ("session", Kind::Session),
    ("persistence", Kind::Persistence),
    ("history", Kind::History),
    ("recorded", Kind::Recorded),
    ("create", Kind::Create),
    ("raise", Kind::Raise),
    ("clock", Kind::Clock),
    ("keeping", Kind::Keeping),
    ("ending", Kind::Ending),
    ("together", Kind::Together),
    ("read", Kind::Read),
    ("notify", Kind::Notify),
    ("tell", Kind::Tell),
    ("hears", Kind::Hears),
    ("ping", Kind::Ping),
    ("list", Kind::List),
    ("list behind", Kind::ListBehind),
    ("sweep", Kind::Sweep),
    ("findings", Kind::Findings),
    ("listen", Kind::Listen),
];

/// A statement, with what stands in the holes of its text.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Statement {
    pub(super) kind: Kind,
    pub(super) holes: Vec<String>,
}

/// The parts of each text, between which there are holes.
static TEXTS: LazyLock<Vec<(Kind, Vec<String>)>> = LazyLock::new(|| {
    let sections = include_str!("statements.sql").split("-- ").skip(1);
    let mut texts: Vec<(&str, String)> = Vec::new();
    for section in sections {
        let (head, body) = section.split_once('\n').expect("a name and a text");
        let (name, text) = match head.split_once(" = ") {
            Some((name, other)) => {
                let other = texts.iter().find(|it| it.0 == other);
                (name, changed(&other.expect("an earlier text").1, body))
            }
            None => (head, packed(body)),
        };
        texts.push((name, text));
    }
    let read = |(name, text): (&str, String)| {
        let kind = KINDS.iter().find(|it| it.0 == name).expect("a kind").1;
        (kind, text.split("{}").map(str::to_owned).collect())
    };
    texts.into_iter().map(read).collect()
});

/// A text that differs from another one in a few places, each in a line of its own.
fn changed(text: &str, changes: &str) -> String {
    let lines = changes.lines().filter(|line| !line.is_empty());
    lines.fold(text.to_owned(), |text, line| {
        let (from, to) = line.split_once(" => ").expect("a change");
        let from = packed(from);
        assert!(text.contains(&from), "{line}");
        text.replace(&from, &packed(to))
    })
}

fn packed(text: &str) -> String {
    text.split_whitespace().collect()
}

impl Statement {
    /// Finds the statement of a text; `None`: there is none.
    pub(super) fn read(text: &str) -> Option<Self> {
        let text = packed(text);
        let mut texts = TEXTS.iter();
        texts.find_map(|(kind, parts)| {
            let holes = fits(&text, parts)?;
            Some(Self { kind: *kind, holes })
        })
    }
}

/// Returns what stands in the holes between the parts, if the text fits.
fn fits(text: &str, parts: &[String]) -> Option<Vec<String>> {
    let (first, rest) = parts.split_first()?;
    let mut text = text.strip_prefix(first.as_str())?;
    let mut holes = Vec::new();
    for part in rest {
        let (hole, after) = text.split_once(part.as_str())?;
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b":/-_".contains(&byte);
        if !hole.bytes().all(is_plain) {
            return None;
        }
        holes.push(hole.to_owned());
        text = after;
    }
    text.is_empty().then_some(holes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_a_text_and_another_text_is_unknown() {
        for (name, kind) in KINDS {
            assert!(TEXTS.iter().any(|it| it.0 == kind), "{name}");
        }
        let read = |text: &str| Statement::read(text).map(|it| (it.kind, it.holes));
        let now = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint";
        assert_eq!(read(now), Some((Kind::Clock, Vec::new())));
        assert_eq!(read(&now.replace("1000000", "1000")), None);
        assert_eq!(read(&format!("{now}, 1")), None);
        assert_eq!(read("SELECT 1"), None);
    }
}
