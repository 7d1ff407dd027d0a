use std::collections::HashSet;
use std::net::TcpListener;

use lock_tests::Port;

#[test]
fn reserved_ports_differ_and_can_be_listened_on() {
    let ports: Vec<_> = (0..50).map(|_| Port::free()).collect();
    let numbers: HashSet<_> = ports.iter().map(Port::number).collect();
    assert_eq!(numbers.len(), 50);
    for port in &ports {
        TcpListener::bind(port.address()).expect("a free port");
    }
}
