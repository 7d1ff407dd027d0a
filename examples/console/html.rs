//! Writes HTML. Every text is escaped, because keys, labels and hosts come from other processes.

use std::fmt::{self, Display, Write as _};

/// Finished HTML, which is not escaped again.
#[derive(Clone, Default)]
pub(crate) struct Html(String);

impl Html {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Adds HTML of this program. Texts of other processes never come here.
    pub(crate) fn raw(&mut self, html: &'static str) -> &mut Self {
        self.0.push_str(html);
        self
    }

    /// Adds a text.
    pub(crate) fn text(&mut self, text: impl Display) -> &mut Self {
        for character in text.to_string().chars() {
            match character {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                '\'' => self.0.push_str("&#39;"),
                // Characters that change the direction or the look of what is beside them are shown by their number.
                hidden if is_hidden(hidden) => {
                    let _ = write!(self.0, "\\u{{{:x}}}", u32::from(hidden));
                }
                other => self.0.push(other),
            }
        }
        self
    }

    /// Adds a text exactly, as the value of an attribute or in an address.
    pub(crate) fn value(&mut self, text: &str) -> &mut Self {
        for character in text.chars() {
            match character {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                '\'' => self.0.push_str("&#39;"),
                other => self.0.push(other),
            }
        }
        self
    }

    pub(crate) fn html(&mut self, html: &Html) -> &mut Self {
        self.0.push_str(&html.0);
        self
    }

    pub(crate) fn into_string(self) -> String {
        self.0
    }
}

fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

impl fmt::Debug for Html {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Writes a text as a part of an address: everything but letters, digits and `-._~` by its bytes.
pub(crate) fn in_address(text: &str) -> String {
    let mut address = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                address.push(char::from(byte));
            }
            other => {
                let _ = write!(address, "%{other:02X}");
            }
        }
    }
    address
}
