//! What a kind of statement needs, and its columns.

use super::texts::Kind;
use super::wire::Type;

impl Kind {
    /// The types of its columns.
    pub(super) fn columns(self) -> &'static [Type] {
        use Type::{Bool, Bytea, Int4, Int8, Text, Void};
        match self {
            Self::Keeping | Self::Ending | Self::Together => {
                &[Int4, Int8, Int8, Int8, Bytea, Int8, Text]
            }
            Self::Read => &[Int8, Int8, Bytea, Int8, Int8],
            Self::Notify => &[Void, Text],
            Self::Tell => &[Bool, Void],
            Self::Hears => &[Bool],
            Self::Clock => &[Int8],
            Self::List | Self::ListBehind => &[Bytea, Bool],
            Self::Sweep => &[Bytea, Text],
            Self::Session | Self::Persistence | Self::History | Self::Recorded => &[Text],
            Self::Findings => &[Int8, Bool, Bool, Bool, Bool, Bool, Bool],
            Self::Ping | Self::Create | Self::Raise | Self::Listen => &[],
        }
    }

    /// Returns whether a standby refuses it.
    pub(super) fn writes(self) -> bool {
        matches!(
            self,
            Self::Keeping
                | Self::Ending
                | Self::Together
                | Self::Notify
                | Self::Tell
                | Self::Sweep
                | Self::Ping
                | Self::Create
                | Self::Raise
        )
    }

    /// Returns whether it is about the table of the locks.
    pub(super) fn needs_the_table(self) -> bool {
        matches!(
            self,
            Self::Keeping
                | Self::Ending
                | Self::Together
                | Self::Read
                | Self::List
                | Self::ListBehind
                | Self::Sweep
                | Self::Ping
                | Self::Recorded
        )
    }

    /// Returns whether it adds or changes rows, and so needs room on the disk.
    pub(super) fn grows(self) -> bool {
        matches!(
            self,
            Self::Keeping | Self::Ending | Self::Together | Self::Create | Self::Raise
        )
    }
}
