//! Faults of the scripts, each of which shows as a difference from the protocol.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::{STEPS, differing_steps, kit};

/// Within so many seeds a fault must show.
const SEEDS: u64 = 100;

struct Fault {
    name: &'static str,
    script: &'static str,
    text: &'static str,
    becomes: &'static str,
}

const FAULTS: [Fault; 18] = [
    Fault {
        name: "a share enters before the waiters",
        script: "share",
        text: " and not (awaited and is_awaited())",
        becomes: "",
    },
    Fault {
        name: "one share too many",
        script: "share",
        text: "limit and inside < limit",
        becomes: "limit and inside <= limit",
    },
    Fault {
        name: "the end of a share serves no waiter",
        script: "share",
        text: "then return failed end\nserve()\n",
        becomes: "then return failed end\n",
    },
    Fault {
        name: "a stopped waiter keeps shares out for ever",
        script: "share",
        text: "  if address ~= string.sub(token, 1, 16) then silent = address end\n  return true",
        becomes: "  return false",
    },
    Fault {
        name: "the answer of a waiter that was asked is not noted",
        script: "stand_in_line",
        text: "if asked and asked < 0 and asked % 2 == 0 then",
        becomes: "if false then",
    },
    Fault {
        name: "a waiter stands behind a record",
        script: "acquire_first",
        text: "ARGV[4] == '1' and string.sub(value, 1, 5) ~= 'done/'",
        becomes: "ARGV[4] == '1'",
    },
    Fault {
        name: "a cooldown tells one waiter",
        script: "common",
        text: "if notified == 2 then return notified end",
        becomes: "return notified",
    },
    Fault {
        name: "stepping over serves no waiter",
        script: "acquire",
        text: "value, left = hand_over(KEYS[3], KEYS[1], KEYS[2], ARGV[6], time, now, highest + 1, true)",
        becomes: "value = nil",
    },
    Fault {
        name: "a dead waiter gets the key",
        script: "common",
        text: "      if receivers ~= 0 then\n        -- The clock",
        becomes: "      if true then\n        -- The clock",
    },
    Fault {
        name: "no waiter is told when the grant of a silent one ends",
        script: "common",
        text: "if age > 1000000 or age < 0 then notify_next",
        becomes: "if age < 0 then notify_next",
    },
    Fault {
        name: "the tokens of a lease ahead of the clock are not reserved",
        script: "common",
        text: "string.format('%.0f', least + passes)",
        becomes: "string.format('%.0f', least)",
    },
    Fault {
        name: "forget deletes a token",
        script: "forget",
        text: "if not token or #token ~= 49 then return 2 end",
        becomes: "",
    },
    Fault {
        name: "a late renewal shortens a lease",
        script: "extend",
        text: "if left >= tonumber(ARGV[2 * index]) and left <= longest then",
        becomes: "if false then",
    },
    Fault {
        name: "a late acquire shortens a lease",
        script: "acquire",
        text: "if value then lasts = math.max(lasts, redis.call('PTTL', KEYS[1])) end",
        becomes: "",
    },
    Fault {
        name: "the queue is in the order of a clock that goes back",
        script: "stand_in_line",
        text: "math.max(now, (tonumber(last[2]) or 0) + 1)",
        becomes: "now",
    },
    Fault {
        name: "a swap replaces any token",
        script: "swap",
        text: "elseif value ~= ARGV[1] then",
        becomes: "elseif false then",
    },
    Fault {
        name: "several keys are taken from their owners",
        script: "all",
        text: "if value and value ~= ARGV[index] then",
        becomes: "if false then",
    },
    Fault {
        name: "an order does not count on the tokens of later tasks",
        script: "force",
        text: "tonumber(ARGV[2]) or 0) + passes",
        becomes: "tonumber(ARGV[2]) or 0)",
    },
];

#[test]
fn each_fault_of_a_script_shows() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../lock-core/src/scripts");
    let mut unseen = Vec::new();
    for fault in FAULTS {
        let part = fs::read_to_string(folder.join(fault.script).with_extension("lua"));
        let part = part.expect("a script");
        assert_eq!(part.matches(fault.text).count(), 1, "{}", fault.name);
        let faulty = part.replace(fault.text, fault.becomes);
        let scripts = kit::scripts().into_iter();
        let scripts: BTreeMap<_, _> = scripts
            .map(|(name, source)| (name, source.replace(&part, &faulty)))
            .collect();
        let steps = (1..=SEEDS).find_map(|seed| {
            let steps = differing_steps(seed, &scripts, &mut BTreeMap::new())?;
            Some((seed - 1) * STEPS + steps.len() as u64)
        });
        match steps {
            Some(steps) => println!("{steps} operations: {}", fault.name),
            None => unseen.push(fault.name),
        }
    }
    assert!(unseen.is_empty(), "no difference shows: {unseen:#?}");
}
