//! The pages: the list, one lock, the confirmation, and what went wrong.

use lock_core::operator::{Holder, HolderProcess, Inspection};

use crate::find::{Found, MOST};
use crate::html::{Html, in_address};
use crate::words;

/// Puts a page around its content. `title` is of this program.
fn page(title: &'static str, searched: &str, content: &Html) -> String {
    let mut page = Html::new();
    page.raw("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>")
        .raw(title)
        .raw(" · Locks</title><meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">")
        .raw("<link rel=\"icon\" href=\"data:,\"><link rel=\"stylesheet\" href=\"/style.css\">")
        .raw("<script src=\"/page.js\" defer></script></head><body>")
        .raw("<a class=\"skip\" href=\"#content\">To the content</a>")
        .raw("<header><a class=\"home\" href=\"/\">Locks</a>")
        .raw("<form role=\"search\" action=\"/\" method=\"get\"><label for=\"q\">Key or pattern</label>")
        .raw("<input id=\"q\" name=\"q\" type=\"search\" autocomplete=\"off\" spellcheck=\"false\" value=\"")
        .value(searched)
        .raw("\" placeholder=\"order:42 or order:*\"><button>Find</button></form></header>")
        .raw("<main id=\"content\" tabindex=\"-1\"><h1>")
        .raw(title)
        .raw("</h1>")
        .html(content)
        .raw("</main></body></html>\n");
    page.into_string()
}

/// The list of locks.
pub(crate) fn list(found: &Found, pattern: &str) -> String {
    let mut content = Html::new();
    content.raw("<p role=\"status\" data-testid=\"count\">");
    content.text(found.locks.len());
    content.raw(match found.locks.len() {
        1 => " lock",
        _ => " locks",
    });
    if !found.is_complete {
        content.raw(" and maybe more: at most ").text(MOST);
        content.raw(" are shown. Write a narrower pattern.");
    }
    content.raw("</p><p class=\"tools\"><label><input type=\"checkbox\" id=\"follow\" hidden> <span hidden>Refresh every 5 seconds</span></label></p>");
    if !found.locks.is_empty() {
        content.raw(
            "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Locks\"><table data-testid=\"locks\">\
             <caption>Locks, by key</caption><thead><tr><th scope=\"col\">Key</th><th scope=\"col\">State</th>\
             <th scope=\"col\">Host and process</th><th scope=\"col\">Label</th><th scope=\"col\">Held for</th>\
             <th scope=\"col\">Time left</th><th scope=\"col\">Fencing token</th><th scope=\"col\">Waiting</th>\
             </tr></thead><tbody>",
        );
        for seen in &found.locks {
            row(&mut content, seen);
        }
        content.raw("</tbody></table></div>");
    }
    page("Locks", pattern, &content)
}

fn row(content: &mut Html, seen: &Inspection) {
    content.raw("<tr><th scope=\"row\"><a href=\"");
    content.value(&address("/lock", seen.key(), None));
    content.raw("\">").text(seen.key()).raw("</a></th><td>");
    content.text(seen.state());
    if let (Some(holder), 1) = (seen.holders().first(), seen.holder_count())
        && holder.process() != HolderProcess::Holds
    {
        content
            .raw("<br><span class=\"odd\">")
            .text(holder.process())
            .raw("</span>");
    }
    content.raw("</td>");
    let only = match (seen.holders(), seen.holder_count()) {
        ([holder], 1) => Some(holder),
        _ => None,
    };
    match (only, seen.holder_count()) {
        (Some(holder), _) => {
            cell(content, words::process(holder.identity()));
            cell(content, words::label(holder.identity()));
            cell(content, words::time_or_nothing(holder.held_for()));
        }
        (None, 0) => {
            content.raw("<td>–</td><td>–</td><td>–</td>");
        }
        (None, count) => {
            content
                .raw("<td colspan=\"3\">")
                .text(count)
                .raw(" holders share it</td>");
        }
    }
    cell(content, words::left(seen));
    cell(
        content,
        only.map_or_else(|| words::NOTHING.to_owned(), words::fence),
    );
    cell(content, seen.waiter_count().to_string());
    content.raw("</tr>");
}

fn cell(content: &mut Html, text: String) {
    content.raw("<td>").text(text).raw("</td>");
}

/// One lock. `said`: what became of an order.
pub(crate) fn lock(seen: &Inspection, said: Option<&'static str>) -> String {
    let mut content = Html::new();
    if let Some(said) = said {
        content.raw("<p role=\"status\" class=\"said\" data-testid=\"outcome\">");
        content.raw(said).raw("</p>");
    }
    content.raw("<dl data-testid=\"lock\">");
    entry(&mut content, "Key", seen.key());
    entry(&mut content, "State", &seen.state().to_string());
    entry(&mut content, "Time left", &words::left(seen));
    entry(&mut content, "Waiting", &seen.waiter_count().to_string());
    content.raw("</dl><h2>Holders</h2>");
    if seen.holders().is_empty() {
        content.raw("<p data-testid=\"no-holder\">No process holds it.</p>");
    }
    for holder in seen.holders() {
        content.raw("<section class=\"holder\" data-testid=\"holder\">");
        who(&mut content, holder);
        content.raw("<p><a class=\"button\" data-testid=\"free\" href=\"");
        content.value(&address("/free", seen.key(), Some(&holder.id())));
        content.raw("\">Free the key from this holder…</a></p></section>");
    }
    if seen.holder_count() > seen.holders().len() {
        content.raw("<p>");
        content.text(seen.holder_count() - seen.holders().len());
        content.raw(" more holders are not shown.</p>");
    }
    if !seen.waiters().is_empty() {
        content.raw("<h2>Waiting, first come first served</h2><ol data-testid=\"waiters\">");
        for waiter in seen.waiters() {
            content
                .raw("<li>")
                .text(words::process(waiter.identity()))
                .raw(", ");
            content.text(words::label(waiter.identity())).raw(", for ");
            content.text(words::time(waiter.waiting_for())).raw("</li>");
        }
        content.raw("</ol>");
    }
    page("One lock", seen.key(), &content)
}

/// The question whether this holder is to lose the key.
pub(crate) fn confirmation(seen: &Inspection, holder: &Holder) -> String {
    let mut content = Html::new();
    content
        .raw("<p>The key <strong data-testid=\"key\">")
        .text(seen.key());
    content.raw("</strong> will be taken from this holder:</p><section class=\"holder\" data-testid=\"loses\">");
    who(&mut content, holder);
    content.raw("</section><p class=\"warning\">");
    content.raw(match holder.process() {
        HolderProcess::Holds => "Its process answers and works. It will be told, and its work is dropped half done.",
        HolderProcess::Ended => "Its process says that it does not use the lock any more.",
        HolderProcess::Gone => "No process listens there. If it was only cut off from the store, it may still work.",
        HolderProcess::Foreign => "It is a client of another library. It will not be told, and may go on working.",
        _ => "Its process does not answer. If it is stopped, it may go on working later: end it first, unless your data checks fencing tokens.",
    });
    content.raw(
        "</p><form method=\"post\" action=\"/free\"><input type=\"hidden\" name=\"key\" value=\"",
    );
    content.value(seen.key());
    content
        .raw("\"><input type=\"hidden\" name=\"holder\" value=\"")
        .value(&holder.id());
    content.raw(
        "\"><label for=\"reason\">Reason, for the log (do not write the key)</label>\
         <input id=\"reason\" name=\"reason\" required maxlength=\"512\" autocomplete=\"off\" data-testid=\"reason\">\
         <button class=\"danger\" data-testid=\"confirm\">Free the key</button> <a href=\"",
    );
    content.value(&address("/lock", seen.key(), None));
    content.raw("\">Keep it</a></form>");
    page("Free a key", seen.key(), &content)
}

/// Something that went wrong. `why` may be of the store.
pub(crate) fn trouble(why: &str) -> String {
    let mut content = Html::new();
    content
        .raw("<p role=\"alert\" data-testid=\"trouble\">")
        .text(why);
    content.raw("</p><p><a href=\"/\">To the list</a></p>");
    page("It did not work", "", &content)
}

/// Describes a holder.
fn who(content: &mut Html, holder: &Holder) {
    content.raw("<dl>");
    entry(
        content,
        "Host and process",
        &words::process(holder.identity()),
    );
    entry(content, "Label", &words::label(holder.identity()));
    entry(content, "Its process", &holder.process().to_string());
    entry(
        content,
        "Held for",
        &words::time_or_nothing(holder.held_for()),
    );
    let left = match holder.remaining() {
        Some(left) => words::time(left),
        None => "without an end".to_owned(),
    };
    entry(content, "Time left", &left);
    entry(content, "Fencing token", &words::fence(holder));
    content.raw("</dl>");
}

fn entry(content: &mut Html, name: &'static str, value: &str) {
    content
        .raw("<dt>")
        .raw(name)
        .raw("</dt><dd>")
        .text(value)
        .raw("</dd>");
}

pub(crate) fn address(path: &str, key: &str, holder: Option<&str>) -> String {
    let mut address = format!("{path}?key={}", in_address(key));
    if let Some(holder) = holder {
        address += &format!("&holder={}", in_address(holder));
    }
    address
}
