//! The scenarios of a study, built when they are needed.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use super::StudyScenario;
use super::expand::Builder;
use crate::error::StudyError;

/// How many are kept for who needs one of them again: the seeds of a scenario run one after another, at a
/// place of the study for each thread.
const KEPT: usize = 4;

/// All scenarios of a study, in the order of the factors, the first one changing slowest. Each was built and
/// checked when the study was read, and is built again when it is asked for, so a hundred thousand take no
/// more memory than one.
#[derive(Clone, Debug)]
pub struct Scenarios {
    count: usize,
    shared: Arc<Mutex<Shared>>,
}

#[derive(Debug)]
struct Shared {
    builder: Builder,
    /// With their positions, the newest last.
    kept: VecDeque<(usize, Arc<StudyScenario>)>,
}

impl Scenarios {
    /// Builds each once.
    pub(super) fn checked(
        mut builder: Builder,
        each: &mut dyn FnMut(&StudyScenario),
    ) -> Result<Self, StudyError> {
        builder.check(each)?;
        let count = builder.count();
        let shared = Shared { builder, kept: VecDeque::with_capacity(KEPT) };
        Ok(Self { count, shared: Arc::new(Mutex::new(shared)) })
    }

    pub fn len(&self) -> usize {
        self.count
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The scenario at a position; `None` behind the last.
    pub fn get(&self, position: usize) -> Option<Arc<StudyScenario>> {
        if position >= self.count {
            return None;
        }
        // A thread that panicked while it built one left a builder that begins anew with the next.
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        let found = shared.kept.iter().find(|(kept, _)| *kept == position);
        if let Some((_, scenario)) = found {
            return Some(Arc::clone(scenario));
        }
        let built = shared.builder.scenario(position);
        let scenario =
            Arc::new(built.expect("it was built when the study was read, of the same files"));
        if shared.kept.len() == KEPT {
            shared.kept.pop_front();
        }
        shared.kept.push_back((position, Arc::clone(&scenario)));
        Some(scenario)
    }

    pub fn first(&self) -> Option<Arc<StudyScenario>> {
        self.get(0)
    }

    /// One after another.
    pub fn iter(&self) -> impl Iterator<Item = Arc<StudyScenario>> + '_ {
        (0..self.count).filter_map(|position| self.get(position))
    }
}
