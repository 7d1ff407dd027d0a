use std::time::Duration;

use lock_tests::{RedisCluster, needs, wait};

/// A short timeout, for a machine that is not too busy to answer within it.
const TIMEOUT: Duration = Duration::from_secs(1);

#[test]
fn a_cluster_serves_every_slot_at_one_master() {
    needs!(redis);
    let cluster = RedisCluster::start(TIMEOUT);
    assert_eq!(cluster.masters().len(), 3);
    let holder = cluster.master_of("a");
    assert_eq!(holder.cli(&["SET", "a", "1"]), "OK");
    let others = cluster
        .nodes()
        .iter()
        .filter(|it| it.port() != holder.port());
    for other in others {
        let moved = other.try_cli(&["GET", "a"]).expect_err("a redirection");
        assert_eq!(
            moved,
            format!("MOVED {} {}", cluster.slot("a"), holder.address())
        );
    }
}

#[test]
fn a_cluster_is_whole_when_every_node_knows_its_newest_epoch() {
    needs!(redis);
    let cluster = RedisCluster::start(TIMEOUT);
    // The epoch rises as at the end of a slot's migration. There the node would announce it to
    // all others at once; here it does not.
    let raised = cluster.masters().into_iter().find_map(|master| {
        let answer = master.cli(&["CLUSTER", "BUMPEPOCH"]);
        Some((master.id(), answer.strip_prefix("BUMPED ")?.to_owned()))
    });
    let (id, epoch) = raised.expect("a master without the newest epoch");
    cluster.is_whole();
    for node in cluster.nodes() {
        let told = node.cli(&["CLUSTER", "NODES"]);
        let line = told.lines().find(|line| line.starts_with(&id));
        let known = line.and_then(|line| line.split(' ').nth(6));
        assert_eq!(known, Some(&*epoch), "{told}");
    }
}

#[test]
fn a_replica_takes_the_place_of_a_master_that_was_killed() {
    needs!(redis);
    let cluster = RedisCluster::start(TIMEOUT);
    let first = cluster.master_of("a");
    first.cli(&["SET", "a", "1"]);
    // Every call has a connection of its own, and a WAIT there would wait for the writes of
    // that connection only.
    wait::until("its replica has the key", || {
        let holds = |node: &&lock_tests::RedisServer| {
            node.role() == "slave" && node.cli(&["DBSIZE"]) == "1"
        };
        cluster.up().any(|node| holds(&node))
    });
    first.kill();
    wait::until("its replica is the master", || {
        cluster.up().filter(|node| node.role() == "master").count() == 3
    });
    cluster.is_whole();
    assert_eq!(cluster.master_of("a").get("a").as_deref(), Some("1"));
    first.start_again();
    cluster.is_whole();
    assert_eq!(first.role(), "slave");
}
