//! A figure of the page as a file of its own: a drawing, or tables.

use std::fmt::Write;

use sojourn_core::SpecError;
use sojourn_study::results::{Results, ViewKind};

use super::details::{Details, SeriesView};
use super::figures::{Body, Drawing, Figure, Table, of_view, row, standard};
use super::options::Options;
use super::shell::FIGURE_STYLE;
use super::still;
use crate::batches::with_threads;
use crate::data::Data;
use crate::grid::Grid;
use crate::markup::{Esc, plain_text};
use crate::read::ReadRuns;
use crate::svg::{Key, placed, text_width};

/// A figure of the page by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Alone {
    /// SVG, in light and dark.
    Drawing(String),
    Tables {
        /// As GitHub reads it.
        markdown: String,
        /// `tabular`s with the rules of the package booktabs.
        latex: String,
    },
}

/// A view of the study by its name, or a standard figure by the name that the page's address has for it (`goodput`).
///
/// # Errors
/// No figure has this name, or there is nothing in it.
pub fn figure(results: &Results, runs: &mut dyn ReadRuns, name: &str) -> Result<Alone, SpecError> {
    let data = Data::new(results);
    let details = with_threads(None, || Details::read(&data, runs, &Options::default()));
    let views = &data.plan.views;
    if let Some(at) = views.iter().position(|view| view.name == name) {
        return alone(&viewed(&data, &details, at))
            .ok_or_else(|| SpecError::new(format!("there is nothing in figure '{name}'")));
    }
    let standard = standard(&data, &details.spreads);
    if let Some(figure) = standard.iter().position(|figure| figure.id == name)
        && let Some(figure) = alone(&standard[figure..=figure])
    {
        return Ok(figure);
    }
    let names: Vec<&str> = (views.iter().map(|view| &view.name[..]))
        .chain(standard.iter().map(|figure| &figure.id[..]))
        .collect();
    let error = SpecError::new(format!("no figure is named '{name}'"));
    Err(error.near(name, names.iter().copied()).allow(names))
}

/// All figures of the page, by the names that [`figure`] knows, in the page's order.
pub fn figures(results: &Results, runs: &mut dyn ReadRuns) -> Vec<(String, Alone)> {
    let data = Data::new(results);
    let details = with_threads(None, || Details::read(&data, runs, &Options::default()));
    let views = data.plan.views.iter().enumerate();
    let views = views.map(|(at, view)| (view.name.clone(), alone(&viewed(&data, &details, at))));
    let standard = standard(&data, &details.spreads).into_iter();
    let standard = standard.map(|figure| (figure.id.clone(), alone(&[figure])));
    views.chain(standard).filter_map(|(name, figure)| Some((name, figure?))).collect()
}

/// What a view of the study shows.
fn viewed(data: &Data<'_>, details: &Details, at: usize) -> Vec<Figure> {
    let view = &data.plan.views[at];
    match details.views.iter().find(|series| series.view == at) {
        Some(series) if view.kind == ViewKind::Series => over_time(data, series),
        _ => of_view(data, &details.spreads, view),
    }
}

/// Runs stand one below the other, as each is as wide as a page.
fn over_time(data: &Data<'_>, series: &SeriesView) -> Vec<Figure> {
    let view = &data.plan.views[series.view];
    let figure = |title: &str, caption: &str, keys: Vec<Key>, drawings: Vec<Drawing>| Figure {
        id: String::new(),
        title: title.to_owned(),
        caption: Esc(caption).to_string(),
        body: Body::Drawings { keys, drawings, more: 0 },
    };
    let title = view.title.as_deref().unwrap_or(&view.name);
    let caption = format!("{} {}", view.caption.as_deref().unwrap_or(""), series.left_out());
    if let Some(overlay) = &series.overlay {
        let drawing = overlay.draw(&view.y[0]).into_iter().collect();
        return vec![figure(title, &caption, vec![overlay.key()], drawing)];
    }
    let scenario = |run: u32| data.plan.runs[run as usize].scenario as usize;
    let drawn = series.runs.iter().filter(|(_, svg)| !svg.is_empty());
    let mut figures: Vec<Figure> = drawn
        .map(|(run, svg)| {
            let name = Esc(&data.label(scenario(*run))).to_string();
            figure("", "", Vec::new(), vec![Drawing { name, svg: svg.clone(), narrow: None }])
        })
        .collect();
    if let (Some(first), Some((run, _))) = (figures.first_mut(), series.runs.first())
        && let Body::Drawings { drawings, .. } = &mut first.body
    {
        let key = still::key(data, scenario(*run), &view.of);
        *first = figure(title, &caption, vec![key], core::mem::take(drawings));
    }
    figures
}

const GAP: f64 = 24.0;
const LINE: f64 = 18.0;

/// The figures below each other; `None` if there is none or one has nothing in it.
fn alone(figures: &[Figure]) -> Option<Alone> {
    let tables = figures.iter().map(|figure| match &figure.body {
        Body::Tables(tables) => Some((figure, tables)),
        _ => None,
    });
    match tables.collect::<Option<Vec<_>>>() {
        Some(tables) if !tables.is_empty() => Some(Alone::Tables {
            markdown: written(&tables, Grid::markdown, |name| format!("**{name}**")),
            latex: written(&tables, Grid::latex, |name| format!("% {name}")),
        }),
        _ => drawn(figures).map(Alone::Drawing),
    }
}

/// Tables below each other, each below its name where they are several.
fn written(
    figures: &[(&Figure, &Vec<Table>)],
    write: fn(&Grid) -> String,
    named: impl Fn(&str) -> String,
) -> String {
    let mut all = Vec::new();
    for (figure, tables) in figures {
        if figures.len() > 1 && !figure.title.is_empty() {
            all.push(named(&plain_text(&figure.title)) + "\n");
        }
        for Table { name, grid, .. } in *tables {
            if !name.is_empty() {
                all.push(named(&plain_text(name)) + "\n");
            }
            all.push(write(grid));
        }
    }
    all.join("\n")
}

/// The same as a drawing.
fn drawn(figures: &[Figure]) -> Option<String> {
    if figures.is_empty() {
        return None;
    }
    let (mut body, mut y, mut widest) = (String::new(), 0.0, 0.0f64);
    for figure in figures {
        let Body::Drawings { keys, drawings, .. } = &figure.body else { return None };
        if drawings.is_empty() {
            return None;
        }
        let (columns, width) = row(drawings.len());
        let width = drawings.iter().map(|drawing| width_of(drawing).max(width)).fold(0.0, f64::max);
        let full = columns as f64 * (width + GAP) - GAP;
        widest = widest.max(full);
        y += if y > 0.0 { GAP } else { 4.0 };
        lines(&mut body, "title", &Esc(&figure.title).to_string(), full, 0.0, &mut y);
        lines(&mut body, "caption", &figure.caption, full, 0.0, &mut y);
        y += 6.0;
        for key in keys {
            let (key, height) = Key::drawn(key, y, full);
            body += &key;
            y += height;
        }
        y += 6.0;
        for row in drawings.chunks(columns) {
            let mut below = y;
            for (at, drawing) in row.iter().enumerate() {
                let x = at as f64 * (width + GAP);
                let mut top = y;
                lines(&mut body, "name", &drawing.name, width, x, &mut top);
                let (svg, height) = placed(&drawing.svg, x, top);
                body += &svg;
                below = below.max(top + height);
            }
            y = below + 8.0;
        }
    }
    let titles = figures.iter().filter(|figure| !figure.title.is_empty());
    let title: Vec<String> = titles.map(|figure| Esc(&figure.title).to_string()).collect();
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"{CLASS}\" viewBox=\"0 0 {widest:.0} {y:.0}\" \
         width=\"{widest:.0}\" height=\"{y:.0}\" role=\"img\"><title>{}</title><style>{}</style>\
         <rect width=\"100%\" height=\"100%\" style=\"fill:var(--bg)\"/>",
        title.join("; "),
        Esc(&scoped(FIGURE_STYLE))
    );
    let _ = write!(out, "{body}</svg>");
    Some(out + "\n")
}

/// Of a figure that stands alone.
const CLASS: &str = "sojourn-figure";

/// The style as rules for such a figure only, because a notebook applies them to its whole page.
fn scoped(style: &str) -> String {
    let scoped = |selector: &str| {
        let selector = selector.trim();
        match (selector.strip_prefix(":root"), selector.strip_prefix("svg ")) {
            (Some(rest), _) => format!(".{CLASS}{rest}"),
            (_, Some(inside)) => format!(".{CLASS} {inside}"),
            _ => format!(".{CLASS} {selector}"),
        }
    };
    let mut out = String::new();
    for rule in style.split_inclusive('}') {
        let Some((head, declarations)) = rule.rsplit_once('{') else {
            out += rule;
            continue;
        };
        let (condition, selectors) = match head.rsplit_once('{') {
            Some((condition, selectors)) => (format!("{}{{", condition.trim()), selectors),
            None => (String::new(), head),
        };
        let selectors: Vec<String> = selectors.split(',').map(scoped).collect();
        let _ = write!(out, "{condition}{}{{{declarations}", selectors.join(","));
    }
    out
}

fn width_of(drawing: &Drawing) -> f64 {
    let width = drawing.svg.split_once(" width=\"").and_then(|(_, rest)| rest.split('"').next());
    width.and_then(|width| width.parse().ok()).unwrap_or(0.0)
}

/// An escaped text in lines of at most `width`.
fn lines(out: &mut String, class: &str, text: &str, width: f64, x: f64, y: &mut f64) {
    let mut line = String::new();
    let mut write = |line: &mut String| {
        *y += LINE;
        let _ =
            write!(out, "<text class=\"{class}\" x=\"{x:.0}\" y=\"{:.0}\">{line}</text>", *y - 4.0);
        line.clear();
    };
    for word in text.split_whitespace() {
        if !line.is_empty() && text_width(&line) + text_width(word) + 6.0 > width {
            write(&mut line);
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line += word;
    }
    if !line.is_empty() {
        write(&mut line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_of_a_figure_are_for_it_alone() {
        let style = ":root{--a:1}\n@media (dark){:root:not([x]){--a:2}}\n.k0{--k:1}svg text,svg.bars .pt{fill:red}";
        assert_eq!(
            scoped(style),
            ".sojourn-figure{--a:1}@media (dark){.sojourn-figure:not([x]){--a:2}}\
             .sojourn-figure .k0{--k:1}.sojourn-figure text,.sojourn-figure svg.bars .pt{fill:red}"
        );
        let all = scoped(FIGURE_STYLE);
        let rules = all.split('}').filter_map(|rule| rule.rsplit_once('{'));
        for selector in
            rules.flat_map(|(head, _)| head.rsplit('{').next()).flat_map(|s| s.split(','))
        {
            assert!(selector.starts_with(".sojourn-figure"), "{selector}");
        }
    }
}
