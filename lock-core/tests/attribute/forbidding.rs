//! Rare shapes of functions, in a module that forbids the default lints of the compiler and of
//! clippy.
//!
//! The generated code must not trigger a lint or need an exception.

use lock_core::LockManager;

#[tokio::test]
async fn rare_shapes_work_without_an_exception_for_a_lint() {
    let locks = LockManager::in_memory();
    locks
        .scope(strict::every_shape())
        .await
        .expect("every lock is free");
}

#[forbid(unused, clippy::all)]
mod strict {
    use std::{
        pin::{Pin, pin},
        sync::{Arc, Mutex, MutexGuard},
    };

    use lock_core::{Error, ErrorKind, distributed_lock};

    struct Meter {
        reading: u64,
    }

    impl Meter {
        #[distributed_lock(key = "meter:<self.reading>", ttl = "10s")]
        async fn pinned(mut self: Pin<&mut Self>, by: u64) -> Result<u64, Error> {
            self.as_mut().get_mut().reading += by;
            Ok(self.reading)
        }

        #[distributed_lock(key = "meter:<self.reading>", ttl = "10s")]
        async fn borrowed_arc(self: &Arc<Self>) -> Result<Arc<Self>, Error> {
            Ok(Self::clone_of(self))
        }

        fn clone_of(this: &Arc<Self>) -> Arc<Self> {
            Arc::clone(this)
        }
    }

    #[distributed_lock(key = "future:<more>", ttl = "10s", on_error = |_| None)]
    async fn a_future_and_a_guard_as_parameters<F: Future<Output = u64>>(
        more: u64,
        future: F,
        _unused: MutexGuard<'_, u8>,
    ) -> Option<u64> {
        Some(future.await + more)
    }

    #[distributed_lock(key = "kind", ttl = "10s", on_error = |error| error.kind())]
    async fn a_method_of_the_error() -> ErrorKind {
        ErrorKind::Lost
    }

    #[distributed_lock(key = "parts:<first>:<text.len()>", ttl = "10s", cooldown = "1ms")]
    async fn parts(
        [first, rest @ ..]: [u8; 3],
        (ref text, ..): (String, u8, u8),
    ) -> Result<usize, Error> {
        Ok(usize::from(first) + rest.len() + text.len())
    }

    #[distributed_lock(key = "raw:<r#type>", ttl = "10s", guard = _lock)]
    async fn raw_name(r#type: u8) -> Result<u8, Error> {
        Ok(r#type)
    }

    trait Source<'a, T: 'a> {
        type Out;

        async fn next(&'a mut self, by: T) -> Result<Self::Out, Error>;
    }

    impl<'a, T: Into<u64> + std::fmt::Display + 'a> Source<'a, T> for Meter {
        type Out = &'a mut u64;

        #[distributed_lock(key = "next:<by>", ttl = "10s", cooldown = "1ms")]
        async fn next(&'a mut self, by: T) -> Result<Self::Out, Error> {
            self.reading += by.into();
            Ok(&mut self.reading)
        }
    }

    pub(super) async fn every_shape() -> Result<(), Error> {
        let mut meter = pin!(Meter { reading: 1 });
        assert_eq!(meter.as_mut().pinned(2).await?, 3);
        assert_eq!(*meter.next(4_u8).await?, 7);
        assert_eq!(
            Arc::new(Meter { reading: 5 }).borrowed_arc().await?.reading,
            5
        );

        let mutex = Mutex::new(0);
        let guard = mutex.lock().expect("no thread panics");
        let sum = a_future_and_a_guard_as_parameters(3, std::future::ready(4), guard).await;
        assert_eq!(sum, Some(7));
        assert!(mutex.try_lock().is_ok());

        assert_eq!(a_method_of_the_error().await, ErrorKind::Lost);
        assert_eq!(parts([3, 1, 2], ("ab".into(), 0, 0)).await?, 7);
        assert_eq!(raw_name(9).await?, 9);
        Ok(())
    }
}
