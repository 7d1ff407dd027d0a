use lock_macros::distributed_lock;

struct Shop;

impl Shop {
    #[distributed_lock(key = "order:<uid>", ttl = "10s")]
    fn place_order(&self, uid: u64) -> Result<u64, String> {
        Ok(uid)
    }
}

fn main() {
    let _ = Shop.place_order(1);
}
