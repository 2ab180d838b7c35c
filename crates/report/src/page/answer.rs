//! The claims: for each a sentence, a badge, and the measured value beside its bound.

use std::fmt::Write;

use sojourn_study::confidence::{Confidence, USUAL};
use sojourn_study::results::{Check, ClaimResult, Kind, Verdict, ViewKind};

use super::columns::resolve;
use crate::data::{Counted, Data, Mean, Subject};
use crate::markup::{Esc, linked};
use crate::names::{self, capital};
use crate::number::{estimate, number, percent, shown_with_unit};
use crate::svg::{Bounds, bullet};

/// The verdict, sentences on what the runs show, the figure that shows it, then the claims.
pub(crate) fn write(out: &mut String, data: &Data<'_>, lead: &str) {
    *out += "<section id=\"answer\"><h2>The answer</h2>";
    let claims = data.results.claims.as_ref().filter(|report| !report.claims.is_empty());
    if let Some(report) = claims {
        let _ = write!(out, "<p class=\"verdict\">{}</p>", verdict(&report.claims));
    }
    let sentences = findings(data);
    if !sentences.is_empty() {
        *out += "<ul class=\"findings\">";
        for sentence in sentences {
            let _ = write!(out, "<li>{sentence}</li>");
        }
        *out += "</ul>";
    }
    let _ = write!(out, "<div class=\"figures lead\">{lead}</div></section>");
    if let Some(report) = claims {
        *out += "<section id=\"claims\"><h2>Claim by claim</h2><div class=\"claims\">";
        for claim in &report.claims {
            write_claim(out, claim, data);
        }
        *out += "</div></section>";
    }
}

/// `2 of 4 claims are held. Not held: C2. Untestable: C4.`
pub(crate) fn verdict(claims: &[ClaimResult]) -> String {
    let of = |verdict: Verdict| -> Vec<String> {
        claims
            .iter()
            .filter(|claim| claim.verdict == verdict)
            .map(|claim| format!("<a href=\"#{}\">{}</a>", claim_anchor(&claim.id), Esc(&claim.id)))
            .collect()
    };
    let held = claims.iter().filter(|claim| claim.verdict == Verdict::Holds).count();
    let mut text = match (held, claims.len()) {
        (1, 1) => "The claim is held.".to_owned(),
        (held, all) if held == all => format!("All {all} claims are held."),
        (0, 1) => String::new(),
        (held, all) => format!("{held} of {all} claims are held."),
    };
    let failed = of(Verdict::Fails);
    if !failed.is_empty() {
        let _ = write!(text, " Not held: {}.", failed.join(", "));
    }
    let open = of(Verdict::Untestable);
    if !open.is_empty() {
        let _ = write!(text, " Untestable: {}.", open.join(", "));
    }
    text
}

pub(crate) fn badge(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Holds => "<span class=\"badge held\"><b aria-hidden=\"true\">✓</b> Held</span>",
        Verdict::Fails => {
            "<span class=\"badge failed\"><b aria-hidden=\"true\">✗</b> Not held</span>"
        }
        Verdict::Untestable => {
            "<span class=\"badge open\"><b aria-hidden=\"true\">?</b> Untestable</span>"
        }
    }
}

/// Letters and digits only, because the author may write anything as a claim's name.
pub(crate) fn claim_anchor(id: &str) -> String {
    let mut out = String::from("claim-");
    for c in id.chars() {
        if c.is_ascii_alphanumeric() {
            out.push(c);
        } else {
            let _ = write!(out, "_{:x}", u32::from(c));
        }
    }
    out
}

fn write_claim(out: &mut String, claim: &ClaimResult, data: &Data<'_>) {
    let class = match claim.verdict {
        Verdict::Holds => "held",
        Verdict::Fails => "failed",
        Verdict::Untestable => "open",
    };
    let _ = write!(
        out,
        "<article class=\"claim {class}\" id=\"{}\"><h3>{} <span class=\"id\">{}</span> {}</h3>",
        claim_anchor(&claim.id),
        badge(claim.verdict),
        Esc(&claim.id),
        Esc(&claim.text)
    );
    let _ = write!(out, "<div class=\"measured\"><p>{}</p>", sentence(claim, data));
    if let Some(check) = claim.telling() {
        *out += &picture(check);
    }
    *out += "</div>";
    let mut small = Vec::new();
    if let Some(note) = &claim.note {
        small.push(format!("<p class=\"source\"><i>{}</i></p>", Esc(note)));
    }
    if let Some(source) = &claim.source {
        small.push(format!("<p class=\"source\">Source: {}</p>", linked(source)));
    }
    let bounds = match claim.checks.len() {
        0 | 1 => String::new(),
        2 => "both bounds, ".to_owned(),
        n => format!("all {n} bounds, "),
    };
    if bounds.is_empty() && small.is_empty() {
        *out += "</article>";
        return;
    }
    let _ = write!(
        out,
        "<details><summary>{}</summary>{}",
        match (&bounds[..], claim.note.is_some()) {
            ("", true) => "Note and source".to_owned(),
            ("", false) => "Source".to_owned(),
            (bounds, true) => capital(&format!("{bounds}note and source")),
            (bounds, false) => capital(&format!("{bounds}source")),
        },
        small.concat()
    );
    if !bounds.is_empty() {
        *out += "<div class=\"wide\"><table class=\"checks\"><thead><tr><th scope=\"col\">Where</th>\
                 <th scope=\"col\">Claimed</th><th scope=\"col\">Measured</th><th scope=\"col\">Beside \
                 the bound</th><th scope=\"col\">Verdict</th></tr></thead><tbody>";
        let mut checks: Vec<&Check> = claim.checks.iter().collect();
        checks.sort_by_key(|check| check.verdict.place());
        for check in checks.iter().take(MOST_CHECKS) {
            write_check(out, check, data);
        }
        *out += "</tbody></table></div>";
        let more = &checks[checks.len().min(MOST_CHECKS)..];
        if !more.is_empty() {
            let of = |verdict| more.iter().filter(|check| check.verdict == verdict).count();
            let _ = write!(
                out,
                "<p class=\"note\">{} bounds more are not listed: {} held, {} not held, {} untestable. \
                 All are in <code>claims.json</code>.</p>",
                more.len(),
                of(Verdict::Holds),
                of(Verdict::Fails),
                of(Verdict::Untestable)
            );
        }
    }
    *out += "</details></article>";
}

/// The most bounds of a claim that are listed, those that failed first.
pub(crate) const MOST_CHECKS: usize = 300;

fn picture(check: &Check) -> String {
    match (bounds(check), &check.value) {
        (Some(bounds), Some(value)) => {
            let failed = check.verdict == Verdict::Fails;
            bullet(bounds, value.mean, value.half_width, &value.unit, failed)
        }
        _ => String::new(),
    }
}

/// The bound as it was written, or the measured value of the other side.
pub(crate) fn wanted(check: &Check) -> String {
    match &check.bound {
        Some(bound) => {
            let shown = estimate(bound.mean, bound.half_width, &bound.unit);
            let relation = check.wanted.split_whitespace().next().unwrap_or_default();
            match relation.strip_prefix('±') {
                Some(tolerance) => format!("within {tolerance} of {shown}"),
                None => format!("{relation} {shown}"),
            }
        }
        None => check.wanted.clone(),
    }
}

/// What was measured, in a sentence.
fn sentence(claim: &ClaimResult, data: &Data<'_>) -> String {
    match claim.verdict {
        Verdict::Untestable => {
            let why = why_open(claim, data).unwrap_or_else(|| {
                "the results do not say why; checking the study again with this version does".into()
            });
            let why = why.trim_end_matches('.');
            if claim.checks.iter().any(|check| check.verdict == Verdict::Holds) {
                // It names what held first.
                return format!("{}.", Esc(&capital(why)));
            }
            format!("It is untestable here: {}.", Esc(why))
        }
        Verdict::Holds => {
            let Some(check) = claim.telling() else {
                return "Every bound is met.".into();
            };
            let mut text = String::new();
            if claim.checks.len() > 1 {
                text += &match claim.checks.len() {
                    2 => "Both bounds are met.".to_owned(),
                    all => format!("All {all} bounds are met."),
                };
                text += " Nearest to its bound: ";
            }
            came_to(&mut text, check, data);
            text + "." + &lacking(claim, check, data)
        }
        Verdict::Fails => {
            let failed: Vec<&Check> =
                claim.checks.iter().filter(|check| check.verdict == Verdict::Fails).collect();
            let mut text = String::new();
            if claim.checks.len() > 1 {
                let _ = write!(
                    text,
                    "{} of {} bounds {} missed. ",
                    failed.len(),
                    claim.checks.len(),
                    if failed.len() == 1 { "is" } else { "are" }
                );
            }
            if let Some(check) = claim.telling() {
                if failed.len() > 1 {
                    text += "Farthest off: ";
                }
                came_to(&mut text, check, data);
                if let Some(miss) = missed(check) {
                    let _ = write!(text, ": <strong>{miss}</strong>");
                }
                text.push('.');
                text += &lacking(claim, check, data);
            }
            text
        }
    }
}

/// Which samples the value of the check lacks, or of another one, which is named.
fn lacking(claim: &ClaimResult, check: &Check, data: &Data<'_>) -> String {
    let Some(remark) = claim.remark(Some(check)) else { return String::new() };
    let reason = remark.reason.trim_end_matches('.');
    let text = match remark.elsewhere {
        Some(other) => format!("with {}: {reason}", place(other, data)),
        None => reason.to_owned(),
    };
    format!(" {}.", Esc(&capital(&text)))
}

/// Why a claim is untestable: the author's reason, or what its bounds lack and in how many of them.
fn why_open(claim: &ClaimResult, data: &Data<'_>) -> Option<String> {
    if let Some(reason) = &claim.reason {
        return Some(reason.clone());
    }
    let open: Vec<&Check> =
        claim.checks.iter().filter(|check| check.verdict == Verdict::Untestable).collect();
    let first = open.iter().find(|check| check.reason.is_some())?;
    let reason = first.reason.as_deref().unwrap_or_default();
    if claim.checks.len() == 1 {
        return Some(reason.to_owned());
    }
    Some(format!(
        "{} of {} bounds have no answer; {} with {}: {reason}",
        open.len(),
        claim.checks.len(),
        first.expression,
        place(first, data)
    ))
}

/// `goodput(bbr) with fq_codel came to 4.8 ± 0.2 Mbit/s, where 4..6 Mbit/s was claimed`.
fn came_to(text: &mut String, check: &Check, data: &Data<'_>) {
    let _ = write!(text, "<code>{}</code>", Esc(&check.expression));
    if !check.label.is_empty() {
        let _ = write!(text, " with {}", Esc(&place(check, data)));
    }
    if let Some(value) = &check.value {
        let _ = write!(
            text,
            ": measured <b>{}</b>, claimed {}",
            Esc(&estimate(value.mean, value.half_width, &value.unit)),
            Esc(&wanted(check))
        );
    }
}

/// The factor values of the check in short, without those that the expression itself sets.
fn place(check: &Check, data: &Data<'_>) -> String {
    let scenario = check.scenario as usize;
    if scenario >= data.plan.scenarios.len() {
        return check.label.clone();
    }
    let fixed: Vec<usize> = data
        .varying
        .iter()
        .copied()
        .filter(|factor| {
            let name = &data.plan.factors[*factor].name;
            !check.label.contains(&format!("{name} = {}", data.value(scenario, *factor)))
        })
        .collect();
    match data.label_without(scenario, &fixed) {
        label if label.is_empty() => "all scenarios".into(),
        label => label,
    }
}

/// `2.1 Mbit/s (35 %) too low`.
pub(crate) fn missed(check: &Check) -> Option<String> {
    let miss = check.miss.as_ref()?;
    let share = miss.share.map_or(String::new(), |share| format!(" ({})", percent(share)));
    let direction = match (bounds(check), &check.value) {
        (Some(bounds), Some(value)) if bounds.low_by(value.mean) => "too low",
        (Some(_), Some(_)) => "too high",
        _ => "off",
    };
    let unit = if miss.unit.is_empty() { String::new() } else { format!(" {}", Esc(&miss.unit)) };
    let by = miss.in_points(format!("{}{unit}", number(miss.by)));
    Some(format!("{by}{share} {direction}"))
}

fn bounds(check: &Check) -> Option<Bounds> {
    match &check.bound {
        Some(bound) => Bounds::measured(&check.wanted, bound.mean),
        None => Bounds::parse(&check.wanted),
    }
}

fn write_check(out: &mut String, check: &Check, data: &Data<'_>) {
    let scenario = check.scenario as usize;
    let place = if scenario < data.plan.scenarios.len() {
        format!("<a{}>{}</a>", data.link(scenario), Esc(&place(check, data)))
    } else {
        Esc(&check.label).to_string()
    };
    let measured = check.value.as_ref().map_or_else(
        || "–".to_owned(),
        |value| Esc(&estimate(value.mean, value.half_width, &value.unit)).to_string(),
    );
    let mut expression = format!("<code>{}</code>", Esc(&check.expression));
    if check.bound.is_some() {
        let _ = write!(expression, "<br><small>here: {}</small>", Esc(&wanted(check)));
    }
    let picture = picture(check);
    let mut outcome = badge(check.verdict).to_owned();
    if let Some(miss) = missed(check) {
        let _ = write!(outcome, "<br><small>{miss}</small>");
    }
    if let Some(reason) = &check.reason {
        let _ = write!(outcome, "<br><small>{}</small>", Esc(reason));
    }
    let _ = write!(
        out,
        "<tr><td>{place}</td><td>{expression}</td><td>{measured}</td><td>{picture}</td>\
         <td>{outcome}</td></tr>"
    );
}

/// The most sentences of the answer.
const MOST_SENTENCES: usize = 6;

/// Best and worst scenario for what the views show, then for the quantities that people ask about
/// first.
fn findings(data: &Data<'_>) -> Vec<String> {
    let mut asked: Vec<(Subject, String)> = Vec::new();
    let add = |asked: &mut Vec<(Subject, String)>, subject: &Subject, metric: &str| {
        if !asked.iter().any(|(other, name)| other == subject && name == metric) {
            asked.push((subject.clone(), metric.to_owned()));
        }
    };
    // How many of them the first view asks for, whose figure stands below the sentences.
    let mut of_first_view = usize::MAX;
    for view in &data.plan.views {
        let x = view.x.iter().filter(|_| view.kind == ViewKind::Scatter);
        for name in view.y.iter().chain(x) {
            let (metric, of) = resolve(data, name);
            data.all()
                .filter(|subject| data.is_shown(view, of.as_deref(), subject))
                .filter(|subject| data.has(subject, &metric))
                .take(3)
                .for_each(|subject| add(&mut asked, subject, &metric));
        }
        of_first_view = of_first_view.min(asked.len());
    }
    for (kind, metrics) in [
        (Kind::Flow, &["goodput_mbps"][..]),
        (Kind::Flow, &["rtt_p95_ms", "owd_p95_ms"]),
        (Kind::Flow, &["ping_p95_ms"]),
        (Kind::Flow, &["fct_p95_ms", "completion_mean_ms"]),
        (Kind::Flow, &["mos"]),
        (Kind::Queue, &["sojourn_p95_ms"]),
        (Kind::Queue, &["utilisation"]),
        (Kind::Run, &["jain"]),
    ] {
        for subject in
            data.of_kind(kind).filter(|subject| metrics != ["mos"] || data.is_call(subject)).take(3)
        {
            if let Some(metric) = data.first_metric(subject, metrics) {
                add(&mut asked, subject, metric);
            }
        }
    }
    let of_first_view = if data.plan.views.is_empty() { 0 } else { of_first_view };
    let mut found: Vec<Finding> = Vec::new();
    for (place, (subject, metric)) in asked.iter().enumerate() {
        let Some(mut finding) = finding(data, subject, metric) else { continue };
        finding.is_first |= place < of_first_view;
        // What is true of several flows is said once.
        let alike = found.iter_mut().find(|one| one.between.is_some() && one.is_like(&finding));
        match alike {
            Some(one) => one.also.push(subject.label().to_owned()),
            None => found.push(finding),
        }
    }
    let (differ, alike): (Vec<Finding>, Vec<Finding>) =
        found.into_iter().partition(|finding| finding.differs || finding.is_first);
    let all = differ.into_iter().chain(alike);
    all.take(MOST_SENTENCES).map(Finding::said).collect()
}

struct Finding {
    sentence: String,
    /// Whether scenarios differ by more than chance explains.
    differs: bool,
    /// Whether the first view asks for it; then it is said even if they don't.
    is_first: bool,
    metric: String,
    /// The scenarios where it is lowest and highest.
    between: Option<(Vec<usize>, Vec<usize>)>,
    /// Others of which the same is true.
    also: Vec<String>,
}

impl Finding {
    fn is_like(&self, other: &Self) -> bool {
        self.metric == other.metric && self.between == other.between
    }

    fn said(self) -> String {
        match self.also.is_empty() {
            true => self.sentence,
            false => {
                format!("{} So it is with {}.", self.sentence, Esc(&listed(&self.also)))
            }
        }
    }
}

/// `a, b and c`.
fn listed(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [name] => name.clone(),
        [names @ .., last] => format!("{} and {last}", names.join(", ")),
    }
}

/// Finished scenarios without a mean that are not out of reach.
struct Without {
    /// Samples were asked for, and none came; with how many were asked for.
    unknown: Vec<(usize, String)>,
    /// It does not apply there.
    inapplicable: usize,
}

impl Without {
    fn of(data: &Data<'_>, subject: &Subject, metric: &str) -> Self {
        let (mut unknown, mut inapplicable) = (Vec::new(), 0);
        let all = 0..data.plan.scenarios.len();
        for scenario in all.filter(|one| !data.done[*one].is_empty() && subject.is_in(data, *one)) {
            let points = data.points(scenario, subject, metric);
            match (points.is_empty() && !points.is_out_of_reach(), points.why_none()) {
                (true, Some(why)) => unknown.push((scenario, why)),
                (true, None) => inapplicable += 1,
                (false, _) => {}
            }
        }
        Self { unknown, inapplicable }
    }

    /// What ends a sentence about the others.
    fn said(&self, data: &Data<'_>) -> String {
        let mut text = String::new();
        if let [(first, why), rest @ ..] = &self.unknown[..] {
            let at = |scenario: usize| {
                format!("<a{}>{}</a>", data.link(scenario), Esc(&data.label(scenario)))
            };
            let _ = write!(text, "; unknown with {} ({why})", at(*first));
            match rest {
                [] => {}
                [(other, why)] => {
                    let _ = write!(text, " and {} ({why})", at(*other));
                }
                more => {
                    let _ = write!(text, " and {} scenarios more", more.len());
                }
            }
        }
        match self.inapplicable {
            0 => {}
            1 => text += "; one scenario has none",
            more => {
                let _ = write!(text, "; {more} scenarios have none");
            }
        }
        text
    }
}

/// `Goodput of bbr is lowest with fq_codel (4.62 Mbit/s) and highest with pfifo (6 Mbit/s).`
fn finding(data: &Data<'_>, subject: &Subject, metric: &str) -> Option<Finding> {
    let found = |sentence: String, differs: bool, between: Option<(Vec<usize>, Vec<usize>)>| {
        let (metric, also) = (metric.to_owned(), Vec::new());
        Some(Finding { sentence, differs, is_first: false, metric, between, also })
    };
    let alike = |sentence: String| found(sentence, false, None);
    let mut means: Vec<(usize, Mean)> = (0..data.plan.scenarios.len())
        .filter_map(|scenario| Some((scenario, data.mean(scenario, subject, metric)?)))
        .collect();
    // A link that is hardly used, such as one for acknowledgements, is not reported.
    let floor = if metric == "utilisation" { 0.2 } else { 0.0 };
    if means.iter().all(|(_, mean)| mean.mean <= floor) {
        return None;
    }
    means.sort_by(|a, b| a.1.mean.total_cmp(&b.1.mean));
    let title = match names::title(metric).split_once(", ") {
        Some((quantity, of_it)) => format!("{quantity} ({of_it})"),
        None => names::title(metric),
    };
    let what = match subject.kind {
        Kind::Run => title,
        _ => format!("{title} of {}", subject.name),
    };
    let what = Esc(&capital(&what)).to_string();
    // Both values of a sentence have the unit of the larger one.
    let (factor, unit) = names::stepped(data.plan, metric, means.last()?.1.mean);
    // A percentile that is out of reach is later than any other, so no other scenario is the highest.
    let beyond: Vec<usize> = (0..data.plan.scenarios.len())
        .filter(|scenario| data.points(*scenario, subject, metric).is_out_of_reach())
        .collect();
    let without = Without::of(data, subject, metric);
    let rest = without.said(data);
    let everywhere = if rest.is_empty() { "everywhere" } else { "wherever it is known" };
    // A delay whose end nobody saw may be longer than all that are known.
    let highest = if without.unknown.is_empty() { "highest" } else { "of those known highest" };
    let with_unit = |mean: &Mean| {
        let half = mean.half_width.map(|half| half * factor);
        let counted = mean.counted.lacking().map_or(String::new(), |n| format!(", over {n}"));
        Esc(&(shown_with_unit(mean.mean * factor, half, unit) + &counted)).to_string()
    };
    let at =
        |scenario: usize| format!("<a{}>{}</a>", data.link(scenario), Esc(&data.label(scenario)));
    if !beyond.is_empty() {
        let least = &means[0].1;
        let is_low = |mean: &Mean| are_same(mean.mean * factor, least.mean * factor);
        let low: Vec<usize> =
            means.iter().filter(|(_, mean)| is_low(mean)).map(|(scenario, _)| *scenario).collect();
        let places: Vec<String> = beyond.iter().take(3).map(|scenario| at(*scenario)).collect();
        let more = match beyond.len() {
            n if n > 3 => format!(" and {} scenarios more", n - 3),
            _ => String::new(),
        };
        let sentence = format!(
            "{what} is lowest with {}{} (<b>{}</b>); not every run reaches it with {}{more}{rest}.",
            together(data, &low, data.plan.scenarios.len()),
            if low.len() > 1 { " alike" } else { "" },
            with_unit(least),
            places.join(", ")
        );
        return found(sentence, true, None);
    }
    let [(_, least), .., (_, most)] = &means[..] else {
        let place = match rest.is_empty() {
            true => String::new(),
            false => format!(" with {}", at(means[0].0)),
        };
        return alike(format!("{what}: <b>{}</b>{place}{rest}.", with_unit(&means[0].1)));
    };
    let is_same = |a: &Mean, b: &Mean| are_same(a.mean * factor, b.mean * factor);
    if is_same(least, most) {
        return alike(format!(
            "{what} is the same {everywhere}: <b>{}</b>{rest}.",
            with_unit(most)
        ));
    }
    let of_all = USUAL.of_all(means.len());
    let sure = Ranking::of(&means, is_same, |(scenario, _)| {
        simultaneous(data, *scenario, subject, metric, &of_all)
    });
    let Some(ranking) = sure else {
        let shown = Ranking::of(&means, is_same, |(_, mean)| mean.half_width.unwrap_or(0.0));
        return alike(match shown {
            Some(Ranking { lowest, highest, .. }) => format!(
                "{what} may differ, as between {} (<b>{}</b>) and {} (<b>{}</b>), but among {} \
                 scenarios chance alone can bring about as much: more seeds would tell{rest}.",
                at(means[lowest].0),
                with_unit(&means[lowest].1),
                at(means[highest].0),
                with_unit(&means[highest].1),
                means.len()
            ),
            None => format!(
                "{what} differs by no more than chance explains: <b>{}</b> to <b>{}</b>{rest}.",
                with_unit(least),
                with_unit(most)
            ),
        });
    };
    let scenarios =
        |group: &[usize]| -> Vec<usize> { group.iter().map(|one| means[*one].0).collect() };
    let places = |group: &[usize]| {
        let of: Vec<&Mean> = group.iter().map(|one| &means[*one].1).collect();
        let alike = if are_alike(&of, is_same) { " alike" } else { "" };
        together(data, &scenarios(group), means.len()) + alike
    };
    let values = |group: &[usize]| {
        let (first, last) = (&means[group[0]].1, &means[group[group.len() - 1]].1);
        match (with_unit(first), with_unit(last)) {
            (first, last) if first == last => format!("<b>{first}</b>"),
            (first, last) => format!("<b>{first}</b> to <b>{last}</b>"),
        }
    };
    let times = means[ranking.highest].1.mean / means[ranking.lowest].1.mean;
    let times = match times {
        // A ratio to a value near zero tells nothing.
        times if times >= 100.0 => String::new(),
        times if times >= 1.5 => format!(", {} times as much", number(times)),
        _ => String::new(),
    };
    let (low, high) = (scenarios(&ranking.low), scenarios(&ranking.high));
    let mut effects = effects(data, &means);
    let says_little = |group: &[usize]| {
        let of: Vec<&Mean> = group.iter().map(|one| &means[*one].1).collect();
        !are_alike(&of, is_same) && is_only_counted(data, &scenarios(group))
    };
    if !ranking.unsure.is_empty() {
        // Of what chance brings about a factor has as large a share as it has values.
        let by_chance = |factor: usize| {
            let values = data.plan.factors[factor].values.len();
            (values - 1) as f64 / (means.len() - 1) as f64
        };
        effects.retain(|(share, factor)| *share > 2.0 * by_chance(*factor));
    }
    if [&ranking.low, &ranking.high].iter().any(|group| says_little(group))
        && let Some(factors) = by_factor(data, &means, &effects, |value| {
            let (factor, unit) = names::stepped(data.plan, metric, value);
            Esc(&shown_with_unit(value * factor, None, unit)).to_string()
        })
    {
        let sentence = format!(
            "{what}: <b>{}</b> to <b>{}</b>; {factors}{rest}.",
            with_unit(least),
            with_unit(most)
        );
        return found(sentence, true, Some((low, high)));
    }
    let mut sentence = format!(
        "{what} is lowest with {} ({}) and {highest} with {} ({}{times})",
        places(&ranking.low),
        values(&ranking.low),
        places(&ranking.high),
        values(&ranking.high),
    );
    match &ranking.unsure[..] {
        [] => sentence += &decided_by(data, &effects).unwrap_or_default(),
        [one] => {
            let (scenario, mean) = &means[*one];
            let _ = write!(
                sentence,
                "; {} (<b>{}</b>) is too uncertain to rank",
                at(*scenario),
                with_unit(mean)
            );
        }
        several => {
            let _ = write!(
                sentence,
                "; {} ({}) are too uncertain to rank",
                places(several),
                values(several)
            );
        }
    }
    found(sentence + &rest + ".", true, Some((low, high)))
}

/// Which scenarios are surely lowest and highest: positions in a list that rises by the mean.
struct Ranking {
    /// The scenario of the lowest upper bound, and the one of the highest lower bound.
    lowest: usize,
    highest: usize,
    /// Those that do not surely differ from it, but from the other; it is among them.
    low: Vec<usize>,
    high: Vec<usize>,
    /// Those that differ surely from neither.
    unsure: Vec<usize>,
}

impl Ranking {
    /// `None` if no scenario surely differs from another: two do where their intervals lie apart
    /// and they do not count as the same.
    fn of(
        means: &[(usize, Mean)],
        is_same: impl Fn(&Mean, &Mean) -> bool,
        half: impl Fn(&(usize, Mean)) -> f64,
    ) -> Option<Self> {
        let bounds: Vec<(f64, f64)> = means
            .iter()
            .map(|one| {
                let half = half(one);
                (one.1.mean - half, one.1.mean + half)
            })
            .collect();
        let all = 0..means.len();
        let lowest = all.clone().min_by(|a, b| bounds[*a].1.total_cmp(&bounds[*b].1))?;
        let highest = all.clone().max_by(|a, b| bounds[*a].0.total_cmp(&bounds[*b].0))?;
        let is_below =
            |a: usize, b: usize| bounds[a].1 < bounds[b].0 && !is_same(&means[a].1, &means[b].1);
        if !is_below(lowest, highest) {
            return None;
        }
        let those = |above: bool, below: bool| -> Vec<usize> {
            let is_it =
                |one: &usize| is_below(lowest, *one) == above && is_below(*one, highest) == below;
            all.clone().filter(is_it).collect()
        };
        let (low, high, unsure) = (those(false, true), those(true, false), those(false, false));
        Some(Self { lowest, highest, low, high, unsure })
    }
}

/// Half the width of an interval so wide that those of all scenarios hold at once with the usual
/// confidence; 0 where nothing tells it, as with one run.
fn simultaneous(
    data: &Data<'_>,
    scenario: usize,
    subject: &Subject,
    metric: &str,
    of_all: &Confidence,
) -> f64 {
    let points = data.points(scenario, subject, metric);
    let values: Vec<f64> = points.iter().map(|point| point.value).collect();
    of_all.mean_interval(&values).map_or(0.0, |interval| interval.half_width())
}

/// Several scenarios: by the one value that they alone have, by their names if they are few, or how
/// many they are.
fn together(data: &Data<'_>, group: &[usize], all: usize) -> String {
    let at = |scenario: &usize| {
        format!("<a{}>{}</a>", data.link(*scenario), Esc(&data.label(*scenario)))
    };
    if let [one] = group {
        return at(one);
    }
    if let Some(factor) = shared(data, group) {
        let value = data.named(factor, data.value(group[0], factor));
        return format!("all {} scenarios with {}", group.len(), Esc(&value));
    }
    match group.len() {
        n if n > MOST_NAMED => format!("{n} of {all} scenarios"),
        _ => listed(&group.iter().map(at).collect::<Vec<_>>()),
    }
}

/// The factor of which these scenarios have one value, and no others have it.
fn shared(data: &Data<'_>, group: &[usize]) -> Option<usize> {
    let scenarios = 0..data.plan.scenarios.len();
    data.varying.iter().copied().find(|factor| {
        let value = data.value(group[0], *factor);
        scenarios.clone().all(|one| (data.value(one, *factor) == value) == group.contains(&one))
    })
}

/// Whether [`together`] can say no more of them than how many they are.
fn is_only_counted(data: &Data<'_>, group: &[usize]) -> bool {
    group.len() > MOST_NAMED && shared(data, group).is_none()
}

/// Whether nobody would object to calling several means alike: they count as the same, or the intervals
/// that the page prints have a value in common.
fn are_alike(group: &[&Mean], is_same: impl Fn(&Mean, &Mean) -> bool) -> bool {
    let [first, .., last] = group else { return false };
    let half = |mean: &Mean| mean.half_width.unwrap_or(0.0);
    let low = group.iter().map(|mean| mean.mean - half(mean)).fold(f64::MIN, f64::max);
    let high = group.iter().map(|mean| mean.mean + half(mean)).fold(f64::MAX, f64::min);
    low <= high || is_same(first, last)
}

/// More scenarios than this are counted, not named.
const MOST_NAMED: usize = 3;

/// Whether two values count as equal: within [`SAME`], or printed alike.
fn are_same(a: f64, b: f64) -> bool {
    number(a) == number(b) || (a - b).abs() <= SAME * a.abs().max(b.abs())
}

/// How much of how the scenarios' means differ each factor alone explains, the most first: shares of the variance between
/// them (eta squared), of logarithms where all are positive. Empty unless there are several factors that cross fully, so that
/// shares can be told apart.
fn effects(data: &Data<'_>, means: &[(usize, Mean)]) -> Vec<(f64, usize)> {
    let free: Vec<usize> = (data.varying.iter().copied())
        .filter(|factor| {
            !data.varying.iter().any(|other| {
                data.follows(*factor, *other) && !(data.follows(*other, *factor) && factor < other)
            })
        })
        .collect();
    let crossed: usize =
        free.iter().map(|factor| data.plan.factors[*factor].values.len()).product();
    if free.len() < 2 || crossed != means.len() {
        return Vec::new();
    }
    let is_positive = means.iter().all(|(_, mean)| mean.mean > 0.0);
    let worth = |mean: &Mean| if is_positive { mean.mean.ln() } else { mean.mean };
    let all: Vec<&Mean> = means.iter().map(|(_, mean)| mean).collect();
    let middle = average(&all, worth);
    let whole: f64 = all.iter().map(|mean| (worth(mean) - middle).powi(2)).sum();
    let share = |factor: usize| {
        let groups = by_value(data, means, factor).into_iter();
        let between =
            groups.map(|(_, here)| here.len() as f64 * (average(&here, worth) - middle).powi(2));
        (between.sum::<f64>() / whole, factor)
    };
    let mut shares: Vec<(f64, usize)> = free.into_iter().map(share).collect();
    shares.sort_by(|a, b| b.0.total_cmp(&a.0));
    shares
}

/// The means with each value of a factor.
fn by_value<'d, 'm>(
    data: &Data<'d>,
    means: &'m [(usize, Mean)],
    factor: usize,
) -> Vec<(&'d str, Vec<&'m Mean>)> {
    let values = data.plan.factors[factor].values.iter();
    values
        .map(|value| {
            let here = means.iter().filter(|(scenario, _)| data.value(*scenario, factor) == *value);
            (&**value, here.map(|(_, mean)| mean).collect())
        })
        .collect()
}

fn average(means: &[&Mean], worth: impl Fn(&Mean) -> f64) -> f64 {
    means.iter().map(|mean| worth(mean)).sum::<f64>() / means.len() as f64
}

/// `; case decides 97 % of it`: the factors that alone explain most.
fn decided_by(data: &Data<'_>, effects: &[(f64, usize)]) -> Option<String> {
    let name = |factor: usize| Esc(data.short_factor(factor)).to_string();
    let [(most, factor), (next, second), ..] = effects else { return None };
    if *most < LEAST_TOLD {
        return Some("; no factor alone decides it".to_owned());
    }
    let mut text = format!("; {} decides {} of it", name(*factor), percent(*most));
    if *next >= LEAST_TOLD {
        let _ = write!(text, ", {} {}", name(*second), percent(*next));
    }
    Some(text)
}

/// `queue decides 61 % of it, from 12 ms on average with fq_codel to 240 ms with pfifo; rtt 20 %, from …`. `None` if no factor
/// explains enough.
fn by_factor(
    data: &Data<'_>,
    means: &[(usize, Mean)],
    effects: &[(f64, usize)],
    shown: impl Fn(f64) -> String,
) -> Option<String> {
    let told = effects.iter().filter(|(share, _)| *share >= LEAST_TOLD).take(2).enumerate();
    let told = told.map(|(place, (share, factor))| {
        let mut groups: Vec<(f64, &str, Vec<&Mean>)> = by_value(data, means, *factor)
            .into_iter()
            .map(|(value, here)| (average(&here, |mean| mean.mean), value, here))
            .collect();
        groups.sort_by(|a, b| a.0.total_cmp(&b.0));
        let with = |(_, value, here): &(f64, &str, Vec<&Mean>)| {
            // The mean that lacks most speaks for all.
            let counted = here.iter().map(|mean| mean.counted);
            let least = counted.min_by(|a, b| a.share().total_cmp(&b.share()));
            let lacking = least.and_then(Counted::lacking);
            let lacking = lacking.map_or(String::new(), |n| format!(" (over at least {n})"));
            Esc(&(data.differing(*factor, value).to_owned() + &lacking)).to_string()
        };
        let (least, most) = (&groups[0], &groups[groups.len() - 1]);
        let (decides, of_it, average) = match place {
            0 => (" decides", " of it", " on average"),
            _ => ("", "", ""),
        };
        format!(
            "{}{decides} {}{of_it}, from {}{average} with {} to {} with {}",
            Esc(data.short_factor(*factor)),
            percent(*share),
            shown(least.0),
            with(least),
            shown(most.0),
            with(most)
        )
    });
    let told: Vec<String> = told.collect();
    (!told.is_empty()).then(|| told.join("; "))
}

/// A factor that explains a smaller share is not named.
const LEAST_TOLD: f64 = 0.1;

/// Values within this share of each other count as equal.
const SAME: f64 = 0.005;
