//! Compares measurements with their required bounds. A missed bound fails nothing, because a busy
//! machine is no bug.

use std::fmt::Write;
use std::fs;
use std::path::Path;

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

    /// Prints the table, and writes the same as a picture.
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
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bars.svg");
        fs::write(&path, self.picture()).expect("a picture");
        println!("\npicture of the table: {}", path.display());
    }

    /// Draws a bar for each measurement. One vertical line is the bound of all.
    fn picture(&self) -> String {
        const ROW: usize = 22;
        const LEFT: f64 = 330.0;
        const UNIT: f64 = 200.0;
        let height = (self.0.len() + 2) * ROW;
        let mut svg = format!(
            "<svg xmlns='http://www.w3.org/2000/svg' width='860' height='{height}' \
             font-family='sans-serif' font-size='12'>\n\
             <rect width='860' height='{height}' fill='white'/>\n"
        );
        for (row, bar) in self.0.iter().enumerate() {
            let y = (row + 1) * ROW;
            let colour = if bar.holds() { "#4a8" } else { "#c44" };
            let length = bar.part.clamp(0.005, 2.2) * UNIT;
            let _ = writeln!(
                svg,
                "<text x='{}' y='{}' text-anchor='end'>{}</text>\
                 <rect x='{LEFT}' y='{y}' width='{length:.0}' height='14' fill='{colour}'/>\
                 <text x='{:.0}' y='{}'>{:.2} of {:.2}</text>",
                LEFT - 8.0,
                y + 11,
                escaped(&bar.what),
                LEFT + length + 6.0,
                y + 11,
                bar.measured,
                bar.bar
            );
        }
        let _ = writeln!(
            svg,
            "<line x1='{0}' y1='10' x2='{0}' y2='{1}' stroke='black'/>\n</svg>",
            LEFT + UNIT,
            height - 10
        );
        svg
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}
