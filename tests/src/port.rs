//! Reserves loopback ports, also while no server listens on them.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicU16, Ordering};

use tokio::net::TcpSocket;

/// The first port. It is below the ranges from which Linux and macOS take the ports of outgoing
/// connections. So no outgoing connection takes the port of a server that is down for a moment.
const FIRST: u16 = 12_000;
const COUNT: u16 = 10_000;

static NEXT: AtomicU16 = AtomicU16::new(0);

/// A free TCP port on 127.0.0.1.
///
/// The port is reserved among all users of this harness on this machine until the value is dropped.
///
/// A server that is killed and started again needs its port to stay free in between. The reservation is
/// a UDP socket bound to the same number. TCP and UDP ports do not conflict, a bind is atomic across
/// processes, and the reservation ends with the process.
#[derive(Debug)]
pub struct Port {
    number: u16,
    _reservation: UdpSocket,
}

impl Port {
    /// Reserves a port on which no process listens.
    ///
    /// # Panics
    ///
    /// When all ten thousand ports are taken.
    pub fn free() -> Port {
        Port::first(|_| true)
    }

    /// Reserves a port for a node of a Redis cluster.
    ///
    /// Such a node also needs the port ten thousand above it.
    ///
    /// No process listens on either port. The harness never hands out the upper one.
    ///
    /// # Panics
    ///
    /// When all ten thousand ports are taken.
    pub fn free_with_bus() -> Port {
        Port::first(|number| nobody_listens(number + 10_000).is_ok())
    }

    fn first(fits: impl Fn(u16) -> bool) -> Port {
        let start = (std::process::id() % u32::from(COUNT)) as u16;
        for _ in 0..COUNT {
            let step = NEXT.fetch_add(1, Ordering::Relaxed) % COUNT;
            let number = FIRST + (start + step) % COUNT;
            if let Some(port) = Port::reserve(number)
                && fits(number)
            {
                return port;
            }
        }
        panic!("no free port on 127.0.0.1 from {FIRST} on");
    }

    /// Returns the port's number.
    pub fn number(&self) -> u16 {
        self.number
    }

    /// Returns the port's address on 127.0.0.1.
    pub fn address(&self) -> SocketAddr {
        loopback(self.number)
    }

    fn reserve(number: u16) -> Option<Port> {
        let reservation = UdpSocket::bind(loopback(number)).ok()?;
        // A process outside this harness may be listening.
        nobody_listens(number).ok()?;
        Some(Port {
            number,
            _reservation: reservation,
        })
    }
}

/// Checks that no process listens, by a bind without a listen.
///
/// A process that another test forks at this moment holds a copy of the socket until its exec. A
/// listening copy would keep the port from its owner for that time.
fn nobody_listens(port: u16) -> io::Result<()> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind(loopback(port))
}

fn loopback(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}
