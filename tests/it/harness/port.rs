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
fn a_port_that_somebody_listens_on_is_given_to_nobody() {
    let port = Port::free();
    let number = port.number();
    let _listener = TcpListener::bind(port.address()).expect("the reserved port");
    drop(port);
    // All of them in turn.
    for _ in 0..10_000 {
        assert_ne!(Port::free().number(), number);
    }
}

/// Each of these holds, from its fork to its exec, a copy of every socket there is.
const PROCESSES: usize = 100;

#[test]
fn a_reserved_port_can_be_listened_on_at_once_while_other_tests_start_processes() {
    let started = AtomicUsize::new(0);
    let refused = thread::scope(|scope| {
        scope.spawn(|| {
            while started.load(Ordering::SeqCst) < PROCESSES {
                Command::new("true").status().expect("it is everywhere");
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
