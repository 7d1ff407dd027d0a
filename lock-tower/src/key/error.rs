//! What is wrong with a template.

use std::fmt;

/// A template that [`LockLayer::template`](crate::LockLayer::template) cannot use: where, why, and
/// what to write.
///
/// It is displayed with the template below, and a caret where it is wrong.
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

    /// Where, in bytes from the beginning of the template.
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
        // One place each, so that the caret stands below what is meant.
        let shown = |text: &str| text.replace(char::is_control, "\u{FFFD}");
        let before = self.template.get(..self.position).unwrap_or_default();
        writeln!(f, "    {}", shown(&self.template))?;
        write!(f, "    {}^", " ".repeat(before.chars().count()))
    }
}

// What `main` prints for an error that it returns: the sentence, not the fields.
impl fmt::Debug for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TemplateError({self})")
    }
}

impl std::error::Error for TemplateError {}
