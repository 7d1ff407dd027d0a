//! A machine that a simulation makes.
//!
//! The simulation runs all its processes in one thread. It sets the [`World`] of that thread, and the world answers for
//! the process that runs at the moment.

pub(super) mod ambient;
mod tasks;
mod timers;

use std::cell::RefCell;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::Waker;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};

pub use self::tasks::{JoinHandle, JoinSet, Lost};
pub use self::timers::{Elapsed, Sleep};

/// A task, of which nothing but its end is known.
pub type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// One side of a connection.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// An attempt to connect.
pub type Connecting = Pin<Box<dyn Future<Output = io::Result<Box<dyn Stream>>> + Send>>;

/// A simulated machine. Each method is about the process that runs at the moment.
pub trait World {
    /// Reads the monotonic clock of the process, in nanoseconds.
    fn now(&self) -> u64;
    /// Reads the wall clock of the process, in microseconds since 1970.
    fn unix_micros(&self) -> u64;
    /// Fills `bytes` with random bytes.
    fn fill(&self, bytes: &mut [u8]);
    /// Returns the name of the process's host.
    fn host(&self) -> String;
    /// Returns the number of the process.
    fn process_id(&self) -> u32;
    /// Starts a thread with a runtime of its own. All tasks of the runtime end with `main`.
    ///
    /// # Errors
    ///
    /// The process has no thread left.
    fn thread(&self, name: &str, main: Task) -> io::Result<()>;
    /// Returns the runtime of the task that runs.
    fn runtime(&self) -> Option<u64>;
    /// Returns the number of the task that runs.
    fn task(&self) -> Option<u64>;
    /// Starts a task on a runtime of the process, and returns its number.
    fn spawn(&self, runtime: u64, task: Task) -> u64;
    /// Ends a task at its next step.
    fn abort(&self, task: u64);
    /// Wakes a task when the process's clock shows `at`. Returns the timer's number.
    fn set_timer(&self, at: u64, waker: &Waker) -> u64;
    /// Forgets a timer.
    fn clear_timer(&self, timer: u64);
    /// Connects to the server at `address`, such as `10.0.0.1:6379`.
    fn connect(&self, address: &str) -> Connecting;
    /// Notes a step of the process in the log, if there is one.
    fn note(&self, step: &dyn Fn() -> String);
}

thread_local! {
    static WORLD: RefCell<Option<Rc<dyn World>>> = const { RefCell::new(None) };
}

/// Sets the world of this thread.
pub fn set_world(world: Option<Rc<dyn World>>) {
    WORLD.set(world);
}

/// Returns the world of this thread, if there is one: values that end after their world have none.
fn living_world() -> Option<Rc<dyn World>> {
    WORLD.with_borrow(Clone::clone)
}

fn world() -> Rc<dyn World> {
    living_world().expect("the simulation sets the world of its thread")
}

/// Reads the monotonic clock of the process that runs, in nanoseconds.
#[must_use]
pub fn now() -> u64 {
    world().now()
}

/// Starts a task on the runtime of the task that runs.
///
/// # Panics
///
/// Outside of a task.
pub fn spawn<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    ambient::spawn(future)
}

/// Sleeps by the clock of the process.
#[must_use]
pub fn sleep(span: Duration) -> Sleep {
    ambient::sleep(span)
}

/// Gives `future` up after `span`.
///
/// # Errors
///
/// The time is over.
pub async fn timeout<F: Future>(span: Duration, future: F) -> Result<F::Output, Elapsed> {
    ambient::timeout(span, future).await
}

/// The number of a runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(u64);

/// A runtime of a simulated process.
#[derive(Clone, Debug)]
pub struct Handle(u64);

impl Handle {
    /// Returns the number of the runtime.
    #[must_use]
    pub fn id(&self) -> Id {
        Id(self.0)
    }

    /// Starts a task on the runtime.
    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        JoinHandle::start(self.0, future)
    }
}

/// Connects to a server of the history, as the process that runs.
///
/// # Errors
///
/// The server refused the connection, or it broke before it was there.
pub async fn connect(address: &str) -> io::Result<Box<dyn Stream>> {
    let connecting = world().connect(address);
    connecting.await
}
