//! Prepares an expression to be computed: metrics, flows, queues and factors are looked up, and
//! dimensions must agree.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use sojourn_core::{SpecError, is_phase};
use sojourn_metrics::stats::Better;

use super::over_time::{self, OfPhase, OverTime, What};
use super::syntax::{
    self, Elsewhere, Expr, ExprError, MetricRef, ModelRef, Operator, Pool, Quantity, Relation,
};
use super::units::{Dimension, Unit};
use crate::metrics::{self, Pooling, kind_of};
use crate::results::{Kind, Plan};

/// An expression of a claim, ready to be computed.
#[derive(Clone, Debug)]
pub struct Expectation {
    pub text: String,
    pub(super) left: Term,
    pub(super) test: Test,
    /// The unit in which values are shown.
    pub(super) unit: Unit,
}

#[derive(Clone, Debug)]
pub(super) enum Test {
    /// Bounds in seconds, bits and plain numbers.
    Within {
        low: f64,
        high: f64,
    },
    /// Within a tolerance of another value.
    Near {
        right: Term,
        right_text: String,
        tolerance: Tolerance,
    },
    Compare {
        relation: Relation,
        right: Term,
        right_text: String,
    },
}

/// How far a value may be from another.
#[derive(Clone, Copy, Debug)]
pub(super) enum Tolerance {
    /// In seconds, bits and plain numbers.
    By(f64),
    /// As a share of the other value.
    Share(f64),
}

impl Tolerance {
    /// How far from `centre` that is.
    pub(super) fn around(self, centre: f64) -> f64 {
        match self {
            Self::By(by) => by,
            Self::Share(share) => share * centre.abs(),
        }
    }
}

#[derive(Clone, Debug)]
pub(super) enum Term {
    Number(f64),
    /// What a closed form gives, by scenario.
    Model(Vec<f64>),
    Value(Value),
    Negative(Box<Term>),
    Binary(Operator, Box<Term>, Box<Term>),
    /// Ware et al.'s harm: whether more or less is better, the value alone, and the value beside others.
    Harm(Better, Box<[Value; 2]>),
}

/// A metric of something in some scenario.
#[derive(Clone, Debug)]
pub(super) struct Value {
    pub(super) metric: &'static str,
    /// Where the metric stands in the expression.
    pub(super) at: usize,
    /// Converts the column to seconds, bits and plain numbers.
    pub(super) scale: f64,
    pub(super) kind: Kind,
    /// Flow, group or queue; empty for the run as a whole.
    pub(super) of: String,
    pub(super) pool: Pool,
    /// Positions of factors, and the values that they have in that scenario.
    pub(super) elsewhere: Vec<(usize, String)>,
    /// It is taken from the time series, and not from the run's table.
    pub(super) over_time: Option<OverTime>,
}

/// The names that claims may use.
#[derive(Clone, Copy)]
pub struct Names<'a> {
    pub plan: &'a Plan,
    /// Whether the command line replaced a factor's values; then the study may name values that are
    /// no longer there.
    pub is_overridden: &'a dyn Fn(usize) -> bool,
    /// Whether flows, a queue or both have a name that is in no scenario, because the command line took
    /// them away.
    pub removed: &'a dyn Fn(&str) -> Vec<Kind>,
    /// What the study says of its runs; `None` if the command line changed it, or if it is a result.
    pub known: Option<&'a Known>,
}

/// What claims must fit beside the plan.
#[derive(Clone, Debug)]
pub struct Known {
    /// The longest that a run lasts, in seconds.
    pub longest_s: f64,
    /// Phases that the controllers of a flow or a group can be in, by its name; `None` if one does not say.
    pub phases: BTreeMap<String, Option<BTreeSet<&'static str>>>,
}

impl Expectation {
    /// Reads an expression.
    ///
    /// # Errors
    /// A mistake of grammar; a metric, flow, queue, factor or value that is not in the plan;
    /// quantities of different kinds that are added or compared.
    pub fn parse(text: &str, names: Names<'_>) -> Result<Self, ExprError> {
        Resolver { names }.expectation(text)
    }

    /// Why no run can change the outcome, where that is plain to see.
    pub(crate) fn why_fixed(&self) -> Option<&'static str> {
        let is_same = |left: &Term, right: &Term| match (left, right) {
            (Term::Value(left), Term::Value(right)) => {
                left.is_as(right) && left.elsewhere == right.elsewhere
            }
            _ => false,
        };
        match &self.test {
            Test::Compare { right, .. } | Test::Near { right, .. }
                if is_same(&self.left, right) =>
            {
                Some("compares a metric with itself")
            }
            _ if self.values().is_empty() => Some("has nothing that is measured"),
            _ => None,
        }
    }

    /// The end of the latest part of the run that it speaks of, in seconds.
    pub(crate) fn latest_s(&self) -> Option<f64> {
        let values = self.values();
        let parts = values.iter().filter_map(|value| value.over_time.as_ref());
        parts.map(|part| *part.during.end()).filter(|end| end.is_finite()).reduce(f64::max)
    }

    pub(super) fn values(&self) -> Vec<&Value> {
        let mut values = Vec::new();
        self.left.collect(&mut values);
        if let Test::Compare { right, .. } | Test::Near { right, .. } = &self.test {
            right.collect(&mut values);
        }
        values
    }
}

impl Term {
    /// The value, if it is the same in every run.
    pub(super) fn constant(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Value(_) | Self::Harm(..) | Self::Model(_) => None,
            Self::Negative(inner) => inner.constant().map(|number| -number),
            Self::Binary(operator, left, right) => {
                Some(operator.apply(left.constant()?, right.constant()?))
            }
        }
    }

    fn collect<'a>(&'a self, values: &mut Vec<&'a Value>) {
        match self {
            Self::Number(_) | Self::Model(_) => {}
            Self::Value(value) => values.push(value),
            Self::Harm(_, both) => values.extend(both.iter()),
            Self::Negative(inner) => inner.collect(values),
            Self::Binary(_, left, right) => {
                left.collect(values);
                right.collect(values);
            }
        }
    }
}

impl Operator {
    pub(super) fn apply(self, left: f64, right: f64) -> f64 {
        match self {
            Self::Plus => left + right,
            Self::Minus => left - right,
            Self::Times => left * right,
            Self::Over => left / right,
        }
    }
}

/// What kind of quantity a term is.
struct Meaning {
    dimension: Dimension,
    /// The unit of its metric, if it has just one.
    unit: Option<Unit>,
    /// A zero without unit, which may be compared with everything.
    is_zero: bool,
    what: String,
}

impl Meaning {
    fn unit(&self) -> Unit {
        self.unit.unwrap_or_else(|| Unit::usual(self.dimension))
    }

    fn must_fit(&self, other: &Self, at: usize) -> Result<(), ExprError> {
        if self.dimension == other.dimension || self.is_zero || other.is_zero {
            return Ok(());
        }
        let problem = format!(
            "{} is {}, and {} is {}",
            self.what,
            self.dimension.describe(),
            other.what,
            other.dimension.describe()
        );
        Err(ExprError::new(at, problem).allow(&[&self.dimension.describe()]))
    }
}

fn bound(quantity: &Quantity, of: &Meaning) -> Result<f64, ExprError> {
    let (number, meaning) = number(quantity);
    of.must_fit(&meaning, quantity.at)?;
    Ok(number)
}

fn number(quantity: &Quantity) -> (f64, Meaning) {
    let unit = quantity.unit.unwrap_or(Unit::PLAIN);
    let meaning = Meaning {
        dimension: unit.dimension,
        unit: quantity.unit,
        is_zero: quantity.number == 0.0 && quantity.unit.is_none(),
        what: format!("{}{}", quantity.number, unit.name),
    };
    (quantity.number * unit.scale, meaning)
}

/// From when to when, in seconds.
fn seconds((from, to): &(Quantity, Quantity)) -> Result<RangeInclusive<f64>, ExprError> {
    let second = |end: &Quantity| match end.unit {
        Some(unit) if unit.dimension == Dimension::TIME && end.number >= 0.0 => {
            Ok(end.number * unit.scale)
        }
        _ => Err(ExprError::new(end.at, "no time of the run").allow(&["during 2s..5s"])),
    };
    let (start, end) = (second(from)?, second(to)?);
    if start >= end {
        return Err(ExprError::new(from.at, "the part of the run has no length")
            .allow(&["an end after the start, such as during 2s..5s"]));
    }
    Ok(start..=end)
}

fn with_meaning(value: Value, unit: &'static str, what: &str) -> (Value, Meaning) {
    let unit = if value.pool == Pool::Jain { Unit::PLAIN } else { Unit::of_metric(unit) };
    let meaning = Meaning {
        dimension: unit.dimension,
        unit: Some(unit),
        is_zero: false,
        what: what.to_owned(),
    };
    (value, meaning)
}

impl From<Pooling> for Pool {
    fn from(pooling: Pooling) -> Self {
        match pooling {
            Pooling::Sum => Self::Sum,
            Pooling::Least => Self::Min,
            Pooling::Largest => Self::Max,
            Pooling::Mean => Self::Mean,
        }
    }
}

struct Resolver<'a> {
    names: Names<'a>,
}

impl Resolver<'_> {
    /// From when to when a value is taken, in seconds.
    fn during(&self, during: &(Quantity, Quantity)) -> Result<RangeInclusive<f64>, ExprError> {
        let part = seconds(during)?;
        match self.names.known {
            Some(Known { longest_s, .. }) if part.end() > longest_s => {
                let problem = format!("no run lasts longer than {longest_s}s");
                let allowed = format!("a part within 0s..{longest_s}s");
                Err(ExprError::new(during.1.at, problem).allow(&[&allowed]))
            }
            _ => Ok(part),
        }
    }

    /// # Errors
    /// No controller of the flow or group can be in the phase.
    fn check_phase(&self, of: &str, phase: &Elsewhere) -> Result<(), ExprError> {
        let known = self.names.known.and_then(|known| known.phases.get(of)?.as_ref());
        let Some(phases) = known else { return Ok(()) };
        if phases.iter().any(|known| is_phase(known, &phase.value)) {
            return Ok(());
        }
        let names = || phases.iter().copied();
        let problem = SpecError::new(format!("'{of}' has no phase '{}'", phase.value));
        Err(ExprError { at: phase.at, problem: problem.near(&phase.value, names()).allow(names()) })
    }

    fn expectation(&self, text: &str) -> Result<Expectation, ExprError> {
        match syntax::Claim::parse(text)? {
            syntax::Claim::Within { value, low, high } => {
                let (left, meaning) = self.term(&value)?;
                let low = bound(&low, &meaning)?;
                let shown = high.unit.unwrap_or_else(|| meaning.unit());
                let high = bound(&high, &meaning)?;
                Ok(Expectation {
                    text: text.to_owned(),
                    left,
                    test: Test::Within { low, high },
                    unit: shown,
                })
            }
            syntax::Claim::Near { left, right, right_at, tolerance } => {
                let tolerance_at = tolerance.at;
                let (left, meaning) = self.term(&left)?;
                let (right, right_meaning) = self.term(&right)?;
                meaning.must_fit(&right_meaning, right_at)?;
                let share = tolerance.unit.filter(|unit| unit.name == "%");
                let tolerance = match share {
                    Some(unit) => Tolerance::Share(tolerance.number * unit.scale),
                    None => Tolerance::By(bound(&tolerance, &meaning)?),
                };
                let right_text = text[right_at..tolerance_at].trim();
                let right_text = right_text.trim_end_matches(['±', '+', '/', '-', ' ']).to_owned();
                let unit = meaning.unit();
                let test = Test::Near { right, right_text, tolerance };
                Ok(Expectation { text: text.to_owned(), left, test, unit })
            }
            syntax::Claim::Compare { left, relation, right, right_at } => {
                let (left_term, left_meaning) = self.term(&left)?;
                let (right_term, right_meaning) = self.term(&right)?;
                left_meaning.must_fit(&right_meaning, right_at)?;
                let written = match &right {
                    Expr::Quantity(quantity) => quantity.unit,
                    _ => None,
                };
                let unit = written.unwrap_or_else(|| left_meaning.unit());
                Ok(Expectation {
                    text: text.to_owned(),
                    left: left_term,
                    test: Test::Compare {
                        relation,
                        right: right_term,
                        right_text: text[right_at..].trim().to_owned(),
                    },
                    unit,
                })
            }
        }
    }

    fn term(&self, expr: &Expr) -> Result<(Term, Meaning), ExprError> {
        match expr {
            Expr::Quantity(quantity) => {
                let (number, meaning) = number(quantity);
                Ok((Term::Number(number), meaning))
            }
            Expr::Metric { pool, metric } => {
                let (value, meaning) = self.metric(*pool, metric)?;
                Ok((Term::Value(value), meaning))
            }
            Expr::Harm { pool, metric, alone } => self.harm(*pool, metric, alone),
            Expr::Model(model) => self.model(model),
            Expr::Negative(inner) => {
                let (term, meaning) = self.term(inner)?;
                Ok((Term::Negative(Box::new(term)), meaning))
            }
            Expr::Binary { operator, left, right, at } => {
                let (left, left_meaning) = self.term(left)?;
                let (right, right_meaning) = self.term(right)?;
                if *operator == Operator::Over && right.constant() == Some(0.0) {
                    return Err(ExprError::new(*at, "the divisor is zero")
                        .allow(&["a divisor other than zero"]));
                }
                let dimension = match operator {
                    Operator::Plus | Operator::Minus => {
                        left_meaning.must_fit(&right_meaning, *at)?;
                        match left_meaning.is_zero {
                            true => right_meaning.dimension,
                            false => left_meaning.dimension,
                        }
                    }
                    Operator::Times => left_meaning.dimension.times(right_meaning.dimension),
                    Operator::Over => left_meaning.dimension.over(right_meaning.dimension),
                };
                // A number times a metric, or a sum of equal ones, is shown in the metric's unit.
                let unit = match operator {
                    Operator::Over if right_meaning.dimension != Dimension::NONE => None,
                    Operator::Over => left_meaning.unit.filter(|_| right.constant().is_some()),
                    _ => left_meaning.unit.or(right_meaning.unit),
                };
                let meaning = Meaning {
                    dimension,
                    unit: unit.filter(|unit| unit.dimension == dimension),
                    is_zero: false,
                    what: "the left side".into(),
                };
                Ok((Term::Binary(*operator, Box::new(left), Box::new(right)), meaning))
            }
        }
    }

    /// A closed form at every scenario's factors.
    fn model(&self, model: &ModelRef) -> Result<(Term, Meaning), ExprError> {
        let fault = |at: usize| move |problem: SpecError| ExprError { at, problem };
        let formulas = sojourn_model::formulas();
        let factors: Vec<Option<usize>> = model
            .params
            .iter()
            .map(|param| {
                let is_factor =
                    |name: &str| self.names.plan.factors.iter().position(|f| f.name == name);
                is_factor(&param.value).filter(|_| !param.is_quoted)
            })
            .collect();
        let mut values = Vec::new();
        let mut unit = Unit::PLAIN;
        for scenario in self.names.plan.scenarios.iter() {
            let mut text = model.formula.clone();
            for (param, factor) in model.params.iter().zip(&factors) {
                let value = factor.map_or(&param.value[..], |factor| &scenario.factors[factor]);
                text.push_str(&format!(" {}={value}", param.name));
            }
            let answer = formulas.parse(&text).map_err(fault(model.at))?;
            let (output, value) =
                answer.output(model.output.as_deref()).map_err(fault(model.at))?;
            unit = Unit::of_metric(output.unit);
            values.push(value * unit.scale);
        }
        let what = format!("model({})", model.formula);
        let meaning = Meaning { dimension: unit.dimension, unit: Some(unit), is_zero: false, what };
        match values.first().copied() {
            Some(first) if values.iter().all(|value| *value == first) => {
                Ok((Term::Number(first), meaning))
            }
            _ => Ok((Term::Model(values), meaning)),
        }
    }

    fn harm(
        &self,
        pool: Option<Pool>,
        metric: &MetricRef,
        alone: &[syntax::Elsewhere],
    ) -> Result<(Term, Meaning), ExprError> {
        let (beside, meaning) = self.metric(pool, metric)?;
        let better = match pool {
            Some(Pool::Jain) => Some(true),
            _ => metrics::more_is_better(beside.metric),
        };
        let better = better.map(|more| if more { Better::More } else { Better::Less });
        let better = better.ok_or_else(|| {
            let problem = format!("'{}' is neither good nor bad", beside.metric);
            ExprError::new(metric.at, problem)
                .allow(&["a rate, a score, a delay, a loss, a stall or a freeze"])
        })?;
        let elsewhere = [&metric.elsewhere[..], alone].concat();
        let (alone, _) = self.metric(pool, &MetricRef { elsewhere, ..metric.clone() })?;
        let what = format!("harm to {}", meaning.what);
        let unit = Some(Unit::PLAIN);
        let meaning = Meaning { dimension: Dimension::NONE, unit, is_zero: false, what };
        Ok((Term::Harm(better, Box::new([alone, beside])), meaning))
    }

    fn metric(
        &self,
        pool: Option<Pool>,
        metric: &MetricRef,
    ) -> Result<(Value, Meaning), ExprError> {
        let kinds = match &metric.of {
            None => vec![Kind::Run],
            Some(name) => {
                self.kinds_of(name).map_err(|problem| ExprError { at: metric.of_at, problem })?
            }
        };
        if let Some((name, of, unit)) = OfPhase::named(&metric.metric) {
            return self.phase(pool, metric, &kinds, (name, of, unit));
        }
        if let Some(during) = &metric.during {
            return self.column(pool, metric, &kinds, during);
        }
        let found = metrics::find(&metric.metric, &kinds).map_err(|error| {
            let elsewhere = metrics::find(&metric.metric, &Kind::ALL);
            let problem = match (&metric.of, elsewhere) {
                // The metric exists, but for something else.
                (None, Ok(_)) => {
                    SpecError::new(format!("'{}' of what?", metric.metric)).allow(self.all_names())
                }
                (Some(name), Ok(other)) => SpecError::new(format!(
                    "'{}' is a metric of a {}, and '{name}' is none",
                    metric.metric,
                    kind_of(other.scope).name()
                ))
                .allow(self.names_of(kind_of(other.scope))),
                (_, Err(_)) => error,
            };
            ExprError { at: metric.at, problem }
        })?;
        let value = Value {
            metric: found.name,
            at: metric.at,
            scale: Unit::of_metric(found.unit).scale,
            kind: kind_of(found.scope),
            of: metric.of.clone().unwrap_or_default(),
            pool: pool.unwrap_or(Pooling::of(found.name, found.unit).into()),
            elsewhere: self.elsewhere(&metric.elsewhere)?,
            over_time: None,
        };
        Ok(with_meaning(value, found.unit, &metric.metric))
    }

    /// A column of the time series over a part of the run.
    fn column(
        &self,
        pool: Option<Pool>,
        metric: &MetricRef,
        kinds: &[Kind],
        during: &(Quantity, Quantity),
    ) -> Result<(Value, Meaning), ExprError> {
        let fault = |problem| ExprError { at: metric.at, problem };
        if metric.of.is_none() {
            let problem = "what is taken of a part of the run is of a flow or a queue";
            return Err(fault(SpecError::new(problem).allow(self.all_names())));
        }
        let of = |kind| over_time::column(&metric.metric, kind).map(|found| (kind, found));
        let (kind, (name, unit, fold)) = match kinds {
            [kind] => of(*kind),
            _ => of(Kind::Flow).or_else(|_| of(Kind::Queue)),
        }
        .map_err(fault)?;
        let value = Value {
            metric: name,
            at: metric.at,
            scale: Unit::of_metric(unit).scale,
            kind,
            of: metric.of.clone().unwrap_or_default(),
            pool: pool.unwrap_or(Pooling::of(name, unit).into()),
            elsewhere: self.elsewhere(&metric.elsewhere)?,
            over_time: Some(OverTime {
                what: What::Column(name, fold),
                during: self.during(during)?,
            }),
        };
        Ok(with_meaning(value, unit, &metric.metric))
    }

    /// What a phase of a congestion controller did: `phase_share(bbr, phase = 'DRAIN')`.
    fn phase(
        &self,
        pool: Option<Pool>,
        metric: &MetricRef,
        kinds: &[Kind],
        (name, of, unit): (&'static str, OfPhase, &'static str),
    ) -> Result<(Value, Meaning), ExprError> {
        let (phases, others): (Vec<Elsewhere>, Vec<Elsewhere>) =
            metric.elsewhere.iter().cloned().partition(|elsewhere| elsewhere.factor == "phase");
        let (entries, others): (Vec<Elsewhere>, Vec<Elsewhere>) = others
            .into_iter()
            .partition(|elsewhere| of == OfPhase::Begins && elsewhere.factor == "entry");
        let [phase] = &phases[..] else {
            let problem = format!("'{name}' is of one phase");
            return Err(ExprError::new(metric.at, problem)
                .allow(&[&format!("{name}(FLOW, phase = 'DRAIN')")]));
        };
        if !kinds.contains(&Kind::Flow) {
            let problem = SpecError::new("only flows have phases").allow(self.names_of(Kind::Flow));
            return Err(ExprError { at: metric.of_at, problem });
        }
        self.check_phase(metric.of.as_deref().unwrap_or_default(), phase)?;
        let whole = Ok(0.0..=f64::INFINITY);
        let during = metric.during.as_ref().map_or(whole, |during| self.during(during))?;
        let what = match &entries[..] {
            [] => What::Phase(of, phase.value.clone()),
            [entry, ..] => match entry.value.parse() {
                Ok(n @ 1..) => What::Entry(n, phase.value.clone()),
                _ => {
                    let problem = format!("'{}' is no number of an entry", entry.value);
                    return Err(ExprError::new(entry.at, problem).allow(&["entry = '1', '2' …"]));
                }
            },
        };
        let value = Value {
            metric: name,
            at: metric.at,
            scale: Unit::of_metric(unit).scale,
            kind: Kind::Flow,
            of: metric.of.clone().unwrap_or_default(),
            pool: pool.unwrap_or(Pool::Mean),
            elsewhere: self.elsewhere(&others)?,
            over_time: Some(OverTime { what, during }),
        };
        Ok(with_meaning(value, unit, name))
    }

    /// Positions of factors, and the values that they are to have.
    fn elsewhere(&self, named: &[Elsewhere]) -> Result<Vec<(usize, String)>, ExprError> {
        named
            .iter()
            .map(|elsewhere| {
                let factor = check_factor(self.names, &elsewhere.factor, &elsewhere.value);
                let factor = factor.map_err(|problem| ExprError { at: elsewhere.at, problem })?;
                Ok((factor, elsewhere.value.clone()))
            })
            .collect()
    }

    /// What has this name in a scenario, or had before the command line took it away.
    fn kinds_of(&self, name: &str) -> Result<Vec<Kind>, SpecError> {
        let scenarios = &self.names.plan.scenarios;
        let is_flow = scenarios.iter().any(|scenario| {
            scenario.flows.iter().any(|flow| flow.name == name || flow.group == name)
        });
        let is_queue =
            scenarios.iter().any(|scenario| scenario.queues.iter().any(|queue| queue.name == name));
        let mut kinds = Vec::new();
        if is_flow {
            kinds.push(Kind::Flow);
        }
        if is_queue {
            kinds.push(Kind::Queue);
        }
        if kinds.is_empty() {
            kinds = (self.names.removed)(name);
        }
        if !kinds.is_empty() {
            return Ok(kinds);
        }
        let names = self.all_names();
        Err(SpecError::new(format!("no flow or queue is named '{name}'"))
            .near(name, names.iter().map(String::as_str))
            .allow(names))
    }

    /// Groups and queues of all scenarios.
    fn all_names(&self) -> Vec<String> {
        [self.names_of(Kind::Flow), self.names_of(Kind::Queue)].concat()
    }

    /// Groups, or queues, of all scenarios.
    fn names_of(&self, kind: Kind) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for scenario in self.names.plan.scenarios.iter() {
            let of_kind: Vec<&String> = match kind {
                Kind::Run => Vec::new(),
                Kind::Flow => scenario.flows.iter().map(|flow| &flow.group).collect(),
                Kind::Queue => scenario.queues.iter().map(|queue| &queue.name).collect(),
            };
            for name in of_kind {
                if !names.contains(name) {
                    names.push(name.clone());
                }
            }
        }
        names
    }
}

/// # Errors
/// The study has no such factor, or the factor never has this value.
pub(crate) fn check_factor(names: Names<'_>, name: &str, value: &str) -> Result<usize, SpecError> {
    let index = find_factor(names, name)?;
    let factor = &names.plan.factors[index];
    let values = || factor.values.iter().map(String::as_str);
    if values().any(|known| known == value) || (names.is_overridden)(index) {
        return Ok(index);
    }
    Err(SpecError::new(format!("'{}' never is '{value}'", factor.name))
        .near(value, values())
        .allow(values()))
}

/// # Errors
/// The study has no such factor.
pub(crate) fn find_factor(names: Names<'_>, name: &str) -> Result<usize, SpecError> {
    let factors = &names.plan.factors;
    let wanted = name.strip_prefix("scenario.").unwrap_or(name);
    factors.iter().position(|factor| factor.name == wanted).ok_or_else(|| {
        let all = || factors.iter().map(|factor| &factor.name[..]);
        match factors.len() {
            0 => SpecError::new(format!("'{name}' is no factor; the study has none")),
            _ => SpecError::new(format!("'{name}' is no factor of this study"))
                .near(wanted, all())
                .allow(all()),
        }
    })
}
