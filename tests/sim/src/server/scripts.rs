//! `EVAL`, `EVALSHA` and `SCRIPT`, and the commands that scripts call.

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

impl Server {
    fn learn(&mut self, source: &[u8]) -> Result<Hash, Failure> {
        let digits = sha1_smol::Sha1::from(source).digest().to_string();
        let hash = Hash::try_from(digits.into_bytes()).expect("40 digits");
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
    pub(super) fn call(&mut self, words: &[&[u8]]) -> Answer {
        let texts = self.version.words();
        let Found::Command(command) = commands::find(words) else {
            return Err(texts.unknown_in_script.into());
        };
        if !command.takes(words.len()) {
            return Err(texts.arity_in_script.into());
        }
        if command.is(NO_SCRIPT) {
            return Err(texts.not_in_script.into());
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
            return Err(error);
        }
        if let Some(script) = &mut self.script {
            script.has_written |= command.is(WRITE);
        }
        self.execute(command, words)
    }
}
