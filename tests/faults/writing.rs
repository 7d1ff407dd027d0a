//! Writes into `rows.toml` that the simulation finds a fault.

use std::fs;
use std::path::Path;

use lock_tests::faults::ROWS;

/// Replaces what a row says of the simulation.
pub(crate) fn is_found(workspace: &Path, name: &str, place: &str) -> Result<(), String> {
    let path = workspace.join(ROWS);
    let wrong = |error: std::io::Error| format!("{ROWS}: {error}");
    let text = fs::read_to_string(&path).map_err(wrong)?;
    let mut is_of_row = false;
    let lines = text.lines().map(|line| {
        if let Some(named) = line.strip_prefix("name = ") {
            is_of_row = named == format!("\"{name}\"");
        }
        match is_of_row && line.starts_with("sim = ") {
            true => format!("sim = {{ found = [\"{place}\"] }}\n"),
            false => format!("{line}\n"),
        }
    });
    let written: String = lines.collect();
    fs::write(&path, written).map_err(wrong)
}
