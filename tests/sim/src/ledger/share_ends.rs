//! An owner of a share believes in it no longer than the server has it.
//!
//! The ledger does not know which share at the server is whose. So it counts: the servers have at least as many shares to
//! any time as owners believe to have one until then.

use super::{Answer, Ledger};
use crate::plan::{Plan, Topology, lock_name};
use crate::server::Data;
use crate::world::State;

impl Ledger {
    /// Checks the deadlines of all owners of a key at one look of one of them, which believes for `believes` more.
    pub(super) fn check_share_ends(
        &mut self,
        plan: &Plan,
        state: &State,
        call: usize,
        believes: f64,
    ) {
        let key = self.calls[call].keys[0];
        let calls = &self.calls;
        let believed = self.believed.entry(key).or_default();
        believed.insert(call, state.now + believes as u64);
        believed.retain(|owner, until| {
            let owner = &calls[*owner];
            let leaves = plan.processes[owner.process].leaves;
            *until > state.now
                && owner.left.is_none()
                && owner.answer != Answer::Lost
                && leaves.is_none_or(|leaves| state.now < leaves)
        });
        let (ends, needed): (Vec<u64>, usize) = match plan.topology {
            Topology::Cluster => {
                let nodes: Vec<usize> = state.masters().collect();
                (ends_of_shares(plan, state, &nodes, key), 1)
            }
            _ => {
                let each = (0..plan.servers).flat_map(|it| ends_of_shares(plan, state, &[it], key));
                (each.collect(), plan.servers / 2 + 1)
            }
        };
        let is_beyond = believed.values().any(|until| {
            let owners = believed.values().filter(|it| *it >= until).count();
            let there = ends.iter().filter(|end| *end >= until).count();
            there < owners * needed
        });
        if is_beyond {
            let ms = |time: &u64| format!("{:.3}", *time as f64 / 1e6);
            let until: Vec<String> = believed.values().map(ms).collect();
            let ends: Vec<String> = ends.iter().map(ms).collect();
            let text = format!(
                "at {}: the owners believe until {until:?}, the servers have shares until {ends:?}: {}",
                ms(&state.now),
                self.show(call)
            );
            self.violates("an owner believes longer than its share lives", text);
        }
    }
}

/// The ends in true time of what servers have inside a key: its shares, or the only owner. Of several servers, which are
/// the nodes of a cluster, one has the key, and maybe another one has the set of its shares.
fn ends_of_shares(plan: &Plan, state: &State, servers: &[usize], key: usize) -> Vec<u64> {
    // A key is there to the end of its last millisecond.
    let true_time = |server: usize, millis: i64| {
        let left = state.true_time_left(server, millis + 1);
        state.now.saturating_add_signed(left.max(0))
    };
    let latest = |name: String| {
        let entries = servers.iter().filter_map(|server| {
            let entry = state.hosts[*server].server.entry(name.as_bytes())?;
            let ends = true_time(*server, entry.ends.unwrap_or(0));
            Some((ends, *server, &entry.data))
        });
        entries.max_by_key(|(ends, ..)| *ends)
    };
    let Some((ends, _, value)) = latest(lock_name(key)) else {
        return Vec::new();
    };
    if *value != Data::Text(b"shared/lockkit".to_vec()) {
        return vec![ends];
    }
    match latest(plan.topology.shares_name(key)) {
        Some((set_ends, server, Data::Sorted(set))) => {
            let members = set.members().iter();
            let each = members.map(|(score, _)| true_time(server, *score as i64));
            each.map(|end| end.min(ends).min(set_ends)).collect()
        }
        _ => Vec::new(),
    }
}
