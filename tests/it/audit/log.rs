//! Collects the warnings of this process for tests.

use std::fmt::{self, Debug};
use std::sync::{LazyLock, Mutex, PoisonError};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

static WARNINGS: LazyLock<Mutex<Vec<Warning>>> = LazyLock::new(|| {
    // No other code of this process sets a subscriber for all threads.
    tracing::subscriber::set_global_default(Warnings).expect("the first global subscriber");
    Mutex::default()
});

/// One warning, by its fields.
#[derive(Clone, Debug, Default)]
pub(super) struct Warning {
    pub(super) code: String,
    pub(super) server: String,
    pub(super) message: String,
}

/// Begins to listen. A test calls it before the warnings that it expects.
pub(super) fn listen() {
    LazyLock::force(&WARNINGS);
}

/// Returns the findings that were logged about a server.
pub(super) fn of(server: &str) -> Vec<Warning> {
    let warnings = WARNINGS.lock().unwrap_or_else(PoisonError::into_inner);
    let of = warnings.iter().filter(|warning| warning.server == server);
    of.cloned().collect()
}

struct Warnings;

impl Subscriber for Warnings {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event()
            && *metadata.level() == Level::WARN
            && metadata.target().starts_with("lock_core::audit")
    }

    fn event(&self, event: &Event<'_>) {
        let mut warning = Warning::default();
        event.record(&mut warning);
        let mut warnings = WARNINGS.lock().unwrap_or_else(PoisonError::into_inner);
        warnings.push(warning);
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

impl Visit for Warning {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "code" => value.clone_into(&mut self.code),
            "server" => value.clone_into(&mut self.server),
            _ => {}
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            self.message = fmt::format(format_args!("{value:?}"));
        }
    }
}
