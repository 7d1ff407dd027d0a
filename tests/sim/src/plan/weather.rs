//! The weather of a history: the faults that it may have.

use super::Topology;
use crate::rng::Rng;

/// Which faults a history may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weather {
    Calm,
    /// Connections end and scripts are forgotten, and all is well again at once.
    Momentary,
    /// Only the network fails.
    Network,
    /// Processes are killed, or stopped for good, and nothing else fails.
    Deaths,
    /// All but losses of data.
    Rough,
    /// Data is lost, so that only tokens keep their promise.
    Lossy,
    /// Very many short locks of few processes on one key.
    Crowd,
    /// The user loses rights again and again.
    Rights,
    /// A server's clock steps back again and again.
    Clock,
    /// Keys are deleted under their owners.
    Losses,
    /// The server forgets the scripts all the time.
    Scripts,
    /// One process is stopped for longer than a grant.
    Stops,
    /// Queues are full of waiters that are gone.
    Gone,
    /// Requests of broken connections arrive later.
    Late,
    /// A proxy sends requests twice.
    Repeats,
    /// The mark of the fencing tokens holds something else.
    Marks,
    /// The network works, and strangers change the data.
    Strange,
}

impl Weather {
    /// Half of the histories are about a situation that is rare in the others.
    pub(super) fn draw(rng: &mut Rng, topology: Topology) -> Self {
        let usual = [
            Self::Momentary,
            Self::Calm,
            Self::Network,
            Self::Network,
            Self::Rough,
            Self::Rough,
            Self::Rough,
            Self::Lossy,
            Self::Strange,
        ];
        let situations = [
            Self::Crowd,
            Self::Rights,
            Self::Rights,
            Self::Clock,
            Self::Clock,
            Self::Losses,
            Self::Losses,
            Self::Scripts,
            Self::Stops,
            Self::Gone,
            Self::Late,
            Self::Marks,
        ];
        match topology {
            Topology::One | Topology::Replicas if rng.percent(50) => rng.pick(&situations),
            Topology::Postgres if rng.percent(40) => {
                rng.pick(&[Self::Crowd, Self::Clock, Self::Stops, Self::Late])
            }
            Topology::Postgres => rng.pick(&usual[..8]),
            // Its rule about times without trouble covers momentary faults.
            Topology::Sentinel | Topology::Cluster => rng.pick(&usual[1..8]),
            _ => rng.pick(&usual),
        }
    }
}
