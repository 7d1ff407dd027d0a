//! One history: it runs a plan, and asks the ledger.

use std::rc::Rc;
use std::time::Duration;

use lock_core::LockManager;
use lock_core::machine as kit;

use crate::ledger::{self, Ledger, Violation, ledger};
use crate::plan::{Plan, ProcessPlan, Topology, Weather, rights};
use crate::rng::Rng;
use crate::work::Worker;
use crate::world::{LAST, MILLI, SECOND, SERVICE, Settings, Sim, State, sim};

/// The end of a history in which a call has no end.
const END: u64 = 60 * SECOND;
/// The time in which the keeper has looked after requests that may have arrived late.
const SECOND_LOOK: u64 = 15 * SECOND;
/// The time after the last drain in which the last releases arrive.
const AFTER: u64 = 500 * MILLI;

/// The result of a history.
#[derive(Clone, Debug)]
pub struct Report {
    pub violations: Vec<Violation>,
    /// What the callers saw.
    pub ledger: Ledger,
    pub grants: usize,
    pub steps: u64,
    pub commands: u64,
    /// Two runs of one plan have the same trace.
    pub trace: u64,
    pub log: Vec<String>,
}

/// Whether a history keeps a log of its steps, segments and faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Log {
    No,
    Yes,
}

/// Runs a history.
pub fn run(plan: &Plan, log: Log) -> Report {
    drop(ledger::take());
    let sim = Sim::start(Settings {
        seed: plan.seed,
        order: plan.order,
        stops_inside: plan.stops_inside,
        latency: plan.latency,
        logs: log == Log::Yes,
    });
    sim.change(|state| build(state, plan));
    for (process, its) in plan.processes.iter().enumerate() {
        assert_eq!(sim.add_process(its.ppm), process);
        sim.start_runtime(process, live(plan.clone(), process, its.clone()));
    }
    // The faults begin when there are connections that they are about.
    sim.change(|state| state.plan_faults(plan.faults.clone()));
    run_to_the_end(&sim, plan);
    let report = judge(&sim, plan);
    sim.end();
    report
}

/// Sets the servers up.
fn build(state: &mut State, plan: &Plan) {
    state.stops_amid_a_release = plan.stops_amid_a_release;
    for _ in 0..plan.servers {
        let server = match plan.topology {
            Topology::Postgres => state.add_postgres(plan.seed),
            _ => state.add_server(),
        };
        if plan.exact_rights {
            let server = &mut state.hosts[server].server;
            server.allow_only(&rights::of(plan));
        }
    }
    let masters = match plan.topology {
        Topology::Cluster => plan.servers,
        _ => 1,
    };
    for (number, lag) in plan.replicas.iter().enumerate() {
        state.add_replica(number % masters, *lag);
    }
    if plan.topology == Topology::Cluster {
        state.form_cluster(masters);
    }
    for (number, clock) in plan.clocks.iter().enumerate() {
        let first = state.hosts.len() - plan.clocks.len();
        state.hosts[first + number].clock = *clock;
    }
    for host in &mut state.hosts {
        host.server.version = plan.version;
        if plan.are_recent {
            host.server.version.redis = (8, 2, 1);
        }
    }
    for _ in 0..plan.sentinels {
        let sentinel = state.add_sentinel();
        if sentinel + 1 == plan.sentinel_servers().end {
            for process in 0..plan.processes.len() {
                state.lengthen(process, sentinel, plan.far);
            }
        }
    }
}

/// The life of a process: its tasks work, and then its manager is drained.
async fn live(plan: Plan, process: usize, its: ProcessPlan) {
    let builder = match plan.topology {
        Topology::One | Topology::Replicas => LockManager::builder("redis://10.0.0.0:6379"),
        Topology::Postgres => LockManager::builder("postgres://lock@10.0.0.0:5432/app"),
        Topology::Sentinel => {
            let servers = plan.sentinel_servers();
            let hosts: Vec<_> = servers.map(|it| format!("10.0.0.{it}:6379")).collect();
            let hosts = hosts.join(",");
            LockManager::builder(&format!("redis-sentinel://{hosts}?service={SERVICE}"))
        }
        Topology::Redlock => {
            let urls = (0..plan.servers).map(|server| format!("redis://10.0.0.{server}:6379"));
            let longest = plan.ttls.iter().max().copied().unwrap_or_default();
            // A server that has lost its data votes again after that.
            let max_ttl = Duration::from_millis(longest);
            let builder = LockManager::quorum(urls).assume_fresh();
            builder.max_ttl(max_ttl).default_ttl(max_ttl)
        }
        Topology::Cluster => {
            let nodes = (0..3).map(|node| format!("10.0.0.{}:6379", (node + process) % 3));
            let nodes: Vec<String> = nodes.collect();
            LockManager::builder(&format!("redis-cluster://{}", nodes.join(",")))
        }
    };
    let timeout = Duration::from_nanos(its.operation_timeout);
    let builder = builder.operation_timeout(timeout);
    let builder = match plan.acks {
        0 => builder,
        acks => builder.replica_acks(acks),
    };
    let locks = builder.connect_lazy().expect("the settings are in bounds");
    let tasks: Vec<_> = its
        .tasks
        .iter()
        .enumerate()
        .map(|(task, seed)| {
            let worker = Worker {
                plan: plan.clone(),
                process,
                task,
                locks: locks.clone(),
                rng: Rng::of(*seed),
            };
            kit::spawn(worker.work())
        })
        .collect();
    if let Some(leaves) = its.leaves {
        kit::sleep(Duration::from_nanos(leaves)).await;
        tasks.iter().for_each(kit::JoinHandle::abort);
        drop(locks);
        // The application goes on.
        return std::future::pending().await;
    }
    if let Some(exits) = its.exits {
        kit::sleep(Duration::from_nanos(exits)).await;
        let drained = locks.drain(Duration::from_secs(10)).await;
        note_drained(&plan, process, drained.is_complete());
        sim().change(|state| state.kill(process));
        return std::future::pending().await;
    }
    for task in tasks {
        if task.await.is_err() {
            // The process was killed while it was stopped inside a step, and spawns nothing more.
            return std::future::pending().await;
        }
    }
    // The keeper looks after late copies of requests, and a drain does not wait for them.
    let begins = plan.work_ends.max(LAST) + SECOND_LOOK;
    let left = begins.saturating_sub(sim().now());
    kit::sleep(Duration::from_nanos(left)).await;
    let drained = locks.drain(Duration::from_secs(10)).await;
    note_drained(&plan, process, drained.is_complete());
    drop(locks);
    // The application goes on.
    std::future::pending::<()>().await;
}

fn note_drained(plan: &Plan, process: usize, is_complete: bool) {
    sim().look(|state| {
        ledger(|it| {
            it.drains(process, is_complete);
            if is_complete {
                it.check_drained(plan, state, process);
            }
        });
    });
}

/// Runs until all managers are drained.
fn run_to_the_end(sim: &Rc<Sim>, plan: &Plan) {
    let are_drained = (0..plan.processes.len()).filter(|process| plan.is_drained(*process));
    let living = are_drained.count();
    if plan
        .processes
        .iter()
        .any(|process| process.leaves.is_some())
    {
        // The keeper of a manager that was dropped may still withdraw votes.
        sim.run_until(plan.work_ends.max(LAST) + SECOND_LOOK);
    }
    while sim.now() < END {
        sim.run_until(sim.now() + 500 * MILLI);
        let drained = ledger(|it| {
            let living = it.drained.iter().filter(|it| plan.is_drained(it.0));
            living.count()
        });
        if drained == living {
            break;
        }
    }
    sim.run_until(sim.now() + AFTER);
}

fn judge(sim: &Rc<Sim>, plan: &Plan) -> Report {
    let mut ledger = ledger::take();
    match plan.weather {
        Weather::Repeats => ledger.check_repeats(plan, sim),
        _ => check(&mut ledger, sim, plan),
    }
    let grants = ledger
        .calls
        .iter()
        .filter(|call| call.left.is_some())
        .count();
    sim.change(|state| Report {
        violations: std::mem::take(&mut ledger.violations),
        grants,
        steps: state.steps,
        commands: state.hosts.iter().map(|host| host.server.commands).sum(),
        trace: state.trace(),
        log: state.take_log(),
        ledger,
    })
}

fn check(ledger: &mut Ledger, sim: &Sim, plan: &Plan) {
    ledger.check_tickets(plan);
    sim.look(|state| {
        ledger.check_statements(state);
        ledger.find_interrupted(plan, state);
        ledger.check_owners(plan, state);
        ledger.check_busy(plan, state);
        ledger.check_waits(plan, state);
    });
    sim.look(|state| ledger.check_causes(plan, state));
    if plan.topology == Topology::Cluster {
        ledger.check_kinds(plan);
        ledger.check_fifo(plan);
    }
    if plan.topology == Topology::Redlock {
        sim.look(|state| ledger.check_registers(plan, state));
    }
    ledger.check_pings(plan);
    ledger.check_foreign(plan);
    if plan.is_plain() {
        sim.look(|state| {
            ledger.check_order(plan, state);
            ledger.check_noticed(plan, state);
            ledger.check_strikes(plan, state);
            ledger.check_the_dead(plan, state);
            ledger.check_looks(plan, state);
            ledger.check_releases(plan, state);
        });
    }
    if plan.keeps_keys() {
        sim.look(|state| {
            ledger.check_records(plan, state);
            ledger.check_cooldowns(plan, state);
            ledger.check_forgets(plan);
            ledger.check_several(plan, state);
        });
    }
    sim.look(|state| {
        ledger.check_renewals(plan, state);
        ledger.check_questions(plan, state);
    });
    ledger.check_remains(plan, sim);
    if plan.has_shares() {
        sim.look(|state| {
            ledger.check_turns(plan, state);
            ledger.check_strangers(plan, state);
        });
        sim.look(|state| ledger.check_share_refusals(plan, state));
        ledger.check_share_order(plan);
        ledger.check_losses(plan);
    }
    if plan.has_jobs() {
        ledger.check_patience(plan);
        ledger.check_line(plan);
        sim.look(|state| ledger.check_ownerless(plan, state));
        ledger.check_leaders(plan);
        sim.look(|state| ledger.check_ticks(plan, state));
    }
    if plan.has_orders() {
        sim.look(|state| ledger.check_inspections(plan, state));
        ledger.check_lists(plan);
        ledger.check_orders(plan);
    }
}
