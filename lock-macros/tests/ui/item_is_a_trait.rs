use lock_macros::distributed_lock;

#[distributed_lock(key = "order:<uid>", ttl = "10s")]
trait Shop {
    fn open() {}
}

impl Shop for () {}

fn main() {
    <() as Shop>::open();
}
