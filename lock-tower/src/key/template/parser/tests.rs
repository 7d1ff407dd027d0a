use super::*;

fn parsed(template: &str) -> Result<Template, TemplateError> {
    parse_template(&template.into(), AllowedSources::HeadAndBody)
}

#[test]
fn a_mistake_is_named_with_its_position_and_what_to_write() {
    for (template, position, hints) in [
        ("", 0, &["one lock"][..]),
        ("submit", 0, &["one lock"]),
        ("!x:<method>", 0, &["`!`"]),
        ("k:<header.a", 2, &["not closed", "`<<`"]),
        ("k>:<header.a>", 1, &["`>>`"]),
        (
            "k:<headers.a>",
            2,
            &["did you mean `<header.a>`", "`<cookie.NAME>`"],
        ),
        ("k:<x-user-id>", 2, &["did you mean `<header.x-user-id>`"]),
        (
            "k:<uid>",
            2,
            &[
                "LockLayer::from_fn",
                "`<header.NAME>`",
                "`<json>`, `<json./POINTER>`",
            ],
        ),
        ("k:<header>", 2, &["`<header.NAME>`"]),
        ("k:<header.>", 2, &["`<header.NAME>`"]),
        ("k:<header.a b>", 2, &["not a valid name of a header"]),
        ("k:<header.host>", 2, &["HTTP/2", "`<host>`"]),
        ("k:<header.Cookie>", 2, &["HTTP/2", "`<cookie.NAME>`"]),
        ("k:<header.:authority>", 2, &["`<host>`"]),
        ("k:<hostname>", 2, &["did you mean `<host>`"]),
        ("k:<:authority>", 2, &["did you mean `<host>`"]),
        ("k:<cookie.a b>", 2, &["not a valid name of a cookie"]),
        ("k:<method.x>", 2, &["`<method>`"]),
        ("k:<>", 2, &["`<header.NAME>`"]),
        ("k:<ip>", 2, &["did you mean `<peer>`"]),
        (
            "k:<idempotency_key>",
            2,
            &["did you mean `<idempotency-key>`"],
        ),
        ("k:<sesion.sid>", 2, &["did you mean `<session.sid>`"]),
        (
            "k:<ext.tenant>",
            2,
            &["no extension is registered as `tenant`", ".extension("],
        ),
        ("k:<forwarded>", 2, &["`<forwarded.PROXIES>`"]),
        ("k:<forwarded.0>", 2, &["`<forwarded.1>`", "`<peer>`"]),
        ("k:<x-forwarded-for.x>", 2, &["`<x-forwarded-for.1>`"]),
        ("k:<form>", 2, &["`<form.NAME>`"]),
        (
            "k:<method>:<header.a|upper>",
            20,
            &["no filter `upper`", "`|lower`"],
        ),
        ("k:<header.a|lover>", 11, &["did you mean `|lower`"]),
        (
            "k:<header.a|lower|sha-256>",
            17,
            &["did you mean `|sha256`"],
        ),
        ("k:<header.a|lower?>", 11, &["`?` before"]),
        ("k:<method><route>", 10, &["told apart", "`:`"]),
        ("k:<method>-<route>", 11, &["told apart"]),
        ("k:{header.a}:<method>", 2, &["write `<header.a>`"]),
        (
            "k:{header.a?|lower}:<method>",
            2,
            &["write `<header.a?|lower>`"],
        ),
        ("k:{method}", 2, &["write `<method>`"]),
        (
            "k:[uid]:<method>",
            2,
            &["`[uid]` is plain text", "; write "],
        ),
        ("<method>:[header.a]", 9, &["write `<header.a>`"]),
        (
            "k:{}:<method>",
            2,
            &["`{}` is plain text", "`<header.x-user-id>`"],
        ),
        ("k:%s:<method>", 2, &["`%s` is plain text"]),
        ("k:${path}:<method>", 2, &["write `<path>`"]),
        ("/é/:id:<method>", 4, &["`:id` is plain text"]),
        ("é:<methods>", 3, &["did you mean `<method>`"]),
    ] {
        let error = parsed(template).unwrap_err();
        let text = error.to_string();
        assert_eq!(error.position(), position, "{template}: {text}");
        for hint in hints {
            assert!(text.contains(hint), "{template}: {text}");
        }
    }
}

#[test]
fn a_source_that_needs_a_feature_or_the_body_says_so() {
    for (template, feature, built_in) in [
        ("k:<json./a>", "json", cfg!(feature = "json")),
        ("k:<json>", "json", cfg!(feature = "json")),
        ("k:<param.id>", "axum", cfg!(feature = "axum")),
    ] {
        match parsed(template) {
            Ok(_) => assert!(built_in, "{template}"),
            Err(error) => {
                let hint = format!("feature `{feature}`");
                assert!(!built_in && error.to_string().contains(&hint), "{error}");
            }
        }
    }
    let error = parse_template(&"k:<method>:<body>".into(), AllowedSources::Head).unwrap_err();
    assert_eq!(error.position(), 11);
    assert!(
        error.to_string().contains("LockLayer::body_template"),
        "{error}"
    );
}

#[cfg(feature = "json")]
#[test]
fn a_malformed_pointer_is_answered_with_an_example() {
    for template in ["k:<json.order>", "k:<json./a~2>"] {
        let error = parsed(template).unwrap_err().to_string();
        assert!(error.contains("`<json./order/sku>`"), "{error}");
    }
}

#[test]
fn extensions_are_registered_once_and_used() {
    let template = |text: &str| KeyTemplate::new(text).extension("user", |user: &u64| *user);
    assert!(parse_template(&template("k:<ext.user>:<ext.user?>"), AllowedSources::Head).is_ok());
    for (template, hint) in [
        (template("k:<method>"), "write `<ext.user>`"),
        (template("k:<ext.usr>"), "did you mean `<ext.user>`"),
        (
            template("k:<ext.user>").extension("user", |_: &u64| 1),
            "registered twice",
        ),
    ] {
        let error = parse_template(&template, AllowedSources::Head)
            .unwrap_err()
            .to_string();
        assert!(error.contains(hint), "{error}");
    }
}

#[test]
fn a_template_longer_than_a_key_is_refused() {
    let error = parsed(&format!("{}:<method>", "x".repeat(1024))).unwrap_err();
    assert!(error.to_string().contains("1024"), "{error}");
}

/// Parses every text of up to five pieces that the parser knows, and longer ones from a
/// deterministic generator.
#[test]
fn no_text_makes_the_parser_panic() {
    const PIECES: [&str; 12] = [
        "<", ">", "?", "|", ".", "{", "}", ":", "é", "method", "header", "lower",
    ];
    let mut texts = vec![String::new()];
    for _ in 0..5 {
        let longer = texts
            .iter()
            .flat_map(|text| PIECES.map(|piece| format!("{text}{piece}")));
        texts = longer.collect();
        texts.iter().for_each(|text| judge(text));
    }
    let mut state = 1_u64;
    for _ in 0..20_000 {
        let mut text = String::new();
        for _ in 0..30 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let pieces = [
                "<",
                ">",
                "json./",
                "~",
                "ext.",
                "forwarded.9",
                "|sha256",
                "?>",
                "<method>",
                "!",
                "\0",
                "😀",
            ];
            text.push_str(pieces[usize::try_from(state >> 60).unwrap() % pieces.len()]);
        }
        judge(&text);
    }
}

fn judge(text: &str) {
    if let Err(error) = parsed(text) {
        assert!(text.is_char_boundary(error.position()), "{text:?}: {error}");
        assert!(!error.to_string().is_empty());
    }
}
