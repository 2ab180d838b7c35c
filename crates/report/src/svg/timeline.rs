//! Time series as a still figure. Every pixel column spans from the least to the largest value in
//! it, so that a peak of one step keeps its height.

use std::fmt::Write;

use sojourn_study::results::StepValues;

use super::parts::{class, short};
use super::scale::Scale;
use crate::markup::Esc;
use crate::number::number;

pub(crate) struct Panel<'a> {
    /// With its unit.
    pub(crate) title: String,
    pub(crate) traces: Vec<Trace<'a>>,
    /// Start of each phase and its name, for a ribbon below the panel.
    pub(crate) ribbons: Vec<(usize, Vec<(f64, String)>)>,
}

/// A time that is marked in all panels, and leads to where more is said of it.
pub(crate) struct Band {
    pub(crate) from_s: f64,
    pub(crate) to_s: f64,
    pub(crate) text: String,
    pub(crate) leads_to: String,
}

pub(crate) struct Trace<'a> {
    pub(crate) name: &'a str,
    pub(crate) colour: usize,
    /// Position in a group; its members share the colour and differ in the shade.
    pub(crate) member: usize,
    /// 0 is a solid line.
    pub(crate) dash: usize,
    /// Drawn faintly, such as a capacity behind a rate.
    pub(crate) behind: bool,
    pub(crate) values: &'a StepValues,
    /// Impulses from zero rather than a line: counts.
    pub(crate) impulses: bool,
}

/// How large a figure is drawn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    pub(crate) width: f64,
    /// Of one panel.
    pub(crate) height: f64,
    /// True if it also fits a phone; a wider one is scrolled.
    pub(crate) fits: bool,
}

/// The least width of a band, so that a short one can be seen and clicked.
const LEAST_BAND: f64 = 3.0;

impl Size {
    /// All quantities of a run, panel below panel.
    pub(crate) const RUN: Self = Self { width: 1040.0, height: 84.0, fits: false };
}

const LEFT: f64 = 54.0;
const GAP: f64 = 24.0;
const COLUMN: usize = 2;
const RIBBON: f64 = 9.0;

pub(crate) fn timeline(t_s: &[f64], panels: &[Panel<'_>], name: &str, size: Size) -> String {
    timeline_with(t_s, panels, &[], name, size)
}

/// The same with times marked behind its curves.
pub(crate) fn timeline_with(
    t_s: &[f64],
    panels: &[Panel<'_>],
    bands: &[Band],
    name: &str,
    size: Size,
) -> String {
    let Some(end) = t_s.last().copied().filter(|end| *end > 0.0) else { return String::new() };
    let heights: Vec<f64> = panels
        .iter()
        .map(|panel| size.height + GAP + RIBBON * panel.ribbons.len() as f64)
        .collect();
    let height = heights.iter().sum::<f64>() + 26.0;
    let Size { width, fits, .. } = size;
    let right = width - 10.0;
    let x = Scale::exact(0.0, end, LEFT, right);
    let mut out = format!(
        "<svg class=\"chart time{}\" role=\"img\" aria-label=\"{}\" viewBox=\"0 0 {width} {height:.0}\" \
         width=\"{width}\" height=\"{height:.0}\">",
        if fits { " fits" } else { "" },
        Esc(name)
    );
    let mut top = 0.0;
    for Band { from_s, to_s, text, leads_to } in bands {
        let (from, to) = (x.at(from_s.min(end)), x.at(to_s.min(end)));
        let _ = write!(
            out,
            "<a href=\"#{leads_to}\"><rect class=\"freeze\" x=\"{from:.1}\" y=\"16\" width=\"{:.1}\" \
             height=\"{:.0}\"/><title>{}</title></a>",
            (to - from).max(LEAST_BAND),
            height - 42.0,
            Esc(text)
        );
    }
    for (panel, height) in panels.iter().zip(&heights) {
        draw(&mut out, panel, t_s, &x, top + 16.0, size);
        top += height;
    }
    let ticks = x.ticks();
    // A label takes about 60 pixels.
    let most = ((right - LEFT) / 60.0).max(2.0) as usize;
    for (tick, text) in ticks.iter().step_by(ticks.len().div_ceil(most).max(1)) {
        let _ = write!(
            out,
            "<text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{text}</text>",
            x.at(*tick),
            top + 8.0
        );
    }
    let _ = write!(
        out,
        "<text class=\"axis\" x=\"{right}\" y=\"{:.1}\" text-anchor=\"end\">time (s)</text></svg>",
        top + 23.0
    );
    out
}

fn draw(out: &mut String, panel: &Panel<'_>, t_s: &[f64], x: &Scale, top: f64, size: Size) {
    let bottom = top + size.height;
    let (low, high, beyond) = range(&panel.traces);
    let y = Scale::linear([low, high], bottom, top);
    let paths: Vec<String> = panel.traces.iter().map(|trace| path(trace, t_s, x, &y)).collect();
    let mut title = panel.title.clone();
    if let Some(beyond) = beyond {
        let _ = write!(title, "; beyond the axis: up to {}", number(beyond));
    }
    for alike in alike(&panel.traces, &paths) {
        let _ = write!(title, "; one curve: {}", short(&alike.join(" = "), 60));
    }
    let _ = write!(
        out,
        "<text class=\"axis\" x=\"{LEFT}\" y=\"{:.1}\">{}</text>",
        top - 5.0,
        Esc(&title)
    );
    let ticks = y.ticks();
    let shown = ticks.iter().step_by(ticks.len().div_ceil(4).max(1));
    for (tick, text) in shown {
        let at = y.at(*tick);
        let _ = write!(
            out,
            "<path class=\"grid\" d=\"M{LEFT} {at:.1}H{:.1}\"/><text class=\"tick\" x=\"{:.1}\" \
             y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            size.width - 10.0,
            LEFT - 6.0,
            at + 4.0,
            compact(*tick).as_ref().unwrap_or(text)
        );
    }
    let drawn = || panel.traces.iter().zip(&paths).filter(|(_, path)| !path.is_empty());
    for (trace, path) in drawn().filter(|(t, _)| t.behind).chain(drawn().filter(|(t, _)| !t.behind))
    {
        let kind = match (trace.behind, trace.impulses) {
            (true, _) => "line behind",
            (_, true) => "line impulse",
            _ => "line",
        };
        let _ = write!(
            out,
            "<path class=\"{kind} {} v{} dash{}\" d=\"{path}\"/>",
            class(trace.colour),
            trace.member % SHADES,
            trace.dash % 4
        );
    }
    let end = t_s.last().copied().unwrap_or(0.0);
    for (at, (colour, phases)) in panel.ribbons.iter().enumerate() {
        let y = bottom + 4.0 + at as f64 * RIBBON;
        // One path for each name, because a controller may change its phase thousands of times.
        let mut paths: Vec<(&str, String)> = Vec::new();
        for (index, (from, name)) in phases.iter().enumerate() {
            let to = phases.get(index + 1).map_or(end, |next| next.0);
            let (a, width) = (x.at(*from), (x.at(to) - x.at(*from)).max(0.4));
            let at = paths.iter().position(|(other, _)| other == name).unwrap_or_else(|| {
                paths.push((name, String::new()));
                paths.len() - 1
            });
            let _ = write!(paths[at].1, "M{a:.1} {y:.0}h{width:.1}v7h-{width:.1}");
        }
        for (name, path) in paths {
            let _ = write!(
                out,
                "<g><path class=\"phase {}\" d=\"{path}\" fill-opacity=\"{}\"/><title>{}</title></g>",
                class(*colour),
                phase_shade(name),
                Esc(&short(name, 40))
            );
        }
    }
}

/// Shades of a colour for the members of a group.
const SHADES: usize = 5;
/// How far beyond the first quantity of a panel the axis may reach for the others.
const BEYOND: f64 = 2.0;

/// The least and largest value of the axis, and the largest value beyond it. The first quantity is
/// shown whole; a capacity or a burst of another quantity far above must not flatten it.
fn range(traces: &[Trace<'_>]) -> (f64, f64, Option<f64>) {
    let extent = |first: bool| {
        traces
            .iter()
            .filter(|trace| (trace.dash == 0 && !trace.behind) == first)
            .flat_map(|trace| trace.values.known())
            .filter(|value| value.is_finite())
            .fold((0.0f64, 0.0f64), |(low, high), value| (low.min(value), high.max(value)))
    };
    let (first, others) = (extent(true), extent(false));
    let low = first.0.min(others.0);
    if first.1 > 0.0 && others.1 > first.1 * BEYOND {
        (low, first.1 * 1.05, Some(others.1))
    } else {
        (low, first.1.max(others.1), None)
    }
}

/// Names of curves of one quantity that lie on each other.
fn alike<'a>(traces: &[Trace<'a>], paths: &[String]) -> Vec<Vec<&'a str>> {
    let mut groups: Vec<(usize, Vec<&str>)> = Vec::new();
    for (at, trace) in traces.iter().enumerate() {
        let same = |first: usize| {
            paths[first] == paths[at]
                && traces[first].dash == trace.dash
                && traces[first].behind == trace.behind
        };
        match groups.iter_mut().find(|(first, _)| same(*first)) {
            Some((_, names)) => names.push(trace.name),
            None => groups.push((at, vec![trace.name])),
        }
    }
    groups.into_iter().map(|(_, names)| names).filter(|names| names.len() > 1).collect()
}

/// Short form of numbers that do not fit the margin: `5M` for five million.
fn compact(tick: f64) -> Option<String> {
    match tick.abs() {
        size if size >= 1e9 => Some(format!("{}G", number(tick / 1e9))),
        size if size >= 1e6 => Some(format!("{}M", number(tick / 1e6))),
        size if size >= 1e4 => Some(format!("{}k", number(tick / 1e3))),
        _ => None,
    }
}

/// The further from a controller's usual state, the darker; it depends on names only, so that a
/// phase looks the same everywhere.
fn phase_shade(name: &str) -> &'static str {
    let name = name.to_ascii_lowercase();
    let any = |words: &[&str]| words.iter().any(|word| name.contains(word));
    if any(&["loss", "recovery", "timeout"]) {
        "1"
    } else if any(&["startup", "slow"]) {
        "0.75"
    } else if any(&["rtt", "drain"]) {
        "0.55"
    } else if any(&["up", "refill", "probe"]) && !any(&["down", "cruise"]) {
        "0.38"
    } else {
        "0.18"
    }
}

/// Relative whole pixels make the path short.
fn path(trace: &Trace<'_>, t_s: &[f64], x: &Scale, y: &Scale) -> String {
    let mut out = String::new();
    let mut pen: Option<(i64, i64)> = None;
    let mut at = 0;
    let length = t_s.len().min(trace.values.len());
    let sparse = sparse(trace.values);
    while at < length {
        let column = (x.at(t_s[at]) as usize) / COLUMN;
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        while at < length && (x.at(t_s[at]) as usize) / COLUMN == column {
            if let Some(value) = trace.values.get(at).filter(|value| value.is_finite()) {
                low = low.min(value);
                high = high.max(value);
            }
            at += 1;
        }
        if low > high {
            if !sparse {
                pen = None;
            }
            continue;
        }
        let px = (column * COLUMN) as i64;
        if trace.impulses {
            if high > 0.0 {
                let _ = write!(
                    out,
                    "M{px} {:.0}V{:.0}",
                    y.at(0.0),
                    y.clamped(high).min(y.at(0.0) - 1.0)
                );
            }
            continue;
        }
        let (low, high) = (y.clamped(low).round() as i64, y.clamped(high).round() as i64);
        match pen {
            None => {
                let _ = write!(out, "M{px} {low}");
                if high == low {
                    out.push_str("h1");
                }
            }
            Some((x0, y0)) => {
                let near = if (low - y0).abs() <= (high - y0).abs() { low } else { high };
                if near == y0 {
                    let _ = write!(out, "h{}", px - x0);
                } else {
                    let _ = write!(out, "l{} {}", px - x0, near - y0);
                }
                if low != high {
                    let far = if near == low { high } else { low };
                    let _ = write!(out, "v{}", far - near);
                    pen = Some((px, far));
                } else {
                    pen = Some((px, near));
                }
                continue;
            }
        }
        if low != high {
            let _ = write!(out, "v{}", high - low);
        }
        pen = Some((if high == low { px + 1 } else { px }, high));
    }
    out
}

/// Single values with gaps between them, as of a slow ping; lines bridge the gaps.
fn sparse(values: &StepValues) -> bool {
    let known = values.known().count();
    let alone = (0..values.len())
        .filter(|at| {
            let unknown = |at: Option<usize>| at.and_then(|at| values.get(at)).is_none();
            !unknown(Some(*at)) && unknown(at.checked_sub(1)) && unknown(Some(at + 1))
        })
        .count();
    known > 0 && alone * 5 > known
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_numbers_fit_the_margin() {
        assert_eq!(compact(5_000_000.0).as_deref(), Some("5M"));
        assert_eq!(compact(20_000.0).as_deref(), Some("20k"));
        assert_eq!(compact(2500.0), None);
    }

    fn trace<'a>(name: &'a str, values: &'a StepValues, behind: bool) -> Trace<'a> {
        Trace { name, colour: 0, member: 0, dash: 0, behind, values, impulses: false }
    }

    fn values<const N: usize>(values: [f64; N]) -> StepValues {
        values.into_iter().map(Some).collect()
    }

    #[test]
    fn a_capacity_far_above_does_not_flatten_the_rates() {
        let (rate, capacity) = (values([10.0, 12.0]), values([3000.0, 3000.0]));
        let (low, high, beyond) = range(&[trace("a", &rate, false), trace("q", &capacity, true)]);
        assert_eq!((low, beyond), (0.0, Some(3000.0)));
        assert!((12.0..13.0).contains(&high), "{high}");
        let near = values([15.0, 15.0]);
        let (_, high, beyond) = range(&[trace("a", &rate, false), trace("q", &near, true)]);
        assert_eq!((high, beyond), (15.0, None));
    }

    #[test]
    fn curves_that_lie_on_each_other_are_named() {
        let (one, other) = (values([10.0, 12.0]), values([10.0, 4.0]));
        let traces = [trace("a", &one, false), trace("b", &other, false), trace("c", &one, false)];
        let panel = Panel { title: "RTT (ms)".into(), traces: traces.into(), ribbons: vec![] };
        let svg = timeline(&[1.0, 2.0], &[panel], "run", Size::RUN);
        assert!(svg.contains("RTT (ms); one curve: a = c<"), "{svg}");
    }

    #[test]
    fn a_peak_of_one_step_is_as_high_as_it_was() {
        let t_s: Vec<f64> = (1..=60_000).map(|step| f64::from(step) * 0.001).collect();
        let mut values = vec![Some(10.0); t_s.len()];
        values[31_234] = Some(1000.0);
        let values: StepValues = values.into_iter().collect();
        let trace = trace("a", &values, false);
        let y = Scale::exact(0.0, 1000.0, 100.0, 0.0);
        let x = Scale::exact(0.0, 60.0, LEFT, Size::RUN.width - 10.0);
        let path = path(&trace, &t_s, &x, &y);
        assert!(path.contains("v-99"), "{path}");
        assert!(path.len() < 4000, "{}", path.len());
    }
}
