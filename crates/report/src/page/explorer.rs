//! Any run over time: panels with linked cursors for the script, a still figure without it.

use std::fmt::Write;

use super::details::{Details, SeriesView};
use super::still::key;
use crate::data::Data;
use crate::markup::Esc;

pub(crate) fn write(out: &mut String, data: &Data<'_>, details: &Details) {
    if details.runs.iter().all(|run| run.packed.is_none()) {
        return;
    }
    *out += "<section id=\"time\" data-print=\"no\"><h2>Over time</h2>";
    for view in details.views.iter().filter(|view| !view.leads()) {
        write_view(out, data, view);
    }
    *out += "<noscript><p>Zoom and linked cursors need script. Without it, each scenario below has a \
             still figure of its first run.</p></noscript><div class=\"script\" id=\"explorer\">\
             <p class=\"controls\"><label>Scenario <select id=\"pick-scenario\"></select></label> \
             <label>Seed <select id=\"pick-seed\"></select></label> <label>Beside it \
             <select id=\"pick-other\"><option value=\"\">nothing</option></select></label> \
             <button type=\"button\" id=\"zoom-in\" aria-label=\"Zoom in\">+</button>\
             <button type=\"button\" id=\"zoom-out\" aria-label=\"Zoom out\">−</button>\
             <button type=\"button\" id=\"zoom-left\" aria-label=\"Earlier\">←</button>\
             <button type=\"button\" id=\"zoom-right\" aria-label=\"Later\">→</button>\
             <button type=\"button\" id=\"zoom-all\">Whole run</button></p>\
             <p class=\"caption\" id=\"plot-caption\">Drag across a panel to zoom, double-click for the \
             whole run. A name in a key shows or hides its curve.</p><div id=\"plots\"></div></div>\
             </section>";
}

/// A figure over time that the study asks for: still, with a button that opens it for zooming.
pub(crate) fn write_view(out: &mut String, data: &Data<'_>, drawn: &SeriesView) {
    let view = &data.plan.views[drawn.view];
    let _ = write!(
        out,
        "<figure id=\"view-{}\"><figcaption><b>{}</b> {} {}</figcaption>",
        drawn.view,
        // The section has this title already.
        Esc(view.title.as_deref().filter(|title| *title != "Over time").unwrap_or("First runs")),
        Esc(view.caption.as_deref().unwrap_or("")),
        drawn.left_out()
    );
    if let Some(overlay) = &drawn.overlay {
        *out += &overlay.key().html();
        *out += "<div class=\"panels one\">";
        if let Some(drawing) = overlay.draw(&view.y[0]) {
            drawing.write(out);
        }
        *out += "</div>";
        if overlay.has_gaps() {
            *out += "<p class=\"caption\">Where a curve is interrupted there was nothing to measure.</p>";
        }
        *out += "<p class=\"script\">Zoom into ";
        for run in &overlay.runs {
            let _ = write!(
                out,
                "<button type=\"button\" class=\"open\" data-open=\"{}\" data-columns=\"{}\">{}</button> ",
                run.run,
                Esc(&view.y[0]),
                Esc(&run.label)
            );
        }
        *out += "</p></figure>";
        return;
    }
    if let Some((run, _)) = drawn.runs.first() {
        *out += &key(data, data.plan.runs[*run as usize].scenario as usize, &view.of).html();
    }
    *out += "<div class=\"panels\">";
    for (run, svg) in &drawn.runs {
        let planned = &data.plan.runs[*run as usize];
        let _ = write!(
            out,
            "<div class=\"panel\"><p class=\"name\">{}, seed {} <button type=\"button\" class=\"script open\" \
             data-open=\"{run}\" data-columns=\"{}\">Zoom into it</button></p>{svg}</div>",
            Esc(&data.label(planned.scenario as usize)),
            planned.seed,
            Esc(&view.y.join(" ")),
        );
    }
    *out += "</div></figure>";
}
