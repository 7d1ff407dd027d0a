//! Makes the tests of a suite: one for each case on each store.

/// Makes a test of each `theme::case` on one store. `$needs` ends the test where a program is missing.
macro_rules! on_store {
    ($store:ident $needs:tt $($theme:ident { $($case:ident),* $(,)? })*) => {
        mod $store {
            $($(
                #[tokio::test]
                async fn $case() {
                    $needs
                    let store = crate::conformance::Fixture::$store();
                    crate::conformance::$theme::$case(&store).await;
                }
            )*)*
        }
    };
}

/// Makes a test of each `theme::case` on each store that has one server for a key.
macro_rules! on_stores_with_one_server_a_key {
    ($($cases:tt)*) => {
        on_store! { memory {} $($cases)* }
        on_store! { redis { lock_tests::needs!(redis); } $($cases)* }
        on_store! { sentinel { lock_tests::needs!(redis); } $($cases)* }
        on_store! { cluster { lock_tests::needs!(redis); } $($cases)* }
        on_store! { postgres { lock_tests::needs!(postgres); } $($cases)* }
    };
}

/// Makes a test of each `theme::case` on each store of several servers that vote, in a module of that name.
macro_rules! on_several_servers {
    ($($cases:tt)*) => {
        mod several_servers {
            on_store! { quorum {} $($cases)* }
            on_store! { redlock { lock_tests::needs!(redis); } $($cases)* }
        }
    };
}

/// Makes a test of each `theme::case` on each store but PostgreSQL, in a module of that name.
macro_rules! on_stores_but_postgres {
    ($($cases:tt)*) => {
        mod stores_but_postgres {
            on_store! { memory {} $($cases)* }
            on_store! { redis { lock_tests::needs!(redis); } $($cases)* }
            on_store! { sentinel { lock_tests::needs!(redis); } $($cases)* }
            on_store! { cluster { lock_tests::needs!(redis); } $($cases)* }
            on_store! { quorum {} $($cases)* }
            on_store! { redlock { lock_tests::needs!(redis); } $($cases)* }
        }
    };
}

/// Makes a test of each `theme::case` on each store.
macro_rules! on_every_store {
    ($($cases:tt)*) => {
        on_stores_with_one_server_a_key! { $($cases)* }
        on_store! { quorum {} $($cases)* }
        on_store! { redlock { lock_tests::needs!(redis); } $($cases)* }
    };
}
