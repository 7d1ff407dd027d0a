//! A function that returns `()`.
//! Return a `Result`.
use lock_core::idempotent;

#[idempotent(key = "charge:<order>", ttl = "10s", remember = "24h")]
// instead: async fn charge(order: u64) -> Result<(), lock_core::Error> {
async fn charge(order: u64) -> () {
    // instead: Ok(println!("{order}"))
    println!("{order}");
}

fn main() {
    let _ = charge(1);
}
