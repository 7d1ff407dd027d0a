use super::*;

fn well_configured() -> Facts {
    Facts {
        role: Some(Role::Master),
        replicas: Some(2),
        max_memory: Some(1_000),
        used_memory: Some(500),
        eviction_policy: Some("noeviction".to_owned()),
        persistence: Some(Persistence::Log {
            never_synced: false,
        }),
        min_replicas: Some(1),
        clock: Some(Reading {
            before: 1_000_000,
            server: 1_000_500,
            after: 1_001_000,
        }),
        ..Facts::default()
    }
}

#[track_caller]
fn finds(facts: &Facts, replica_acks: u16, expected: &[(&str, &str)]) {
    let findings = facts.findings(&"redis:6379".into(), replica_acks);
    let codes: Vec<_> = findings.iter().map(Finding::code).collect();
    let expected_codes: Vec<_> = expected.iter().map(|(code, _)| *code).collect();
    assert_eq!(codes, expected_codes);
    for (finding, (_, setting)) in findings.iter().zip(expected) {
        assert!(finding.to_string().contains(setting), "{finding}");
        assert_eq!(finding.server(), Some("redis:6379"));
    }
}

#[test]
fn a_well_configured_server_has_no_findings() {
    finds(&well_configured(), 0, &[]);
    finds(&well_configured(), 2, &[]);
}

#[test]
fn unknown_facts_are_not_judged() {
    finds(&Facts::default(), 3, &[]);
}

#[test]
fn a_policy_that_evicts_matters_only_where_memory_is_limited() {
    for (policy, code) in [
        ("volatile-lru", "evicts_locks"),
        ("volatile-ttl", "evicts_locks"),
        ("allkeys-lru", "evicts_everything"),
        ("allkeys-random", "evicts_everything"),
    ] {
        let limited = Facts {
            eviction_policy: Some(policy.to_owned()),
            ..well_configured()
        };
        finds(&limited, 0, &[(code, "maxmemory-policy noeviction")]);
        let unlimited = Facts {
            max_memory: Some(0),
            ..limited
        };
        finds(&unlimited, 0, &[]);
    }
}

#[test]
fn memory_is_reported_from_ninety_percent_of_its_limit() {
    let used = |used| Facts {
        used_memory: Some(used),
        ..well_configured()
    };
    finds(&used(899), 0, &[]);
    finds(&used(900), 0, &[("nearly_full", "raise maxmemory")]);
    let unlimited = Facts {
        max_memory: Some(0),
        ..used(900)
    };
    finds(&unlimited, 0, &[]);
}

#[test]
fn each_kind_of_persistence_says_what_a_restart_loses() {
    for (persistence, expected) in [
        (Persistence::Nothing, ("no_persistence", "appendonly yes")),
        (Persistence::Snapshots, ("snapshots_only", "appendonly yes")),
        (Persistence::NoLog, ("snapshots_only", "or all")),
        (
            Persistence::Log { never_synced: true },
            ("unsynced_log", "appendfsync everysec"),
        ),
    ] {
        let facts = Facts {
            persistence: Some(persistence),
            ..well_configured()
        };
        finds(&facts, 0, &[expected]);
    }
}

#[test]
fn a_clock_is_reported_when_it_is_ten_seconds_away_in_either_direction() {
    let at = |server| Facts {
        clock: Some(Reading {
            before: 100_000_000,
            server,
            after: 100_002_000,
        }),
        ..well_configured()
    };
    finds(&at(110_001_999), 0, &[]);
    finds(&at(110_002_000), 0, &[("clock_differs", "chrony")]);
    finds(&at(90_000_001), 0, &[]);
    finds(&at(90_000_000), 0, &[("clock_differs", "chrony")]);
}

#[test]
fn too_few_replicas_for_replica_acks_are_reported() {
    finds(
        &well_configured(),
        3,
        &[("too_few_replicas", "replica_acks")],
    );
    let alone = Facts {
        replicas: Some(0),
        min_replicas: Some(0),
        ..well_configured()
    };
    finds(&alone, 0, &[]);
    finds(&alone, 1, &[("too_few_replicas", "1 replicas and 0")]);
}

#[test]
fn a_server_that_refuses_every_write_is_reported() {
    let short = Facts {
        min_replicas: Some(3),
        ..well_configured()
    };
    finds(&short, 0, &[("refuses_writes", "min-replicas-to-write 0")]);
    let replica = Facts {
        role: Some(Role::Replica),
        replicas: Some(0),
        ..well_configured()
    };
    finds(&replica, 2, &[("read_only", "master's address")]);
    let one_of_several = Facts {
        may_be_replica: true,
        ..replica
    };
    finds(&one_of_several, 2, &[]);
}

#[test]
fn each_right_that_is_missing_is_named() {
    let facts = Facts {
        forbids_info: true,
        forbids_subscribing: true,
        forbids_publishing: true,
        forbids_waiting: true,
        ..Facts::default()
    };
    let always = [
        ("may_not_ask", "+info"),
        ("may_not_subscribe", "+subscribe"),
        ("may_not_publish", "+publish"),
    ];
    finds(&facts, 0, &always);
    finds(
        &facts,
        1,
        &[&always[..], &[("may_not_wait", "+wait")]].concat(),
    );
}
