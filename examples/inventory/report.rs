//! The results as a table of Markdown.

use crate::freeze::Thawed;
use crate::load::Sold;
use crate::ways::Outcome;

/// The results of one way.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) load: Sold,
    pub(crate) freeze: Thawed,
}

impl Row {
    pub(crate) fn verdict(&self) -> Verdict {
        match (self.load.oversold, self.freeze.oversold) {
            (0, 0) => Verdict::Never,
            (0, _) => Verdict::WhenFrozen,
            _ => Verdict::Always,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Never,
    WhenFrozen,
    Always,
}

pub(crate) fn table(rows: &[Row]) -> String {
    let mut table = "\
        | way | orders a second | refused attempts | oversold | freeze: others wait | freeze: late write | freeze: oversold |\n\
        | --- | ---: | ---: | ---: | ---: | --- | ---: |\n"
        .to_owned();
    for Row { name, load, freeze } in rows {
        let (rate, refused, oversold) = (load.orders_a_second(), load.refused, load.oversold);
        let waited = freeze.others_waited.as_secs_f64() * 1000.0;
        let (late, frozen) = (late(freeze.late), freeze.oversold);
        table += &format!(
            "| {name} | {rate:.0} | {refused} | {oversold} | {waited:.0} ms | {late} | {frozen} |\n"
        );
    }
    table
}

fn late(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Sold => "written",
        Outcome::Refused => "refused",
        Outcome::SoldOut => "finds no stock",
    }
}
