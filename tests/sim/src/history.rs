//! One history: it runs a plan, and asks the ledger.

use std::rc::Rc;
use std::time::Duration;

use lock_core::LockManager;
use lock_core::machine as kit;

use crate::ledger::{self, Violation, ledger};
use crate::plan::{Plan, ProcessPlan, Topology};
use crate::rng::Rng;
use crate::work::Worker;
use crate::world::{LAST, MILLI, SECOND, Settings, Sim, sim};

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
    pub calls: usize,
    pub grants: usize,
    pub steps: u64,
    pub commands: u64,
    /// Two runs of one plan have the same trace.
    pub trace: u64,
    pub virtual_time: u64,
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
    sim.change(|state| {
        for _ in 0..plan.topology.servers() {
            state.add_server();
        }
        for lag in &plan.replicas {
            state.add_replica(0, *lag);
        }
    });
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

/// The life of a process: its tasks work, and then its manager is drained.
async fn live(plan: Plan, process: usize, its: ProcessPlan) {
    let builder = match plan.topology {
        Topology::One => LockManager::builder("redis://10.0.0.0:6379"),
        Topology::Replicas => LockManager::builder("redis://10.0.0.0:6379").replica_acks(1),
        Topology::Redlock => {
            let urls = (0..3).map(|server| format!("redis://10.0.0.{server}:6379"));
            LockManager::quorum(urls).assume_fresh()
        }
    };
    let timeout = Duration::from_nanos(its.operation_timeout);
    let builder = builder.operation_timeout(timeout);
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
    if let Some(exits) = its.exits {
        kit::sleep(Duration::from_nanos(exits)).await;
        let drained = locks.drain(Duration::from_secs(10)).await;
        ledger(|it| it.drained.push((process, drained.is_complete())));
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
    ledger(|it| it.drained.push((process, drained.is_complete())));
    drop(locks);
    // The application goes on.
    std::future::pending::<()>().await;
}

/// Runs until all managers are drained.
fn run_to_the_end(sim: &Rc<Sim>, plan: &Plan) {
    let killed = (0..plan.processes.len()).filter(|process| plan.is_killed(*process));
    let living = plan.processes.len() - killed.count();
    while sim.now() < END {
        sim.run_until(sim.now() + 500 * MILLI);
        let drained = ledger(|it| {
            let mut living = it.drained.iter().filter(|it| !plan.is_killed(it.0));
            living.by_ref().count()
        });
        if drained == living {
            break;
        }
    }
    sim.run_until(sim.now() + AFTER);
}

fn judge(sim: &Rc<Sim>, plan: &Plan) -> Report {
    let mut ledger = ledger::take();
    ledger.check_owners(plan);
    sim.look(|state| {
        ledger.check_busy(plan, state);
        ledger.check_waits(plan, state);
    });
    ledger.check_causes(plan);
    ledger.check_remains(plan, sim);
    let grants = ledger
        .calls
        .iter()
        .filter(|call| call.left.is_some())
        .count();
    sim.change(|state| Report {
        violations: ledger.violations,
        calls: ledger.calls.len(),
        grants,
        steps: state.steps,
        commands: state.hosts.iter().map(|host| host.server.commands).sum(),
        trace: state.trace(),
        virtual_time: state.now,
        log: state.take_log(),
    })
}
