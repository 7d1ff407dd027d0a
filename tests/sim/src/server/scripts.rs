//! `EVAL`, `EVALSHA` and `SCRIPT`, and the commands that scripts call.

use std::cell::RefCell;
use std::collections::BTreeMap;

use super::commands::{self, Found, NO_SCRIPT, WRITE};
use super::numbers::integer;
use super::resp::{Answer, Failure, OK, Reply};
use super::{Bytes, Refusal, Server, lua, parts};

/// The SHA-1 of a script, as hexadecimal digits.
pub(super) type Hash = [u8; 40];

/// The script that runs.
#[derive(Debug, Default)]
pub(super) struct Script {
    /// Whether it has called a command that writes, after which no command is refused.
    has_written: bool,
    /// The keys that the server watches once the script reads any key. `None`: those that it reads.
    pub(super) watched: Option<Vec<Bytes>>,
}

pub(super) fn eval(server: &mut Server, words: &[&[u8]]) -> Answer {
    let keys = count_keys(words)?;
    let hash = server.learn(words[1])?;
    server.run_script(&hash, &words[3..], keys)
}

pub(super) fn eval_known(server: &mut Server, words: &[&[u8]]) -> Answer {
    let keys = count_keys(words)?;
    let hash = words[1].to_ascii_lowercase();
    let known = Hash::try_from(hash).ok();
    let Some(hash) = known.filter(|hash| server.known.contains(hash)) else {
        if let Some(key) = words.get(3).filter(|_| keys > 0) {
            let times = server.not_known.entry(key.to_vec()).or_default();
            times.push(server.micros);
        }
        return Err(server.version.words().no_script.into());
    };
    server.run_script(&hash, &words[3..], keys)
}

fn count_keys(words: &[&[u8]]) -> Result<usize, Failure> {
    let count = integer(words[2])?;
    let Ok(count) = usize::try_from(count) else {
        return Err("ERR Number of keys can't be negative".into());
    };
    if count > words.len() - 3 {
        return Err("ERR Number of keys can't be greater than number of args".into());
    }
    Ok(count)
}

pub(super) fn load(server: &mut Server, words: &[&[u8]]) -> Answer {
    let hash = server.learn(words[2])?;
    Ok(Reply::text(hash))
}

pub(super) fn exist(server: &mut Server, words: &[&[u8]]) -> Answer {
    let known = words[2..].iter().map(|hash| {
        let hash = Hash::try_from(hash.to_ascii_lowercase()).ok();
        let is_known = hash.is_some_and(|hash| server.known.contains(&hash));
        Reply::Int(is_known.into())
    });
    Ok(Reply::Array(known.collect()))
}

pub(super) fn flush(server: &mut Server, words: &[&[u8]]) -> Answer {
    let how = words.get(2).map(|how| how.to_ascii_uppercase());
    match how.as_deref() {
        None | Some(b"SYNC" | b"ASYNC") if words.len() <= 3 => {
            server.forget_scripts();
            Ok(OK)
        }
        _ => Err("ERR SCRIPT FLUSH only support SYNC|ASYNC option".into()),
    }
}

thread_local! {
    /// The names of scripts that were sent before, by a cheaper hash.
    static NAMES: RefCell<BTreeMap<u64, (Bytes, Hash)>> = RefCell::default();
}

fn name_of(source: &[u8]) -> Hash {
    let cheap = crate::world::hash(source);
    let known = NAMES.with_borrow(|names| {
        let (known, name) = names.get(&cheap)?;
        (known == source).then_some(*name)
    });
    known.unwrap_or_else(|| {
        let digits = sha1_smol::Sha1::from(source).digest().to_string();
        let name = Hash::try_from(digits.into_bytes()).expect("40 digits");
        NAMES.with_borrow_mut(|names| names.insert(cheap, (source.to_vec(), name)));
        name
    })
}

impl Server {
    fn learn(&mut self, source: &[u8]) -> Result<Hash, Failure> {
        let hash = name_of(source);
        if !self.known.contains(&hash) {
            match parts::in_place_of(source) {
                None => lua::compile(&hash, source)?,
                Some(changed) => {
                    let compiled = lua::compile(&hash, &changed);
                    compiled.unwrap_or_else(|error| parts::NotLua(error.into_owned()).panic());
                }
            }
            self.known.insert(hash);
        }
        Ok(hash)
    }

    fn run_script(&mut self, hash: &Hash, words: &[&[u8]], keys: usize) -> Answer {
        let (keys, arguments) = words.split_at(keys);
        self.scripts += 1;
        if let Some(key) = keys.first() {
            let asked = self.asked.entry(key.to_vec()).or_default();
            asked.push(self.micros);
        }
        // Earlier servers watch all keys that the caller has declared.
        let declared = !self.version.is_7_2() && self.is_watching();
        let watched = declared.then(|| keys.iter().map(|key| key.to_vec()).collect());
        self.script = Some(Script {
            has_written: false,
            watched,
        });
        let answer = lua::run(self, hash, keys, arguments);
        self.script = None;
        answer
    }

    /// Runs a command that a script calls.
    pub(super) fn call(&mut self, words: &[&[u8]]) -> Result<Reply, Uncalled> {
        let texts = self.version.words();
        let Found::Command(command) = commands::find(words) else {
            return Err(Uncalled::Refused(texts.unknown_in_script.into()));
        };
        if !command.takes(words.len()) {
            return Err(Uncalled::Refused(texts.arity_in_script.into()));
        }
        if command.is(NO_SCRIPT) {
            return Err(Uncalled::Refused(texts.not_in_script.into()));
        }
        let has_written = self
            .script
            .as_ref()
            .is_some_and(|script| script.has_written);
        let denied = self.denied(command, words);
        let denied = denied.map(|denied| denied.in_script(command, self.version));
        let refused = self.refused_in_script(command, has_written);
        let (first, second) = match self.refusal == Some(Refusal::OutOfMemory)
            && self.version.checks_memory_first()
        {
            true => (refused, denied),
            false => (denied, refused),
        };
        if let Some(error) = first.or(second) {
            return Err(Uncalled::Refused(error));
        }
        if let Some(script) = &mut self.script {
            script.has_written |= command.is(WRITE);
        }
        if let Some(misplaced) = self.misplaced_in_script(command, words) {
            return Err(Uncalled::Refused(misplaced));
        }
        self.execute(command, words).map_err(Uncalled::Failed)
    }
}

/// Why a command of a script has no reply.
pub(super) enum Uncalled {
    /// The server has not run it.
    Refused(Failure),
    Failed(Failure),
}

impl Uncalled {
    /// The error, as a server says it that names the `line` of the script.
    pub(super) fn at(self, line: Option<usize>) -> Failure {
        match (self, line) {
            (Uncalled::Failed(error), _) | (Uncalled::Refused(error), None) => error,
            (Uncalled::Refused(error), Some(line)) => match error.strip_prefix("ERR ") {
                Some(error) => format!("@user_script: {line}: {error}").into(),
                None => format!("@user_script: {line}: -{error}").into(),
            },
        }
    }
}
