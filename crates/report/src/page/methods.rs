//! How the numbers were made, what they mean, and their limits.

use std::fmt::Write;

use super::options::Options;
use super::sample;
use crate::data::Data;
use crate::markup::{Esc, shell_word};
use crate::number::number;
use crate::svg::MOST_POINTS;

pub(crate) fn write(out: &mut String, data: &Data<'_>, options: &Options) {
    let plan = data.plan;
    *out += "<section id=\"methods\"><h2>Methods, versions, limits</h2><dl>";
    let mut row = |term: &str, text: String| {
        let _ = write!(out, "<dt>{term}</dt><dd>{text}</dd>");
    };
    row("Study", format!("<code>{}</code>", Esc(&plan.path)));
    if !plan.overrides.is_empty() {
        let given: Vec<String> =
            plan.overrides.iter().map(|o| format!("<code>{}</code>", Esc(o))).collect();
        row("Overrides", given.join(", "));
    }
    for factor in &plan.factors {
        let values: Vec<String> =
            factor.values.iter().map(|v| format!("<code>{}</code>", Esc(v))).collect();
        row(&format!("Factor <code>{}</code>", Esc(&factor.name)), values.join(", "));
    }
    let seeds: Vec<String> = plan.seeds.iter().map(u64::to_string).collect();
    row("Seeds", format!("{} (study seed {})", seeds.join(", "), plan.study_seed));
    row("Models", Esc(&plan.model).to_string());
    row("Plan", format!("<code>{}</code>", Esc(&plan.digest)));
    if let Some(machine) = &data.results.machine {
        row("Sojourn", Esc(&machine.sojourn).to_string());
        row(
            "Machine",
            format!(
                "{} {}, {} cores, {} jobs; {} s, {} runs found done",
                Esc(&machine.os),
                Esc(&machine.arch),
                machine.cores,
                machine.jobs,
                number(machine.wall_s),
                machine.resumed
            ),
        );
        for kernel in &machine.kernels {
            row("Guest kernel", Esc(kernel).to_string());
        }
        let command: Vec<String> = machine.command.iter().map(|word| shell_word(word)).collect();
        if !command.is_empty() {
            row(
                "Command",
                format!(
                    "<span class=\"command\"><code>{}</code> <button type=\"button\" class=\"script \
                     copy\">Copy</button></span>",
                    Esc(&command.join(" "))
                ),
            );
        }
    }
    *out += "</dl><h3>How to read it</h3><ul>\
        <li>A run is a scenario and a seed; the same two give the same packets on any machine.</li>\
        <li>Metrics are of the time after the warm-up unless their meaning says otherwise. ± is half \
        the width of the 95 % interval of the mean over seeds (Student’s t); a single seed has \
        none.</li>\
        <li>A claim holds where the mean meets the bound. It is not bent to do so: one that fails is \
        a result.</li>\
        <li>Curves over time have a point for each step of the series. What is drawn of several steps \
        spans the least to the largest of them, so a peak is as high as it was.</li>\
        <li>The scenario is a model: hosts without other load, links that do what their description \
        says and nothing else. Where a model departs from its specification, its page in the \
        documentation lists it.</li></ul>";
    if !plan.metrics.is_empty() {
        *out += "<details><summary>What each metric means</summary><div class=\"wide\"><table \
                 class=\"meanings\"><thead><tr><th scope=\"col\">Metric</th><th scope=\"col\">Unit</th>\
                 <th scope=\"col\">Meaning</th></tr></thead><tbody>";
        for metric in &plan.metrics {
            let _ = write!(
                out,
                "<tr><td><code>{}</code></td><td>{}</td><td>{}</td></tr>",
                Esc(&metric.name),
                Esc(&metric.unit),
                Esc(&metric.doc)
            );
        }
        *out += "</tbody></table></div></details>";
    }
    if !data.results.study.is_empty() {
        let _ = write!(
            out,
            "<details><summary>The study, as run</summary><pre tabindex=\"0\">{}</pre></details>",
            Esc(&data.results.study)
        );
    }
    let _ = write!(
        out,
        "<p class=\"caption\">Time series take at most {} kB of this page; where they do not fit, \
         neighbouring steps are joined to their least and largest value. Of runs with more than {} \
         flows the first of each group are here. Where a mark of a figure stands for more than {} runs, points that others hide are \
         left out; means, ellipses and whiskers are over all.</p></section>",
        options.series_budget / 1000,
        sample::MOST,
        MOST_POINTS
    );
}
