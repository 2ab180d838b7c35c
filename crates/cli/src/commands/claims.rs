//! Claims and their verdicts: a line each for people, a row for each check for programs.

use serde_json::{Value, json};
use sojourn_report::terminal::counts;
use sojourn_study::results::{Check, ClaimReport, ClaimResult, Estimate, Verdict};

use crate::number::{estimate, percent, with_unit};
use crate::table::{Grid, Records};

/// How many claims fail.
pub(super) fn failing(report: &ClaimReport) -> usize {
    report.claims.iter().filter(|claim| claim.verdict == Verdict::Fails).count()
}

/// The most claims that are listed as the study has them; of more, those that do not hold come first.
const MOST: usize = 50;

/// A line for each claim, and what came of all; empty if there are no claims. `all` is the command that lists all.
pub(super) fn text(report: &ClaimReport, all: &str) -> String {
    if report.claims.is_empty() {
        return String::new();
    }
    let mut claims: Vec<&ClaimResult> = report.claims.iter().collect();
    if claims.len() > MOST {
        claims.sort_by_key(|claim| claim.verdict.place());
    }
    let listed = &claims[..claims.len().min(MOST)];
    let mut grid =
        Grid::new(["verdict", "claim", ">bounds", "measured", "claimed", "off by", "text"]);
    for claim in listed {
        grid.row(row(claim));
    }
    let more = match &claims[listed.len()..] {
        [] => String::new(),
        more => {
            let are = if more.len() == 1 { "is" } else { "are" };
            let count = super::count(more.len(), "claim");
            format!("{count} more {are} not listed ({}): {all} lists all\n", counts(more))
        }
    };
    format!("{}{more}\n{}\n{}", grid.fitted(), summary(report), lagging(report))
}

/// Which claims do not hold, where others do so that it is not plain to see: `not held: C2, C4`.
fn lagging(report: &ClaimReport) -> String {
    let mut text = String::new();
    for (verdict, word) in [(Verdict::Fails, "not held"), (Verdict::Untestable, "untestable")] {
        let of = || report.claims.iter().filter(|claim| claim.verdict == verdict);
        let names: Vec<&str> = of().take(MOST_NAMES).map(|claim| &claim.id[..]).collect();
        if names.is_empty() || report.claims.len() <= FEW {
            continue;
        }
        let more = match of().count() - names.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        text.push_str(&format!("{word}: {}{more}\n", names.join(", ")));
    }
    text
}

/// Of so few claims it is plain to see which do not hold.
const FEW: usize = 5;
/// The most claims that the last lines name.
const MOST_NAMES: usize = 20;

/// A row for each check; a claim without checks has one row.
pub(super) fn records(report: &ClaimReport) -> Records {
    let mut records = Records::new([
        "claim",
        "verdict",
        "text",
        "source",
        "reason",
        "expression",
        "scenario",
        "where",
        "check",
        "value",
        "value_half_width",
        "unit",
        "bound",
        "bound_half_width",
        "wanted",
        "off_by",
        "off_by_share",
    ]);
    for claim in &report.claims {
        let of_claim =
            [json!(claim.id), json!(claim.verdict.name()), json!(claim.text), json!(claim.source)];
        if claim.checks.is_empty() {
            let none = std::iter::repeat_n(Value::Null, 12);
            records.row(of_claim.into_iter().chain([json!(claim.reason)]).chain(none));
            continue;
        }
        for check in &claim.checks {
            let mean = |estimate: &Option<Estimate>| json!(estimate.as_ref().map(|e| e.mean));
            let half = |estimate: &Option<Estimate>| {
                json!(estimate.as_ref().and_then(|estimate| estimate.half_width))
            };
            let of_check = [
                json!(check.reason.as_ref().or(claim.reason.as_ref())),
                json!(check.expression),
                json!(check.scenario),
                json!(check.label),
                json!(check.verdict.name()),
                mean(&check.value),
                half(&check.value),
                json!(check.value.as_ref().map(|value| &value.unit)),
                mean(&check.bound),
                half(&check.bound),
                json!(check.wanted),
                json!(check.miss.as_ref().map(|miss| miss.by)),
                json!(check.miss.as_ref().and_then(|miss| miss.share)),
            ];
            records.row(of_claim.iter().cloned().chain(of_check));
        }
    }
    records
}

/// `26 claims: 11 held, 9 not held, 6 untestable`.
pub(super) fn summary(report: &ClaimReport) -> String {
    let all: Vec<&ClaimResult> = report.claims.iter().collect();
    format!("{}: {}", super::count(all.len(), "claim"), counts(&all))
}

fn row(claim: &ClaimResult) -> [String; 7] {
    let held = claim.checks.iter().filter(|check| check.verdict == Verdict::Holds).count();
    let bounds = match claim.checks.len() {
        0 => String::new(),
        all => format!("{held}/{all}"),
    };
    let telling = claim.telling();
    let (measured, claimed, off) = telling
        .map_or_else(Default::default, |check| (measured(check), claimed(check), off(check)));
    let text = match beside(claim, telling) {
        beside if beside.is_empty() => claim.text.clone(),
        beside => format!("{} ({beside})", claim.text),
    };
    [claim.verdict.mark().to_owned(), claim.id.clone(), bounds, measured, claimed, off, text]
}

/// In which of its scenarios a claim was measured, and which samples are missing where: `with path.rtt = 10ms: 'ping_p95_ms' of
/// 'ping' is over 38 of 40 samples`.
fn beside(claim: &ClaimResult, shown: Option<&Check>) -> String {
    let is_one_of_several =
        |check: &&Check| claim.checks.iter().any(|other| other.label != check.label);
    let with = |check: &Check| format!("with {}", check.label);
    let place = shown.filter(is_one_of_several).map(with);
    let remark = claim.remark(shown).map(|remark| (remark.elsewhere.map(with), remark.reason));
    match (place, remark) {
        (None, None) => String::new(),
        (Some(place), None) => place,
        (None, Some((None, reason))) => reason.to_owned(),
        (None, Some((Some(elsewhere), reason))) => format!("{elsewhere}: {reason}"),
        (Some(place), Some((None, reason))) => format!("{place}: {reason}"),
        (Some(place), Some((Some(elsewhere), reason))) => format!("{place}; {elsewhere}: {reason}"),
    }
}

fn measured(check: &Check) -> String {
    check.value.as_ref().map_or_else(String::new, shown)
}

/// The bound of the left side, with the measured value of the right side if that is no constant.
fn claimed(check: &Check) -> String {
    match (&check.bound, check.wanted.split_once(' ')) {
        (Some(bound), Some((tolerance, _))) if tolerance.starts_with('±') => {
            format!("within {} of {}", tolerance.trim_start_matches('±'), shown(bound))
        }
        (Some(bound), Some((relation, _))) => format!("{relation} {}", shown(bound)),
        _ => check.wanted.clone(),
    }
}

fn off(check: &Check) -> String {
    check.miss.as_ref().map_or_else(String::new, |miss| {
        let share = miss.share.map_or_else(String::new, |share| format!(" ({})", percent(share)));
        miss.in_points(with_unit(miss.by, &miss.unit)) + &share
    })
}

fn shown(value: &Estimate) -> String {
    estimate(value.mean, value.half_width, &value.unit)
}
