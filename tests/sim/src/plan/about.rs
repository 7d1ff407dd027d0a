//! Names of histories, for searches that need only some of them.

use std::fmt::Debug;

use super::Plan;

impl Plan {
    /// Returns whether a history is about something: a weather, a kind of work, or one of the groups `plain`, `kept`, `jobs`,
    /// `shares` and `orders`.
    pub fn is_about(&self, name: &str) -> bool {
        let is = |it: &dyn Debug| format!("{it:?}").eq_ignore_ascii_case(name);
        match name {
            "plain" => self.is_plain(),
            "kept" => self.keeps_keys(),
            "jobs" => self.has_jobs(),
            "shares" => self.has_shares(),
            "orders" => self.has_orders(),
            _ => is(&self.weather) || self.verbs.iter().any(|verb| is(verb)),
        }
    }
}
