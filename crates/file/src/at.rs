/// Where something is written: a source and a byte in it. The study file comes before those that it
/// extends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct At {
    pub(crate) source: u32,
    pub(crate) byte: u32,
}

impl At {
    /// The beginning of the study file.
    pub const START: Self = Self { source: 0, byte: 0 };
}
