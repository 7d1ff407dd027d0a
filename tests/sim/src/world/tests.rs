//! Tests of the executor, the clocks and the network.

use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lock_core::machine as kit;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{Fault, MILLI, Order, Planned, SECOND, Settings, Sim, State, Ways, sim};
use crate::server::{Bytes, Role};

fn start(order: Order) -> Rc<Sim> {
    Sim::start(Settings {
        seed: 7,
        order,
        latency: MILLI,
        ..Settings::default()
    })
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Times that a task notes.
#[derive(Clone, Default)]
struct Times(Arc<Mutex<Vec<u64>>>);

impl Times {
    fn note(&self) {
        self.0.lock().expect("one thread").push(sim().now());
    }

    fn all(&self) -> Vec<u64> {
        self.0.lock().expect("one thread").clone()
    }
}

/// Runs `main` in a process for a virtual minute.
fn run_in(sim: &Rc<Sim>, ppm: i64, main: impl Future<Output = ()> + Send + 'static) -> usize {
    let process = sim.add_process(ppm);
    sim.start_runtime(process, main);
    process
}

#[test]
fn a_timer_follows_the_clock_of_its_process() {
    let sim = start(Order::Seeded);
    let (right, fast) = (Times::default(), Times::default());
    for (times, ppm) in [(right.clone(), 0), (fast.clone(), 5_000)] {
        run_in(&sim, ppm, async move {
            kit::sleep(millis(10_000)).await;
            times.note();
        });
    }
    sim.run_until(60 * SECOND);
    let (right, fast) = (right.all()[0], fast.all()[0]);
    assert!(
        (10 * SECOND..10 * SECOND + MILLI).contains(&right),
        "{right}"
    );
    let expected = 10 * SECOND * 1_000 / 1_005;
    assert!((expected..expected + MILLI).contains(&fast), "{fast}");
    sim.end();
}

#[test]
fn a_stopped_process_goes_on_where_it_was() {
    let sim = start(Order::Seeded);
    let times = Times::default();
    let noted = times.clone();
    let process = run_in(&sim, 0, async move {
        kit::sleep(millis(1_000)).await;
        noted.note();
    });
    let fault = Fault::Stop { process };
    sim.change(|state| {
        state.plan_faults(vec![Planned {
            at: 500 * MILLI,
            lasts: 2 * SECOND,
            fault,
        }])
    });
    sim.run_until(60 * SECOND);
    assert!(times.all()[0] >= 2_500 * MILLI, "{:?}", times.all());
    sim.end();
}

#[test]
fn the_tasks_of_a_runtime_end_with_it() {
    let sim = start(Order::Seeded);
    let steps = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&steps);
    let process = run_in(&sim, 0, async move {
        kit::spawn(async move {
            loop {
                counted.fetch_add(1, Ordering::Relaxed);
                kit::sleep(millis(100)).await;
            }
        });
        kit::sleep(millis(1_000)).await;
    });
    sim.run_until(60 * SECOND);
    assert_eq!(sim.tasks_of(process), 0);
    assert!((9..=11).contains(&steps.load(Ordering::Relaxed)));
    sim.end();
}

#[test]
fn a_killed_process_does_nothing_more() {
    let sim = start(Order::Seeded);
    let times = Times::default();
    let noted = times.clone();
    let process = run_in(&sim, 0, async move {
        kit::sleep(millis(1_000)).await;
        noted.note();
    });
    let fault = Fault::Kill { process };
    sim.change(|state| {
        state.plan_faults(vec![Planned {
            at: 500 * MILLI,
            lasts: 1,
            fault,
        }])
    });
    sim.run_until(60 * SECOND);
    assert!(times.all().is_empty());
    sim.end();
}

/// Sends a `PING` on a new connection at each of these times, and notes when each answer is there.
async fn ping(noted: Times, at: Vec<u64>) {
    let mut stream = kit::connect("10.0.0.0:6379").await.expect("a connection");
    for time in at {
        kit::sleep(Duration::from_nanos(time.saturating_sub(now()))).await;
        let request = b"*1\r\n$4\r\nPING\r\n";
        stream.write_all(request).await.expect("a request");
        let mut answer = [0; 7];
        stream.read_exact(&mut answer).await.expect("an answer");
        assert_eq!(&answer, b"+PONG\r\n");
        noted.note();
    }
}

fn now() -> u64 {
    sim().now()
}

#[test]
fn a_held_answer_arrives_when_the_partition_is_over() {
    let sim = start(Order::Fifo);
    sim.change(|state| state.add_server());
    let times = Times::default();
    let process = run_in(&sim, 0, ping(times.clone(), vec![SECOND, 2 * SECOND]));
    let fault = Fault::Hold {
        process,
        server: 0,
        ways: Ways::Replies,
    };
    let planned = Planned {
        at: 1_500 * MILLI,
        lasts: 2 * SECOND,
        fault,
    };
    sim.change(|state| state.plan_faults(vec![planned]));
    sim.run_until(60 * SECOND);
    let times = times.all();
    assert!(times[0] < 1_100 * MILLI, "{times:?}");
    assert!(times[1] >= 3_500 * MILLI, "{times:?}");
    sim.end();
}

#[test]
fn equal_seeds_have_equal_traces_and_others_have_not() {
    let trace = |seed| {
        let sim = Sim::start(Settings {
            seed,
            stops_inside: true,
            latency: MILLI,
            ..Settings::default()
        });
        sim.change(|state| state.add_server());
        for _ in 0..3 {
            run_in(&sim, 0, ping(Times::default(), vec![0; 20]));
        }
        sim.run_until(60 * SECOND);
        let trace = sim.look(|state| state.trace());
        sim.end();
        trace
    };
    assert_eq!(trace(1), trace(1));
    assert_ne!(trace(1), trace(2));
}

/// Has a server run a command, as if a client had sent it.
fn order(state: &mut State, server: usize, words: &[&str]) {
    let words: Vec<Bytes> = words.iter().map(|word| word.as_bytes().to_vec()).collect();
    let time = state.server_time(server);
    let host = &mut state.hosts[server];
    host.server.run(1_000_000, time, &words, &mut Bytes::new());
    state.spread(server);
}

#[test]
fn a_promoted_replica_leads_and_later_the_former_master_has_its_data() {
    let sim = start(Order::Fifo);
    let sentinel = sim.change(|state| {
        state.add_server();
        state.add_replica(0, 0);
        state.add_sentinel()
    });
    let fault = |at, lasts, fault| Planned { at, lasts, fault };
    sim.change(|state| {
        order(state, 0, &["SET", "old", "x"]);
        state.plan_faults(vec![
            fault(SECOND, 2 * SECOND, Fault::StopReplica { replica: 1 }),
            fault(2 * SECOND, 4 * SECOND, Fault::Promote { server: 1 }),
            fault(8 * SECOND, MILLI, Fault::Flush { server: 0 }),
        ]);
    });
    sim.run_until(SECOND + MILLI);
    sim.change(|state| order(state, 0, &["SET", "late", "x"]));
    sim.run_until(5 * SECOND);
    sim.change(|state| {
        assert_eq!(state.service.master, 1);
        assert_eq!(state.service.switches[0].told[0].0, sentinel);
        assert_eq!(state.hosts[0].server.role, Role::Master, "until the end");
        assert!(state.hosts[1].server.entry(b"old").is_some());
        assert!(state.hosts[1].server.entry(b"late").is_none());
        order(state, 1, &["SET", "new", "x"]);
    });
    sim.run_until(7 * SECOND);
    sim.look(|state| {
        assert_ne!(state.hosts[0].server.role, Role::Master);
        assert!(state.hosts[0].server.entry(b"late").is_none());
        assert!(state.hosts[0].server.entry(b"new").is_some());
        assert_eq!(state.hosts[1].server.replicas.len(), 1);
        let masters = [SECOND, 3 * SECOND].map(|time| state.service.master_at(time));
        assert_eq!(masters, [0, 1]);
    });
    sim.run_until(9 * SECOND);
    sim.look(|state| {
        let entry = state.hosts[0].server.entry(b"new");
        assert!(entry.is_some(), "a replica refuses the order");
    });
    sim.end();
}
