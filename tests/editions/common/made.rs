//! Tests functions that macros make, with names from the caller, the macro or both.

use lock_core::{Error, distributed_lock, lock_key};

use super::witness::at_work;

macro_rules! whole {
    // The name, the type, the key and the body come from the caller; `hidden` is the macro's
    // own.
    ($(#[$meta:meta])* $vis:vis $name:ident($arg:ident: $ty:ty) -> $out:ty, $key:literal, $body:block) => {
        $(#[$meta])*
        #[distributed_lock(key = $key, ttl = "10s")]
        $vis async fn $name($arg: $ty, hidden: u64) -> Result<$out, Error> {
            let made: Result<$out, Error> = $body;
            at_work().await;
            made.map(|made| made + hidden)
        }
    };
}

macro_rules! inside {
    // Everything comes from the macro.
    ($name:ident) => {
        /// Made by a macro.
        #[distributed_lock(key = "inside:<hidden>", ttl = "10s", guard = lock)]
        pub async fn $name(hidden: u64) -> Result<String, Error> {
            at_work().await;
            Ok(lock.key().to_owned())
        }
    };
}

macro_rules! with_guard {
    // The guard's name comes from the caller, whose body uses it.
    ($name:ident, $guard:ident, $body:expr) => {
        /// Made by a macro.
        #[distributed_lock(key = "guarded", ttl = "10s", guard = $guard)]
        pub async fn $name() -> Result<bool, Error> {
            at_work().await;
            Ok($body)
        }
    };
}

macro_rules! with_expressions {
    ($name:ident($($arg:ident: $ty:ty),*), $key:expr, $ttl:expr, $wait:literal) => {
        /// Made by a macro.
        #[distributed_lock(key = $key, ttl = $ttl, max_hold = $wait)]
        pub async fn $name($($arg: $ty),*) -> Result<String, Error> {
            at_work().await;
            Ok(format!("{:?}", ($($arg,)*)))
        }
    };
}

macro_rules! with_pattern {
    ($name:ident($pat:pat => $ty:ty), $key:literal, $value:expr) => {
        /// Made by a macro.
        #[distributed_lock(key = $key, ttl = "10s")]
        pub async fn $name($pat: $ty) -> Result<u64, Error> {
            at_work().await;
            Ok($value)
        }
    };
}

macro_rules! as_items {
    ($($item:item)*) => { $($item)* };
}

macro_rules! methods {
    // `self` is a name like the others, so a body that uses it must also pass it.
    ($ty:ident { $($name:ident($this:ident, $by:ident): $key:literal),* }) => {
        impl $ty {
            $(
                /// Made by a macro.
                #[distributed_lock(key = $key, ttl = "10s")]
                pub async fn $name(&$this, $by: u64) -> Result<u64, Error> {
                    at_work().await;
                    Ok($this.count + $by)
                }
            )*
        }
    };
}

macro_rules! by_tokens {
    ($key:literal, $($tokens:tt)*) => {
        #[distributed_lock(key = $key, ttl = "10s")]
        $($tokens)*
    };
}

whole! {
    /// Made by a macro.
    pub from_the_caller(uid: u64) -> u64, "made:<uid>", { Ok(uid) }
}
whole! {
    /// A function that a macro makes, with a name that the macro also has.
    pub the_same_name(hidden_: u64) -> u64, "made:<hidden_>", {
        let hidden = 100;
        Ok(hidden_ + hidden)
    }
}
inside!(from_the_macro);
with_guard!(guarded, held, held.is_valid());
with_expressions!(
    by_expression(a: u64, b: &str),
    lock_key!("expression:<a>:<b>"),
    std::time::Duration::from_secs(10),
    "1m"
);
with_pattern!(by_pattern((n, _) => (u64, String)), "pattern:<n>", n);

as_items! {
    /// An item that the macro passes on unchanged.
    #[distributed_lock(key = "item:<a>", ttl = "10s")]
    pub async fn as_item(a: u64) -> Result<u64, Error> {
        at_work().await;
        Ok(a)
    }
}

by_tokens! { "tokens:<a>",
    /// Tokens that the macro passes on unchanged.
    pub async fn by_tokens(a: u64) -> Result<u64, Error> {
        at_work().await;
        Ok(a)
    }
}

/// A type with methods that a macro makes.
#[derive(Debug, Default)]
pub struct Counter {
    count: u64,
}

methods!(Counter {
    first(self, by): "first:<self.count>",
    second(self, n): "second:<n>"
});

facade::locked_fn! {
    /// A function by another crate's macro, which knows the path of the kit.
    pub fn elsewhere(n: u64) -> u64 {
        at_work().await;
        n + 1
    }
}

/// A function with names that the expansion could also have.
#[allow(clippy::too_many_arguments)]
#[distributed_lock(key = "names:<__lock_key>:<request>", ttl = "10s", guard = handle)]
pub async fn names(
    __lock_key: u64,
    request: u64,
    body: u64,
    error: u64,
    outcome: u64,
    value: u64,
    (on_error, _): (u64, u64),
    __lock_arg6: u64,
) -> Result<u64, Error> {
    at_work().await;
    assert!(handle.is_valid());
    Ok(__lock_key + request + body + error + outcome + value + on_error + __lock_arg6)
}

#[cfg(test)]
mod tests {
    use super::super::witness::locked;
    use super::*;

    #[tokio::test]
    async fn names_of_the_caller_refer_to_the_caller() {
        let call = || from_the_caller(3, 4);
        assert_eq!(locked("made:3", call(), call()).await.expect("free"), 7);
        let call = || the_same_name(3, 4);
        assert_eq!(locked("made:3", call(), call()).await.expect("free"), 107);
        assert!(locked("guarded", guarded(), guarded()).await.expect("free"));
        let call = || by_expression(3, "b");
        let done = locked("expression:3:b", call(), call()).await;
        assert_eq!(done.expect("free"), "(3, \"b\")");
        let call = || by_pattern((3, String::new()));
        assert_eq!(locked("pattern:3", call(), call()).await.expect("free"), 3);
    }

    #[tokio::test]
    async fn names_of_the_macro_refer_to_the_macro() {
        let done = locked("inside:3", from_the_macro(3), from_the_macro(3)).await;
        assert_eq!(done.expect("free"), "inside:3");
        let call = || names(1, 2, 3, 4, 5, 6, (7, 8), 9);
        assert_eq!(locked("names:1:2", call(), call()).await.expect("free"), 37);
    }

    #[tokio::test]
    async fn items_and_methods_by_macros_are_locked() {
        let done = locked("item:3", as_item(3), as_item(3)).await;
        assert_eq!(done.expect("free"), 3);
        let done = locked("tokens:3", by_tokens(3), by_tokens(3)).await;
        assert_eq!(done.expect("free"), 3);
        let counter = Counter::default();
        let done = locked("first:0", counter.first(1), counter.first(1)).await;
        assert_eq!(done.expect("free"), 1);
        let done = locked("second:1", counter.second(1), counter.second(1)).await;
        assert_eq!(done.expect("free"), 1);
        let done = locked("facade:3", elsewhere(3), elsewhere(3)).await;
        assert_eq!(done.expect("free"), 4);
    }
}
