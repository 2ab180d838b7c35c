//! Static figures as SVG. Colours come from the page's style (`k0` … `k7`), so that a figure
//! follows dark, light and print without being drawn again.

mod bars;
mod bullet;
mod curves;
mod lines;
mod parts;
mod scale;
mod scatter;
mod symbol;
mod timeline;

pub(crate) use bars::{Category, Group, Layout, bars, shares};
pub(crate) use bullet::{Bounds, bullet};
pub(crate) use curves::{Axis, Curve, curves};
pub(crate) use lines::{Line, MOST_SPOTS, Spot, Spots, lines};
pub(crate) use parts::{MOST_POINTS, placed, text_width};
pub(crate) use scale::ends;
pub(crate) use scatter::{Cloud, MOST_CLOUDS, scatter};
pub(crate) use symbol::Key;
pub(crate) use timeline::{Band, Panel, Size, Trace, timeline, timeline_with};
