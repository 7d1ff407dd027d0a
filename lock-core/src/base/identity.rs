//! The name by which an operator knows a manager: its host, its process and its label.

use std::fmt;
use std::sync::Arc;

use crate::base::error::Error;
use crate::base::machine;

/// The longest label, in characters.
const LONGEST_LABEL: usize = 128;
/// The longest host that is shown. No host name is longer.
const LONGEST_HOST: usize = 255;

/// Names the process that holds a lock or waits for it.
///
/// A manager leaves its identity in the store, where an [`Operator`](crate::operator::Operator) reads it, also after
/// the process has crashed. [`ManagerBuilder::label`](crate::ManagerBuilder::label) adds a label, and
/// [`anonymous`](crate::ManagerBuilder::anonymous) leaves no identity.
///
/// Any client of the store may write any identity, so show it as text and rely on it for nothing.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    host: Box<str>,
    pid: u32,
    label: Option<Box<str>>,
}

impl Identity {
    /// Returns the host name of the machine, or the name of the container.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Returns the number of the process on its host.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Returns the label that the manager was built with.
    #[must_use]
    pub fn label(&self) -> Option<&str> {
        self.label.as_deref()
    }

    /// Writes the identity as the store keeps it: `1 <pid>`, the host and the label, a line each.
    pub(crate) fn text(&self) -> String {
        let label = self.label.as_deref().unwrap_or_default();
        format!("1 {}\n{}\n{label}", self.pid, self.host)
    }

    /// Reads an identity. The text may be of any client, so each part is cut and has no control characters.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut lines = text.splitn(3, '\n');
        let pid = lines.next()?.strip_prefix("1 ")?.parse().ok()?;
        let host = plain(lines.next()?, LONGEST_HOST);
        let label = plain(lines.next()?, LONGEST_LABEL);
        Some(Self {
            host,
            pid,
            label: (!label.is_empty()).then_some(label),
        })
    }
}

/// Writes `host, process 4711, label`.
impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, process {}", self.host, self.pid)?;
        match &self.label {
            Some(label) => write!(f, ", {label}"),
            None => Ok(()),
        }
    }
}

/// Returns the beginning of a text, without control characters.
fn plain(text: &str, longest: usize) -> Box<str> {
    let kept = text.chars().filter(|character| !character.is_control());
    kept.take(longest).collect::<String>().into()
}

/// Says which identity a manager leaves in its store.
#[derive(Clone, Debug)]
pub(crate) enum Naming {
    /// The host and the process, with the label.
    Named(Option<Box<str>>),
    Anonymous,
}

impl Naming {
    /// Makes the identity of a manager of this process; `None` for an anonymous one.
    ///
    /// # Errors
    ///
    /// `Invalid` for a label that is empty, too long or has control characters.
    pub(crate) fn identity(&self) -> Result<Option<Arc<Identity>>, Error> {
        let Naming::Named(label) = self else {
            return Ok(None);
        };
        if let Some(label) = label {
            checked(label, "label", LONGEST_LABEL)?;
        }
        Ok(Some(Arc::new(Identity {
            host: plain(&machine::host(), LONGEST_HOST),
            pid: machine::process_id(),
            label: label.clone(),
        })))
    }
}

/// Checks a text that an operator reads.
///
/// # Errors
///
/// `Invalid` for a text that is empty, longer than `longest` characters, or has control characters.
pub(crate) fn checked(text: &str, what: &str, longest: usize) -> Result<(), Error> {
    if text.trim().is_empty() {
        return Err(Error::invalid(format!("the {what} is empty; write one")));
    }
    if text.chars().count() > longest {
        return Err(Error::invalid(format!(
            "the {what} is longer than {longest} characters; shorten it"
        )));
    }
    if text.chars().any(char::is_control) {
        return Err(Error::invalid(format!(
            "the {what} has control characters, such as a line end; leave them out"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::error::ErrorKind;

    fn named(label: &str) -> Result<Option<Arc<Identity>>, Error> {
        Naming::Named(Some(label.into())).identity()
    }

    #[test]
    fn an_identity_reads_back() {
        for naming in [Naming::Named(None), Naming::Named(Some("checkout".into()))] {
            let identity = naming.identity().expect("in bounds").expect("named");
            assert_eq!(Identity::parse(&identity.text()).as_ref(), Some(&*identity));
            assert_eq!(identity.pid(), std::process::id());
            assert!(!identity.host().is_empty());
        }
        assert!(Naming::Anonymous.identity().expect("no bounds").is_none());
    }

    #[test]
    fn an_identity_of_another_client_is_cut_and_has_no_control_characters() {
        let long = "x".repeat(1_000);
        let identity = Identity::parse(&format!("1 7\nho\x1b[2Jst\r\n{long}\nmore"));
        let identity = identity.expect("three lines");
        assert_eq!(identity.host(), "ho[2Jst");
        assert_eq!(identity.label().map(str::len), Some(LONGEST_LABEL));
        for text in ["", "1", "2 7\na\nb", "1 7\na", "1 x\na\nb", "1 -7\na\nb"] {
            assert_eq!(Identity::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_label_out_of_bounds_is_invalid_and_names_the_bound() {
        for (label, why) in [
            ("", "empty"),
            (" ", "empty"),
            (&*"x".repeat(129), "128"),
            ("a\nb", "control"),
        ] {
            let error = named(label).expect_err("out of bounds");
            assert_eq!(error.kind(), ErrorKind::Invalid);
            assert!(error.to_string().contains(why), "{error}");
        }
        assert!(named(&"ü".repeat(128)).is_ok());
    }
}
