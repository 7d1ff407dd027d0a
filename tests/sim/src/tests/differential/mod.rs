//! Compares the simulated server with real ones: the same random commands and scripts of the kit, at the same time.
//!
//! The real server's clock is set by the test, so replies, pushes and all keys are compared byte for byte.
//!
//! * `SIM_SECONDS`: for how long all servers together are compared; 33 s if not set
//! * `SIM_SEED`: the first seed; a random one if not set
//! * `REDIS_SERVERS`: the programs of the servers, with colons between; else `REDIS_SERVER`; else `redis-server`

#![expect(
    clippy::disallowed_methods,
    reason = "the test waits for other processes, whose pace no simulated clock can set"
)]

pub mod kit;
mod missing;
mod node;
mod questions;
mod random;
mod real;
mod replicas;
mod sentinels;
mod stage;
mod weather;

use std::collections::{BTreeMap, VecDeque};
use std::env;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::server::Bytes;

use self::kit::words;
use self::random::Random;
use self::stage::{CLIENTS, Difference, Stage};

/// The steps of one seed. Each seed begins without data.
const STEPS: usize = 300;
const START: i64 = 1_795_000_000_000_000;

#[test]
fn the_simulated_server_answers_as_a_real_one() {
    let found = missing::servers().and_then(|servers| Ok((servers, missing::compiler()?)));
    let (servers, compiler) = match found {
        Ok(found) => found,
        Err(why) => return missing::not_run(&why),
    };
    let folder = real::Folder::new();
    let library = real::build_clock(&compiler, &folder);
    // The servers' starts and the other comparisons take as long as is left of 40 s.
    let seconds = number("SIM_SECONDS").unwrap_or(33);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let seed = number("SIM_SEED").unwrap_or(now.expect("a time").as_micros() as u64);
    let each = Duration::from_secs(seconds) / servers.len() as u32;
    for program in servers {
        let mut stage = Stage::new(&program, &library, &folder, START);
        compare(&program, &mut stage, seed, each);
        drop(stage);
        replicas::compare(&program, &library, &folder);
        sentinels::compare(&program, &library, &folder);
        node::compare(&program, &library, &folder, seed);
    }
}

fn number(variable: &str) -> Option<u64> {
    let value = env::var(variable).ok()?;
    Some(
        value
            .parse()
            .unwrap_or_else(|_| panic!("{variable} is {value:?}, and no number")),
    )
}

fn compare(program: &Path, stage: &mut Stage, first: u64, lasts: Duration) {
    let mut history = History::new();
    let start = Instant::now();
    let mut seed = first;
    while start.elapsed() < lasts {
        if let Err(difference) = history.run(seed, stage) {
            let steps: Vec<_> = history.last.iter().cloned().collect();
            let steps = steps.join("\n");
            panic!(
                "{} differs, SIM_SEED={seed}\n{steps}{difference}",
                program.display()
            );
        }
        seed = seed.wrapping_add(1);
    }
    let asked: u64 = history.asked.values().sum();
    let a_second = asked as f64 / start.elapsed().as_secs_f64();
    println!(
        "{}: seeds {first} to {}, {asked} commands, {a_second:.0} a second",
        program.display(),
        seed.wrapping_sub(1),
    );
    println!("{:?}", history.asked);
}

struct History {
    scripts: BTreeMap<String, String>,
    asked: BTreeMap<String, u64>,
    /// The last steps, to be printed.
    last: VecDeque<String>,
}

impl History {
    fn new() -> Self {
        Self {
            scripts: kit::scripts(),
            asked: BTreeMap::new(),
            last: VecDeque::new(),
        }
    }

    fn run(&mut self, seed: u64, stage: &mut Stage) -> Result<(), Difference> {
        let random = &mut Random::new(seed);
        self.last.clear();
        weather::clear(&mut stage.operator, &mut stage.simulated);
        stage.operator.ask(&["FLUSHALL"]);
        stage.simulated.flush();
        stage.look()?;
        stage.set_time(START);
        for client in 0..CLIENTS {
            stage.reconnect(client);
            stage.ask(client, &words(&["HELLO", "3"]))?;
            if client < 2 {
                let channel = kit::channel(client);
                stage.ask(client, &words(&["SUBSCRIBE", &channel]))?;
            }
        }
        for _ in 0..STEPS {
            stage.set_time(time(random, stage));
            if random.once_in(25) {
                self.note(stage, "the operator changes something".to_owned());
                weather::change(random, &mut stage.operator, &mut stage.simulated);
                stage.look()?;
            }
            let client = random.below(CLIENTS);
            if random.once_in(60) {
                self.note(stage, format!("client {client} connects again"));
                stage.reconnect(client);
            }
            let command = self.command(random, stage);
            self.note(stage, format!("client {client} {}", shown(&command)));
            stage.ask(client, &command)?;
        }
        Ok(())
    }

    fn command(&mut self, random: &mut Random, stage: &Stage) -> Vec<Bytes> {
        if random.once_in(2) {
            let command = questions::question(random, &stage.simulated, stage.micros);
            *self.asked.entry(command[0].to_uppercase()).or_default() += 1;
            return words(&command);
        }
        let names: Vec<&str> = self.scripts.keys().map(String::as_str).collect();
        let name = random.pick(&names);
        *self.asked.entry(name.to_lowercase()).or_default() += 1;
        let [keys, arguments] = kit::call(name, random, &stage.simulated, stage.micros);
        let mut command = match random.once_in(4) {
            true => vec!["EVAL".to_owned(), self.scripts[name].clone()],
            false => {
                let hash = sha1_smol::Sha1::from(&self.scripts[name])
                    .digest()
                    .to_string();
                vec!["EVALSHA".to_owned(), hash]
            }
        };
        command.push(keys.len().to_string());
        command.extend(keys);
        command.extend(arguments);
        words(&command)
    }

    fn note(&mut self, stage: &Stage, step: String) {
        if self.last.len() == 12 {
            self.last.pop_front();
        }
        let refusal = stage.simulated.refusal;
        let refusal = refusal.map_or(String::new(), |refusal| format!(" {refusal:?}"));
        self.last
            .push_back(format!("{}{refusal} {step}", stage.micros));
    }
}

/// The time of the next step: mostly a little later, and often just at the end of a key.
fn time(random: &mut Random, stage: &Stage) -> i64 {
    let now = stage.micros;
    match random.below(20) {
        0..3 => now,
        3..9 => now + random.between(1, 900),
        9..12 => now + random.between(1, 40_000),
        12 => now + random.between(1, 3_000_000),
        13 if random.once_in(10) => now - random.between(1, 2_000_000),
        14 if random.once_in(10) => now + random.between(1, 100_000_000),
        15..19 => {
            let ends = stage
                .simulated
                .entries()
                .filter_map(|(_, entry)| entry.ends);
            let ends: Vec<i64> = ends.filter(|end| end * 1_000 > now).collect();
            match ends.is_empty() {
                true => now,
                false => {
                    let end = ends[random.below(ends.len())] * 1_000;
                    (end + random.between(-1, 2_000)).clamp(now, now + 10_000_000)
                }
            }
        }
        _ => now + 1,
    }
}

/// A command as it is printed, without the sources of scripts.
fn shown(command: &[Bytes]) -> String {
    let is_source = |place: usize| place == 1 && command[0] == b"EVAL" && command[1].len() > 200;
    let words = command
        .iter()
        .enumerate()
        .map(|(place, word)| match is_source(place) {
            true => {
                let text = String::from_utf8_lossy(word);
                let contract = text
                    .lines()
                    .find(|line| line.starts_with("-- ") && line.contains(": "));
                format!("<{}>", contract.unwrap_or("a script"))
            }
            false => format!("'{}'", word.escape_ascii()),
        });
    words.collect::<Vec<_>>().join(" ")
}
