//! A page that shows where kernel and simulation differ.

use std::fmt::Write as _;

use super::number::{Kind, Number};
use super::table::Compared;

/// Worlds with something in common.
struct Region {
    name: &'static str,
    has: fn(&Compared) -> bool,
}

const fn region(name: &'static str, has: fn(&Compared) -> bool) -> Region {
    Region { name, has }
}

const REGIONS: [Region; 20] = [
    region("all worlds", |_| true),
    region("one flow", |c| c.world.flows.len() == 1),
    region("two or three flows", |c| c.world.flows.len() > 1),
    region("different controls", |c| c.world.flows.iter().any(|flow| flow.0 != c.world.flows[0].0)),
    region("pfifo below 1 BDP", |c| depth(c).is_some_and(|depth| depth < 1.0)),
    region("pfifo of 1 to 2.5 BDP", |c| depth(c).is_some_and(|depth| (1.0..2.5).contains(&depth))),
    region("pfifo of 2.5 BDP and more", |c| depth(c).is_some_and(|depth| depth >= 2.5)),
    region("fq_codel", |c| c.world.queue == "fq_codel"),
    region("codel", |c| c.world.queue == "codel"),
    region("pie", |c| c.world.queue == "pie"),
    region("random loss", |c| c.world.loss > 0),
    region("no random loss", |c| c.world.loss == 0),
    region("fixed window", |c| c.world.window.is_some()),
    region("small send buffer", |c| c.world.send_buffer.is_some()),
    region("ECN", |c| c.world.ecn),
    region("below 3 Mbit/s", |c| c.world.rate < 3_000),
    region("from 3 Mbit/s on", |c| c.world.rate >= 3_000),
    region("below 15 ms", |c| c.world.rtt < 15),
    region("15 to 60 ms", |c| (15..60).contains(&c.world.rtt)),
    region("from 60 ms on", |c| c.world.rtt >= 60),
];

fn depth(compared: &Compared) -> Option<f64> {
    let limit: f64 = compared.world.queue.strip_prefix("pfifo limit ")?.parse().ok()?;
    Some(limit / compared.world.bdp())
}

/// The page. `kernel` says which one it was, `kept` which studies hold what was shrunk.
pub fn html(all: &[Compared], kernel: &str, kept: &[String]) -> String {
    let numbers: Vec<(&Compared, &Number)> =
        all.iter().flat_map(|own| own.numbers.iter().flatten().map(move |n| (own, n))).collect();
    let inside = numbers.iter().filter(|(_, number)| number.is_inside()).count();
    let steady = numbers.iter().filter(|(_, number)| number.is_steady()).count();
    let outside: Vec<_> = numbers.iter().filter(|(_, number)| !number.is_inside()).collect();
    let chance = outside.iter().filter(|(_, number)| number.overlaps()).count();
    let mut text = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>A kernel and the simulator</title><style>{STYLE}</style>\n\
         <h1>{inside} of {} numbers are inside their bounds ({})</h1>\n\
         <p>{} random worlds, each between kernels ({}) and simulated. Of the {} numbers outside, {chance} have values in common \
         between single runs of both sides; {} have none. The simulator agrees with itself, \
         with other seeds and as few runs as there were between kernels, in {}.</p>\n",
        numbers.len(),
        share(inside, numbers.len()),
        all.len(),
        escaped(kernel),
        outside.len(),
        outside.len() - chance,
        share(steady, numbers.len()),
    );
    let failed: Vec<String> = all
        .iter()
        .filter_map(|own| Some((own.world.number, own.numbers.as_ref().err()?)))
        .map(|(number, problem)| format!("<li>world {number}: {}</li>", escaped(problem)))
        .collect();
    if !failed.is_empty() {
        let _ = write!(
            text,
            "<h2>{} worlds could not be run</h2><ul>{}</ul>",
            failed.len(),
            failed.concat()
        );
    }
    text += "<h2>Where</h2>\n<p>Each circle is a world: filled if a number is outside, the larger the farther; dark if \
             no single run of either side has such a value.</p>\n";
    text += &map(all);
    text += "<h2>In which region</h2>\n";
    text += &regions(all);
    if !kept.is_empty() {
        text += "<h2>The largest, made as simple as possible</h2><ul>";
        kept.iter().for_each(|line| {
            let _ = write!(text, "<li>{}</li>", escaped(line));
        });
        text += "</ul>";
    }
    text += "<h2>Outside their bounds</h2>\n<table><tr><th>world<th>number<th>of<th>kernel (least to most)<th>simulated\
             <th>in bounds<th>single runs</tr>\n";
    let mut sorted = outside;
    sorted.sort_by(|one, other| other.1.distance().total_cmp(&one.1.distance()));
    for (own, number) in sorted {
        let _ = writeln!(
            text,
            "<tr><td>{} ({})<td>{}<td>{}<td>{:.3} ({:.3} to {:.3})<td>{:.3} ({:.3} to {:.3})<td>{:.1}<td>{}</tr>",
            own.world.number,
            escaped(&own.world.brief()),
            number.kind.name(),
            escaped(&number.of),
            number.kernel.mean,
            number.kernel.least,
            number.kernel.most,
            number.simulated.mean,
            number.simulated.least,
            number.simulated.most,
            number.distance(),
            if number.overlaps() { "overlap" } else { "apart" },
        );
    }
    text + "</table></html>\n"
}

const STYLE: &str = ":root{color-scheme:light dark}body{font:15px/1.45 system-ui,sans-serif;max-width:68rem;margin:2rem auto;padding:0 1rem}\
    table{border-collapse:collapse}td,th{padding:.15rem .6rem;text-align:left;border-bottom:1px solid #8884}\
    td.low{background:#d5502a55}td.middle{background:#e0a03044}svg{max-width:100%}svg text{font-size:12px;fill:currentColor}\
    svg line{stroke:#8886}circle{fill:none;stroke:#4a7ab5}circle.chance{fill:#e0a030aa;stroke:#b07010}circle.apart{fill:#c03a2acc;stroke:#8a1a10}";

/// Worlds over rate and round-trip time.
fn map(all: &[Compared]) -> String {
    const WIDTH: f64 = 720.0;
    const HEIGHT: f64 = 420.0;
    let (left, right, top, bottom) = (60.0, WIDTH - 15.0, 15.0, HEIGHT - 45.0);
    let ends = |values: &mut dyn Iterator<Item = u64>| {
        let (mut low, mut high) = (f64::INFINITY, 1.0f64);
        for value in values {
            (low, high) = (low.min(value as f64), high.max(value as f64));
        }
        (low.min(high) * 0.9, high * 1.1)
    };
    let rates = ends(&mut all.iter().map(|own| own.world.rate));
    let rtts = ends(&mut all.iter().map(|own| own.world.rtt));
    let part = |value: f64, (low, high): (f64, f64)| (value / low).ln() / (high / low).ln();
    let x = |rate: f64| left + (right - left) * part(rate, rates);
    let y = |rtt: f64| bottom - (bottom - top) * part(rtt, rtts);
    let mut text = format!(
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" role=\"img\" aria-label=\"Worlds over rate and round-trip time\">\
         <line x1=\"{left}\" y1=\"{bottom}\" x2=\"{right}\" y2=\"{bottom}\"/><line x1=\"{left}\" y1=\"{top}\" x2=\"{left}\" y2=\"{bottom}\"/>"
    );
    for tick in
        [1e3, 2e3, 5e3, 1e4, 2e4, 4e4].into_iter().filter(|t| (rates.0..rates.1).contains(t))
    {
        let _ = write!(
            text,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            x(tick),
            bottom + 18.0,
            tick / 1e3
        );
    }
    for tick in
        [5.0, 10.0, 20.0, 50.0, 100.0, 200.0].into_iter().filter(|t| (rtts.0..rtts.1).contains(t))
    {
        let _ = write!(
            text,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{tick}</text>",
            left - 8.0,
            y(tick) + 4.0
        );
    }
    let _ = write!(
        text,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">rate, Mbit/s</text>\
         <text transform=\"translate(16 {:.1}) rotate(-90)\" text-anchor=\"middle\">round-trip time, ms</text>",
        f64::midpoint(left, right),
        HEIGHT - 8.0,
        f64::midpoint(top, bottom)
    );
    for own in all {
        let worst = own.worst();
        let is_apart = own.numbers.iter().flatten().any(|n| !n.is_inside() && !n.overlaps());
        let class = match (worst, is_apart) {
            (None, _) => "",
            (Some(_), false) => "chance",
            (Some(_), true) => "apart",
        };
        let radius = worst.map_or(3.0, |number| 3.0 + 2.5 * number.distance().min(16.0).sqrt());
        let what = worst.map_or("all inside".to_owned(), |number| {
            format!("{} {} {:.1} bounds off", number.kind.name(), number.of, number.distance())
        });
        let _ = write!(
            text,
            "<circle class=\"{class}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"{radius:.1}\"><title>world {}, {}: {}</title></circle>",
            x(own.world.rate as f64),
            y(own.world.rtt as f64),
            own.world.number,
            escaped(&own.world.brief()),
            escaped(&what),
        );
    }
    text + "</svg>\n"
}

/// The share of numbers inside, by region and kind of number.
fn regions(all: &[Compared]) -> String {
    let mut text = "<table><tr><th>region<th>worlds<th>all".to_owned();
    for kind in Kind::ALL {
        let _ = write!(text, "<th>{}", kind.name());
    }
    text += "</tr>\n";
    for line in lines(all) {
        let _ = write!(text, "<tr><td>{}<td>{}", line.name, line.worlds);
        for (inside, of) in line.cells {
            let class = match (inside * 100).checked_div(of) {
                Some(..75) => " class=\"low\"",
                Some(75..90) => " class=\"middle\"",
                _ => "",
            };
            let _ = write!(text, "<td{class}>{}", share(inside, of));
        }
        text += "</tr>\n";
    }
    text + "</table>\n"
}

/// How many numbers of how many are inside, in worlds that have something in common: all kinds, then each.
pub struct Line {
    pub name: String,
    pub worlds: usize,
    pub cells: Vec<(usize, usize)>,
}

/// A line for each region and each congestion control.
pub fn lines(all: &[Compared]) -> Vec<Line> {
    let count = |worlds: &[&Compared], of: Option<&str>, kind: Option<Kind>| {
        let numbers = worlds.iter().flat_map(|own| own.numbers.iter().flatten());
        let numbers = numbers
            .filter(|n| kind.is_none_or(|kind| n.kind == kind) && of.is_none_or(|of| n.of == of));
        numbers.fold((0, 0), |(inside, all), n| (inside + usize::from(n.is_inside()), all + 1))
    };
    let line = |name: &str, worlds: Vec<&Compared>, of: Option<&str>| Line {
        name: name.to_owned(),
        worlds: worlds.len(),
        cells: [None]
            .into_iter()
            .chain(Kind::ALL.map(Some))
            .map(|kind| count(&worlds, of, kind))
            .collect(),
    };
    let mut lines: Vec<Line> = REGIONS
        .iter()
        .map(|region| line(region.name, all.iter().filter(|own| (region.has)(own)).collect(), None))
        .collect();
    let mut controls: Vec<&str> = Vec::new();
    for (control, _) in all.iter().flat_map(|own| &own.world.flows) {
        if !controls.contains(&control.as_str()) {
            controls.push(control);
        }
    }
    for control in controls {
        let has = |own: &&Compared| own.world.flows.iter().any(|flow| flow.0 == control);
        lines.push(line(
            &format!("flows with {control}"),
            all.iter().filter(has).collect(),
            Some(control),
        ));
    }
    lines.retain(|line| line.worlds > 0);
    lines
}

fn share(inside: usize, of: usize) -> String {
    match of {
        0 => "–".to_owned(),
        _ => format!("{:.1} % of {of}", 100.0 * inside as f64 / of as f64),
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::super::{Side, World};
    use super::*;

    #[test]
    fn the_page_counts_what_is_outside() {
        let world = World::draw(1, 0, &["bbr".to_owned()]);
        let side = |mean: f64| Side { mean, least: mean - 0.5, most: mean + 0.5 };
        let number = |simulated| Number {
            kind: Kind::Srtt,
            of: "bbr".to_owned(),
            rate: 10.0,
            kernel: side(20.0),
            simulated: side(simulated),
            again: simulated,
        };
        let compared =
            Compared { world: world.clone(), numbers: Ok(vec![number(20.0), number(30.0)]) };
        let failed = Compared { world, numbers: Err("<hung>".to_owned()) };
        let page = html(&[compared, failed], "linux", &[]);
        assert!(page.contains("1 of 2 numbers are inside their bounds (50.0 % of 2)"), "{page}");
        assert!(page.contains("&lt;hung&gt;") && page.contains("class=\"apart\""));
    }
}
