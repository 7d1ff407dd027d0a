//! The client's side of a connection, which the redis crate reads and writes.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use lock_core::machine::Stream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{SIM, sim};

/// An attempt to connect.
pub(super) struct Dial(pub(super) Option<Socket>);

impl Future for Dial {
    type Output = io::Result<Box<dyn Stream>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let connection = self.0.as_ref().expect("polled until it is ready").0;
        let is_connected = sim().change(|state| {
            let it = &mut state.connections[connection];
            if let Some(kind) = it.failed {
                return Poll::Ready(Err(kind.into()));
            }
            if it.is_connected {
                return Poll::Ready(Ok(()));
            }
            it.reader = Some(context.waker().clone());
            Poll::Pending
        });
        is_connected.map_ok(|()| -> Box<dyn Stream> { Box::new(self.0.take().expect("a socket")) })
    }
}

pub(super) struct Socket(pub(super) usize);

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        sim().change(|state| {
            let it = &mut state.connections[self.0];
            if !it.received.is_empty() {
                let (first, _) = it.received.as_slices();
                let count = buffer.remaining().min(first.len());
                buffer.put_slice(&first[..count]);
                it.received.drain(..count);
                return Poll::Ready(Ok(()));
            }
            if let Some(kind) = it.failed {
                return Poll::Ready(Err(kind.into()));
            }
            it.reader = Some(context.waker().clone());
            Poll::Pending
        })
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let sim = sim();
        sim.may_stop_here();
        sim.change(|state| {
            let it = &state.connections[self.0];
            if let Some(kind) = it.failed {
                return Poll::Ready(Err(kind.into()));
            }
            if !state.processes[it.process].dead {
                state.client_sends(self.0, bytes);
            }
            Poll::Ready(Ok(bytes.len()))
        })
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        sim().change(|state| state.client_closes(self.0));
        Poll::Ready(Ok(()))
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // After the history there is none.
        SIM.with_borrow(|sim| {
            if let Some(sim) = sim {
                sim.change(|state| state.client_closes(self.0));
            }
        });
    }
}
