use std::collections::HashSet;
use std::net::TcpListener;

use lock_tests::{Port, wait};

#[test]
fn reserved_ports_differ_and_can_be_listened_on() {
    let ports: Vec<_> = (0..50).map(|_| Port::free()).collect();
    let numbers: HashSet<_> = ports.iter().map(Port::number).collect();
    assert_eq!(numbers.len(), 50);
    for port in &ports {
        // A process that another test starts at this moment may hold, until it is what it is to
        // be, the socket that looked whether the port is free.
        wait::until("a port can be listened on", || {
            TcpListener::bind(port.address()).is_ok()
        });
    }
}
