//! Tests that a shop that cannot start prints the reason and the remedy, and ends.

use std::net::TcpListener;

use lock_tests::{Answer, FakeServer, Port, RedisServer, ShopOptions, ShopProcess, needs, wait};

/// Returns the output of a shop that ends by itself without success.
#[track_caller]
fn refuses(options: ShopOptions) -> String {
    let mut process = options.spawn();
    let status = process.wait(wait::PATIENCE);
    let status = status.unwrap_or_else(|| panic!("the shop runs:\n{}", process.output()));
    assert!(!status.success(), "{status}: {}", process.output());
    let _ = process.line(wait::PATIENCE, |_| false);
    let said = process.output();
    assert!(said.starts_with("shop: "), "{said}");
    assert!(!said.contains("panicked"), "{said}");
    said
}

#[track_caller]
fn says(said: &str, words: &[&str]) {
    for word in words {
        assert!(said.contains(word), "{word:?} is not in {said:?}");
    }
}

fn with_url(url: &str) -> ShopOptions {
    ShopProcess::options().env("REDIS_URL", url)
}

#[test]
fn the_opening_line_names_the_url_and_the_place_of_the_locks() {
    let mut shop = ShopProcess::start();
    let opening = shop.opening().to_owned();
    says(&opening, &[&shop.url(), "in this process", "temporary"]);
    assert_eq!(shop.process().output(), opening);
}

#[test]
fn a_port_that_is_taken_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("bound").port().to_string();
    let said = refuses(ShopProcess::options().env("PORT", &port));
    says(&said, &[&port, "PORT=0"]);
}

#[test]
fn an_invalid_port_is_refused() {
    for port in ["http", "-1", "65536", "3000 ", "0x50"] {
        let said = refuses(ShopProcess::options().env("PORT", port));
        says(&said, &["PORT", port, "0 to 65535"]);
    }
}

#[test]
fn an_unknown_argument_is_refused() {
    let said = refuses(ShopProcess::options().arg("--twins"));
    says(&said, &["--twins", "--help"]);
}

#[test]
fn an_invalid_redis_url_is_refused() {
    for url in [
        "http://127.0.0.1:6379",
        "127.0.0.1:6379",
        "redis://",
        "redis:",
        "redis://127.0.0.1:notaport",
        "redis://127.0.0.1:6379/notadb",
        "nonsense",
        "://",
    ] {
        let said = refuses(with_url(url));
        says(&said, &["the store of the locks"]);
    }
}

#[test]
fn an_invalid_redis_url_does_not_show_its_password() {
    for url in [
        "http://me:opensesame@127.0.0.1:6379",
        "redis://me:opensesame@127.0.0.1:notaport",
        "redis://me:opensesame@127.0.0.1:6379/notadb",
        "redis://me:opensesame",
        "redis://me:open?sesame@127.0.0.1:notaport",
        "me:opensesame@127.0.0.1",
    ] {
        let said = refuses(with_url(url));
        assert!(!said.contains("sesame"), "{said}");
    }
}

#[test]
fn a_missing_redis_is_named() {
    let port = Port::free();
    let address = port.address().to_string();
    let said = refuses(with_url(&format!("redis://:opensesame@{address}")));
    says(&said, &[&address]);
    assert!(!said.contains("sesame"), "{said}");
}

#[test]
fn a_peer_that_is_no_redis_is_refused() {
    let peer = FakeServer::start(Answer::Garbage);
    let said = refuses(with_url(&peer.url()));
    says(&said, &[&peer.address().to_string()]);
}

#[test]
fn a_wrong_password_is_refused_and_not_printed() {
    needs!(redis);
    let server = RedisServer::options().password("right").start();
    let address = server.address().to_string();
    for user_info in [":opensesame", "me:opensesame", "opensesame:"] {
        let said = refuses(with_url(&format!("redis://{user_info}@{address}")));
        says(&said, &[&address]);
        assert!(!said.contains("sesame"), "{said}");
        let words = said.to_lowercase();
        assert!(
            words.contains("password") || words.contains("auth"),
            "{said}"
        );
    }
    let said = refuses(with_url(&format!("redis://{address}")));
    says(&said, &[&address]);
}

#[test]
fn the_right_password_is_not_printed_either() {
    needs!(redis);
    let server = RedisServer::options().password("opensesame").start();
    let mut shop = with_url(&server.url()).start();
    says(shop.opening(), &[&server.address().to_string()]);
    let said = shop.process().output();
    assert!(!said.contains("sesame"), "{said}");
}

#[test]
fn a_pair_without_a_shared_store_is_refused() {
    for url in ["memory:", "memory:shop"] {
        let said = refuses(with_url(url).arg("--pair"));
        says(&said, &["--pair needs a Redis"]);
    }
}

#[test]
fn a_pair_without_its_redis_ends_completely() {
    let port = Port::free();
    let url = format!("redis://:opensesame@{}", port.address());
    let said = refuses(with_url(&url).arg("--pair"));
    assert!(!said.contains("sesame"), "{said}");
}

#[test]
fn a_database_that_cannot_be_opened_is_refused() {
    let said = refuses(ShopProcess::options().env("SHOP_DB", "/dev/null/shop.sqlite"));
    says(&said, &["database"]);
}
