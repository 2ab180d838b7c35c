//! Which runs a figure shows, and what distinguishes them by position, colour and panel.

use std::collections::{BTreeMap, BTreeSet};

use sojourn_study::results::{Kind, Where};

use crate::data::{Data, Points, Subject};
use crate::markup::Esc;
use crate::names;
use crate::svg::{Category, Group, Key};

/// What distinguishes the runs of a figure by position, colour or panel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Split {
    Subject,
    Factor(usize),
}

/// Which runs a figure shows, and how they are told apart.
pub(super) struct Frame<'a> {
    pub(super) data: &'a Data<'a>,
    pub(super) scenarios: Vec<usize>,
    pub(super) subjects: Vec<Subject>,
    pub(super) x: Option<Split>,
    pub(super) colour: Option<Split>,
    /// Factors that differ between its scenarios.
    varying: Vec<usize>,
}

impl<'a> Frame<'a> {
    pub(super) fn new(
        data: &'a Data<'a>,
        subjects: Vec<Subject>,
        filter: &[Where],
        x: Option<&str>,
        split: Option<&str>,
    ) -> Self {
        let scenarios: Vec<usize> = (0..data.plan.scenarios.len())
            .filter(|scenario| !data.done[*scenario].is_empty())
            .filter(|scenario| data.plan.is_selected(&data.plan.scenarios[*scenario], filter))
            .collect();
        let named = |name: &str| match name {
            "flow" | "queue" => Some(Split::Subject),
            name => data.plan.factors.iter().position(|f| f.name == name).map(Split::Factor),
        };
        let mut varying = data.varying.clone();
        varying.retain(|factor| {
            let value = |scenario: &usize| data.value(*scenario, *factor);
            scenarios.iter().any(|scenario| value(scenario) != value(&scenarios[0]))
        });
        let mut frame = Self { data, scenarios, subjects, x: None, colour: None, varying };
        let many = frame.subjects.len() > 1;
        frame.colour = split.and_then(named);
        frame.x = x.and_then(named);
        if frame.x.is_none() {
            let free = frame.free(frame.colour);
            let mut free = free.iter().copied();
            let with_most = |factor: &Split| match factor {
                Split::Factor(factor) => data.plan.factors[*factor].values.len(),
                Split::Subject => 0,
            };
            let best = free.clone().map(|f| with_most(&f)).max();
            frame.x = free.find(|factor| Some(with_most(factor)) == best);
        }
        if frame.colour.is_none() {
            frame.colour = if many && frame.x != Some(Split::Subject) {
                Some(Split::Subject)
            } else {
                frame.free(frame.x).first().copied()
            };
        }
        frame
    }

    /// The factors that say more than `used` does.
    pub(super) fn free(&self, used: Option<Split>) -> Vec<Split> {
        let is_free = |other: &usize| match used {
            Some(Split::Factor(factor)) => *other != factor && !self.data.follows(*other, factor),
            _ => true,
        };
        self.varying.iter().copied().filter(is_free).map(Split::Factor).collect()
    }

    /// What distinguishes it; of a value only the words that other values do not have.
    pub(super) fn key(&self, split: Option<Split>, scenario: usize, subject: &Subject) -> String {
        match split {
            None => String::new(),
            Some(Split::Subject) => subject.label().to_owned(),
            Some(Split::Factor(factor)) => {
                self.data.differing(factor, self.data.value(scenario, factor)).to_owned()
            }
        }
    }

    /// The factors that neither axis nor colour shows, that do not follow from those, and that are not
    /// the same in all scenarios of the figure.
    fn panel(&self, scenario: usize, subject: &Subject) -> String {
        let data = self.data;
        let mut used: Vec<usize> = [self.x, self.colour]
            .into_iter()
            .flatten()
            .filter_map(|split| match split {
                Split::Factor(factor) => Some(factor),
                Split::Subject => None,
            })
            .collect();
        // A factor must follow for all values; otherwise some panels would have no name.
        let follows = |factor: &usize| used.iter().any(|used| data.follows(*factor, *used));
        let companions: Vec<usize> = (0..data.plan.factors.len()).filter(follows).collect();
        used.extend(companions);
        used.extend(data.varying.iter().filter(|factor| !self.varying.contains(factor)));
        let mut parts = Vec::new();
        if self.subjects.len() > 1 && ![self.x, self.colour].contains(&Some(Split::Subject)) {
            parts.push(subject.label().to_owned());
        }
        let label = data.label_without(scenario, &used);
        if !label.is_empty() && !self.varying.iter().all(|factor| used.contains(factor)) {
            parts.push(label);
        }
        parts.join(" · ")
    }

    /// Everything to be shown, panel by panel.
    pub(super) fn panels(&self) -> Vec<(String, Vec<(usize, &Subject)>)> {
        let all = self
            .scenarios
            .iter()
            .flat_map(|scenario| self.subjects.iter().map(move |subject| (*scenario, subject)));
        grouped(all.map(|(scenario, subject)| (self.panel(scenario, subject), (scenario, subject))))
    }

    /// The colours of the figure, in the order of their keys.
    pub(super) fn keys(&self, split: Option<Split>) -> Vec<String> {
        let (mut keys, mut seen) = (Vec::new(), BTreeSet::new());
        for scenario in &self.scenarios {
            for subject in &self.subjects {
                let key = self.key(split, *scenario, subject);
                if seen.insert(key.clone()) {
                    keys.push(key);
                }
            }
        }
        keys
    }

    pub(super) fn colour(&self, scenario: usize, subject: &Subject, keys: &[String]) -> usize {
        match self.colour {
            Some(Split::Subject) if subject.kind == Kind::Flow => {
                self.data.colour_of_flow(&subject.name)
            }
            split => {
                let key = self.key(split, scenario, subject);
                keys.iter().position(|k| *k == key).unwrap_or(0)
            }
        }
    }

    /// What colours stand for and, if `symbols` are told apart, what shapes do.
    pub(super) fn legend(&self, symbols: Option<Split>) -> Vec<Key> {
        let keys = self.keys(self.colour);
        let mut entries: Vec<(Option<usize>, usize, String)> = Vec::new();
        let mut seen = BTreeSet::new();
        for scenario in &self.scenarios {
            for subject in &self.subjects {
                let key = self.key(self.colour, *scenario, subject);
                if seen.insert(key.clone()) {
                    let colour = self.colour(*scenario, subject, &keys);
                    entries.push((Some(colour), if symbols.is_some() { 0 } else { colour }, key));
                }
            }
        }
        let mut keys = vec![Key(entries)];
        if symbols.is_some() {
            let shapes = self.keys(symbols);
            let shapes = shapes.into_iter().enumerate().map(|(at, key)| (None, at, key)).collect();
            keys.push(Key(shapes));
        }
        keys
    }

    /// The quantity in the unit in which its values here are easy to read.
    pub(super) fn measure(&self, metric: &str) -> Measure {
        let mut largest = 0.0f64;
        for scenario in &self.scenarios {
            for subject in &self.subjects {
                let points = self.data.points(*scenario, subject, metric);
                largest = points.iter().map(|point| point.value.abs()).fold(largest, f64::max);
            }
        }
        let (factor, unit) = names::stepped(self.data.plan, metric, largest);
        Measure {
            metric: metric.to_owned(),
            factor,
            unit: unit.to_owned(),
            axis: names::axis_in(metric, unit),
        }
    }

    /// The quantity as it was measured, where a figure divides a whole.
    pub(super) fn part(&self, metric: &str) -> Measure {
        Measure {
            metric: metric.to_owned(),
            factor: 1.0,
            unit: String::new(),
            axis: names::title(metric),
        }
    }

    pub(super) fn points(&self, scenario: usize, subject: &Subject, measure: &Measure) -> Points {
        let mut points = self.data.points(scenario, subject, &measure.metric);
        points.iter_mut().for_each(|point| point.value *= measure.factor);
        points
    }

    /// The caption with what has no value though its samples were asked for: `No value, so not drawn: web, rate 2Mbps (0 of
    /// 3).`
    pub(super) fn with_missing(&self, caption: &str, metric: &str) -> String {
        let mut missing = Vec::new();
        for scenario in &self.scenarios {
            for subject in &self.subjects {
                let points = self.data.points(*scenario, subject, metric);
                let Some(why) = points.why_none().filter(|_| points.is_empty()) else { continue };
                let label = match self.varying.is_empty() {
                    true => subject.label().to_owned(),
                    false => format!("{}, {}", subject.label(), self.data.label(*scenario)),
                };
                missing.push(format!("{label} ({why})"));
            }
        }
        let more = missing.len().saturating_sub(MOST_MISSING);
        missing.truncate(MOST_MISSING);
        let missing = match (&missing[..], more) {
            ([], _) => return caption.to_owned(),
            (some, 0) => some.join("; "),
            (some, more) => format!("{}; and {more} more", some.join("; ")),
        };
        format!("{caption} No value, so not drawn: {}.", Esc(&missing)).trim_start().to_owned()
    }

    /// Over all panels together.
    pub(super) fn values(&self, measure: &Measure) -> Vec<f64> {
        let mut values = Vec::new();
        for scenario in &self.scenarios {
            for subject in &self.subjects {
                let points = self.points(*scenario, subject, measure);
                values.extend(points.iter().map(|point| point.value));
            }
        }
        values
    }

    pub(super) fn categories(
        &self,
        members: &[(usize, &Subject)],
        measure: &Measure,
    ) -> Vec<Category> {
        let keys = self.keys(self.colour);
        let mut categories: Vec<Category> = Vec::new();
        for (scenario, subject) in members {
            let points = self.points(*scenario, subject, measure);
            if !points.tally().were_asked() {
                continue;
            }
            let label = match self.x {
                Some(split) => self.key(Some(split), *scenario, subject),
                None => self.data.label(*scenario),
            };
            let group = Group {
                colour: self.colour(*scenario, subject, &keys),
                label: match self.colour {
                    Some(split) => self.key(Some(split), *scenario, subject),
                    None => subject.label().to_owned(),
                },
                points,
            };
            match categories.iter_mut().find(|category| category.label == label) {
                Some(category) => category.groups.push(group),
                None => categories.push(Category { label, groups: vec![group] }),
            }
        }
        categories
    }
}

/// The most that a caption names.
const MOST_MISSING: usize = 4;

/// Puts together what has the same key, in the order in which keys come first.
pub(super) fn grouped<T>(all: impl Iterator<Item = (String, T)>) -> Vec<(String, Vec<T>)> {
    let mut groups: Vec<(String, Vec<T>)> = Vec::new();
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    for (key, one) in all {
        let place = *places.entry(key).or_insert_with_key(|key| {
            groups.push((key.clone(), Vec::new()));
            groups.len() - 1
        });
        groups[place].1.push(one);
    }
    groups
}

/// A metric, and the unit in which a figure shows it.
pub(super) struct Measure {
    pub(super) metric: String,
    factor: f64,
    pub(super) unit: String,
    /// Its name with the unit.
    pub(super) axis: String,
}
