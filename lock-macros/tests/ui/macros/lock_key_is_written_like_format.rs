//! `{uid}` in `lock_key!`.
//! Write `<uid>`.
use lock_core::lock_key;

fn main() {
    let uid = 7;
    // instead: let _ = (lock_key!("order:<uid>"), uid);
    let _ = (lock_key!("order:{uid}"), uid);
}
