//! Scripts in Lua 5.1, with Redis' conversions between its replies and Lua's values.
//!
//! A thread has one Lua state, in which each script is compiled once. A script reaches the server that runs it through a
//! thread-local place.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;

use mlua::{
    BorrowedBytes, Error, Function, Lua, LuaOptions, LuaString, StdLib, Table, Value, Variadic,
};

use super::numbers::Float;
use super::resp::{Answer, Failure, Reply};
use super::scripts::Hash;
use super::{Bytes, Server, Version};

/// The name of every script in its errors.
const NAME: &str = "user_script";

struct Engine {
    lua: Lua,
    functions: HashMap<Hash, Function>,
}

thread_local! {
    static ENGINE: RefCell<Engine> = RefCell::new(Engine::new());
    /// The server whose script runs.
    static RUNNING: RefCell<Server> = RefCell::default();
}

/// An error that a script raises by `redis.call`, or by a name that does not exist.
#[derive(Clone, Debug)]
struct Raised {
    text: String,
    line: usize,
}

impl fmt::Display for Raised {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.text)
    }
}

impl std::error::Error for Raised {}

pub(super) fn compile(hash: &Hash, source: &[u8]) -> Result<(), Failure> {
    ENGINE.with_borrow_mut(|engine| {
        if engine.functions.contains_key(hash) {
            return Ok(());
        }
        let chunk = engine.lua.load(source).set_name(format!("@{NAME}"));
        match chunk.into_function() {
            Ok(function) => {
                engine.functions.insert(*hash, function);
                Ok(())
            }
            Err(error) => {
                let why = first_part(&error);
                Err(format!("ERR Error compiling script (new function): {why}").into())
            }
        }
    })
}

/// Runs a script that was compiled.
pub(super) fn run(server: &mut Server, hash: &Hash, keys: &[&[u8]], arguments: &[&[u8]]) -> Answer {
    RUNNING.set(std::mem::take(server));
    let (lua, function) =
        ENGINE.with_borrow(|engine| (engine.lua.clone(), engine.functions[hash].clone()));
    let result = set_lists(&lua, keys, arguments).and_then(|()| function.call::<Value>(()));
    *server = RUNNING.take();
    let reply = result.and_then(|value| reply_of(&value));
    reply.map_err(|error| script_error(&error, hash, server.version))
}

fn set_lists(lua: &Lua, keys: &[&[u8]], arguments: &[&[u8]]) -> mlua::Result<()> {
    let globals = lua.globals();
    for (name, texts) in [("KEYS", keys), ("ARGV", arguments)] {
        let list = lua.create_table_with_capacity(texts.len(), 0)?;
        for text in texts {
            list.raw_push(lua.create_string(text)?)?;
        }
        globals.raw_set(name, list)?;
    }
    Ok(())
}

/// The error reply of a script that has failed.
fn script_error(error: &Error, hash: &Hash, version: Version) -> Failure {
    let (text, line) = match error.downcast_ref::<Raised>() {
        Some(raised) => (raised.text.clone(), Some(raised.line)),
        None => {
            let text = first_part(error);
            let place = text
                .strip_prefix(NAME)
                .and_then(|rest| rest.strip_prefix(':'));
            let line = place.and_then(|place| place.split_once(':')?.0.parse().ok());
            (format!("ERR {text}"), line)
        }
    };
    let Some(line) = line else {
        return text.into();
    };
    let hash = String::from_utf8_lossy(hash);
    version.script_error(&text, &hash, NAME, line).into()
}

/// The message of an error without the stack that the crate adds.
fn first_part(error: &Error) -> String {
    let text = match error {
        Error::RuntimeError(text) | Error::SyntaxError { message: text, .. } => text.clone(),
        other => other.to_string(),
    };
    let end = text.find("\nstack traceback:").unwrap_or(text.len());
    text[..end].to_owned()
}

impl Engine {
    fn new() -> Self {
        let libraries = StdLib::STRING | StdLib::TABLE | StdLib::MATH;
        let lua = Lua::new_with(libraries, LuaOptions::new()).expect("a Lua state");
        prepare(&lua).expect("the names that scripts use");
        Self {
            lua,
            functions: HashMap::new(),
        }
    }
}

/// Gives scripts the table `redis`, and an error for every other name that does not exist.
fn prepare(lua: &Lua) -> mlua::Result<()> {
    let redis = lua.create_table()?;
    let call = lua.create_function(|lua, words: Variadic<Value>| match called(lua, &words) {
        Ok(reply) => value_of(lua, &reply),
        Err(text) => Err(raised(lua, text.into_owned())),
    })?;
    let pcall = lua.create_function(|lua, words: Variadic<Value>| match called(lua, &words) {
        Ok(reply) => value_of(lua, &reply),
        Err(text) => value_of(lua, &Reply::Error(text)),
    })?;
    let error_reply = lua.create_function(|lua, words: Variadic<Value>| {
        let text = match words.as_slice() {
            [Value::String(text)] => error_text(&text.to_string_lossy()),
            _ => "ERR wrong number or type of arguments".to_owned(),
        };
        value_of(lua, &Reply::Error(text.into()))
    })?;
    let status_reply =
        lua.create_function(|lua, words: Variadic<Value>| match words.as_slice() {
            [Value::String(text)] => value_of(lua, &Reply::Status(text.to_string_lossy().into())),
            _ => value_of(
                lua,
                &Reply::Error("ERR wrong number or type of arguments".into()),
            ),
        })?;
    let sha1hex = lua.create_function(|_, text: LuaString| {
        Ok(sha1_smol::Sha1::from(text.as_bytes()).digest().to_string())
    })?;
    redis.set("call", call)?;
    redis.set("pcall", pcall)?;
    redis.set("error_reply", error_reply)?;
    redis.set("status_reply", status_reply)?;
    redis.set("sha1hex", sha1hex)?;
    let globals = lua.globals();
    globals.set("redis", redis)?;
    let missing = lua.create_function(
        |lua, (_, name): (Value, LuaString)| -> mlua::Result<Value> {
            let name = name.to_string_lossy();
            let why = format!("Script attempted to access nonexistent global variable '{name}'");
            Err(misused(lua, &why))
        },
    )?;
    let constant = lua.create_function(|lua, _: Variadic<Value>| -> mlua::Result<()> {
        Err(misused(lua, "Attempt to modify a readonly table"))
    })?;
    let rules = lua.create_table()?;
    rules.set("__index", missing)?;
    rules.set("__newindex", constant)?;
    globals.set_metatable(Some(rules))?;
    Ok(())
}

/// Adds a code to the text of `redis.error_reply`, if it has none.
fn error_text(text: &str) -> String {
    let text = text.strip_prefix('-').unwrap_or(text);
    let text = text.trim_matches(['\r', '\n']);
    if text.contains(' ') {
        text.to_owned()
    } else {
        format!("ERR {text}")
    }
}

fn raised(lua: &Lua, text: String) -> Error {
    let line = line_of_caller(lua);
    Error::external(Raised { text, line })
}

fn misused(lua: &Lua, why: &str) -> Error {
    let line = line_of_caller(lua);
    let text = format!("ERR {NAME}:{line}: {why}");
    Error::external(Raised { text, line })
}

/// The line of the script that called the present function of Rust.
fn line_of_caller(lua: &Lua) -> usize {
    let line = lua.inspect_stack(1, |caller| caller.current_line());
    line.flatten().unwrap_or(0)
}

/// A word of a command, as a script gives it.
enum Word {
    Text(BorrowedBytes),
    Number(String),
}

fn called(lua: &Lua, values: &[Value]) -> Answer {
    RUNNING.with_borrow_mut(|server| {
        let texts = server.version.words();
        if values.is_empty() {
            return Err(texts.no_argument.into());
        }
        let words = values.iter().map(|value| match value {
            Value::String(text) => Ok(Word::Text(text.as_bytes())),
            Value::Integer(number) => Ok(Word::Number(word_of(*number as f64, server))),
            Value::Number(number) => Ok(Word::Number(word_of(*number, server))),
            _ => Err(texts.no_text),
        });
        let words = words.collect::<Result<Vec<_>, _>>()?;
        let words: Vec<&[u8]> = words
            .iter()
            .map(|word| match word {
                Word::Text(text) => &**text,
                Word::Number(text) => text.as_bytes(),
            })
            .collect();
        // Earlier servers say the line in the error of a command that they refuse.
        let line = (!server.version.is_7()).then(|| line_of_caller(lua));
        server.call(&words).map_err(|error| error.at(line))
    })
}

fn word_of(number: f64, server: &Server) -> String {
    let style = server.version.style();
    let value = number;
    Float { value, style }.text()
}

fn value_of(lua: &Lua, reply: &Reply) -> mlua::Result<Value> {
    Ok(match reply {
        Reply::Null => Value::Boolean(false),
        Reply::Int(number) => Value::Integer(*number),
        Reply::Bulk(bytes) => Value::String(lua.create_string(bytes)?),
        Reply::Float(float) => Value::String(lua.create_string(float.text())?),
        Reply::Report(text) => Value::String(lua.create_string(text)?),
        Reply::Status(text) => field(lua, "ok", text)?,
        Reply::Error(text) => field(lua, "err", text)?,
        Reply::Array(items) => {
            let list = lua.create_table_with_capacity(items.len(), 0)?;
            for item in items {
                list.raw_push(value_of(lua, item)?)?;
            }
            Value::Table(list)
        }
        Reply::Map(pairs) => {
            let list = lua.create_table_with_capacity(2 * pairs.len(), 0)?;
            for (key, value) in pairs {
                list.raw_push(value_of(lua, key)?)?;
                list.raw_push(value_of(lua, value)?)?;
            }
            Value::Table(list)
        }
        Reply::Pushes(_) | Reply::Later => unreachable!("no script may call this command"),
    })
}

fn field(lua: &Lua, name: &str, text: &str) -> mlua::Result<Value> {
    let table = lua.create_table()?;
    table.raw_set(name, text)?;
    Ok(Value::Table(table))
}

/// The reply of a script that returns a value.
fn reply_of(value: &Value) -> mlua::Result<Reply> {
    Ok(match value {
        Value::Boolean(true) => Reply::Int(1),
        Value::Integer(number) => Reply::Int(*number),
        // Without its fraction.
        Value::Number(number) => Reply::Int(*number as i64),
        Value::String(text) => Reply::Bulk(Bytes::from(&*text.as_bytes())),
        Value::Table(table) => reply_of_table(table)?,
        _ => Reply::Null,
    })
}

fn reply_of_table(table: &Table) -> mlua::Result<Reply> {
    let first = table.raw_get::<Value>(1)?;
    // A list, which has no fields.
    if first.is_nil() {
        if let Value::String(text) = table.raw_get("err")? {
            return Ok(Reply::Error(text.to_string_lossy().into()));
        }
        if let Value::String(text) = table.raw_get("ok")? {
            let text = text.to_string_lossy().replace(['\r', '\n'], " ");
            return Ok(Reply::Status(text.into()));
        }
        return Ok(Reply::Array(Vec::new()));
    }
    let mut items = vec![reply_of(&first)?];
    loop {
        match table.raw_get::<Value>(items.len() + 1)? {
            Value::Nil => return Ok(Reply::Array(items)),
            item => items.push(reply_of(&item)?),
        }
    }
}
