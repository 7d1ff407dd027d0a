use super::*;
use crate::{ErrorKind, LockManager};

fn parsed(url: &str) -> PostgresUrl {
    PostgresUrl::parse(url).unwrap_or_else(|error| panic!("{url}: {error}"))
}

#[test]
fn hosts_stand_in_their_order_and_only_the_primary_is_used() {
    let url = parsed("postgresql://app:sesame@a:5433,b/shop");
    let hosts = url.config.get_hosts().len();
    assert_eq!((hosts, url.config.get_ports()), (2, &[5433, 5432][..]));
    assert_eq!(url.config.get_dbname(), Some("shop"));
    let target = url.config.get_target_session_attrs();
    assert_eq!(target, TargetSessionAttrs::ReadWrite);
    assert!(url.prepares && !url.is_pooled());
}

#[test]
fn a_pooler_has_another_way_for_the_listener() {
    let url = parsed(
        "postgres://app@pool/shop?prepare=off&listen=postgres://app@db:5433/shop?sslmode=disable%26host=%2Frun",
    );
    assert!(!url.prepares && url.is_pooled());
    assert_eq!(url.config.get_ports(), [5432]);
    assert_eq!(url.listening().get_ports()[0], 5433);
    let direct = parsed("postgres://app@db/shop");
    assert_eq!(direct.listening().get_ports(), [5432]);
}

#[test]
fn no_part_of_a_url_is_ignored_and_no_error_repeats_it() {
    for url in [
        "postgres://app:sesame@a/shop?target_session_attrs=any",
        "postgres://app:sesame@a/shop?target_session_attrs=standby",
        "postgres://app:sesame@a/shop?sslmode=maybe",
        "postgres://app:sesame@a/shop?prepare=sesame",
        "postgres://app:sesame@a/shop?listen=redis://sesame",
        "postgres://app:sesame@a/shop?listen=%zz",
        "postgres://app:sesame@a/shop?prepared=off",
        "postgres://app:sesame@a/shop?prepare=off&prepare=off",
        "postgres://app:sesame@a/shop?options=-csearch_path=sesame",
        "postgres://app:sesame@a:port/shop",
        "postgres://app:sesame@a/shop#sesame",
        "postgres:///sesame",
        "postgres://app:sesame@a/shop?replica_acks=1",
        "redlock://postgres://sesame@a,b,c",
    ] {
        let error = LockManager::connect_lazy(url).map(drop).expect_err(url);
        assert_eq!(error.kind(), ErrorKind::Invalid, "{url}");
        let shown = format!("{error} {error:?}");
        assert!(!shown.contains("sesame"), "{shown}");
    }
}

#[test]
fn tls_is_asked_for_by_the_words_of_libpq() {
    let mode = |word: &str| {
        let url = format!("postgres://app@a/shop?sslmode={word}");
        PostgresUrl::parse(&url).map(|url| url.config.get_ssl_mode())
    };
    assert_eq!(mode("disable").ok(), Some(SslMode::Disable));
    for word in ["require", "verify-ca", "verify-full"] {
        match cfg!(feature = "postgres-tls") {
            true => assert_eq!(mode(word).ok(), Some(SslMode::Require), "{word}"),
            false => {
                let error = mode(word).expect_err("it needs a feature");
                assert!(error.to_string().contains("postgres-tls"), "{error}");
            }
        }
    }
}
