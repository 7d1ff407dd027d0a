//! Changed parts of the kit's scripts, which all servers run in the place of the shipped ones.
//!
//! A fault of a script then needs no build. The kit sends its own script and its own hash; only the text that runs is
//! another one.

use std::cell::RefCell;
use std::fs;
use std::path::Path;

const SCRIPTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../lock-core/src/scripts");

/// The panic of a server whose changed script is not Lua.
pub struct NotLua(pub String);

impl NotLua {
    pub(super) fn panic(self) -> ! {
        std::panic::panic_any(self)
    }
}

thread_local! {
    /// The shipped text and the changed one.
    static CHANGED: RefCell<Vec<(String, String)>> = const { RefCell::new(Vec::new()) };
}

/// Changes a part, which is the shipped file of the same name, to the content of a file.
pub fn change(file: &Path) -> Result<(), String> {
    let read = |path: &Path| {
        fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
    };
    let name = file.file_name().ok_or("a script is a file")?;
    let shipped = read(&Path::new(SCRIPTS).join(name))?;
    let changed = read(file)?;
    CHANGED.with_borrow_mut(|parts| parts.push((shipped, changed)));
    Ok(())
}

/// Returns the text that runs in the place of a script, if a part of it was changed.
pub(super) fn in_place_of(source: &[u8]) -> Option<Vec<u8>> {
    CHANGED.with_borrow(|parts| {
        let text = std::str::from_utf8(source).ok()?;
        let mut parts = parts.iter().filter(|(shipped, _)| text.contains(shipped));
        let (shipped, changed) = parts.next()?;
        let text = text.replace(shipped, changed);
        let text = parts.fold(text, |text, (shipped, changed)| {
            text.replace(shipped, changed)
        });
        Some(text.into_bytes())
    })
}
