use lock_macros::distributed_lock;

#[distributed_lock(key = "order:<uid>", ttl = "10s")]
const LIMIT: u64 = 3;

fn main() {
    assert_eq!(LIMIT, 3);
}
