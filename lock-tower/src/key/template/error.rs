//! The error of a template that cannot be used.

use std::fmt;

/// The error of a template that [`LockLayer::template`](crate::LockLayer::template) cannot use.
///
/// It says where the template is wrong, why, and what to write. `Display` shows the template below
/// the message, with a caret at the wrong place.
///
/// # Examples
///
/// ```
/// # let locks = lock_core::LockManager::in_memory();
/// use lock_tower::LockLayer;
///
/// let error = LockLayer::template(locks, "submit:<headers.x-user-id>").unwrap_err();
/// assert_eq!(error.position(), 7);
/// assert!(error.to_string().contains("did you mean `<header.x-user-id>`?"));
/// assert!(error.to_string().ends_with("    submit:<headers.x-user-id>\n           ^"));
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct TemplateError {
    template: String,
    position: usize,
    problem: String,
}

impl TemplateError {
    pub(crate) fn new(template: &str, position: usize, problem: String) -> Self {
        Self {
            template: template.to_owned(),
            position,
            problem,
        }
    }

    /// Returns the position of the error, in bytes from the beginning of the template.
    #[must_use]
    pub fn position(&self) -> usize {
        self.position
    }
}

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "lock template, at byte {}: {}",
            self.position, self.problem
        )?;
        // A control character has no width, which would shift the caret.
        let shown = |text: &str| text.replace(char::is_control, "\u{FFFD}");
        let before = self.template.get(..self.position).unwrap_or_default();
        writeln!(f, "    {}", shown(&self.template))?;
        write!(f, "    {}^", " ".repeat(before.chars().count()))
    }
}

// `main` prints the `Debug` of an error that it returns, so it shows the message.
impl fmt::Debug for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TemplateError({self})")
    }
}

impl std::error::Error for TemplateError {}
