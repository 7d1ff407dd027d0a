use std::time::Duration;

use lock_tests::{RedisServer, ServerClock, needs};

fn seconds(server: &RedisServer) -> u64 {
    let time = server.cli(&["TIME"]);
    let seconds = time.lines().next().expect("two numbers");
    seconds.parse().expect("seconds")
}

#[test]
fn the_clock_of_a_server_steps_on_command_and_its_keys_expire_by_it() {
    needs!(redis);
    needs!(server_clock);
    let clock = ServerClock::new();
    let server = RedisServer::options().clock(&clock).start();
    let other = RedisServer::start();
    let ahead = |by: i64| {
        let apart = seconds(&server) as i64 - seconds(&other) as i64;
        assert!((apart - by).abs() <= 15, "{apart} s instead of {by}");
    };
    ahead(0);
    server.cli(&["SET", "a", "1", "PX", "60000"]);
    clock.step_ahead(Duration::from_secs(50));
    ahead(50);
    assert!(server.time_to_live("a") < Some(Duration::from_secs(11)));
    clock.step_back(Duration::from_secs(150));
    ahead(-100);
    assert!(server.time_to_live("a") > Some(Duration::from_secs(150)));
    clock.step_ahead(Duration::from_secs(250));
    assert_eq!(server.get("a"), None);
}
