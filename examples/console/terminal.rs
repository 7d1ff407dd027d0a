//! The commands for the terminal.

use std::error::Error;
use std::io::{self, BufRead, IsTerminal, Write};
use std::process::ExitCode;

use lock_core::operator::{Forced, Holder, Inspection, Operator};

use crate::config::Order;
use crate::{find, words};

/// The exit code of an order that has freed nothing.
const NOTHING_FREED: u8 = 3;

pub(crate) async fn list(operator: &Operator, pattern: &str) -> Result<(), Box<dyn Error>> {
    let found = find::locks(operator, pattern).await?;
    for seen in &found.locks {
        let holder = seen.holders().first();
        let identity = holder.and_then(Holder::identity);
        say(&format!(
            "{}\t{}\theld for {}\tends in {}\tfence {}\t{} waiting\t{}\t{}",
            shown(seen.key()),
            seen.state(),
            words::time_or_nothing(holder.and_then(Holder::held_for)),
            words::left(seen),
            holder.map_or_else(|| words::NOTHING.to_owned(), words::fence),
            seen.waiter_count(),
            shown(&words::process(identity)),
            shown(&words::label(identity)),
        ))?;
    }
    if !found.is_complete {
        eprintln!("console: there may be more; write a narrower pattern");
    }
    Ok(())
}

pub(crate) async fn inspect(operator: &Operator, key: &str) -> Result<(), Box<dyn Error>> {
    show(&find::lock(operator, key).await?)?;
    Ok(())
}

fn show(seen: &Inspection) -> io::Result<()> {
    say(&format!(
        "{}: {}, ends in {}, {} waiting",
        shown(seen.key()),
        seen.state(),
        words::left(seen),
        seen.waiter_count()
    ))?;
    for holder in seen.holders() {
        show_holder(holder)?;
    }
    for waiter in seen.waiters() {
        say(&format!(
            "  waits for {}: {}, {}",
            words::time(waiter.waiting_for()),
            shown(&words::process(waiter.identity())),
            shown(&words::label(waiter.identity())),
        ))?;
    }
    Ok(())
}

fn show_holder(holder: &Holder) -> io::Result<()> {
    say(&format!(
        "  holder {}: {}, {}; {}; held for {}, ends in {}, fence {}",
        holder.id(),
        shown(&words::process(holder.identity())),
        shown(&words::label(holder.identity())),
        holder.process(),
        words::time_or_nothing(holder.held_for()),
        words::time_or_nothing(holder.remaining()),
        words::fence(holder),
    ))
}

pub(crate) async fn force(operator: &Operator, order: &Order) -> Result<ExitCode, Box<dyn Error>> {
    let seen = find::lock(operator, &order.key).await?;
    show(&seen)?;
    let holder = match (&order.holder, seen.holders()) {
        (Some(id), _) => find::holder(&seen, id),
        (None, [only]) => Some(only),
        (None, []) => None,
        (None, _) => return Err("several holders share the key; name one with --holder".into()),
    };
    let Some(holder) = holder else {
        eprintln!("console: no such holder; nothing was done");
        return Ok(ExitCode::from(NOTHING_FREED));
    };
    if !order.confirmed && !confirms(holder)? {
        eprintln!("console: nothing was done");
        return Ok(ExitCode::from(NOTHING_FREED));
    }
    let forced = operator.force(holder).because(&order.reason).await?;
    say(words::outcome(forced))?;
    Ok(match forced {
        Forced::Changed => ExitCode::from(NOTHING_FREED),
        _ => ExitCode::SUCCESS,
    })
}

/// Asks whether this holder is to lose the key.
fn confirms(holder: &Holder) -> Result<bool, Box<dyn Error>> {
    if !io::stdin().is_terminal() {
        return Err("add --yes, because there is no terminal to ask for it".into());
    }
    let who = shown(&words::process(holder.identity()));
    print!("Free the key from {who}? Type yes: ");
    io::stdout().flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(answer.trim() == "yes")
}

/// Writes a line. A reader that has gone, such as `head`, ends the output in order.
fn say(line: &str) -> io::Result<()> {
    match writeln!(io::stdout(), "{line}") {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => std::process::exit(0),
        written => written,
    }
}

/// Shows a text of other processes without the control characters of a terminal.
fn shown(text: &str) -> String {
    let escape = |character: char| match character.is_control() {
        true => character.escape_default().to_string(),
        false => character.to_string(),
    };
    text.chars().map(escape).collect()
}
