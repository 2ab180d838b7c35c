//! Draws a trace as a self-contained SVG with axes and an area of steps.

use std::fmt::Write;

use sojourn_link::Trace;

use crate::chart::{Range, ranges};
use crate::number::number;

const WIDTH: usize = 960;
const HEIGHT: usize = 320;
const LEFT: usize = 70;
const BOTTOM: usize = 30;
const TOP: usize = 20;
const RIGHT: usize = 20;

/// Numbers of grid lines across and along.
const LINES: usize = 5;

/// Rates over time; where there are more steps than pixels, each column spans from its least to
/// its largest rate, so that gaps stay visible.
pub(super) fn svg(trace: &Trace) -> String {
    let (plot_width, plot_height) = (WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM);
    let columns = ranges(trace, plot_width);
    let top = columns.iter().flatten().fold(f64::MIN_POSITIVE, |top, range| top.max(range.high));
    let height = |rate: f64| TOP as f64 + plot_height as f64 * (1.0 - rate / top);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         font-family=\"sans-serif\" font-size=\"12\" fill=\"#333\">\n\
         <title>Capacity over time</title>\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#fff\"/>\n"
    );
    for line in 0..=LINES {
        let share = line as f64 / LINES as f64;
        let (rate, time) = (top * share, trace.duration().as_secs_f64() * share);
        let (x, y) = (LEFT as f64 + plot_width as f64 * share, height(rate));
        let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        let _ = write!(
            text,
            "<path d=\"M{LEFT} {y:.1}H{right}\" stroke=\"#ddd\"/>\n\
             <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\n\
             <text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
            LEFT - 6,
            y + 4.0,
            number(rate),
            bottom + 18,
            number(time),
        );
    }
    let _ = write!(
        text,
        "<text x=\"4\" y=\"12\">Mbit/s</text>\n<text x=\"{}\" y=\"{}\" text-anchor=\"end\">s</text>\n",
        WIDTH - 2,
        HEIGHT - BOTTOM + 18,
    );
    let bottom = HEIGHT - BOTTOM;
    let (mut area, mut edge) = (format!("M{LEFT} {bottom}"), String::new());
    for (column, range) in columns.iter().enumerate() {
        let Range { low, high } = range.unwrap_or(Range { low: 0.0, high: 0.0 });
        let x = LEFT + column;
        let _ = write!(area, "V{:.1}h1", height(low));
        let _ = write!(edge, "M{x} {:.1}V{:.1}h1", height(low), height(high));
    }
    let _ = write!(
        text,
        "<path d=\"{area}V{bottom}z\" fill=\"#0072b2\" fill-opacity=\".25\"/>\n\
         <path d=\"{edge}\" fill=\"none\" stroke=\"#0072b2\"/>\n</svg>\n"
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_reaches_the_axis_even_if_it_is_shorter_than_a_pixel() {
        let trace = Trace::parse("10,100.1\n0,0.001\n20,100\n").expect("a good trace");
        let svg = svg(&trace);
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
        // The first half of the time has half the height, the rest the full height.
        assert!(svg.contains("M70 155.0V155.0h1"), "{svg}");
        assert!(svg.contains("V20.0h1"), "{svg}");
        assert_eq!(svg.matches("V290.0h1").count(), 1, "one column of the area");
    }
}
