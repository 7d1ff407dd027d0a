use lock_tests::{RedisServer, ReplicaSet, Sentinels, needs, wait};

#[test]
fn a_replica_has_the_data_of_its_master() {
    needs!(redis);
    let set = ReplicaSet::with(&RedisServer::options().password("secret1"), 2);
    assert_eq!(set.master().port(), set.servers()[0].port());
    assert_eq!(set.replicas().len(), 2);
    set.master().cli(&["SET", "a", "1"]);
    set.caught_up();
    for replica in set.replicas() {
        assert_eq!(replica.get("a").as_deref(), Some("1"));
        let refused = replica.try_cli(&["SET", "a", "2"]).expect_err("read only");
        assert_eq!(refused.get(..8), Some("READONLY"));
    }
}

#[test]
fn a_frozen_or_killed_server_is_neither_master_nor_replica() {
    needs!(redis);
    let set = ReplicaSet::start(2);
    set.servers()[1].stop();
    set.servers()[2].kill();
    assert!(set.replicas().is_empty());
    set.servers()[1].cont();
    set.servers()[2].start_again();
    set.caught_up();
    assert_eq!(set.replicas().len(), 2);
}

#[test]
fn sentinels_promote_a_replica_when_the_master_is_killed_and_demote_the_master_that_comes_back() {
    needs!(redis);
    let set = ReplicaSet::start(2);
    let sentinels = Sentinels::watch(&set, 3);
    let first = set.master().address();
    assert_eq!(sentinels.master(), first);
    set.at(first).kill();
    wait::until("another server is the master", || {
        sentinels.master() != first
    });
    assert_eq!(set.master().address(), sentinels.master());
    set.at(first).start_again();
    // On a busy machine the sentinels may take the new master for dead, too, and replace it by another one.
    let have_one_master = || {
        let master = sentinels.master();
        let mut servers = set.servers().iter();
        servers.all(|server| (server.role() == "master") == (server.address() == master))
    };
    let settled = wait::holds_within(Sentinels::DEMOTION, have_one_master);
    assert!(
        settled,
        "the sentinels make all servers but one replicas, also the old master"
    );
}

#[test]
fn sentinels_replace_a_living_master_when_they_are_told_to() {
    needs!(redis);
    let set = ReplicaSet::start(2);
    let sentinels = Sentinels::watch(&set, 3);
    let first = sentinels.master();
    sentinels.fail_over();
    wait::until("another server is the master", || {
        sentinels.master() != first
    });
    assert_eq!(set.at(sentinels.master()).role(), "master");
}
