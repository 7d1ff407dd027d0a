//! Tests the rule for a Redis user that the guide gives. It is enough for locks, and it grants nothing else.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use lock_core::operator::Forced;
use lock_core::{ErrorKind, LockManager, ManagerBuilder, Wait};
use lock_tests::{RedisCluster, RedisServer, ReplicaSet, Sentinels, needs, wait};
use tokio::time::timeout;

use super::{blocks, page, repository};
use crate::steps::{all_is_answered, drains, its_turn, kind, long, once, taken};

const PAGE: &str = "lock-core/src/docs/guide/production.md";

/// Returns the words of the two rules, for servers and for sentinels, with a password.
fn rules() -> [Vec<String>; 2] {
    let page = page(PAGE);
    let rules = blocks(&page, "text").into_iter();
    let rules = rules.filter(|block| block.starts_with("ACL SETUSER locks "));
    let words = |rule: &str| {
        let words = rule.split_whitespace();
        words
            .map(|word| word.replace("PASSWORD", "sesame"))
            .collect()
    };
    let rules: Vec<_> = rules.map(words).collect();
    rules.try_into().expect("two rules")
}

fn rule() -> Vec<String> {
    let [servers, _] = rules();
    servers
}

/// Returns the rights in the row of the table that begins with these words.
fn added_for(purpose: &str) -> Vec<String> {
    let page = page(PAGE);
    let row = page
        .lines()
        .find(|line| line.starts_with(&format!("| {purpose}")));
    let row = row.unwrap_or_else(|| panic!("no row for {purpose}"));
    let rights = row.replace("\\|", "|");
    let rights = rights
        .split(['`', ' '])
        .filter(|word| word.starts_with('+'));
    rights.map(str::to_owned).collect()
}

/// Makes the user of the guide, and forgets what the server has refused before.
fn admit(server: &RedisServer, added: &[String]) {
    apply(server, &[&rule()[..], added].concat());
}

fn apply(server: &RedisServer, rule: &[String]) {
    let words: Vec<_> = rule.iter().map(String::as_str).collect();
    server.cli(&words);
    server.cli(&["ACL", "LOG", "RESET"]);
}

/// Returns the commands and keys that the server has refused to the user.
fn refused(server: &RedisServer) -> BTreeSet<String> {
    let log = server.cli(&["ACL", "LOG"]);
    let lines: Vec<_> = log.lines().collect();
    let objects = lines.windows(2).filter(|pair| pair[0] == "object");
    objects.map(|pair| pair[1].to_owned()).collect()
}

/// Checks that the server has refused nothing to the user but settings, which the audit does without.
#[track_caller]
fn refused_nothing(server: &RedisServer) {
    let mut refused = refused(server);
    // Redis 6.2 names no subcommands.
    let without = ["config|get", "client|setinfo", "config", "client"];
    refused.retain(|object| !without.contains(&object.as_str()));
    assert!(refused.is_empty(), "{refused:?}");
}

/// Returns the URL with the user of the guide.
fn of_user(url: &str) -> String {
    url.replacen("://", "://locks:sesame@", 1)
}

fn builder(url: &str) -> ManagerBuilder {
    LockManager::builder(&of_user(url)).operation_timeout(Duration::from_secs(5))
}

/// Uses all that locks can do, by two managers.
async fn use_locks(one: ManagerBuilder, other: ManagerBuilder) {
    let locks = one.connect().await.expect("a manager");
    let other = other.connect().await.expect("a manager");
    locks.audit().await.expect("an answer");

    // A wait and a hand-over.
    let guard = taken(&locks, "k", long()).await;
    let attempt = other.lock("k").try_acquire().await.expect("an answer");
    assert!(attempt.is_none());
    let waiter = tokio::spawn(other.lock("k").wait(Wait::Forever).acquire());
    for _ in 0..2 {
        all_is_answered(&other).await;
    }
    guard.release().await.expect("held");
    let guard = its_turn(waiter).await;

    // A wait that is given up.
    let given_up = locks.lock("k").wait(Wait::Forever).acquire();
    drop(timeout(Duration::from_millis(50), given_up).await);
    guard.release().await.expect("held");

    // A renewal, after which more time remains than before.
    let guard = taken(&locks, "renewed", Duration::from_secs(3)).await;
    let mut least = guard.remaining();
    wait::eventually("the lease is renewed", async || {
        let remaining = guard.remaining();
        let is_renewed = remaining > least;
        least = least.min(remaining);
        is_renewed
    })
    .await;
    guard.release_in_background();

    // Many locks at once, some of which share a script.
    let many = (0..64).map(|number| {
        let locks = locks.clone();
        tokio::spawn(async move {
            let guard = locks.lock(format!("many:{number}")).acquire().await?;
            guard.release().await
        })
    });
    for task in many.collect::<Vec<_>>() {
        task.await.expect("no panic").expect("free");
    }

    // A cooldown and a record, which are deleted again.
    for key in ["cooled", "recorded"] {
        let guard = taken(&locks, key, long()).await;
        guard.cooldown(long());
        if key == "recorded" {
            guard.remember("an answer", long()).expect("a short record");
        }
        guard.release().await.expect("held");
        assert_eq!(kind(other.lock(key).acquire().await), ErrorKind::Busy);
        locks.forget(key).await.expect("an answer");
        once(&other, key).await;
    }
    for manager in [locks, other] {
        drains(&manager).await;
    }
}

#[tokio::test]
async fn the_user_of_the_guide_may_do_all_that_locks_need_on_one_server() {
    needs!(redis);
    let server = RedisServer::start();
    admit(&server, &[]);
    use_locks(builder(&server.url()), builder(&server.url())).await;
    refused_nothing(&server);
    let seen = refused(&server)
        .iter()
        .any(|object| object.starts_with("config"));
    assert!(seen, "the log shows the settings that the audit asked for");

    admit(&server, &added_for("`redis://host/1`"));
    let url = format!("{}/1", server.url());
    use_locks(builder(&url), builder(&url)).await;
    refused_nothing(&server);
}

#[tokio::test]
async fn the_user_of_the_guide_may_do_all_that_operators_need() {
    needs!(redis);
    let server = RedisServer::start();
    admit(&server, &added_for("[operators]"));
    let locks = builder(&server.url()).connect().await.expect("a manager");
    let guard = taken(&locks, "k", long()).await;
    let operator = locks.operator("ops@example");
    let page = operator.list("*").next_page().await.expect("an answer");
    assert_eq!(page.expect("one page").len(), 1);
    let seen = operator.inspect("k").await.expect("an answer");
    let order = operator.force(&seen.holders()[0]).because("it hangs");
    assert_eq!(order.await.expect("an answer"), Forced::Told);
    guard.lost().await;
    refused_nothing(&server);
}

#[tokio::test]
async fn the_user_of_the_guide_may_do_all_that_locks_need_with_replicas() {
    needs!(redis);
    let set = ReplicaSet::start(1);
    for server in set.servers() {
        admit(server, &added_for("[`replica_acks`]"));
    }
    let builder = || builder(&set.master().url()).replica_acks(1);
    use_locks(builder(), builder()).await;
    set.servers().iter().for_each(refused_nothing);
}

#[tokio::test]
async fn the_user_of_the_guide_may_do_all_that_locks_need_behind_sentinels() {
    needs!(redis);
    let set = ReplicaSet::start(1);
    let sentinels = Sentinels::watch(&set, 1);
    for server in set.servers() {
        admit(server, &added_for("`redis-sentinel://`, on the servers"));
    }
    let [_, rule] = rules();
    for sentinel in sentinels.servers() {
        apply(sentinel, &rule);
    }
    let credentials = "&sentinel_username=locks&sentinel_password=sesame";
    let url = [sentinels.url().as_str(), credentials].concat();
    use_locks(builder(&url), builder(&url)).await;
    set.servers().iter().for_each(refused_nothing);
    sentinels.servers().iter().for_each(refused_nothing);
}

#[tokio::test]
async fn the_user_of_the_guide_may_do_all_that_locks_need_in_a_cluster() {
    needs!(redis);
    let cluster = RedisCluster::start(Duration::from_secs(5));
    for node in cluster.nodes() {
        admit(node, &added_for("`redis-cluster://`"));
    }
    use_locks(builder(&cluster.url()), builder(&cluster.url())).await;
    cluster.nodes().iter().for_each(refused_nothing);
}

#[tokio::test]
async fn the_user_of_the_guide_may_do_all_that_locks_need_on_a_node_of_a_quorum() {
    needs!(redis);
    let nodes: Vec<_> = (0..3).map(|_| RedisServer::start()).collect();
    for node in &nodes {
        admit(node, &added_for("`redlock://`"));
    }
    let builder = || {
        let urls = nodes.iter().map(|node| of_user(&node.url()));
        let builder = LockManager::quorum(urls).assume_fresh();
        builder.operation_timeout(Duration::from_secs(5))
    };
    use_locks(builder(), builder()).await;
    nodes.iter().for_each(refused_nothing);
}

/// Checks the rule without a server, because a script calls some of its commands only in rare cases.
#[test]
fn the_rule_of_the_guide_has_the_commands_of_the_scripts_and_of_the_client_and_no_other() {
    let granted = |words: Vec<String>| -> BTreeSet<String> {
        let rights = words.into_iter().filter(|word| word.starts_with('+'));
        rights
            .map(|right| right[1..].split('|').next().expect("a command").to_owned())
            .collect()
    };
    let mut used = commands_of_scripts();
    // The client sends these itself; it may not see `HMGET` and `HSET` but on a node of a quorum.
    used.extend(["eval", "evalsha", "info", "subscribe", "client"].map(str::to_owned));
    let mut added = granted(added_for("`redlock://`"));
    let of_operators = granted(added_for("[operators]"));
    assert_eq!(of_operators, commands_of_operators(&used));
    added.extend(of_operators);
    used.retain(|command| !added.contains(command));
    assert_eq!(granted(rule()), used);
}

/// Returns the commands that only an operator's calls have: some of the scripts, and the search for keys.
fn commands_of_operators(used: &BTreeSet<String>) -> BTreeSet<String> {
    let of_locks = rule().join(" ");
    let on_nodes = added_for("`redlock://`").join(" ");
    let is_of_locks = |command: &String| {
        let words = format!("{of_locks} {on_nodes}");
        words
            .split([' ', '|'])
            .any(|word| word.strip_prefix('+') == Some(command))
    };
    let mut rest: BTreeSet<_> = used.iter().filter(|it| !is_of_locks(it)).cloned().collect();
    rest.insert("scan".to_owned());
    rest
}

/// Returns the names of the commands that the scripts call.
fn commands_of_scripts() -> BTreeSet<String> {
    let folder = repository().join("lock-core/src/scripts");
    let mut commands = BTreeSet::new();
    for file in fs::read_dir(folder).expect("the scripts") {
        let script = fs::read_to_string(file.expect("a script").path()).expect("a script");
        for call in script.split("call('").skip(1) {
            let (command, _) = call.split_once('\'').expect("a command");
            commands.insert(command.to_lowercase());
        }
    }
    commands
}
