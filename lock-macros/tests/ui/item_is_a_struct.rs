use lock_macros::distributed_lock;

#[distributed_lock(key = "order:<uid>", ttl = "10s")]
struct Order {
    uid: u64,
}

fn main() {
    let order = Order { uid: 1 };
    assert_eq!(order.uid, 1);
}
