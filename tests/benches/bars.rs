//! Compares measurements with their required bounds. A missed bound fails nothing, because a busy
//! machine is no bug.

#[derive(Default)]
pub(crate) struct Bars(Vec<Bar>);

struct Bar {
    what: String,
    measured: f64,
    sign: &'static str,
    bar: f64,
    /// The measurement relative to its bound. Above 1, the bound is missed.
    part: f64,
}

impl Bar {
    fn holds(&self) -> bool {
        self.part <= 1.0
    }
}

impl Bars {
    pub(crate) fn at_most(&mut self, what: impl Into<String>, measured: f64, bar: f64) {
        self.0.push(Bar {
            what: what.into(),
            measured,
            sign: "≤",
            bar,
            part: measured / bar,
        });
    }

    pub(crate) fn at_least(&mut self, what: impl Into<String>, measured: f64, bar: f64) {
        self.0.push(Bar {
            what: what.into(),
            measured,
            sign: "≥",
            bar,
            part: bar / measured,
        });
    }

    /// Prints the table.
    pub(crate) fn print(&self) {
        if self.0.is_empty() {
            return;
        }
        println!("\n| requirement | measured | bar | |");
        println!("| --- | --- | --- | --- |");
        for bar in &self.0 {
            let verdict = if bar.holds() { "holds" } else { "**missed**" };
            println!(
                "| {} | {:.2} | {} {:.2} | {verdict} |",
                bar.what, bar.measured, bar.sign, bar.bar
            );
        }
    }
}
