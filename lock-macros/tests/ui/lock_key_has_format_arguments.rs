use lock_macros::lock_key;

fn main() {
    lock_key!("order:<>", 3);
}
