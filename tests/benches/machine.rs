//! Controls the machine of a benchmark: one core for the client and one for the server. Measures the costs of
//! a process.

use std::fs;
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use lock_tests::RedisServer;
use rustix::process::{Pid, nice};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

/// Makes a runtime with one thread, so that a measurement contains no work of another core.
pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime")
}

/// Returns the nanoseconds of a clock that all processes of the machine share.
pub(crate) fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    u64::try_from(i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec))
        .expect("time since the start")
}

/// Pins the server to one core, and this process and its later children to another.
///
/// So their effect on each other is the same in every run.
pub(crate) fn pin(server: &RedisServer) -> [usize; 2] {
    let cores = cores();
    let [client, server_core] = [cores[0], cores[cores.len() - 1]];
    pin_server(server, server_core);
    pin_this(client);
    if client == server_core {
        println!("(client and server share one core, so the figures mean little)");
    }
    [client, server_core]
}

/// Pins this process, and processes that it starts later, to a core.
pub(crate) fn pin_this(core: usize) {
    sched_setaffinity(None, &only(core)).expect("this process on its core");
}

/// Pins another server to a core.
pub(crate) fn pin_server(server: &RedisServer, core: usize) {
    let pid = i32::try_from(server.pid()).expect("a process id");
    sched_setaffinity(Pid::from_raw(pid), &only(core)).expect("the server on its core");
}

fn cores() -> Vec<usize> {
    let allowed = sched_getaffinity(None).expect("the cores of this process");
    let all = 0..CpuSet::MAX_CPU;
    all.filter(|&core| allowed.is_set(core)).collect()
}

fn only(core: usize) -> CpuSet {
    let mut set = CpuSet::new();
    set.set(core);
    set
}

/// Processes that keep the cores from sleeping and yield to all others.
pub(crate) struct Spinners(Vec<Child>);

impl Spinners {
    pub(crate) fn start(cores: &[usize]) -> Self {
        let program = std::env::current_exe().expect("this program");
        let start = |core: &usize| {
            // A spinner runs only when no other process wants the core. Without `chrt`, a low priority must
            // do.
            let mut idle = Command::new("chrt");
            idle.args(["--idle", "0"]).arg(&program);
            let mut plain = Command::new(&program);
            [&mut idle, &mut plain]
                .into_iter()
                .find_map(|command| {
                    let command = command.args(["spin", &core.to_string()]);
                    command.stdin(Stdio::piped()).spawn().ok()
                })
                .expect("a spinner")
        };
        Self(cores.iter().map(start).collect())
    }
}

impl Drop for Spinners {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Spins on a core. The spinner ends with its parent, whose end closes the pipe.
pub(crate) fn spin(core: &str) {
    let core = core.parse().expect("a core");
    sched_setaffinity(None, &only(core)).expect("a core to spin on");
    // The call fails if the priority is already below all others.
    let _ = nice(19);
    std::thread::spawn(|| {
        let _ = std::io::stdin().read(&mut [0]);
        std::process::exit(0);
    });
    loop {
        for _ in 0..400 {
            std::hint::spin_loop();
        }
        // Linux sometimes leaves the core to a process of the lowest priority until its next tick. Those 4 ms
        // would then be part of a measured wait.
        std::thread::yield_now();
    }
}

pub(crate) fn resident_bytes(pid: u32) -> usize {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))
        .expect("a Linux machine: /proc/<pid>/status");
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .expect("VmRSS");
    let kilobytes: usize = line
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .expect("a number");
    kilobytes * 1024
}

pub(crate) fn cpu_seconds(pid: u32) -> f64 {
    let stat =
        fs::read_to_string(format!("/proc/{pid}/stat")).expect("a Linux machine: /proc/<pid>/stat");
    let after_name = stat.rsplit_once(')').expect("a name in parentheses").1;
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    let ticks: f64 =
        fields[11].parse::<f64>().expect("utime") + fields[12].parse::<f64>().expect("stime");
    // Linux counts in hundredths of a second on all its platforms.
    ticks / 100.0
}

/// Returns the CPU time of this process.
pub(crate) fn own_cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::try_from(time).expect("time goes on")
}

/// Returns the CPU time of another process's first thread, finer than [`cpu_seconds`].
pub(crate) fn cpu_micros(pid: u32) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/schedstat"))
        .expect("a Linux machine: /proc/<pid>/schedstat");
    let run = stat.split_whitespace().next().expect("nanoseconds");
    run.parse::<f64>().expect("a number") / 1e3
}

pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
