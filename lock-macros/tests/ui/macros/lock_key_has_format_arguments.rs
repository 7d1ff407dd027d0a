//! Values after the template.
//! Write them into it.
use lock_core::lock_key;

fn main() {
    let uid = 42;
    // instead: let _ = lock_key!("order:<uid>");
    let _ = (lock_key!("order:<>", uid), uid);
}
