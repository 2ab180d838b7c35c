//! The document around a page: style, script, and the policy that keeps the page off the network.

use crate::markup::Esc;

pub(crate) struct Shell<'a> {
    pub(crate) title: &'a str,
    pub(crate) body: &'a str,
    pub(crate) scripts: &'a str,
}

/// Colours, and what figures need of them: also the style of a figure that stands alone.
pub(crate) const FIGURE_STYLE: &str = include_str!("../../assets/figures.css");
const STYLE: &str = include_str!("../../assets/report.css");
const CHART_STYLE: &str = include_str!("../../assets/uplot.min.css");
/// uPlot 1.6.32 by Leon Sorokin, MIT licence; its notice stands at its head.
const CHART_SCRIPT: &str = include_str!("../../assets/uplot.min.js");
const SCRIPT: &str = include_str!("../../assets/report.js");

/// The bars that stay in view while scrolling, and their links.
const SECTIONS: &[(&str, &str)] = &[
    ("answer", "Answer"),
    ("claims", "Claims"),
    ("matrix", "Matrix"),
    ("figures", "Figures"),
    ("standard", "Standard figures"),
    ("time", "Over time"),
    ("runs", "Runs"),
    ("methods", "Methods"),
];

impl Shell<'_> {
    pub(crate) fn to_html(&self) -> String {
        let mut sections = String::new();
        let mut choices = String::new();
        for (id, name) in SECTIONS {
            if self.body.contains(&format!("<section id=\"{id}\"")) {
                sections += &format!("<li><a href=\"#{id}\">{name}</a></li>");
                let left_out =
                    self.body.contains(&format!("<section id=\"{id}\" data-print=\"no\""));
                choices += &format!(
                    "<label><input type=\"checkbox\" data-section=\"{id}\"{}> {name}</label>",
                    if left_out { "" } else { " checked" }
                );
            }
        }
        format!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
             style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:\">\
             <meta name=\"color-scheme\" content=\"light dark\"><meta name=\"generator\" \
             content=\"Sojourn\"><title>{title}</title><style>{CHART_STYLE}{FIGURE_STYLE}{STYLE}</style></head>\
             <body><a class=\"skip\" href=\"#answer\">To the answer</a><nav aria-label=\"Sections\">\
             <ul>{sections}</ul><span class=\"tools script\"><details id=\"printing\"><summary>Print…\
             </summary><div>{choices}<button type=\"button\" id=\"print\">Print these</button></div>\
             </details><button type=\"button\" id=\"theme\">Theme: auto</button></span></nav>{body}<footer>Made by Sojourn, which needs no network to show this. \
             Time series are drawn by uPlot, © 2022 Leon Sorokin, MIT licence.</footer>\
             <div id=\"tip\" role=\"status\" hidden></div>{scripts}<script>{CHART_SCRIPT}</script>\
             <script>{SCRIPT}</script></body></html>\n",
            title = Esc(self.title),
            body = self.body,
            scripts = self.scripts,
        )
    }
}

/// A unique name for an element: letters, digits and dashes of the text.
pub(crate) fn anchor(prefix: &str, number: usize) -> String {
    format!("{prefix}-{number}")
}
