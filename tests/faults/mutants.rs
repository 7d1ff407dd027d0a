//! Small changes of the Lua scripts, each of which a test should notice.

use std::fs;
use std::path::Path;

use crate::simulate::SCRIPTS;

/// A changed script.
pub(crate) struct Mutant {
    /// The file, the line and the change.
    pub(crate) name: String,
    /// The path of the file from the root of the workspace.
    pub(crate) file: String,
    pub(crate) content: String,
}

impl Mutant {
    /// Returns the topologies whose servers run the script.
    pub(crate) fn topologies(&self) -> &'static str {
        let name = self.file.trim_start_matches(SCRIPTS);
        match name.trim_end_matches(".lua") {
            "node_vote" | "propose" | "propose_first" | "propose_share" | "register_node"
            | "set_aside" | "share_value" | "withdraw" | "withdraw_first" | "withdraw_share" => {
                "redlock"
            }
            "cluster" | "delete_owned" | "extend_share_part" | "free_shared" | "raise"
            | "remove_share" => "cluster",
            _ => "one",
        }
    }
}

/// Words and the words that take their places.
const SWAPS: [(&str, &str); 21] = [
    ("redis.call(", "redis.pcall("),
    ("redis.pcall(", "redis.call("),
    (" == ", " ~= "),
    (" ~= ", " == "),
    (" < ", " <= "),
    (" <= ", " < "),
    (" > ", " >= "),
    (" >= ", " > "),
    (" and ", " or "),
    (" or ", " and "),
    (" + ", " - "),
    (" - ", " + "),
    ("math.max(", "math.min("),
    ("math.min(", "math.max("),
    ("true", "false"),
    ("false", "true"),
    ("not ", ""),
    ("'NX', ", ""),
    (", 'NX'", ""),
    (", 'XX'", ""),
    (", 'WITHSCORES'", ""),
];

/// Returns all changes of the scripts in a folder.
pub(crate) fn of_scripts(folder: &Path) -> Result<Vec<Mutant>, String> {
    let wrong = |error: std::io::Error| format!("{}: {error}", folder.display());
    let files = fs::read_dir(folder).map_err(wrong)?;
    let paths = files.map(|file| file.map(|file| file.path()));
    let mut paths: Vec<_> = paths.collect::<Result<_, _>>().map_err(wrong)?;
    paths.sort();
    let mut mutants = Vec::new();
    for path in paths {
        let name = path.file_name().and_then(|name| name.to_str());
        let name = name.ok_or("a script's name is not UTF-8")?.to_owned();
        let source = fs::read_to_string(&path).map_err(wrong)?;
        of_a_script(&name, &source, &mut mutants);
    }
    Ok(mutants)
}

fn of_a_script(name: &str, source: &str, mutants: &mut Vec<Mutant>) {
    let lines: Vec<&str> = source.lines().collect();
    for (number, line) in lines.iter().enumerate() {
        let code = line.split("--").next().expect("a first part");
        for (change, becomes) in changes(code) {
            let mut changed = lines.clone();
            changed[number] = &becomes;
            mutants.push(Mutant {
                name: format!("{name}:{}: {change}", number + 1),
                file: format!("{SCRIPTS}{name}"),
                content: changed.join("\n") + "\n",
            });
        }
    }
}

/// Returns the changes of a line: what each does, and the line that it makes.
fn changes(code: &str) -> Vec<(String, String)> {
    let mut changes = Vec::new();
    let text = code.trim();
    if is_statement(text) {
        changes.push((format!("without `{text}`"), String::new()));
    }
    for begin in ["if ", "elseif ", "while "] {
        let condition = code.find(begin).filter(|at| code[..*at].trim().is_empty());
        let end = code.find(" then").or_else(|| code.find(" do"));
        if let (Some(at), Some(end)) = (condition, end) {
            let (start, condition) = (&code[..at + begin.len()], &code[at + begin.len()..end]);
            let negated = format!("{start}not ({condition}){}", &code[end..]);
            changes.push((format!("not ({condition})"), negated));
        }
    }
    for (word, other) in SWAPS {
        for (at, _) in code
            .match_indices(word)
            .filter(|(at, _)| is_outside(code, word, *at))
        {
            let (before, after) = (&code[..at], &code[at + word.len()..]);
            let what = format!("`{}` for `{}` at {}", other.trim(), word.trim(), at + 1);
            changes.push((what, format!("{before}{other}{after}")));
        }
    }
    for (at, digits) in numbers(code) {
        let number: i64 = digits.parse().expect("digits");
        for other in [number - 1, number + 1] {
            let (before, after) = (&code[..at], &code[at + digits.len()..]);
            let what = format!("{other} for {digits} at {}", at + 1);
            changes.push((what, format!("{before}{other}{after}")));
        }
    }
    changes
}

/// Returns whether a line is one statement that can be left out.
///
/// A line that defines a name is none, because each use of the name would be an error.
fn is_statement(text: &str) -> bool {
    let is_call = text.ends_with(')') && !text.starts_with("local ");
    let sets = text.split_once(" = ").is_some_and(|(name, _)| {
        !name.starts_with("local ") && !name.contains(['(', '{', ' ']) || name.contains(", ")
    });
    let is_whole = text.starts_with("if ") && text.ends_with(" end");
    let begins = [
        "elseif ",
        "else",
        "for ",
        "while ",
        "function ",
        "local ",
        "}",
        ")",
    ];
    let is_end = text == "end" || text.starts_with("end)") || text.starts_with("end,");
    let is_part = is_end || begins.iter().any(|begin| text.starts_with(begin));
    let is_balanced = text.matches('(').count() == text.matches(')').count()
        && text.matches('{').count() == text.matches('}').count();
    let is_open = text.starts_with("if ") && !is_whole;
    let returns = text.starts_with("return");
    (is_call || sets || is_whole || returns) && !is_part && !is_open && is_balanced
}

/// Returns whether a word of the code begins outside of quotes, or has quotes itself, and is not part of a longer word.
fn is_outside(code: &str, word: &str, at: usize) -> bool {
    let before = code[..at].chars().next_back();
    let is_part = word.starts_with(char::is_alphabetic) && before.is_some_and(is_of_a_word);
    !is_quoted(code, at) && !is_part
}

/// Returns the whole numbers of the code and their places.
fn numbers(code: &str) -> Vec<(usize, &str)> {
    let mut numbers = Vec::new();
    let mut at = 0;
    while let Some(start) = code[at..].find(|one: char| one.is_ascii_digit()) {
        let start = at + start;
        let length = code[start..].find(|one: char| !one.is_ascii_digit());
        let end = length.map_or(code.len(), |length| start + length);
        let before = code[..start].chars().next_back();
        let is_part = before.is_some_and(|one| is_of_a_word(one) || one == '.')
            || code[end..].starts_with(|one: char| is_of_a_word(one) || one == '.');
        if !is_part && !is_quoted(code, start) {
            numbers.push((start, &code[start..end]));
        }
        at = end;
    }
    numbers
}

fn is_quoted(code: &str, at: usize) -> bool {
    !code[..at].matches('\'').count().is_multiple_of(2)
}

fn is_of_a_word(one: char) -> bool {
    one.is_alphanumeric() || one == '_'
}
