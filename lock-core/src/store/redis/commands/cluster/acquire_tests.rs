//! A node whose keys move away between the commands of an acquire.

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use redis::{IntoConnectionInfo, Value};

use crate::base::clock::Clock;
use crate::base::settings::Settings;
use crate::base::token::{Address, Token, TokenSource};
use crate::lease::cohort::GAP;
use crate::store::redis::commands::RedisStore;
use crate::store::redis::commands::dispatch::Dispatch;
use crate::store::redis::commands::part::Part;
use crate::store::redis::topology::Servers;
use crate::store::redis::wire::reply::micros;
use crate::store::redis::wire::send_error::SendError;
use crate::store::{AcquireCommand, Ended, Lane, Operation, Outcome, Queueing, Release, Store};

/// The error of a key that is on another node.
const ELSEWHERE: &str = "-ASK 3999 127.0.0.1:7002\r\n";

/// The commands that a node was asked for, their words with spaces between.
type Commands = Mutex<Vec<String>>;

/// A node with a lock, and its answers for the mark, and to each script.
#[derive(Clone, Copy)]
struct Answers {
    mark: &'static str,
    scripts: &'static str,
    /// The key has no owner.
    is_free: bool,
    /// Another node gives keys up to this one.
    imports: bool,
}

fn serve(mut connection: &TcpStream, owner: Token, answers: Answers, asked: &Commands) {
    let bulk = |text: &str| format!("${}\r\n{text}\r\n", text.len());
    let mut commands = redis::Parser::new();
    // The first question for the mark checks the connection.
    let mut is_probed = false;
    while let Ok(Value::Array(words)) = commands.parse_value(&mut connection) {
        let word = |at: usize| match words.get(at) {
            Some(Value::BulkString(word)) => String::from_utf8_lossy(word).into_owned(),
            _ => String::new(),
        };
        let command = (0..words.len()).map(word).collect::<Vec<_>>().join(" ");
        asked.lock().expect("no panic").push(command);
        let answer = match (word(0).as_str(), word(1).as_str()) {
            ("HELLO", _) => format!("%1\r\n{}{}", bulk("server"), bulk("redis")),
            ("TIME", _) => format!("*2\r\n{}{}", bulk("1700000000"), bulk("25")),
            ("GET", _) if !std::mem::replace(&mut is_probed, true) => "_\r\n".to_owned(),
            ("GET", _) => answers.mark.to_owned(),
            ("SET", _) if answers.is_free => "_\r\n".to_owned(),
            ("SET", _) => bulk(owner.text().as_str()),
            ("EVAL", _) => format!("*1\r\n{}", bulk("probed")),
            ("EVALSHA", hash) if hash.bytes().all(|digit| digit == b'0') => {
                "-NOSCRIPT No matching script.\r\n".to_owned()
            }
            ("EVALSHA", _) => answers.scripts.to_owned(),
            ("ASKING", _) if !answers.imports => return,
            _ => "+OK\r\n".to_owned(),
        };
        if connection.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

fn answers(mark: &'static str, scripts: &'static str) -> Answers {
    Answers {
        mark,
        scripts,
        is_free: false,
        imports: false,
    }
}

/// A store with such a node, a lane to it, the owner of the lock, and what the node was asked for.
fn node(answers: Answers) -> (Arc<RedisStore>, Lane, Token, Arc<Commands>) {
    let asked = Arc::default();
    let commands = Arc::clone(&asked);
    let manager = Address::random();
    let token = TokenSource::new(manager).fresh();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("redis://{}", listener.local_addr().expect("bound"));
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let connection = connection.expect("the kit connects");
            let asked = Arc::clone(&asked);
            std::thread::spawn(move || serve(&connection, token, answers, &asked));
        }
    });
    let info = url.into_connection_info().expect("a URL");
    let store = RedisStore::new(Servers::Single(info), &Settings::default(), None);
    let store = store.expect("settings that fit");
    let lane = store.acquire_route(manager).lane;
    (store, lane, token, commands)
}

/// Acquires a lock that the token has already, in a part.
async fn acquire(answers: Answers) -> Result<Outcome, SendError> {
    let (store, lane, token, _) = node(answers);
    let node = store.topology.known_node_of("").expect("the one server");
    let on = store.connection(lane, node).await;
    let on = on.expect("a node that answers");
    let on = if answers.imports { on.asking() } else { on };
    store.acquire_one_key(&question(token, true), &on).await
}

/// A question that does not queue. `repeated`: one before it may have queued the token.
fn question(token: Token, repeated: bool) -> AcquireCommand {
    AcquireCommand {
        key: "k".into(),
        token,
        ttl: Duration::from_secs(10),
        queueing: Queueing::Never,
        replaces: None,
        repeated,
    }
}

fn release(token: Token) -> Release {
    Release {
        key: "k".into(),
        token,
        ttl: Duration::from_secs(10),
        fence: None,
        in_background: false,
    }
}

/// The part of a release that deletes the lock.
fn frees(token: Token) -> Part {
    Part::Free(release(token), None)
}

/// A client of another library would find no gap if the waiters asked at once.
#[tokio::test]
async fn the_waiters_of_an_owner_that_leaves_a_gap_are_told_to_ask_behind_it() {
    let (store, lane, token, asked) = node(answers("_\r\n", ":1\r\n"));
    let mut dispatch = Dispatch::new(lane, Duration::from_secs(1));
    for (operation, after) in [
        (Operation::Vacate(release(token)), GAP.as_millis()),
        (Operation::Release(release(token)), 0),
    ] {
        let freed = store.ask_in_parts(operation, &mut dispatch).await;
        assert!(matches!(freed, Ok(Outcome::Released(Ended::Yes))));
        let asked = asked.lock().expect("no panic");
        let told = asked.last().expect("a command");
        assert!(told.ends_with(&format!("k {after}")), "{told}");
    }
}

/// The next part takes a share from the set if the lock is several shares'. It would stay there to the end of its ttl.
#[tokio::test]
async fn a_part_that_was_sent_twice_has_the_answer_of_the_last_send() {
    let (store, lane, token, _) = node(answers("_\r\n", ":2\r\n"));
    let mut dispatch = Dispatch::new(lane, Duration::from_secs(1));
    dispatch.again = true;
    let freed = store.step(frees(token), &mut dispatch).await;
    assert!(matches!(freed, Ok(Outcome::Released(Ended::Other))));
}

/// A waiter could not be told before, because the queue had moved. The lock itself has not.
#[tokio::test]
async fn a_part_does_not_follow_the_redirection_of_the_part_before_it() {
    let (store, lane, token, _) = node(answers("_\r\n", ":1\r\n"));
    let mut dispatch = Dispatch::new(lane, Duration::from_secs(1));
    let node = store.topology.known_node_of("").expect("the one server");
    (dispatch.asking, dispatch.asked) = (Some(node), Clock::System.now());
    let freed = store.step(frees(token), &mut dispatch).await;
    assert!(matches!(freed, Ok(Outcome::Released(Ended::Yes))));
    assert!(!dispatch.again, "the first send was answered");
}

#[tokio::test]
async fn a_lock_whose_mark_may_be_on_the_other_node_is_without_a_fencing_token_and_not_refused() {
    let lengthened = "*1\r\n:1\r\n";
    let imported = Answers {
        imports: true,
        ..answers("_\r\n", lengthened)
    };
    for answers in [answers(ELSEWHERE, lengthened), imported] {
        match acquire(answers).await {
            Err(SendError::Unfenced(time)) => {
                assert_eq!(micros(&time), Some(1_700_000_000_000_025));
            }
            other => panic!("{other:?}"),
        }
    }
    let fenced = acquire(answers("_\r\n", lengthened)).await;
    assert!(matches!(fenced, Ok(Outcome::Granted(_))));
    let lost = acquire(answers(ELSEWHERE, "*1\r\n:0\r\n")).await;
    assert!(matches!(lost, Ok(Outcome::Failed(failure)) if failure.ambiguous));
}

/// Its release would hand the key to its own entry, which no call waits for.
#[tokio::test]
async fn an_owner_leaves_the_queue_in_which_an_earlier_question_has_put_it() {
    for repeated in [true, false] {
        let (store, lane, token, asked) = node(answers("_\r\n", "*1\r\n:1\r\n"));
        let mut dispatch = Dispatch::new(lane, Duration::from_secs(1));
        let question = question(token, repeated);
        let acquired = store.acquire_in_parts(question, &mut dispatch).await;
        assert!(matches!(acquired, Ok(Outcome::Granted(_))));
        let asked = asked.lock().expect("no panic");
        let leaves = asked.iter().any(|command| command.starts_with("ZREM "));
        assert_eq!(leaves, repeated);
    }
}

/// Its key would stay taken to the end of its ttl.
#[tokio::test]
async fn an_acquire_that_has_set_its_key_and_is_refused_behind_that_is_undone() {
    let refused_with = async |mark: &'static str, scripts: &'static str| {
        let free = Answers {
            is_free: true,
            ..answers(mark, scripts)
        };
        let (store, lane, token, _) = node(free);
        let node = store.topology.known_node_of("").expect("the one server");
        let on = store.connection(lane, node).await;
        let question = question(token, false);
        let commands = store.native_commands(&question);
        let on = on.expect("a node that answers");
        store.attempt(&question, &commands, &on).await
    };
    // The clock is behind the mark, so a script has to count the token on.
    let ahead = "$16\r\n1800000000000000\r\n";
    let moving = refused_with(ahead, "-TRYAGAIN Multiple keys request\r\n").await;
    assert!(matches!(moving, Err(SendError::Unfenced(_))));
    let refused = refused_with(ahead, "-READONLY You can't write\r\n").await;
    assert!(matches!(refused, Ok(Outcome::Failed(failure)) if failure.ambiguous));
    // The URL names a node of a cluster as if it were one server.
    let mistaken = refused_with(ELSEWHERE, "").await;
    let Ok(Outcome::Failed(mistaken)) = mistaken else {
        panic!("the mark is on another node: {mistaken:?}");
    };
    assert!(mistaken.ambiguous && mistaken.is_final());
}
