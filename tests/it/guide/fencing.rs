//! Tests the scripts of the guide that check a fencing token in Redis.

use lock_tests::{RedisServer, needs};

use super::{blocks, page};

#[test]
fn the_scripts_of_the_guide_refuse_the_write_of_an_earlier_owner() {
    needs!(redis);
    let page = page("lock-core/src/docs/guide/fencing.md");
    let [claim, write] = blocks(&page, "lua")[..] else {
        panic!("the page has two scripts");
    };
    let server = RedisServer::start();
    let claim = |token: &str| server.cli(&["EVAL", claim, "1", "price", token]);
    let write = |value: &str, token: &str| server.cli(&["EVAL", write, "1", "price", value, token]);

    let (early, late) = ("1700000000000033", "1700000000000034");
    assert_eq!(claim(early).lines().next(), Some("1"));
    assert_eq!(write("10", early), "1");
    assert_eq!(claim(late), "1\n10", "the claim returns the value");
    assert_eq!(write("11", early), "0", "its owner has lost the lock");
    assert_eq!(claim(early), "0");
    assert_eq!(write("12", late), "1");
    assert_eq!(claim(late), "1\n12", "an owner may claim again");
}
