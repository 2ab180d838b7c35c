//! The time series of a flow or queue, as runs hand them to the journal and the tables.

use std::borrow::Cow;
use std::iter::repeat_n;
use std::sync::{Arc, LazyLock};

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sojourn_metrics::{FLOW_COLUMNS, FlowSeries, LINK_COLUMNS, LinkSeries};

use super::numbers::{double, single};
use super::{Kind, Series, SeriesColumn};

/// Columns of time series, phases aside: those of flows, then those that only queues have.
pub(super) static SERIES_NAMES: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let flow = || FLOW_COLUMNS.iter().map(|column| column.name).filter(|name| *name != "phase");
    let link = LINK_COLUMNS.iter().map(|column| column.name);
    flow().chain(link.filter(|name| flow().all(|other| other != *name))).collect()
});

/// Rows of `series.parquet` of one flow or queue.
#[derive(Clone, Debug)]
pub(crate) struct SeriesRows {
    pub(crate) run: u32,
    pub(super) kind: Kind,
    pub(super) name: String,
    pub(super) t_s: Vec<f64>,
    /// Each phase and how many rows it lasts; empty where there is none.
    pub(super) phases: Vec<(String, usize)>,
    /// The columns that were measured: their positions in [`SERIES_NAMES`], in ascending order.
    measured: Vec<usize>,
    /// Their values, column after column; not a number where there is none.
    pub(super) values: Vec<f32>,
}

/// Columns that flows, or queues, have, each with its position in [`SERIES_NAMES`], in that order.
pub(crate) struct Places<S: 'static>(Vec<(usize, &'static sojourn_metrics::Column<S>)>);

impl<S> Places<S> {
    fn of(columns: &'static [sojourn_metrics::Column<S>]) -> Self {
        let named = |name: &&str| columns.iter().find(|column| column.name == *name);
        let all = SERIES_NAMES.iter().enumerate();
        Self(all.filter_map(|(at, name)| Some((at, named(name)?))).collect())
    }
}

pub(crate) static FLOW_PLACES: LazyLock<Places<FlowSeries>> =
    LazyLock::new(|| Places::of(FLOW_COLUMNS));
pub(crate) static LINK_PLACES: LazyLock<Places<LinkSeries>> =
    LazyLock::new(|| Places::of(LINK_COLUMNS));

impl SeriesRows {
    /// What was measured at these times. Values that are not finite count as missing, and columns that have no others are
    /// left out.
    pub(crate) fn measured<S>(
        (run, kind, name): (u32, Kind, &str),
        t_s: &[f64],
        phases: Vec<(String, usize)>,
        places: &Places<S>,
        columns: &S,
    ) -> Self {
        let mut measured = Vec::with_capacity(places.0.len());
        let mut values = Vec::with_capacity(places.0.len() * t_s.len());
        for (at, column) in &places.0 {
            let column = (column.of)(columns);
            if column.iter().any(|value| value.is_finite()) {
                measured.push(*at);
                let or_missing = |value: &f32| if value.is_finite() { *value } else { f32::NAN };
                values.extend(column.iter().map(or_missing));
            }
        }
        Self { run, kind, name: name.to_owned(), t_s: t_s.to_vec(), phases, measured, values }
    }

    /// The columns that were measured, by their positions in [`SERIES_NAMES`].
    pub(super) fn columns(&self) -> impl Iterator<Item = (usize, &[f32])> {
        self.measured.iter().copied().zip(self.values.chunks(self.t_s.len().max(1)))
    }
}

impl From<&Series> for SeriesRows {
    fn from(series: &Series) -> Self {
        let rows = series.t_s.len();
        let columns = series.columns.len();
        let mut measured = Vec::with_capacity(columns);
        let mut values = Vec::with_capacity(columns * rows);
        for (at, column) in by_name(&series.columns).into_iter().enumerate() {
            if let Some(column) = column {
                measured.push(at);
                values.extend_from_slice(column.values.singles());
            }
        }
        let phases = series.phase.chunk_by(|a, b| a == b);
        let phases = match series.phase.is_empty() {
            true => vec![(String::new(), rows)],
            false => phases.map(|alike| (alike[0].to_string(), alike.len())).collect(),
        };
        let (run, kind, name) = (series.run, series.kind, series.name.clone());
        Self { run, kind, name, t_s: series.t_s.clone(), phases, measured, values }
    }
}

impl From<&SeriesRows> for Series {
    fn from(rows: &SeriesRows) -> Self {
        let column = |(at, values): (usize, &[f32])| SeriesColumn {
            name: SERIES_NAMES[at].to_owned(),
            values: values.to_vec().into(),
        };
        let phases = rows.phases.iter();
        let phases = phases.flat_map(|(phase, rows)| repeat_n(Arc::from(&phase[..]), *rows));
        let has_phases = rows.phases.iter().any(|(phase, _)| !phase.is_empty());
        Self {
            run: rows.run,
            kind: rows.kind,
            name: rows.name.clone(),
            t_s: rows.t_s.clone(),
            columns: rows.columns().map(column).collect(),
            phase: phases.filter(|_| has_phases).collect(),
        }
    }
}

/// Missing values are equal, too.
impl PartialEq for SeriesRows {
    fn eq(&self, other: &Self) -> bool {
        Series::from(self) == Series::from(other)
    }
}

/// As the journal has them. Columns go by their names, which a later version may have at other positions.
#[derive(Serialize, Deserialize)]
struct Written<'a> {
    run: u32,
    kind: Kind,
    name: &'a str,
    #[serde(with = "double")]
    t_s: Cow<'a, [f64]>,
    phases: Cow<'a, [(String, usize)]>,
    measured: Vec<&'a str>,
    #[serde(with = "single")]
    values: Cow<'a, [f32]>,
}

impl Serialize for SeriesRows {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let written = Written {
            run: self.run,
            kind: self.kind,
            name: &self.name,
            t_s: Cow::Borrowed(&self.t_s),
            phases: Cow::Borrowed(&self.phases),
            measured: self.measured.iter().map(|at| SERIES_NAMES[*at]).collect(),
            values: Cow::Borrowed(&self.values),
        };
        written.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for SeriesRows {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Written { run, kind, name, t_s, phases, measured, values } =
            Written::deserialize(deserializer)?;
        // They are in ascending order, so each is looked for behind the one before.
        let mut next = 0;
        let place = |name: &str| {
            let place = next + SERIES_NAMES[next..].iter().position(|own| *own == name)?;
            next = place + 1;
            Some(place)
        };
        let measured: Option<Vec<usize>> = measured.into_iter().map(place).collect();
        let measured = measured.ok_or_else(|| D::Error::custom("an unknown column"))?;
        let rows = phases.iter().try_fold(0usize, |sum, (_, rows)| sum.checked_add(*rows));
        let is_whole =
            measured.len().checked_mul(t_s.len()) == Some(values.len()) && rows == Some(t_s.len());
        match is_whole {
            true => Ok(Self {
                run,
                kind,
                name: name.to_owned(),
                t_s: t_s.into_owned(),
                phases: phases.into_owned(),
                measured,
                values: values.into_owned(),
            }),
            false => Err(D::Error::custom("columns that are not as long as others")),
        }
    }
}

/// For each of [`SERIES_NAMES`] the column that was measured. They come in that order, so it is looked for behind
/// the one before first.
fn by_name(columns: &[SeriesColumn]) -> Vec<Option<&SeriesColumn>> {
    let mut all = vec![None; SERIES_NAMES.len()];
    let mut next = 0;
    for column in columns {
        let (before, behind) = SERIES_NAMES.split_at(next);
        let is_it = |name: &&str| **name == column.name;
        let place = behind.iter().position(is_it).map(|place| next + place);
        if let Some(place) = place.or_else(|| before.iter().position(is_it)) {
            all[place] = Some(column);
            next = place + 1;
        }
    }
    all
}
