//! The histories to search: those of a topology, or those of it that are about something.
//!
//! `one,redlock` names two topologies, and `all` each of them. `one:shares` stands for the histories on one server that are
//! about shares ([`Plan::is_about`]).

use std::fmt;

use crate::plan::{Plan, Topology};

/// In so many seeds there are histories about everything.
const FEW: u64 = 20_000;

#[derive(Clone, Debug)]
pub struct Place {
    topology: Topology,
    about: Option<String>,
}

impl From<Topology> for Place {
    fn from(topology: Topology) -> Self {
        Self {
            topology,
            about: None,
        }
    }
}

impl Place {
    /// The history of a seed, if it is here.
    pub fn plan(&self, seed: u64) -> Option<Plan> {
        let plan = Plan::of(seed, self.topology);
        let is_here = self.about.as_ref().is_none_or(|it| plan.is_about(it));
        is_here.then_some(plan)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let topology = format!("{:?}", self.topology).to_lowercase();
        match &self.about {
            Some(about) => write!(f, "{topology}:{about}"),
            None => write!(f, "{topology}"),
        }
    }
}

/// Reads places with commas between them.
///
/// # Errors
///
/// If one does not exist.
pub fn read(names: &str) -> Result<Vec<Place>, String> {
    if names == "all" {
        return Ok(Topology::ALL.map(Place::from).to_vec());
    }
    names.split(',').map(read_one).collect()
}

fn read_one(name: &str) -> Result<Place, String> {
    let (topology, about) = match name.split_once(':') {
        Some((topology, about)) => (topology, Some(about.to_owned())),
        None => (name, None),
    };
    let mut all = Topology::ALL.into_iter();
    let named = all.find(|it| format!("{it:?}").eq_ignore_ascii_case(topology));
    let all = Topology::ALL;
    let topology =
        named.ok_or_else(|| format!("{topology} is no topology; write one of {all:?}"))?;
    let place = Place { topology, about };
    match (0..FEW).any(|seed| place.plan(seed).is_some()) {
        true => Ok(place),
        false => Err(format!("no history is {place}")),
    }
}
