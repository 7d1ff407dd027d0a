//! The pages: the list, one lock, the confirmation, and what went wrong.

use lock_core::operator::{Holder, HolderProcess, Inspection};

use crate::cards;
use crate::find::{Found, MOST};
use crate::html::{Html, in_address};
use crate::words;

/// The most holders, and the most waiters, that a card of the list names. The page of the lock names more.
const MOST_IN_LIST: usize = 3;

/// Puts a page around its heading and its content. `title` is of this program.
fn page(title: &'static str, searched: &str, heading: &Html, content: &Html) -> String {
    let mut page = Html::new();
    page.raw("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>")
        .raw(title)
        .raw(" · Console</title><meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">")
        .raw("<meta name=\"color-scheme\" content=\"light dark\">")
        .raw("<link rel=\"icon\" href=\"data:,\"><link rel=\"stylesheet\" href=\"/style.css\">")
        .raw("<script src=\"/page.js\" defer></script></head><body>")
        .raw("<a class=\"skip\" href=\"#content\">To the content</a><header>")
        .html(heading)
        .raw("<div class=\"bar\"><form class=\"search\" role=\"search\" action=\"/\" method=\"get\">")
        .raw("<label class=\"heard\" for=\"q\">Key or pattern</label>")
        .raw("<input id=\"q\" name=\"q\" type=\"search\" autocomplete=\"off\" spellcheck=\"false\" value=\"")
        .value(searched)
        .raw("\" placeholder=\"order:42 or order:*\"><button>Find</button></form>")
        // The script shows it, on the list only.
        .raw("<label class=\"switch\" hidden><input type=\"checkbox\" id=\"follow\">")
        .raw("<span class=\"track\" aria-hidden=\"true\"></span><span>Refresh every 5 seconds</span></label>")
        .raw("</div></header><main id=\"content\" tabindex=\"-1\">")
        .html(content)
        .raw("</main></body></html>\n");
    page.into_string()
}

/// A heading below a link to the list.
fn below_the_list(heading: &Html) -> Html {
    let mut all = Html::new();
    all.raw("<p class=\"back\"><a href=\"/\">← All locks</a></p>")
        .html(heading);
    all
}

/// The list of locks.
pub(crate) fn list(found: &Found, pattern: &str) -> String {
    let mut heading = Html::new();
    heading.raw("<h1>Locks</h1><p class=\"lead\">The keys that are taken now, their holders and their waiters.</p>");
    let mut content = Html::new();
    content.raw("<div id=\"found\"><p class=\"count\" role=\"status\" data-testid=\"count\">");
    content.text(found.locks.len());
    content.raw(match found.locks.len() {
        1 => " lock",
        _ => " locks",
    });
    if !found.is_complete {
        content.raw(" and maybe more: at most ").text(MOST);
        content.raw(" are shown. Write a narrower pattern.");
    }
    content.raw("</p>");
    if found.locks.is_empty() {
        content.raw("<p class=\"panel none\" data-testid=\"empty\">");
        content.raw(match pattern {
            "" => "No key is taken. A lock appears here while a process holds it.",
            _ => "No key that is taken fits this pattern. In it, * stands for any text.",
        });
        content.raw("</p>");
    } else {
        content.raw("<ul class=\"locks\" data-testid=\"locks\">");
        for seen in &found.locks {
            in_list(&mut content, seen);
        }
        content.raw("</ul>");
    }
    content.raw("</div>");
    page("Locks", pattern, &heading, &content)
}

fn in_list(content: &mut Html, seen: &Inspection) {
    content.raw("<li class=\"panel lock\"><div class=\"head\"><h2><a href=\"");
    content.value(&address("/lock", seen.key(), None));
    content.raw("\">").text(seen.key()).raw("</a></h2>");
    cards::state(content, seen);
    content.raw("</div><div class=\"sides\"><div>");
    let named = &seen.holders()[..MOST_IN_LIST.min(seen.holders().len())];
    holders_title(content, seen);
    for holder in named {
        content.raw("<div data-testid=\"holder\">");
        cards::holder(content, holder);
        content.raw("</div>");
    }
    cards::others(content, named.len(), seen.holder_count());
    content.raw("</div><div>");
    cards::waiters(content, seen, MOST_IN_LIST);
    content.raw("</div></div></li>");
}

/// Names the list of holders. Without a holder it says how long the key stays taken.
fn holders_title(content: &mut Html, seen: &Inspection) {
    content.raw("<h3>");
    match seen.holder_count() {
        0 => content
            .raw("Holder <span class=\"tally\">")
            .text(words::left(seen)),
        1 => content.raw("Holder <span class=\"tally\">"),
        count => content.raw("Holders <span class=\"tally\">").text(count),
    };
    content.raw("</span></h3>");
}

/// One lock. `said`: what became of an order.
pub(crate) fn lock(seen: &Inspection, said: Option<&'static str>) -> String {
    let mut heading = Html::new();
    heading
        .raw("<div class=\"head\" data-testid=\"lock\"><h1 class=\"key\">")
        .text(seen.key())
        .raw("</h1>");
    cards::state(&mut heading, seen);
    heading.raw("</div>");
    let mut content = Html::new();
    if let Some(said) = said {
        content.raw("<p role=\"status\" class=\"card said\" data-testid=\"outcome\">");
        content.raw(said).raw("</p>");
    }
    content.raw("<div class=\"panel sides\"><div>");
    holders_title(&mut content, seen);
    if seen.holders().is_empty() {
        content.raw("<p class=\"none\" data-testid=\"no-holder\">No process holds it.</p>");
    }
    for holder in seen.holders() {
        content.raw("<section data-testid=\"holder\" aria-label=\"Holder\">");
        cards::holder(&mut content, holder);
        content.raw("<p class=\"buttons\"><a class=\"button\" data-testid=\"free\" href=\"");
        content.value(&address("/free", seen.key(), Some(&holder.id())));
        content.raw("\">Free the key from this holder…</a></p></section>");
    }
    if seen.holder_count() > 0 {
        cards::others(&mut content, seen.holders().len(), seen.holder_count());
    }
    content.raw("</div><div>");
    cards::waiters(&mut content, seen, usize::MAX);
    content.raw("</div></div>");
    page("One lock", seen.key(), &below_the_list(&heading), &content)
}

/// The question whether this holder is to lose the key.
pub(crate) fn confirmation(seen: &Inspection, holder: &Holder) -> String {
    let mut heading = Html::new();
    heading.raw("<h1>Free a key</h1>");
    let mut content = Html::new();
    content
        .raw("<div class=\"panel question\"><p>The key <strong class=\"key\" data-testid=\"key\">")
        .text(seen.key());
    content.raw(
        "</strong> will be taken from this holder:</p><section data-testid=\"loses\" aria-label=\"Holder\">",
    );
    cards::holder(&mut content, holder);
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
         <p class=\"buttons\"><button class=\"danger\" data-testid=\"confirm\">Free the key</button> \
         <a class=\"button\" href=\"",
    );
    content.value(&address("/lock", seen.key(), None));
    content.raw("\">Keep it</a></p></form></div>");
    page(
        "Free a key",
        seen.key(),
        &below_the_list(&heading),
        &content,
    )
}

/// Something that went wrong. `why` may be of the store.
pub(crate) fn trouble(why: &str) -> String {
    let mut heading = Html::new();
    heading.raw("<h1>It did not work</h1>");
    let mut content = Html::new();
    content
        .raw("<p role=\"alert\" class=\"card odd\" data-testid=\"trouble\">")
        .text(why);
    content.raw("</p>");
    page("It did not work", "", &below_the_list(&heading), &content)
}

pub(crate) fn address(path: &str, key: &str, holder: Option<&str>) -> String {
    let mut address = format!("{path}?key={}", in_address(key));
    if let Some(holder) = holder {
        address += &format!("&holder={}", in_address(holder));
    }
    address
}
