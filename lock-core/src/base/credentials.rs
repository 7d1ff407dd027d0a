//! The user and the password of a server, from a provider that the application gives.

use std::error::Error as StdError;
use std::fmt;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use super::BoxFuture;
use super::error::Error;

/// Holds a user and a password of a server, as a credentials provider returns them.
///
/// [`ManagerBuilder::credentials`](crate::ManagerBuilder::credentials) takes the provider. `Debug` shows neither the
/// user nor the password.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use lock_core::Credentials;
///
/// let credentials = Credentials::new("app", "token").valid_for(Duration::from_secs(900));
/// assert_eq!(format!("{credentials:?}"), "Credentials { valid_for: Some(900s), .. }");
/// ```
#[derive(Clone, PartialEq, Eq)]
#[must_use = "credentials do nothing until a provider returns them"]
pub struct Credentials {
    user: Option<String>,
    password: String,
    valid_for: Option<Duration>,
}

impl Credentials {
    /// Creates the credentials of a user.
    pub fn new(user: impl Into<String>, password: impl Into<String>) -> Self {
        Self {
            user: Some(user.into()),
            password: password.into(),
            valid_for: None,
        }
    }

    /// Creates the credentials of the default user of Redis, who has a password and no name. On PostgreSQL the user is that of
    /// the URL.
    pub fn password(password: impl Into<String>) -> Self {
        Self {
            user: None,
            password: password.into(),
            valid_for: None,
        }
    }

    /// Sets for how long the password is valid from now on; default: until the server refuses it.
    ///
    /// After three quarters of this time, the manager asks the provider again, and authenticates its open connections
    /// by `AUTH`. A time below a second counts as a second. On PostgreSQL this time says nothing, because a connection outlives
    /// its password.
    pub fn valid_for(mut self, time: Duration) -> Self {
        self.valid_for = Some(time);
        self
    }

    pub(crate) fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    pub(crate) fn secret(&self) -> &str {
        &self.password
    }

    /// Returns after what time the provider is asked again.
    #[cfg(feature = "redis")]
    pub(crate) fn renewed_after(&self) -> Option<Duration> {
        let valid_for = self.valid_for?.max(Duration::from_secs(1));
        Some(valid_for - valid_for / 4)
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials")
            .field("valid_for", &self.valid_for)
            .finish_non_exhaustive()
    }
}

type Provided = Box<dyn StdError + Send + Sync>;
type Given = Result<Credentials, Provided>;

/// Gives the credentials of the present moment.
#[derive(Clone)]
pub(crate) struct Provider(Arc<dyn Fn() -> BoxFuture<'static, Given> + Send + Sync>);

impl Provider {
    pub(crate) fn new<P, F, E>(provider: P) -> Self
    where
        P: Fn() -> F + Send + Sync + 'static,
        F: Future<Output = Result<Credentials, E>> + Send + 'static,
        E: Into<Box<dyn StdError + Send + Sync>>,
    {
        Self(Arc::new(move || {
            let given = provider();
            Box::pin(async move { given.await.map_err(Into::into) })
        }))
    }

    /// Asks for the credentials of the present moment.
    ///
    /// # Errors
    ///
    /// `Unavailable`, whose source is the error of the provider. A panic of the provider is an error too.
    pub(crate) async fn ask(&self) -> Result<Credentials, Error> {
        // A panic of the application's code would end the task of the keeper that asks, and with it its other work.
        let mut given = None;
        let given = poll_fn(|context| {
            let polled =
                AssertUnwindSafe(|| given.get_or_insert_with(&*self.0).as_mut().poll(context));
            let panicked = |_| Poll::Ready(Err("the credentials provider panicked".into()));
            catch_unwind(polled).unwrap_or_else(panicked)
        });
        given.await.map_err(|why| {
            let error = Error::unavailable(
                "the credentials provider of `ManagerBuilder::credentials` failed; the error's source says why",
            );
            error.with_source(OfProvider(why))
        })
    }
}

impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Provider").finish_non_exhaustive()
    }
}

/// The error of a provider, as the source of an error of the kit.
#[derive(Debug)]
struct OfProvider(Provided);

impl fmt::Display for OfProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl StdError for OfProvider {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token() -> Result<Credentials, std::io::Error> {
        panic!("no metadata service")
    }

    #[tokio::test]
    async fn a_provider_that_panics_has_failed() {
        let at_once = Provider::new(|| {
            let token = token();
            async { token }
        });
        let later = Provider::new(|| async {
            crate::base::machine::sleep(Duration::from_millis(1)).await;
            token()
        });
        for provider in [at_once, later] {
            let error = provider.ask().await.expect_err("no credentials");
            let source = error.source().expect("the provider's");
            assert_eq!(source.to_string(), "the credentials provider panicked");
        }
    }
}
