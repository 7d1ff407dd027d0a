use lock_macros::distributed_lock;

#[distributed_lock(key = "order:<uid>", ttl = "10s")]
mod shop {
    pub(crate) fn open() {}
}

fn main() {
    shop::open();
}
