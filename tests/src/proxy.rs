//! A network that fails on command.

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
/// Every command holds for live and later connections alike, and from its return on: no byte passes
/// after it that the new rule forbids. It runs on a thread of its own, so that a test may block,
/// pause or end its own runtime.
#[derive(Debug)]
pub struct Proxy {
    plan: Arc<watch::Sender<Plan>>,
    port: Port,
    _thread: NetworkThread,
}

impl Proxy {
    /// A proxy to `upstream` that passes everything.
    ///
    /// # Panics
    ///
    /// When no port can be had.
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

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.port.address()
    }

    /// The port it listens on.
    pub fn port(&self) -> u16 {
        self.port.number()
    }

    /// `redis://127.0.0.1:<port>`.
    pub fn redis_url(&self) -> String {
        format!("redis://{}", self.address())
    }

    /// Sets what happens to the bytes of one direction.
    pub fn set(&self, direction: Direction, flow: Flow) {
        self.plan.send_modify(|plan| plan.set(direction, flow));
    }

    /// Everything passes again, in both directions: first what was held, in its order.
    pub fn pass(&self) {
        self.plan.send_modify(|plan| {
            plan.set(Direction::Requests, Flow::Pass);
            plan.set(Direction::Replies, Flow::Pass);
        });
    }

    /// Nothing passes, in either direction, and nobody is told: no FIN, no RST. Connections are
    /// still accepted.
    pub fn black_hole(&self) {
        self.plan.send_modify(|plan| {
            plan.set(Direction::Requests, Flow::Hold);
            plan.set(Direction::Replies, Flow::Hold);
        });
    }

    /// Nothing passes on the connections there are now, in either direction, until [`Proxy::thaw`];
    /// later connections are not concerned. What an old connection carried then arrives late, after
    /// what newer ones did.
    pub fn freeze(&self) {
        self.plan.send_modify(Plan::freeze);
    }

    /// As [`Proxy::freeze`], and the clients are told that those connections have ended (FIN): a proxy
    /// that outlives its clients' side. What they have sent reaches the server after [`Proxy::thaw`].
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

    /// Resets every live connection on both of its sides (RST); what was held is lost. Returns
    /// when they are gone. New connections are accepted as before.
    ///
    /// # Panics
    ///
    /// When they do not go.
    #[track_caller]
    pub fn cut(&self) {
        let mut gone = Arc::new(());
        self.plan
            .send_modify(|plan| std::mem::swap(&mut plan.generation, &mut gone));
        wait::until("the connections are cut", || Arc::strong_count(&gone) == 1);
    }

    /// Refuses new connections, as a port nobody listens on does. Live ones stay.
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

    /// How many connections are open through it now.
    pub fn connections(&self) -> usize {
        // The plan itself holds one.
        Arc::strong_count(&self.plan.borrow().generation) - 1
    }

    /// How many bytes have passed in one direction, over all connections.
    pub fn bytes(&self, direction: Direction) -> u64 {
        self.exact(|plan| plan.lane(direction).passed())
    }

    /// How many bytes are held back at this moment in one direction, over all live connections.
    pub fn held(&self, direction: Direction) -> u64 {
        self.exact(|plan| plan.lane(direction).held())
    }

    /// Reads with the plan's lock held alone: between no connection's write and its count.
    fn exact(&self, read: impl FnOnce(&Plan) -> u64) -> u64 {
        let mut number = 0;
        self.plan.send_if_modified(|plan| {
            number = read(plan);
            false
        });
        number
    }
}
