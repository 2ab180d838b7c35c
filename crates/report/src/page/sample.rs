//! Which flows of a run the page shows one by one: all, unless they are very many.

use std::collections::{BTreeMap, BTreeSet};

use sojourn_study::results::{Kind, PlannedScenario};

/// Of so many flows all are shown.
pub(crate) const MOST: usize = 64;

/// How many are of more, apart from those that a view names: about as many names as a reader looks through.
const OF_MORE: usize = 16;

/// Flows that are shown one by one.
pub(crate) enum Sample<'a> {
    All,
    /// The first of each group, and those that are named.
    Some(BTreeSet<&'a str>),
}

impl<'a> Sample<'a> {
    /// Of the flows of a scenario; `named` says which are wanted in any case.
    pub(crate) fn of(scenario: &'a PlannedScenario, named: impl Fn(&str) -> bool) -> Self {
        if scenario.flows.len() <= MOST {
            return Self::All;
        }
        let mut of_group: BTreeMap<&str, usize> = BTreeMap::new();
        scenario.flows.iter().for_each(|flow| *of_group.entry(&flow.group).or_default() += 1);
        let each = (OF_MORE / of_group.len()).max(1);
        let mut left = OF_MORE;
        of_group.values_mut().for_each(|count| *count = each);
        let mut sample = BTreeSet::new();
        for flow in scenario.flows.iter() {
            let of_group = of_group.entry(&flow.group).or_default();
            if *of_group > 0 && left > 0 {
                *of_group -= 1;
                left -= 1;
                sample.insert(&flow.name[..]);
            } else if named(&flow.name) {
                sample.insert(&flow.name);
            }
        }
        Self::Some(sample)
    }

    pub(crate) fn has(&self, kind: Kind, name: &str) -> bool {
        match self {
            Self::Some(flows) if kind == Kind::Flow => flows.contains(name),
            _ => true,
        }
    }
}
