//! An open `<` in `lock_key!`.
//! Close it.
use lock_core::lock_key;

fn main() {
    let uid = 42;
    // instead: let _ = lock_key!("order:<uid>");
    let _ = (lock_key!("order:<uid"), uid);
}
