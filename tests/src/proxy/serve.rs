//! Accepts connections and gives each its two pumps.

use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::Arc;

use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::pump::pump;
use super::rule::{Direction, Plan};

/// Listens while the plan allows it.
pub(super) async fn run(
    first: std::net::TcpListener,
    upstream: SocketAddr,
    plan: Arc<watch::Sender<Plan>>,
) {
    let address = first.local_addr().expect("a bound listener");
    let mut listener = Some(first);
    let mut changes = plan.subscribe();
    loop {
        let bound = listener.take().unwrap_or_else(|| {
            std::net::TcpListener::bind(address).expect("the reserved port is free")
        });
        let same = bound.try_clone().expect("a socket");
        set_listening(&plan, true);
        tokio::select! {
            () = accept_all(bound, upstream, &plan) => {}
            _ = changes.wait_for(|plan| plan.refusing) => {}
        }
        // The select has dropped the listener, but a process that is just being started may still
        // hold a copy. The shutdown closes the port for that copy too. Where it fails, no copy is
        // left.
        let _ = rustix::net::shutdown(&same, rustix::net::Shutdown::Both);
        drop(same);
        set_listening(&plan, false);
        let _ = changes.wait_for(|plan| !plan.refusing).await;
    }
}

fn set_listening(plan: &watch::Sender<Plan>, listening: bool) {
    plan.send_modify(|plan| plan.listening = listening);
}

async fn accept_all(
    listener: std::net::TcpListener,
    upstream: SocketAddr,
    plan: &Arc<watch::Sender<Plan>>,
) {
    listener.set_nonblocking(true).expect("a socket");
    let listener = TcpListener::from_std(listener).expect("a runtime");
    while let Ok((client, _)) = listener.accept().await {
        // The connection takes both here and not in its task, so that a cut right after the accept
        // affects it.
        let (generation, age) = {
            let plan = plan.borrow();
            (Arc::clone(&plan.generation), plan.age)
        };
        tokio::spawn(connection(
            client,
            upstream,
            Arc::clone(plan),
            generation,
            age,
        ));
    }
}

/// Serves one connection. It ends in order when both sides have ended their stream, and by RST to
/// both otherwise.
async fn connection(
    client: TcpStream,
    upstream: SocketAddr,
    plan: Arc<watch::Sender<Plan>>,
    generation: Arc<()>,
    age: u64,
) {
    let Ok(server) = TcpStream::connect(upstream).await else {
        let _ = client.set_zero_linger();
        return;
    };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let (mut client_read, mut client_write) = client.into_split();
    let (mut server_read, mut server_write) = server.into_split();
    let mut changes = plan.subscribe();
    let mut endings = plan.subscribe();
    // This is the same socket, because the pumps own the halves.
    let socket = client_write.as_ref().as_fd().try_clone_to_owned();
    let without_client = async {
        let ended = endings.wait_for(|plan| age < plan.without_clients_before);
        if ended.await.is_ok() {
            // The client reads the end of the stream, and the proxy reads an end after the client's
            // bytes.
            let _ = socket.map(|it| rustix::net::shutdown(it, rustix::net::Shutdown::Both));
        }
        std::future::pending::<()>().await;
    };

    let both = async {
        tokio::try_join!(
            pump(
                &mut client_read,
                &mut server_write,
                Direction::Requests,
                &plan,
                age
            ),
            pump(
                &mut server_read,
                &mut client_write,
                Direction::Replies,
                &plan,
                age
            ),
        )
    };
    let cut = changes.wait_for(|plan| !Arc::ptr_eq(&plan.generation, &generation));
    let ended_in_order = tokio::select! {
        ended = both => ended.is_ok(),
        () = without_client => true,
        _ = cut => false,
    };
    // The sockets close before the generation is dropped, because that drop tells `cut` that it is
    // done.
    close(client_read, client_write, ended_in_order);
    close(server_read, server_write, ended_in_order);
    drop(generation);
}

fn close(read: OwnedReadHalf, write: OwnedWriteHalf, in_order: bool) {
    // A write half that is dropped alone sends a FIN first, and the peer would take the cut for an
    // orderly end.
    let stream = read.reunite(write).expect("two halves of one stream");
    if !in_order {
        let _ = stream.set_zero_linger();
    }
}
