//! The address of a client behind trusted proxies.
//!
//! Each proxy appends the address from which it was called. The client's own text stands on the left,
//! so positions are counted from the right. With one trusted proxy the last address is the client's.
//! A header that the proxies do not write contains only the client's text. The template therefore
//! chooses the header, and the request cannot.

use std::net::{IpAddr, Ipv6Addr};

use http::header::{FORWARDED, HeaderName};
use http::{HeaderMap, HeaderValue};

/// The reason why there is no address.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NoAddress {
    /// The header has fewer addresses than there are proxies, or the proxy did not know it.
    Missing,
    Malformed,
}

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// Reads `X-Forwarded-For`, which contains addresses with commas between them.
pub(super) fn by_x_forwarded_for(headers: &HeaderMap, hops: usize) -> Result<String, NoAddress> {
    let list = joined(headers, &X_FORWARDED_FOR)?;
    let place = list.rsplit(',').nth(hops - 1);
    node(place.ok_or(NoAddress::Missing)?.trim())
}

/// Reads `Forwarded` (RFC 7239), which contains pairs with optional quotes.
///
/// It is parsed strictly from its beginning. A quote that a client left open makes the whole header
/// malformed, so it cannot hide the text that a proxy appended.
pub(super) fn by_forwarded(headers: &HeaderMap, hops: usize) -> Result<String, NoAddress> {
    let list = joined(headers, &FORWARDED)?;
    let elements = elements(&list).ok_or(NoAddress::Malformed)?;
    let place = elements.into_iter().rev().nth(hops - 1);
    let client = place.ok_or(NoAddress::Missing)?.ok_or(NoAddress::Missing)?;
    node(&client)
}

/// Joins several lines of one header into one list.
fn joined(headers: &HeaderMap, name: &HeaderName) -> Result<String, NoAddress> {
    let lines: Result<Vec<_>, _> = headers
        .get_all(name)
        .iter()
        .map(HeaderValue::to_str)
        .collect();
    let lines = lines.map_err(|_| NoAddress::Malformed)?;
    if lines.is_empty() {
        return Err(NoAddress::Missing);
    }
    Ok(lines.join(","))
}

/// Returns the `for` of each element of a `Forwarded` list, or `None` if the list is malformed.
fn elements(list: &str) -> Option<Vec<Option<String>>> {
    let mut elements = vec![None];
    let mut rest = list.trim_ascii_start();
    while let Some(first) = rest.chars().next() {
        if first != ',' && first != ';' {
            let (name, after) = token(rest)?;
            let (value, after) = value(after.strip_prefix('=')?)?;
            let client = elements.last_mut()?;
            if name.eq_ignore_ascii_case("for") && client.replace(value).is_some() {
                return None;
            }
            rest = after.trim_ascii_start();
        }
        // Only one of these separators may stand between two pairs.
        match rest.chars().next() {
            None => break,
            Some(',') => elements.push(None),
            Some(';') => {}
            Some(_) => return None,
        }
        rest = rest[1..].trim_ascii_start();
    }
    Some(elements)
}

/// Splits off a token.
fn token(text: &str) -> Option<(&str, &str)> {
    let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    let end = text.find(|c| !is_token(c)).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

/// Splits off a token or a quoted string.
///
/// It accepts addresses with colons and brackets without quotes, because some proxies omit them.
fn value(text: &str) -> Option<(String, &str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        let is_bare = |c: char| c.is_ascii_graphic() && !"\",;=\\".contains(c);
        let end = text.find(|c| !is_bare(c)).unwrap_or(text.len());
        return (end > 0).then(|| (text[..end].to_owned(), &text[end..]));
    };
    let mut value = String::new();
    let mut characters = quoted.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((value, &quoted[at + 1..])),
            '\\' => value.push(characters.next()?.1),
            _ => value.push(character),
        }
    }
    None
}

/// Returns the canonical spelling of a node, which is an address without its port.
///
/// It accepts the obfuscated names that a proxy may write in place of addresses.
fn node(written: &str) -> Result<String, NoAddress> {
    if written.is_empty() || written.eq_ignore_ascii_case("unknown") {
        return Err(NoAddress::Missing);
    }
    if let Some(bracketed) = written.strip_prefix('[') {
        let (address, port) = bracketed.split_once(']').ok_or(NoAddress::Malformed)?;
        return match port.strip_prefix(':') {
            Some(port) if is_port(port) => v6(address),
            None if port.is_empty() => v6(address),
            _ => Err(NoAddress::Malformed),
        };
    }
    match written.split_once(':') {
        Some((_, after)) if after.contains(':') => v6(written),
        Some((node, port)) if is_port(port) => v4_or_name(node),
        Some(_) => Err(NoAddress::Malformed),
        None => v4_or_name(written),
    }
}

fn v4_or_name(written: &str) -> Result<String, NoAddress> {
    let in_obfuscated_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    match written.parse::<IpAddr>() {
        Ok(address) => Ok(address.to_string()),
        Err(_) if written.starts_with('_') && written.chars().all(in_obfuscated_name) => {
            Ok(written.into())
        }
        Err(_) => Err(NoAddress::Malformed),
    }
}

/// Returns the canonical spelling of an IPv6 address with its zone.
fn v6(written: &str) -> Result<String, NoAddress> {
    let (address, zone) = match written.split_once('%') {
        Some((address, zone)) => (address, Some(zone)),
        None => (written, None),
    };
    let address: Ipv6Addr = address.parse().map_err(|_| NoAddress::Malformed)?;
    let address = address.to_canonical();
    let is_zone = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '~');
    match zone {
        None => Ok(address.to_string()),
        Some(zone) if !zone.is_empty() && zone.chars().all(is_zone) => {
            Ok(format!("{address}%{zone}"))
        }
        Some(_) => Err(NoAddress::Malformed),
    }
}

/// Returns whether it is a port number or an obfuscated port.
fn is_port(port: &str) -> bool {
    let in_obfuscated_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    match port.strip_prefix('_') {
        Some(name) => !name.is_empty() && name.chars().all(in_obfuscated_name),
        None => port.parse::<u16>().is_ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: HeaderName, lines: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(&name, HeaderValue::from_str(line).unwrap());
        }
        headers
    }

    fn x(lines: &[&str], hops: usize) -> Result<String, NoAddress> {
        by_x_forwarded_for(&headers(X_FORWARDED_FOR, lines), hops)
    }

    fn standard(lines: &[&str], hops: usize) -> Result<String, NoAddress> {
        by_forwarded(&headers(FORWARDED, lines), hops)
    }

    const MISSING: Result<String, NoAddress> = Err(NoAddress::Missing);
    const MALFORMED: Result<String, NoAddress> = Err(NoAddress::Malformed);

    fn is(address: &str) -> Result<String, NoAddress> {
        Ok(address.to_owned())
    }

    #[test]
    fn places_are_counted_from_the_right_and_over_all_lines() {
        let lines = ["6.6.6.6, 1.1.1.1", "2.2.2.2"];
        assert_eq!(x(&lines, 1), is("2.2.2.2"));
        assert_eq!(x(&lines, 2), is("1.1.1.1"));
        assert_eq!(x(&lines, 4), MISSING);
        assert_eq!(x(&[], 1), MISSING);
        let lines = ["for=6.6.6.6;proto=http, For=1.1.1.1", "by=_lb;for=2.2.2.2"];
        assert_eq!(standard(&lines, 1), is("2.2.2.2"));
        assert_eq!(standard(&lines, 2), is("1.1.1.1"));
        assert_eq!(standard(&lines, 4), MISSING);
        assert_eq!(standard(&[], 1), MISSING);
    }

    #[test]
    fn text_that_a_client_writes_never_becomes_its_address() {
        for spoofed in [
            "",
            ",",
            "6.6.6.6",
            "6.6.6.6,",
            "\"",
            "unknown",
            "6.6.6.6, ,7.7.7.7",
            "[",
            ";",
        ] {
            assert_eq!(
                x(&[&format!("{spoofed}, 1.1.1.1")], 1),
                is("1.1.1.1"),
                "{spoofed}"
            );
            assert_eq!(x(&[spoofed, "1.1.1.1"], 1), is("1.1.1.1"), "{spoofed}");
        }
        for spoofed in [
            "",
            ",",
            ";",
            "for=6.6.6.6",
            "for=6.6.6.6,",
            "for=6.6.6.6;",
            "for=\"6.6.6.6\"",
            "for=unknown",
            "\"",
            "for=\"",
            "for=\"6.6.6.6, ",
            "for=\"\\",
            "x=\", ",
            "for",
            "for=",
            "=",
            "for=6.6.6.6 for=7.7.7.7",
        ] {
            for appended in [
                "for=1.1.1.1",
                "for=\"1.1.1.1:80\";proto=https",
                "by=\"[::1]\";for=\"1.1.1.1\"",
            ] {
                for found in [
                    standard(&[&format!("{spoofed}, {appended}")], 1),
                    standard(&[spoofed, appended], 1),
                ] {
                    assert!(
                        found == is("1.1.1.1") || found == MALFORMED,
                        "{spoofed:?} {appended:?}: {found:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn an_address_has_one_spelling_and_no_port() {
        for (written, address) in [
            ("192.0.2.1", "192.0.2.1"),
            ("192.0.2.1:4711", "192.0.2.1"),
            ("2001:DB8:0:0::1", "2001:db8::1"),
            ("[2001:db8::1]", "2001:db8::1"),
            ("[2001:db8::1]:4711", "2001:db8::1"),
            ("::ffff:192.0.2.1", "192.0.2.1"),
            ("fe80::1%eth0", "fe80::1%eth0"),
            ("[fe80::1%eth0]:80", "fe80::1%eth0"),
            ("_hidden", "_hidden"),
            ("_hidden:_port", "_hidden"),
        ] {
            assert_eq!(x(&[written], 1), is(address), "{written}");
            assert_eq!(
                standard(&[&format!("for=\"{written}\"")], 1),
                is(address),
                "{written}"
            );
            assert_eq!(
                standard(&[&format!("for={written};proto=http")], 1),
                is(address),
                "{written}"
            );
        }
    }

    #[test]
    fn other_text_is_malformed_and_an_unknown_address_is_missing() {
        for strange in [
            "hidden",
            "1.2.3",
            "1.2.3.4:x",
            "[::1",
            "[::1]x",
            "[::1]:99999",
            "fe80::1%",
            "::g",
            "1.2.3.4 5",
        ] {
            assert_eq!(x(&[strange], 1), MALFORMED, "{strange}");
        }
        for unknown in ["unknown", "Unknown", "", " "] {
            assert_eq!(x(&[unknown], 1), MISSING, "{unknown}");
        }
        assert_eq!(standard(&["for=unknown"], 1), MISSING);
        assert_eq!(standard(&["proto=https"], 1), MISSING);
        for strange in [
            "for",
            "for=",
            "for=a b",
            "for=1.1.1.1;for=1.1.1.1",
            "for=\"1.1.1.1",
            "f\u{e9}r=1.1.1.1",
        ] {
            assert_eq!(standard(&[strange], 1), MALFORMED, "{strange}");
        }
    }
}
