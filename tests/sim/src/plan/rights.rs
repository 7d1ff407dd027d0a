//! The rights that the guide gives a user.

use super::{Plan, Topology};

/// The guide's page, with the rule.
const PAGE: &str = include_str!("../../../../lock-core/src/docs/guide/production.md");

/// The commands that the page names for the work of a history, as the servers name them.
pub fn of(plan: &Plan) -> Vec<String> {
    let rule = PAGE
        .lines()
        .find(|line| line.starts_with("ACL SETUSER locks "));
    let rule = rule.expect("the rule for one server");
    let more: &[&str] = match plan.topology {
        Topology::One | Topology::Postgres => &[],
        Topology::Replicas | Topology::Sentinel => &["WAIT"],
        Topology::Redlock => &["HMGET", "HSET", "SCRIPT|LOAD"],
        Topology::Cluster => &["CLUSTER|INFO", "CLUSTER|SLOTS", "ASKING"],
    };
    let operators = PAGE.lines().find(|line| line.starts_with("| [operators]"));
    let operators = match plan.has_orders() {
        true => operators.expect("the rights of operators"),
        false => "",
    };
    let words = rule.split(' ').chain(operators.split([' ', '`']));
    let named = words.filter_map(|word| word.strip_prefix('+'));
    let all = named.chain(more.iter().copied());
    all.map(str::to_uppercase).collect()
}
