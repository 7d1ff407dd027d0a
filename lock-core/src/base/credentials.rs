//! The user and the password of a server, from a provider that the application gives.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::BoxFuture;

/// Holds a user and a password for Redis, as a credentials provider returns them.
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

    /// Creates the credentials of the default user, who has a password and no name.
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
    /// by `AUTH`. A time below a second counts as a second.
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

type Given = Result<Credentials, Box<dyn StdError + Send + Sync>>;

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

    pub(crate) async fn ask(&self) -> Given {
        (self.0)().await
    }
}

impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Provider").finish_non_exhaustive()
    }
}
