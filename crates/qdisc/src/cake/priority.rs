//! Tins: which code points go where, and what each tin gets.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priority {
    /// One tin.
    Besteffort,
    /// A tin for each of the eight class selectors; obsolete.
    Precedence,
    /// Bulk, best effort, voice.
    Diffserv3,
    /// Bulk, best effort, video, voice.
    Diffserv4,
    /// Eight tins.
    Diffserv8,
}

/// Code points (RFC 2474, 2597, 3246, 5865, 8622) by name.
mod dscp {
    pub(super) const LE: usize = 1;
    pub(super) const TOS1: usize = 2;
    pub(super) const TOS4: usize = 4;
    pub(super) const VA: usize = 44;
    pub(super) const EF: usize = 46;
    pub(super) const AF1X: [usize; 3] = [10, 12, 14];
    pub(super) const AF2X: [usize; 3] = [18, 20, 22];
    pub(super) const AF3X: [usize; 3] = [26, 28, 30];
    pub(super) const AF4X: [usize; 3] = [34, 36, 38];
    /// Class selector `n`.
    pub(super) const fn cs(n: usize) -> usize {
        n << 3
    }
}

use dscp::{AF1X, AF2X, AF3X, AF4X, EF, LE, TOS1, TOS4, VA, cs};

pub(crate) type Table = [u8; 64];

/// `table` with `tin` for these code points.
const fn assign(mut table: Table, tin: u8, code_points: &[usize]) -> Table {
    let mut index = 0;
    while index < code_points.len() {
        table[code_points[index]] = tin;
        index += 1;
    }
    table
}

const BESTEFFORT: Table = [0; 64];

const PRECEDENCE: Table = {
    let mut table = [0; 64];
    let mut code_point = 0;
    while code_point < 64 {
        table[code_point] = (code_point >> 3) as u8;
        code_point += 1;
    }
    table
};

// In diffserv3 and diffserv4 tin 0 is best effort and tin 1 is bulk. A tin with a higher number is
// served first while it keeps within its threshold.
const DIFFSERV3: Table = {
    let table = assign([0; 64], 1, &[LE, cs(1)]);
    assign(table, 2, &[TOS4, VA, EF, cs(6), cs(7)])
};

const DIFFSERV4: Table = {
    let table = assign([0; 64], 1, &[LE, cs(1)]);
    let table = assign(table, 2, &[TOS4, cs(2), cs(3)]);
    let table = assign(assign(assign(table, 2, &AF2X), 2, &AF3X), 2, &AF4X);
    assign(table, 3, &[VA, EF, cs(4), cs(5), cs(6), cs(7)])
};

const DIFFSERV8: Table = {
    let table = assign([2; 64], 0, &[LE]);
    let table = assign(assign(table, 1, &[TOS1, cs(1)]), 1, &AF1X);
    let table = assign(assign(assign(table, 3, &[cs(3)]), 3, &AF3X), 3, &AF4X);
    let table = assign(assign(table, 4, &[TOS4]), 4, &AF2X);
    let table = assign(table, 5, &[cs(2)]);
    let table = assign(table, 6, &[VA, EF, cs(4), cs(5)]);
    assign(table, 7, &[cs(6), cs(7)])
};

sojourn_core::keywords! {
    pub(crate) PriorityWord for Priority {
        "besteffort" = Priority::Besteffort, "one tin";
        "diffserv3" = Priority::Diffserv3, "tins for bulk, best effort and voice";
        "diffserv4" = Priority::Diffserv4, "tins for bulk, best effort, video and voice";
        "diffserv8" = Priority::Diffserv8, "eight tins";
        "precedence" = Priority::Precedence, "a tin for each class selector; obsolete";
    }
}

impl Priority {
    /// The tin of each code point.
    pub(crate) fn table(self) -> &'static Table {
        match self {
            Self::Besteffort => &BESTEFFORT,
            Self::Precedence => &PRECEDENCE,
            Self::Diffserv3 => &DIFFSERV3,
            Self::Diffserv4 => &DIFFSERV4,
            Self::Diffserv8 => &DIFFSERV8,
        }
    }

    /// Tins in the order in which `tc` shows them, with their titles.
    pub(crate) fn shown(self) -> &'static [(usize, &'static str)] {
        match self {
            Self::Besteffort => &[(0, "Tin 0")],
            Self::Diffserv3 => &[(1, "Bulk"), (0, "Best Effort"), (2, "Voice")],
            Self::Diffserv4 => &[(1, "Bulk"), (0, "Best Effort"), (2, "Video"), (3, "Voice")],
            Self::Precedence | Self::Diffserv8 => &[
                (0, "Tin 0"),
                (1, "Tin 1"),
                (2, "Tin 2"),
                (3, "Tin 3"),
                (4, "Tin 4"),
                (5, "Tin 5"),
                (6, "Tin 6"),
                (7, "Tin 7"),
            ],
        }
    }
}
