//! Claims and their verdicts: a line each for people, a row for each check for programs.

use std::collections::BTreeSet;

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
    let with = |check: &Check| format!("with {}", place(claim, check));
    let shown_at = shown.filter(is_one_of_several).map(with);
    let remark = claim.remark(shown).map(|remark| (remark.elsewhere.map(with), remark.reason));
    match (shown_at, remark) {
        (None, None) => String::new(),
        (Some(place), None) => place,
        (None, Some((None, reason))) => reason.to_owned(),
        (None, Some((Some(elsewhere), reason))) => format!("{elsewhere}: {reason}"),
        (Some(place), Some((None, reason))) => format!("{place}: {reason}"),
        (Some(place), Some((Some(elsewhere), reason))) => format!("{place}; {elsewhere}: {reason}"),
    }
}

/// The factors that tell this check from the claim's others, by the last parts of their names: `queue = cake`. One that follows
/// from another, as those that change together do, is left out.
fn place(claim: &ClaimResult, check: &Check) -> String {
    let factors = |check: &'_ Check| -> Option<Vec<(String, String)>> {
        let parts = check.label.split(", ").map(|part| part.split_once(" = "));
        parts.map(|part| part.map(|(name, value)| (name.to_owned(), value.to_owned()))).collect()
    };
    let Some(own) = factors(check) else { return check.label.clone() };
    let is_alike = |other: &Vec<(String, String)>| {
        other.iter().map(|(name, _)| name).eq(own.iter().map(|(name, _)| name))
    };
    let all: Vec<_> = claim.checks.iter().filter_map(factors).filter(is_alike).collect();
    let varies = |at: &usize| all.iter().any(|other| other[*at].1 != own[*at].1);
    let follows = |at: usize, from: usize| {
        let with_it = |one: &[(String, String)]| (one[from].1.clone(), one[at].1.clone());
        let pairs: BTreeSet<_> = all.iter().map(|one| with_it(one)).collect();
        pairs.len() == pairs.iter().map(|(value, _)| value).collect::<BTreeSet<_>>().len()
    };
    let mut kept: Vec<usize> = Vec::new();
    for at in (0..own.len()).filter(varies) {
        if !kept.iter().any(|from| follows(at, *from)) {
            kept.push(at);
        }
    }
    let last = |name: &str| name.rsplit('.').next().unwrap_or(name).to_owned();
    let named = |at: &usize| {
        let (name, value) = &own[*at];
        let is_clear = kept.iter().filter(|other| last(&own[**other].0) == last(name)).count() == 1;
        format!("{} = {value}", if is_clear { last(name) } else { name.clone() })
    };
    match kept.is_empty() {
        true => check.label.clone(),
        false => kept.iter().map(named).collect::<Vec<_>>().join(", "),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_has_the_factors_that_tell_checks_apart() {
        let check = |label: &str| Check {
            expression: "goodput(a) > 1 Mbps".into(),
            scenario: 0,
            label: label.into(),
            verdict: Verdict::Holds,
            reason: None,
            value: None,
            bound: None,
            wanted: "> 1 Mbit/s".into(),
            miss: None,
            room: None,
        };
        let told = |labels: &[&str]| {
            let claim = ClaimResult {
                id: "a".into(),
                text: String::new(),
                source: None,
                note: None,
                verdict: Verdict::Holds,
                reason: None,
                checks: labels.iter().map(|label| check(label)).collect(),
            };
            place(&claim, &claim.checks[0])
        };
        // Two factors that change together, and one that is the same for all.
        assert_eq!(
            told(&[
                "w.queue = cake, w.ingress = cake, w.rtt = 1ms",
                "w.queue = pie, w.ingress = pie, w.rtt = 1ms"
            ]),
            "queue = cake"
        );
        // One that does not follow, and two of the same last name.
        assert_eq!(
            told(&[
                "a.cca = bbr, b.cca = reno",
                "a.cca = bbr, b.cca = cubic",
                "a.cca = cubic, b.cca = reno"
            ]),
            "a.cca = bbr, b.cca = reno"
        );
        // Values with commas stand as they are.
        assert_eq!(told(&["case = one, or two", "case = three"]), "case = one, or two");
        assert_eq!(told(&["rtt = 1ms", "rtt = 1ms"]), "rtt = 1ms");
    }
}
