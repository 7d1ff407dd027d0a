//! The results as an SVG picture: one row for each way, one panel for each measure.

use std::fmt::Write;

use crate::report::{Row, Verdict};

const WIDTH: u32 = 960;
const TOP: u32 = 104;
const ROW: u32 = 40;

/// A column of bars, all drawn to one scale.
struct Panel {
    title: &'static str,
    left: u32,
    /// The length of the longest bar.
    width: u32,
    color: &'static str,
    value: fn(&Row) -> f64,
    unit: &'static str,
}

const PANELS: [Panel; 3] = [
    Panel {
        title: "orders a second",
        left: 214,
        width: 140,
        color: "#0f766e",
        value: |row| row.load.orders_a_second(),
        unit: "",
    },
    Panel {
        title: "refused attempts",
        left: 420,
        width: 90,
        color: "#8a5a00",
        value: |row| row.load.refused as f64,
        unit: "",
    },
    Panel {
        title: "a freeze: others wait",
        left: 570,
        width: 110,
        color: "#5f6664",
        value: |row| row.freeze.others_waited.as_secs_f64() * 1000.0,
        unit: " ms",
    },
];

const VERDICTS: u32 = 776;

/// Draws the rows. `title` and `subtitle` must not contain markup.
pub(crate) fn svg(title: &str, subtitle: &str, rows: &[Row]) -> String {
    let height = TOP + ROW * rows.len() as u32 + 16;
    let mut svg = format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" font-family="system-ui, 'DejaVu Sans', sans-serif" font-size="14" fill="#1d2021">
<title>{title}</title>
<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>
<text x="20" y="34" font-size="20" font-weight="700">{title}</text>
<text x="20" y="58" fill="#5f6664">{subtitle}</text>
"##
    );
    let heads = PANELS.iter().map(|panel| (panel.left, panel.title));
    for (left, head) in heads.chain([(VERDICTS, "verdict")]) {
        text(&mut svg, left, TOP - 12, "#5f6664", head);
    }
    for (index, row) in rows.iter().enumerate() {
        let top = TOP + ROW * index as u32;
        let line = format!(r##"<path d="M20 {top}H{}" stroke="#e2e2dc"/>"##, WIDTH - 20);
        svg += &line;
        text(&mut svg, 20, top + 25, "#1d2021", row.name);
        for panel in &PANELS {
            panel.draw(&mut svg, row, rows, top);
        }
        let (color, words) = match row.verdict() {
            Verdict::Never => ("#0f766e", "never oversold".to_owned()),
            Verdict::WhenFrozen => ("#b3261e", "oversold after a freeze".to_owned()),
            Verdict::Always => ("#b3261e", format!("oversold by {}", row.load.oversold)),
        };
        text(&mut svg, VERDICTS, top + 25, color, &words);
        svg.push('\n');
    }
    svg + "</svg>\n"
}

impl Panel {
    fn draw(&self, svg: &mut String, row: &Row, rows: &[Row], top: u32) {
        let longest = rows.iter().map(self.value).fold(1.0, f64::max);
        let value = (self.value)(row);
        let width = value / longest * f64::from(self.width);
        let (left, color, unit) = (self.left, self.color, self.unit);
        let (y, after) = (top + 10, left + width as u32 + 6);
        let bar = format!(
            r#"<rect x="{left}" y="{y}" width="{width:.1}" height="20" rx="2" fill="{color}"/>"#
        );
        svg.push_str(&bar);
        text(
            svg,
            after,
            top + 25,
            "#1d2021",
            &format!("{value:.0}{unit}"),
        );
    }
}

fn text(svg: &mut String, x: u32, y: u32, color: &str, words: &str) {
    // Writing to a string does not fail.
    let _ = write!(
        svg,
        r#"<text x="{x}" y="{y}" fill="{color}">{words}</text>"#
    );
}
