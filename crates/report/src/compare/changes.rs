//! The numbers of a large study are millions. What many of them have in common is kept once.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;

use sojourn_study::metrics::more_is_better;
use sojourn_study::results::Kind;

use super::{Change, FALSE_ALARMS, Judgement, floor};

/// All numbers of a comparison, the worst first.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    list: Vec<Kept>,
    scenarios: Vec<Arc<str>>,
    subjects: Vec<(Kind, Arc<str>)>,
    /// With their units.
    metrics: Vec<(&'static str, Arc<str>)>,
    also: Vec<Vec<&'static str>>,
    /// How many lists there are up to each.
    also_at: BTreeMap<Vec<&'static str>, NonZeroU32>,
    counted: Vec<[Option<String>; 2]>,
}

/// A [`Change`] with positions in place of what others have too.
#[derive(Clone, Debug)]
struct Kept {
    before: f64,
    after: f64,
    difference: f64,
    /// Not-a-number where it is not tested, and where nothing is corrected.
    half_width: f64,
    p: f64,
    corrected_p: f64,
    scenario: u32,
    subject: u32,
    pairs: u32,
    /// How many lists there are up to its own.
    also: Option<NonZeroU32>,
    counted: Option<NonZeroU32>,
    metric: u16,
    judgement: Judgement,
    is_tested: bool,
    is_corrected: bool,
}

impl Kept {
    /// As [`Change::share`].
    fn share(&self) -> Option<f64> {
        (self.before != 0.0).then(|| self.difference / self.before.abs())
    }

    fn size(&self) -> f64 {
        self.share().map_or(f64::MAX, f64::abs)
    }

    /// Numbers were added in this order.
    fn position(&self) -> (u32, u32, u16) {
        (self.scenario, self.subject, self.metric)
    }
}

impl Changes {
    /// Without numbers; those that are added say by their positions of what they are. Metrics have their units.
    pub(super) fn of(
        subjects: Vec<(Kind, Arc<str>)>,
        metrics: Vec<(&'static str, Arc<str>)>,
    ) -> Self {
        Self { subjects, metrics, ..Self::default() }
    }

    /// What is added from now on is of this scenario.
    pub(super) fn begin(&mut self, scenario: Arc<str>) {
        self.scenarios.push(scenario);
    }

    /// To be called in the order of subjects and metrics.
    pub(super) fn add(&mut self, subject: usize, metric: usize, change: Change) {
        let also = (!change.also.is_empty()).then(|| self.place_of(change.also));
        let counted = [change.before_counted, change.after_counted];
        let counted = counted.iter().any(Option::is_some).then(|| {
            self.counted.push(counted);
            ordinal(self.counted.len())
        });
        self.list.push(Kept {
            before: change.before,
            after: change.after,
            difference: change.difference,
            half_width: change.half_width.unwrap_or(f64::NAN),
            p: change.p.unwrap_or(f64::NAN),
            corrected_p: f64::NAN,
            scenario: ordinal(self.scenarios.len()).get() - 1,
            subject: subject as u32,
            pairs: change.pairs as u32,
            also,
            counted,
            metric: metric as u16,
            judgement: change.judgement,
            is_tested: change.p.is_some(),
            is_corrected: false,
        });
    }

    fn place_of(&mut self, also: Vec<&'static str>) -> NonZeroU32 {
        if let Some(place) = self.also_at.get(&also) {
            return *place;
        }
        self.also.push(also.clone());
        let place = ordinal(self.also.len());
        self.also_at.insert(also, place);
        place
    }

    /// Corrects the p values for their number, and sets the verdicts. Numbers that are the same in
    /// every run of both folders do not count as questions, nor do those that cannot be compared.
    pub(super) fn correct(&mut self) {
        let is_asked = |kept: &Kept| kept.judgement == Judgement::Unsure;
        let mut asked: Vec<(u32, f64)> = (0..)
            .zip(&self.list)
            .filter(|(_, kept)| is_asked(kept) && kept.is_tested)
            .map(|(at, kept)| (at, kept.p))
            .collect();
        asked.sort_by(|a, b| a.1.total_cmp(&b.1));
        let all = asked.len() as f64;
        let mut least = 1.0f64;
        for (rank, (at, p)) in asked.iter().enumerate().rev() {
            least = least.min(p * all / (rank + 1) as f64);
            let kept = &mut self.list[*at as usize];
            (kept.corrected_p, kept.is_corrected) = (least, true);
        }
        for kept in self.list.iter_mut().filter(|kept| is_asked(kept)) {
            let (metric, unit) = &self.metrics[usize::from(kept.metric)];
            let sure = kept.is_corrected && kept.corrected_p <= FALSE_ALARMS;
            let matters = kept.difference.abs() > floor(metric, unit, kept.before);
            kept.judgement = match (sure, matters, more_is_better(metric)) {
                (false, true, _) if !kept.is_tested => Judgement::Untested,
                (false, false, _) if !kept.is_tested => Judgement::Slight,
                (false, ..) => Judgement::Unsure,
                (true, false, _) => Judgement::Slight,
                (true, true, None) => Judgement::Different,
                (true, true, Some(more)) if more == (kept.difference > 0.0) => Judgement::Better,
                (true, true, Some(_)) => Judgement::Worse,
            };
        }
    }

    /// The worst first; of those that are equally bad in the order in which they were added.
    pub(super) fn sort(&mut self) {
        self.list.sort_unstable_by(|a, b| {
            let worse = a.judgement.cmp(&b.judgement).then(b.size().total_cmp(&a.size()));
            worse.then(a.position().cmp(&b.position()))
        });
    }

    pub fn len(&self) -> usize {
        self.list.len()
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = Change> + Clone + '_ {
        self.list.iter().map(|kept| self.change(kept))
    }

    /// Those that are judged so.
    pub(super) fn judged<'a>(
        &'a self,
        is_so: impl Fn(Judgement) -> bool + 'a,
    ) -> impl Iterator<Item = Change> + 'a {
        let judged = self.list.iter().filter(move |kept| is_so(kept.judgement));
        judged.map(|kept| self.change(kept))
    }

    /// How many are judged so.
    pub(super) fn count(&self, is_so: impl Fn(Judgement) -> bool) -> usize {
        self.list.iter().filter(|kept| is_so(kept.judgement)).count()
    }

    fn change(&self, kept: &Kept) -> Change {
        let (kind, subject) = &self.subjects[kept.subject as usize];
        let (metric, unit) = &self.metrics[usize::from(kept.metric)];
        let also = kept.also.map(|place| self.also[place.get() as usize - 1].clone());
        let counted = kept.counted.map(|place| self.counted[place.get() as usize - 1].clone());
        let [before_counted, after_counted] = counted.unwrap_or_default();
        Change {
            scenario: Arc::clone(&self.scenarios[kept.scenario as usize]),
            kind: *kind,
            subject: Arc::clone(subject),
            metric,
            also: also.unwrap_or_default(),
            unit: Arc::clone(unit),
            before: kept.before,
            after: kept.after,
            before_counted,
            after_counted,
            difference: kept.difference,
            half_width: kept.is_tested.then_some(kept.half_width),
            pairs: kept.pairs as usize,
            p: kept.is_tested.then_some(kept.p),
            corrected_p: kept.is_corrected.then_some(kept.corrected_p),
            judgement: kept.judgement,
        }
    }
}

/// How many there are of what was just added to.
fn ordinal(count: usize) -> NonZeroU32 {
    u32::try_from(count)
        .ok()
        .and_then(NonZeroU32::new)
        .expect("some, and not four thousand million")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two folders of 100 000 scenarios have three million.
    #[test]
    fn a_number_takes_little_memory() {
        assert!(size_of::<Kept>() <= 80, "{} bytes", size_of::<Kept>());
    }
}
