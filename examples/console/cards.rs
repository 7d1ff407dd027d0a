//! The parts that several pages show: a key's state, its holders and its waiters.

use lock_core::operator::{Holder, HolderProcess, Identity, Inspection, KeyState, Waiter};

use crate::html::Html;
use crate::words;

/// Writes the state of a key as a badge.
pub(crate) fn state(content: &mut Html, seen: &Inspection) {
    content.raw(match seen.state() {
        KeyState::Held => "<span class=\"state held\">",
        _ => "<span class=\"state\">",
    });
    content.text(seen.state()).raw("</span>");
}

/// Describes a holder in a card.
pub(crate) fn holder(content: &mut Html, holder: &Holder) {
    let process = holder.process();
    content.raw(match process {
        HolderProcess::Holds => "<div class=\"card holds\">",
        _ => "<div class=\"card odd\">",
    });
    name(content, holder.identity());
    if process != HolderProcess::Holds {
        content
            .raw("<p class=\"answer\">")
            .text(process)
            .raw("</p>");
    }
    content.raw("<dl>");
    fact(
        content,
        "held for",
        &words::time_or_nothing(holder.held_for()),
    );
    let left = match holder.remaining() {
        Some(left) => words::time(left),
        None => "without an end".to_owned(),
    };
    fact(content, "time left", &left);
    fact(content, "fencing token", &words::fence(holder));
    content.raw("</dl></div>");
}

/// Lists the first waiters in their order, and counts the others.
pub(crate) fn waiters(content: &mut Html, seen: &Inspection, most: usize) {
    let named = &seen.waiters()[..most.min(seen.waiters().len())];
    content.raw("<h3>Waiting <span class=\"tally\">");
    content.text(seen.waiter_count()).raw("</span></h3>");
    if !named.is_empty() {
        content.raw("<ol class=\"queue\" data-testid=\"waiters\">");
        for waiter in named {
            place(content, waiter);
        }
        content.raw("</ol>");
    }
    others(content, named.len(), seen.waiter_count());
}

fn place(content: &mut Html, waiter: &Waiter) {
    content.raw("<li class=\"card waits\"><div>");
    name(content, waiter.identity());
    content.raw("</div>");
    // The embedded store does not note when a waiter came.
    if !waiter.waiting_for().is_zero() {
        content.raw("<span class=\"tally\">");
        content
            .text(words::time(waiter.waiting_for()))
            .raw("</span>");
    }
    content.raw("</li>");
}

/// Says how many more there are than the `shown` ones.
pub(crate) fn others(content: &mut Html, shown: usize, all: usize) {
    match (shown, all - shown) {
        (0, 0) => {
            content.raw("<p class=\"none\">None.</p>");
        }
        (_, 0) => {}
        (0, count) => {
            content.raw("<p class=\"none\">");
            content.text(count).raw(" in all</p>");
        }
        (_, more) => {
            content.raw("<p class=\"none\">and ");
            content.text(more).raw(" more</p>");
        }
    }
}

/// Names a process by its label, with its host and number below.
fn name(content: &mut Html, identity: Option<&Identity>) {
    let label = identity.and_then(Identity::label);
    content.raw("<p class=\"what\">");
    content.text(label.unwrap_or(match identity {
        Some(_) => "no label",
        None => "unknown process",
    }));
    content.raw("</p>");
    if identity.is_some() {
        content
            .raw("<p class=\"meta\">")
            .text(words::process(identity))
            .raw("</p>");
    }
}

fn fact(content: &mut Html, name: &'static str, value: &str) {
    content.raw("<div><dt>").raw(name).raw("</dt><dd>");
    content.text(value).raw("</dd></div>");
}
