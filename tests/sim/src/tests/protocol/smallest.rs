//! The fewest steps that show a difference.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::both::{Both, Step};

/// Leaves steps out for as long as there is a difference. Returns the rest, and the difference.
pub fn of(steps: &[Step], scripts: &BTreeMap<String, String>) -> String {
    let mut left = steps.to_vec();
    let mut size = left.len() / 2;
    while size > 0 {
        let mut at = 0;
        while at < left.len() {
            let mut fewer = left.clone();
            fewer.drain(at..(at + size).min(left.len()));
            match difference(&fewer, scripts) {
                Some((length, _)) => {
                    fewer.truncate(length);
                    left = fewer;
                }
                None => at += size,
            }
        }
        size /= 2;
    }
    let mut text = String::new();
    for step in &left {
        writeln!(text, "{step}").expect("a text grows");
    }
    let difference = difference(&left, scripts).expect("it was there before");
    text + &difference.1
}

/// The number of steps up to the first difference, and this difference.
fn difference(steps: &[Step], scripts: &BTreeMap<String, String>) -> Option<(usize, String)> {
    let mut both = Both::new(scripts);
    for (index, step) in steps.iter().enumerate() {
        if let Err(difference) = both.run(step) {
            return Some((index + 1, difference));
        }
    }
    None
}
