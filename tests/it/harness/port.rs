use std::collections::HashSet;
use std::net::TcpListener;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use lock_tests::Port;

#[test]
fn reserved_ports_differ() {
    let ports: Vec<_> = (0..50).map(|_| Port::free()).collect();
    let numbers: HashSet<_> = ports.iter().map(Port::number).collect();
    assert_eq!(numbers.len(), 50);
}

#[test]
fn a_port_with_a_listener_is_never_handed_out() {
    let port = Port::free();
    let number = port.number();
    let _listener = TcpListener::bind(port.address()).expect("the reserved port");
    drop(port);
    // The loop gets all ports in turn.
    for _ in 0..10_000 {
        assert_ne!(Port::free().number(), number);
    }
}

/// The number of processes. Each holds, from its fork to its exec, a copy of every socket.
const PROCESSES: usize = 100;

#[test]
fn a_server_can_listen_on_a_reserved_port_while_other_tests_start_processes() {
    let started = AtomicUsize::new(0);
    let refused = thread::scope(|scope| {
        scope.spawn(|| {
            while started.load(Ordering::SeqCst) < PROCESSES {
                Command::new("true")
                    .status()
                    .expect("`true` exists on every system");
                started.fetch_add(1, Ordering::SeqCst);
            }
        });
        let mut refused = 0;
        while started.load(Ordering::SeqCst) < PROCESSES {
            let port = Port::free();
            refused += usize::from(TcpListener::bind(port.address()).is_err());
        }
        refused
    });
    assert_eq!(refused, 0);
}
