//! The care for the servers beside the locks: their settings, and the identities of managers.

mod audit;
mod cards;
