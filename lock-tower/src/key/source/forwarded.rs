//! The address of a client behind proxies that can be trusted, and that alone.
//!
//! Each proxy appends the address that it was called from. Whatever a client writes itself stands on
//! the left, so places are counted from the right: with one trusted proxy the last one is the
//! client's. A header that the proxies do not write is the client's own text, which is why the
//! template, and not the request, says which of the two it is.

use std::net::{IpAddr, Ipv6Addr};

use http::header::{FORWARDED, HeaderName};
use http::{HeaderMap, HeaderValue};

/// Why there is none.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NoAddress {
    /// Fewer hops than proxies, or the proxy did not know it.
    Missing,
    Malformed,
}

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// `X-Forwarded-For`: addresses, separated by commas.
pub(super) fn by_x_forwarded_for(headers: &HeaderMap, hops: usize) -> Result<String, NoAddress> {
    let list = joined(headers, &X_FORWARDED_FOR)?;
    let place = list.rsplit(',').nth(hops - 1);
    node(place.ok_or(NoAddress::Missing)?.trim())
}

/// `Forwarded` (RFC 7239): pairs, some quoted. It is read strictly, from its beginning: a quote that
/// a client has left open cannot swallow what a proxy has appended without making it malformed.
pub(super) fn by_forwarded(headers: &HeaderMap, hops: usize) -> Result<String, NoAddress> {
    let list = joined(headers, &FORWARDED)?;
    let elements = elements(&list).ok_or(NoAddress::Malformed)?;
    let place = elements.into_iter().rev().nth(hops - 1);
    let client = place.ok_or(NoAddress::Missing)?.ok_or(NoAddress::Missing)?;
    node(&client)
}

/// Several lines of one header are one list.
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

/// The `for` of each element of a `Forwarded` list; `None` if it is no such list.
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
        // Between two pairs stands one of these, and nothing else does.
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

/// A token, and what comes after it.
fn token(text: &str) -> Option<(&str, &str)> {
    let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    let end = text.find(|c| !is_token(c)).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

/// A token or a quoted string, and what comes after it. Addresses with colons and brackets, which
/// should be quoted, come without quotes too.
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

/// One spelling of a node: an address without its port. Names that a proxy made up to hide addresses
/// are as good.
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
    let made_up = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    match written.parse::<IpAddr>() {
        Ok(address) => Ok(address.to_string()),
        Err(_) if written.starts_with('_') && written.chars().all(made_up) => Ok(written.into()),
        Err(_) => Err(NoAddress::Malformed),
    }
}

/// The zone of a link-local address belongs to it.
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

/// A number, or what a proxy made up.
fn is_port(port: &str) -> bool {
    let made_up = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    match port.strip_prefix('_') {
        Some(name) => !name.is_empty() && name.chars().all(made_up),
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
    fn what_a_client_writes_itself_never_becomes_its_address() {
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
    fn what_is_no_address_is_malformed_and_an_unknown_one_missing() {
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
