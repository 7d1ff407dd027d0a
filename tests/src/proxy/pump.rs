//! Moves the bytes of one direction of one connection, as far as its rule lets them pass.

use std::io;
use std::time::Instant;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{mpsc, watch};

use super::load::Load;
use super::rule::{Direction, Plan, Verdict};

/// The number of pieces that wait for their time. Beyond it the sender meets the back-pressure of a
/// full pipe.
const PIECES: usize = 256;
const PIECE_BYTES: usize = 16 * 1024;

/// Runs until the stream has ended for the other side.
///
/// The result is `Ok` for an orderly end, and `Err` for a reset or a failed write.
pub(super) async fn pump(
    from: &mut OwnedReadHalf,
    to: &mut OwnedWriteHalf,
    direction: Direction,
    plan: &watch::Sender<Plan>,
    age: u64,
) -> io::Result<()> {
    let (pieces, mut arrivals) = mpsc::channel::<Piece>(PIECES);
    let mut gate = Gate {
        changes: plan.subscribe(),
        direction,
        age,
    };
    let write = async {
        while let Some(piece) = arrivals.recv().await {
            match piece.content {
                Content::Bytes(load) => gate.pass(piece.arrived, load, to).await?,
                Content::End => {
                    gate.pass_end(piece.arrived).await;
                    return to.shutdown().await;
                }
                Content::Reset(error) => {
                    gate.pass_end(piece.arrived).await;
                    return Err(error);
                }
            }
        }
        Ok(())
    };
    tokio::select! {
        written = write => written,
        never = read_all(from, pieces, direction, plan) => never,
    }
}

/// An event of a stream: bytes, or its end. The rules apply to an end too, because a partition lets
/// no FIN and no RST through.
struct Piece {
    arrived: Instant,
    content: Content,
}

enum Content {
    Bytes(Load),
    End,
    Reset(io::Error),
}

/// Reads to the end. The writer then decides when the pump is done.
async fn read_all(
    from: &mut OwnedReadHalf,
    pieces: mpsc::Sender<Piece>,
    direction: Direction,
    plan: &watch::Sender<Plan>,
) -> io::Result<()> {
    let mut open = true;
    while open {
        let mut bytes = Vec::with_capacity(PIECE_BYTES);
        let content = match from.read_buf(&mut bytes).await {
            Ok(0) => Content::End,
            Ok(_) => Content::Bytes(plan.borrow().lane(direction).load(bytes)),
            Err(error) => Content::Reset(error),
        };
        open = matches!(content, Content::Bytes(_));
        let piece = Piece {
            arrived: Instant::now(),
            content,
        };
        open &= pieces.send(piece).await.is_ok();
    }
    std::future::pending().await
}

/// Applies the rule to pieces on their way to the other side.
struct Gate {
    changes: watch::Receiver<Plan>,
    direction: Direction,
    age: u64,
}

enum Next {
    Done,
    Write,
    Wait(Option<Instant>),
}

impl Gate {
    async fn pass(
        &mut self,
        arrived: Instant,
        mut load: Load,
        to: &OwnedWriteHalf,
    ) -> io::Result<()> {
        loop {
            match self.write_some(arrived, &mut load, to)? {
                Next::Done => return Ok(()),
                Next::Write => to.writable().await?,
                Next::Wait(until) => self.wait(until).await,
            }
        }
    }

    async fn pass_end(&mut self, arrived: Instant) {
        loop {
            let until = {
                let plan = self.changes.borrow_and_update();
                match plan.lane(self.direction).judge(arrived, &[]) {
                    _ if plan.is_frozen(self.age) => None,
                    Verdict::Pass(_) | Verdict::Instead(_) => return,
                    Verdict::Later(at) => Some(at),
                    Verdict::Never => None,
                }
            };
            self.wait(until).await;
        }
    }

    /// Asks the plan and writes in one step under the plan's lock.
    ///
    /// So no byte escapes a rule once it is set.
    fn write_some(
        &mut self,
        arrived: Instant,
        load: &mut Load,
        to: &OwnedWriteHalf,
    ) -> io::Result<Next> {
        let plan = self.changes.borrow_and_update();
        let lane = plan.lane(self.direction);
        let length = match lane.judge(arrived, load.bytes()) {
            _ if plan.is_frozen(self.age) => return Ok(Next::Wait(None)),
            _ if load.is_replaced() => load.bytes().len(),
            Verdict::Pass(length) => length,
            Verdict::Instead(bytes) => {
                load.replace(bytes);
                load.bytes().len()
            }
            Verdict::Later(at) => return Ok(Next::Wait(Some(at))),
            Verdict::Never => return Ok(Next::Wait(None)),
        };
        match to.try_write(&load.bytes()[..length]) {
            Ok(written) => {
                lane.count_passed(written);
                load.advance(written);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        Ok(if load.bytes().is_empty() {
            Next::Done
        } else {
            Next::Write
        })
    }

    async fn wait(&mut self, until: Option<Instant>) {
        let changed = async {
            // The plan outlives the connections, because its sender is on the same thread.
            if self.changes.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        match until {
            None => changed.await,
            Some(at) => tokio::select! {
                () = changed => {}
                () = tokio::time::sleep_until(at.into()) => {}
            },
        }
    }
}
