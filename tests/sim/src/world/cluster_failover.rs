//! A replica takes the place of its master in a cluster.

use super::State;
use super::cluster::{HEARS, News};
use crate::server::{Cluster, Role, SLOTS};

impl State {
    /// The replica of a master takes its place. If the master is down, that is with the data that the replica has.
    pub(super) fn fail_over(&mut self, master: usize) {
        let cluster = self.hosts[master].server.cluster.as_deref();
        let is_moving = cluster.is_some_and(Cluster::is_moving);
        let mut hosts = self.hosts.iter();
        let Some(replica) = hosts.position(|host| host.follows.master == Some(master)) else {
            return;
        };
        let is_down = !self.hosts[master].is_up;
        // The state of a move is not replicated.
        if is_moving || !self.is_well(replica) || !is_down && !self.is_well(master) {
            return;
        }
        self.note(&[14, master as u64, replica as u64], || {
            format!("s{replica} takes the place of s{master}")
        });
        self.swap_roles(master, replica);
        let epoch = self.raised_epoch(replica);
        // A replica hears of its master's slots from the master.
        let view = self.view(master);
        let all = 0..SLOTS;
        let slots: Vec<usize> = all
            .filter(|slot| view.owner(*slot) == Some(master))
            .collect();
        for node in 0..self.hosts.len() {
            let news = News::Owner {
                slots: slots.clone(),
                owner: replica,
                epoch,
            };
            if node == replica || node == master && !is_down {
                self.hears(node, news);
            } else {
                let soon = self.now + self.rng.below(HEARS);
                self.send_news(replica, node, soon, news);
            }
        }
    }

    fn swap_roles(&mut self, master: usize, replica: usize) {
        if self.hosts[master].is_up {
            // A master that is well gives way when its replica has all.
            self.replicate_all(replica);
        }
        self.leave_master(replica);
        self.hosts[replica].server.role = Role::Master;
        // For the ledger: the keys are those of the new master.
        self.forget_keys(master);
        self.note_keys(replica);
        self.hosts[master].follows.lag = self.hosts[replica].follows.lag;
        self.follow(master, replica);
    }
}
