//! Numbers as Redis reads and prints them.

use super::resp::Failure;

pub(super) const NOT_AN_INTEGER: Failure =
    Failure::Borrowed("ERR value is not an integer or out of range");

/// A number with a fraction, as a server of one version prints it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Float {
    pub(super) value: f64,
    pub(super) style: Style,
}

/// How a server prints a floating-point number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Style {
    /// C's `%.17g`, before Redis 7.2.
    #[default]
    SeventeenDigits,
    /// The fewest digits that give the same number back.
    Shortest,
}

/// Reads an integer as Redis does: no sign but `-`, no leading zero.
pub(super) fn integer(text: &[u8]) -> Result<i64, Failure> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let plain = match digits {
        b"0" => text.len() == 1,
        [first, ..] => *first != b'0' && digits.iter().all(u8::is_ascii_digit),
        [] => false,
    };
    let text = std::str::from_utf8(text).ok().filter(|_| plain);
    text.and_then(|text| text.parse().ok())
        .ok_or(NOT_AN_INTEGER)
}

/// Reads a floating-point number.
pub(super) fn float(text: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(text).ok()?;
    text.parse().ok().filter(|number: &f64| !number.is_nan())
}

impl Float {
    pub(super) fn text(&self) -> String {
        let value = self.value;
        if value.is_infinite() {
            return if value > 0.0 { "inf" } else { "-inf" }.to_owned();
        }
        match self.style {
            Style::SeventeenDigits => seventeen_digits(value),
            Style::Shortest => shortest(value),
        }
    }
}

/// Prints a number as C's `%.17g`.
pub(super) fn seventeen_digits(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 1e17 {
        return format!("{value:.0}");
    }
    let (negative, digits, exponent) = scientific(&format!("{value:.16e}"));
    let digits = match digits.trim_end_matches('0') {
        "" => "0",
        digits => digits,
    };
    let text = match exponent {
        -4..0 => ["0.", &"0".repeat((-exponent - 1) as usize), digits].concat(),
        0..17 => with_point(digits, exponent as usize + 1),
        _ => exponential(digits, exponent, 2),
    };
    [negative, &text].concat()
}

/// Prints a number as later servers: a whole number as an integer, another one as their `fpconv_dtoa` does.
pub(super) fn shortest(value: f64) -> String {
    // Half of what an integer of 64 bits holds.
    if value.fract() == 0.0 && value.abs() <= i64::MAX as f64 / 2.0 {
        return format!("{value:.0}");
    }
    let (negative, digits, exponent) = scientific(&format!("{value:e}"));
    let count = digits.len() as i32;
    // The exponent of the last digit.
    let last = exponent - count + 1;
    let text = if last >= 0 && exponent.abs() < count + 7 {
        [digits.as_str(), &"0".repeat(last as usize)].concat()
    } else if last < 0 && (last > -7 || exponent.abs() < 4) {
        if exponent < 0 {
            let zeros = "0".repeat((-exponent - 1) as usize);
            ["0.", &zeros, &digits].concat()
        } else {
            with_point(&digits, exponent as usize + 1)
        }
    } else {
        exponential(&digits, exponent, 1)
    };
    [negative, &text].concat()
}

/// Returns the sign, the digits and the exponent of Rust's scientific notation.
fn scientific(text: &str) -> (&'static str, String, i32) {
    let (negative, text) = match text.strip_prefix('-') {
        Some(text) => ("-", text),
        None => ("", text),
    };
    let (digits, exponent) = text.split_once('e').expect("an exponent");
    let exponent = exponent.parse().expect("a number");
    (negative, digits.replace('.', ""), exponent)
}

fn with_point(digits: &str, before: usize) -> String {
    if digits.len() <= before {
        return [digits, &"0".repeat(before - digits.len())].concat();
    }
    let (whole, fraction) = digits.split_at(before);
    [whole, ".", fraction].concat()
}

fn exponential(digits: &str, exponent: i32, width: usize) -> String {
    let (first, rest) = digits.split_at(1);
    let point = if rest.is_empty() { "" } else { "." };
    let sign = if exponent < 0 { '-' } else { '+' };
    let exponent = exponent.abs();
    format!("{first}{point}{rest}e{sign}{exponent:0width$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_read_as_strictly_as_redis_reads_them() {
        for good in ["0", "-1", "9223372036854775807", "-9223372036854775808"] {
            assert_eq!(integer(good.as_bytes()), Ok(good.parse().unwrap()));
        }
        for bad in [
            "",
            "-",
            "-0",
            "+1",
            "01",
            " 1",
            "1 ",
            "1.0",
            "1e3",
            "9223372036854775808",
        ] {
            assert_eq!(integer(bad.as_bytes()), Err(NOT_AN_INTEGER), "{bad}");
        }
    }

    #[test]
    fn numbers_are_printed_as_the_versions_of_redis_do() {
        for (value, earlier, later) in [
            (1.0, "1", "1"),
            (-3.0, "-3", "-3"),
            (0.1, "0.10000000000000001", "0.1"),
            (2.5, "2.5", "2.5"),
            (0.00012, "0.00012", "0.00012"),
            (0.000012, "1.2e-05", "0.000012"),
            (1.7e15, "1700000000000000", "1700000000000000"),
            (1795479580784343.0, "1795479580784343", "1795479580784343"),
            (1e17, "1e+17", "100000000000000000"),
            (-0.0, "-0", "-0"),
            (1.5e20, "1.5e+20", "1.5e+20"),
            (123456.75, "123456.75", "123456.75"),
        ] {
            assert_eq!(seventeen_digits(value), earlier);
            assert_eq!(shortest(value), later);
        }
    }
}
