//! Tests that a shop that cannot start prints the reason and the remedy, and ends.

use std::net::TcpListener;

use lock_tests::{Answer, FakeServer, Port, RedisServer, ShopOptions, ShopProcess, needs, wait};

/// Returns the output of a shop that ends by itself without success, and does not print its password `opensesame`.
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
    assert!(!said.contains("sesame"), "{said}");
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
fn what_the_shop_cannot_start_with_is_named() {
    let start = ShopProcess::options;
    let peer = FakeServer::start(Answer::Garbage);
    let address = peer.address().to_string();
    let (port, store) = ("0 to 65535", "the store of the locks");
    let table: &[(ShopOptions, &[&str])] = &[
        (start().env("PORT", "http"), &["PORT", "http", port]),
        (start().env("PORT", "-1"), &["PORT", "-1", port]),
        (start().env("PORT", "65536"), &["PORT", "65536", port]),
        (start().env("PORT", "3000 "), &["PORT", "3000 ", port]),
        (start().env("PORT", "0x50"), &["PORT", "0x50", port]),
        (start().arg("--twins"), &["--twins", "--help"]),
        (
            start().env("SHOP_DB", "/dev/null/shop.sqlite"),
            &["database"],
        ),
        (with_url("memory:").arg("--pair"), &["--pair needs a Redis"]),
        (
            with_url("memory:shop").arg("--pair"),
            &["--pair needs a Redis"],
        ),
        (with_url(&peer.url()), &[&address]),
        (with_url("http://127.0.0.1:6379"), &[store]),
        (with_url("127.0.0.1:6379"), &[store]),
        (with_url("redis://"), &[store]),
        (with_url("redis:"), &[store]),
        (with_url("redis://127.0.0.1:notaport"), &[store]),
        (with_url("redis://127.0.0.1:6379/notadb"), &[store]),
        (with_url("nonsense"), &[store]),
        (with_url("://"), &[store]),
        // No password is shown.
        (with_url("http://me:opensesame@127.0.0.1:6379"), &[]),
        (with_url("redis://me:opensesame@127.0.0.1:notaport"), &[]),
        (with_url("redis://me:opensesame@127.0.0.1:6379/notadb"), &[]),
        (with_url("redis://me:opensesame"), &[]),
        (with_url("redis://me:open?sesame@127.0.0.1:notaport"), &[]),
        (with_url("me:opensesame@127.0.0.1"), &[]),
    ];
    for (options, words) in table {
        says(&refuses(options.clone()), words);
    }
}

#[test]
fn a_missing_redis_is_named() {
    let port = Port::free();
    let address = port.address().to_string();
    let said = refuses(with_url(&format!("redis://:opensesame@{address}")));
    says(&said, &[&address]);
}

#[test]
fn a_wrong_password_is_refused_and_not_printed() {
    needs!(redis);
    let server = RedisServer::options().password("right").start();
    let address = server.address().to_string();
    for user_info in [":opensesame", "me:opensesame", "opensesame:"] {
        let said = refuses(with_url(&format!("redis://{user_info}@{address}")));
        says(&said, &[&address]);
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
fn a_pair_without_its_redis_ends_completely() {
    let port = Port::free();
    let url = format!("redis://:opensesame@{}", port.address());
    refuses(with_url(&url).arg("--pair"));
}
