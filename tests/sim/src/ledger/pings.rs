//! A ping succeeds with a majority of the servers, and not without.

use super::Ledger;
use super::causes::is_slow;
use crate::plan::{Plan, Topology};
use crate::world::{Fault, SECOND};

/// The time in which a manager may still be connecting.
const START: u64 = SECOND;

/// One ping, and whether it succeeded.
#[derive(Clone, Debug)]
pub struct Ping {
    pub process: usize,
    pub asked: u64,
    pub answered: u64,
    pub good: bool,
}

impl Ledger {
    pub fn check_pings(&mut self, plan: &Plan) {
        let is_calm = plan.faults.is_empty() && !plan.stops_inside && !is_slow(plan);
        // Behind a failover another server answers.
        if plan.topology == Topology::Sentinel {
            return;
        }
        for ping in self.pings.clone() {
            let out = (0..plan.servers)
                .filter(|server| is_out(plan, &ping, *server))
                .count();
            if ping.good && out > plan.minority() {
                self.violates("a ping succeeds without a majority", format!("{ping:?}"));
            }
            if !ping.good && is_calm && ping.asked > START && !plan.ends_early(ping.process) {
                self.violates("a ping fails without a fault", format!("{ping:?}"));
            }
        }
    }
}

/// Returns whether a server could not answer during the whole ping.
fn is_out(plan: &Plan, ping: &Ping, server: usize) -> bool {
    plan.faults.iter().any(|planned| {
        let is_out = match planned.fault {
            Fault::Restart { server: at, .. } | Fault::StopServer { server: at } => at == server,
            Fault::Hold {
                process,
                server: at,
                ..
            } => at == server && process == ping.process,
            _ => false,
        };
        is_out && planned.at < ping.asked && ping.answered < planned.end()
    })
}
