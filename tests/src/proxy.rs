//! Runs a network that fails on command.

mod load;
mod pump;
mod rule;
mod serve;

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use tokio::sync::watch;

use crate::thread::NetworkThread;
use crate::{Port, wait};

use rule::Plan;
pub use rule::{Direction, Flow};

/// A TCP proxy on a loopback port of its own, in front of one address.
///
/// Every command holds for live and later connections alike, and from its return on: after it, no byte
/// passes that the new rule forbids. The proxy runs on a thread of its own, so that a test may block,
/// pause or end its own runtime.
#[derive(Debug)]
pub struct Proxy {
    plan: Arc<watch::Sender<Plan>>,
    port: Port,
    _thread: NetworkThread,
}

impl Proxy {
    /// Starts a proxy to `upstream` that passes everything.
    ///
    /// # Panics
    ///
    /// When no port is free.
    #[track_caller]
    pub fn to(upstream: SocketAddr) -> Proxy {
        let port = Port::free();
        let plan = Arc::new(watch::Sender::new(Plan::default()));
        let listener = TcpListener::bind(port.address()).expect("the reserved port");
        let work = serve::run(listener, upstream, Arc::clone(&plan));
        Proxy {
            plan,
            port,
            _thread: NetworkThread::spawn(work),
        }
    }

    /// Returns the address that the proxy listens on.
    pub fn address(&self) -> SocketAddr {
        self.port.address()
    }

    /// Returns the port that the proxy listens on.
    pub fn port(&self) -> u16 {
        self.port.number()
    }

    /// Returns `redis://127.0.0.1:<port>`.
    pub fn redis_url(&self) -> String {
        format!("redis://{}", self.address())
    }

    /// Sets the rule for the bytes of one direction.
    pub fn set(&self, direction: Direction, flow: Flow) {
        self.plan.send_modify(|plan| plan.set(direction, flow));
    }

    /// Lets everything pass again in both directions, first the held bytes in their order.
    pub fn pass(&self) {
        self.plan.send_modify(|plan| {
            plan.set(Direction::Requests, Flow::Pass);
            plan.set(Direction::Replies, Flow::Pass);
        });
    }

    /// Holds all bytes in both directions without a FIN or RST to either side.
    ///
    /// The proxy still accepts connections.
    pub fn black_hole(&self) {
        self.plan.send_modify(|plan| {
            plan.set(Direction::Requests, Flow::Hold);
            plan.set(Direction::Replies, Flow::Hold);
        });
    }

    /// Holds all bytes of the present connections, in both directions, until [`Proxy::thaw`].
    ///
    /// Later connections are not affected. The bytes of an old connection can therefore arrive after
    /// those of newer connections.
    pub fn freeze(&self) {
        self.plan.send_modify(Plan::freeze);
    }

    /// Freezes the present connections as [`Proxy::freeze`] does, and ends them for the clients (FIN).
    ///
    /// So the proxy outlives the clients' side. The bytes that the clients have sent reach the server
    /// after [`Proxy::thaw`].
    pub fn outlive_clients(&self) {
        self.plan.send_modify(|plan| {
            plan.freeze();
            plan.without_clients_before = plan.age;
        });
    }

    /// Ends every [`Proxy::freeze`].
    pub fn thaw(&self) {
        self.plan.send_modify(|plan| plan.frozen_before = 0);
    }

    /// Resets every live connection on both of its sides (RST) and returns when they have gone.
    ///
    /// Held bytes are lost. The proxy accepts new connections as before.
    ///
    /// # Panics
    ///
    /// When the connections do not end.
    #[track_caller]
    pub fn cut(&self) {
        let mut gone = Arc::new(());
        self.plan
            .send_modify(|plan| std::mem::swap(&mut plan.generation, &mut gone));
        wait::until("the connections are cut", || Arc::strong_count(&gone) == 1);
    }

    /// Refuses new connections, as a port does on which no process listens. Live ones stay.
    ///
    /// # Panics
    ///
    /// When the port does not close.
    #[track_caller]
    pub fn refuse(&self) {
        self.plan.send_modify(|plan| plan.refusing = true);
        wait::until("the port is closed", || !self.plan.borrow().listening);
    }

    /// Accepts new connections again.
    ///
    /// # Panics
    ///
    /// When the port does not open.
    #[track_caller]
    pub fn accept(&self) {
        self.plan.send_modify(|plan| plan.refusing = false);
        wait::until("the port is open", || self.plan.borrow().listening);
    }

    /// Counts the open connections.
    pub fn connections(&self) -> usize {
        // The plan itself holds one reference.
        Arc::strong_count(&self.plan.borrow().generation) - 1
    }

    /// Counts the bytes that have passed in one direction, over all connections.
    pub fn bytes(&self, direction: Direction) -> u64 {
        self.exact(|plan| plan.lane(direction).passed())
    }

    /// Counts the bytes that are held at this moment in one direction, over all live connections.
    pub fn held(&self, direction: Direction) -> u64 {
        self.exact(|plan| plan.lane(direction).held())
    }

    /// Returns whether the bytes of the present [`Flow::HoldFrom`] have come, and are held.
    pub fn has_met(&self, direction: Direction) -> bool {
        self.exact(|plan| plan.lane(direction).has_met())
    }

    /// Reads under the plan's lock.
    ///
    /// So the read never falls between a connection's write and its count.
    fn exact<T: Default>(&self, read: impl FnOnce(&Plan) -> T) -> T {
        let mut number = T::default();
        self.plan.send_if_modified(|plan| {
            number = read(plan);
            false
        });
        number
    }
}
