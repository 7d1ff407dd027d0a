//! A ping of the store.

use super::Worker;
use crate::ledger::{Ping, ledger};
use crate::world::sim;

impl Worker {
    pub(super) async fn ping(&mut self) {
        let commands = || {
            sim().look(|state| {
                let hosts = state.hosts.iter();
                hosts.map(|host| host.server.commands).sum::<u64>()
            })
        };
        let (asked, before) = (sim().now(), commands());
        let good = self.locks.ping().await.is_ok();
        if good && commands() == before {
            let text = format!("p{} at {:.3} ms", self.process, asked as f64 / 1e6);
            ledger(|it| it.violates("a ping is answered by no server", text));
        }
        let ping = Ping {
            process: self.process,
            asked,
            answered: sim().now(),
            good,
        };
        ledger(|it| it.pings.push(ping));
        self.acquire().await;
    }
}
