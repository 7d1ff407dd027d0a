//! Canonical spellings of numbers of any size and precision.

/// Returns the canonical spelling of a number, or `None` if its exponent is too large.
///
/// It has significant digits without zeros at either end, and an exponent if the number is long.
pub(super) fn canonical(written: &str) -> Option<String> {
    let (sign, written) = match written.strip_prefix('-') {
        Some(written) => ("-", written),
        None => ("", written),
    };
    let (mantissa, exponent) = written.split_once(['e', 'E']).unwrap_or((written, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let significant = digits.trim_start_matches('0').trim_end_matches('0');
    if significant.is_empty() {
        return Some("0".to_owned());
    }
    let zeros_behind = digits.len() - digits.trim_end_matches('0').len();
    let exponent = i64::from(exponent.parse::<i32>().ok()?);
    let exponent =
        exponent + i64::try_from(zeros_behind).ok()? - i64::try_from(fraction.len()).ok()?;
    Some(match exponent {
        0 => format!("{sign}{significant}"),
        // Short numbers have no exponent.
        1..=20 => format!(
            "{sign}{significant}{}",
            "0".repeat(usize::try_from(exponent).ok()?)
        ),
        _ => format!("{sign}{significant}e{exponent}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_spellings_of_a_number_are_one_and_different_ones_stay_different() {
        for (number, spellings) in [
            (
                "0",
                &["0", "-0", "0.0", "0e5", "-0.00E-9", "0e2147483647"][..],
            ),
            ("1", &["1", "1.0", "1e0", "10e-1", "0.1E+1", "1000e-3"]),
            ("1500", &["1500", "1.5e3", "15E2", "1500.00"]),
            ("-15e-1", &["-1.5", "-15e-1", "-0.015e2"]),
            (
                "18446744073709551617",
                &["18446744073709551617", "18446744073709551617.0"],
            ),
            ("1e21", &["1e21", "1000000000000000000000"]),
            ("100000000000000000000", &["1e20", "100000000000000000000"]),
        ] {
            for spelling in spellings {
                assert_eq!(canonical(spelling).as_deref(), Some(number), "{spelling}");
            }
        }
        assert_eq!(canonical("1e99999999999"), None);
    }
}
