use lock_macros::distributed_lock;

struct Shop;

#[distributed_lock(key = "order:<uid>", ttl = "10s")]
impl Shop {
    fn open() {}
}

fn main() {
    Shop::open();
}
