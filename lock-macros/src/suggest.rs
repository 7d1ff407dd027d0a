//! Suggests the nearest of a few known names.

use strsim::osa_distance;

/// Returns the candidate that is closest to `written`, if one is close.
pub(crate) fn nearest<'a>(
    written: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    // A third of the letters may be wrong. A larger distance would be a random guess.
    let allowed = (written.chars().count() / 3).max(1);
    let written = written.to_lowercase();
    candidates
        .into_iter()
        // Two swapped neighbours count as one edit.
        .map(|candidate| (osa_distance(&written, &candidate.to_lowercase()), candidate))
        .filter(|(distance, candidate)| *distance <= allowed && *distance < candidate.len())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Joins names as in `` `a`, `b` and `c` ``.
pub(crate) fn list<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let quoted: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    match quoted.as_slice() {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typo_finds_its_name() {
        let names = ["key", "ttl", "max_hold", "cooldown"];
        assert_eq!(nearest("tll", names), Some("ttl"));
        assert_eq!(nearest("maxhold", names), Some("max_hold"));
        assert_eq!(nearest("cool_down", names), Some("cooldown"));
        assert_eq!(nearest("KEY", names), Some("key"));
    }

    #[test]
    fn a_foreign_word_finds_nothing() {
        assert_eq!(nearest("banana", ["key", "ttl"]), None);
        assert_eq!(nearest("x", ["y"]), None);
    }

    #[test]
    fn a_list_reads_like_a_sentence() {
        assert_eq!(list(["a"]), "`a`");
        assert_eq!(list(["a", "b", "c"]), "`a`, `b` and `c`");
    }
}
