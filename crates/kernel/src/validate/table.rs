//! Worlds and their numbers as CSV, written and read again.

use std::fmt::Write as _;

use super::number::{Kind, Number, Side};
use super::world::World;

/// A world that was compared, or why it could not be.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    pub world: World,
    pub numbers: Result<Vec<Number>, String>,
}

impl Compared {
    /// The number that is farthest off; none if all are inside.
    pub fn worst(&self) -> Option<&Number> {
        let outside = self.numbers.iter().flatten().filter(|number| !number.is_inside());
        outside.max_by(|one, other| one.distance().total_cmp(&other.distance()))
    }
}

const HEAD: &str = "world,rate_kbps,rtt_ms,queue,loss_permille,receive_buffer,most_send_buffer,ecn,flows,duration_s,number,of,\
    kernel,kernel_min,kernel_max,simulated,simulated_min,simulated_max,simulated_again,distance_bounds,inside";
const COLUMNS: usize = 21;
/// Stands in the place of a number's name in the only row of a world that could not be run.
const FAILED: &str = "failed";

/// Every number of every world, a line each.
pub fn csv(all: &[Compared]) -> String {
    let mut text = format!("{HEAD}\n");
    all.iter().for_each(|compared| rows(&mut text, compared));
    text
}

fn rows(text: &mut String, compared: &Compared) {
    let world = &compared.world;
    let flow = |(control, start): &(String, u64)| format!("{control}@{start}");
    let flows: Vec<String> = world.flows.iter().map(flow).collect();
    let head = format!(
        "{},{},{},{},{},{},{},{},{},{}",
        world.number,
        world.rate,
        world.rtt,
        world.queue,
        world.loss,
        world.window.map_or(String::new(), |window| window.to_string()),
        world.send_buffer.map_or(String::new(), |most| most.to_string()),
        u8::from(world.ecn),
        flows.join("+"),
        world.duration,
    );
    let numbers = match &compared.numbers {
        Ok(numbers) => numbers,
        Err(problem) => {
            let problem = problem.replace([',', '\n', '\r'], ";");
            let _ = writeln!(text, "{head},{FAILED},{problem},,,,,,,,,");
            return;
        }
    };
    for number in numbers {
        let Number { kind, of, kernel, simulated, again, .. } = number;
        let _ = write!(text, "{head},{},{of}", kind.name());
        for value in [kernel, simulated].into_iter().flat_map(|s| [s.mean, s.least, s.most]) {
            let _ = write!(text, ",{value:.6}");
        }
        let (distance, inside) = (number.distance(), u8::from(number.is_inside()));
        let _ = writeln!(text, ",{again:.6},{distance:.3},{inside}");
    }
}

/// The numbers of one world, as [`csv`] wrote them; `None` if the text is something else.
pub(super) fn read(text: &str, world: &World) -> Option<Compared> {
    let mut expected = String::new();
    let empty = Compared { world: world.clone(), numbers: Err(String::new()) };
    rows(&mut expected, &empty);
    let (own, _) = expected.split_once(FAILED)?;
    let mut lines = text.strip_suffix('\n')?.lines();
    if lines.next()? != HEAD {
        return None;
    }
    let mut numbers = Vec::new();
    for line in lines {
        let cells: Vec<&str> = line.strip_prefix(own)?.split(',').collect();
        if cells.len() != COLUMNS - 10 {
            return None;
        }
        if cells[0] == FAILED {
            return Some(Compared { world: world.clone(), numbers: Err(cells[1].to_owned()) });
        }
        let value = |at: usize| cells[at].parse::<f64>().ok().filter(|value| value.is_finite());
        let side = |at: usize| {
            Some(Side { mean: value(at)?, least: value(at + 1)?, most: value(at + 2)? })
        };
        numbers.push(Number {
            kind: Kind::named(cells[0])?,
            of: cells[1].to_owned(),
            rate: world.rate as f64 / 1e3,
            kernel: side(2)?,
            simulated: side(5)?,
            again: value(8)?,
        });
    }
    (!numbers.is_empty()).then(|| Compared { world: world.clone(), numbers: Ok(numbers) })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn example() -> Compared {
        let world = World::draw(1, 3, &["cubic-linux".to_owned(), "bbr".to_owned()]);
        let side = Side { mean: 9.5, least: 9.25, most: 9.75 };
        let number = Number {
            kind: Kind::Srtt,
            of: "bbr".to_owned(),
            rate: world.rate as f64 / 1e3,
            kernel: side,
            simulated: Side { mean: 12.0, ..side },
            again: 11.5,
        };
        Compared { world, numbers: Ok(vec![number]) }
    }

    #[test]
    fn what_was_written_is_read() {
        let own = example();
        assert_eq!(read(&csv(std::slice::from_ref(&own)), &own.world), Some(own.clone()));
        let failed = Compared { numbers: Err("a, b".to_owned()), ..own.clone() };
        let again = read(&csv(std::slice::from_ref(&failed)), &failed.world);
        assert_eq!(again.map(|own| own.numbers), Some(Err("a; b".to_owned())));
        let other = World { rtt: own.world.rtt + 1, ..own.world.clone() };
        assert_eq!(read(&csv(&[own]), &other), None);
    }

    proptest! {
        #[test]
        fn damaged_text_is_read_or_refused(at in 0usize..600, byte in 0u8..128) {
            let own = example();
            let mut text = csv(std::slice::from_ref(&own)).into_bytes();
            let at = at % text.len();
            text[at] = byte;
            let text = String::from_utf8(text).expect("it is ASCII");
            let _ = read(&text, &own.world);
            let _ = read(&text[..at], &own.world);
        }
    }
}
