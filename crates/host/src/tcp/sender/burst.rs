/// Segments that the sender has sent as one burst and that still have to be put on the wire.
#[derive(Clone, Copy, Debug)]
pub(super) struct Burst {
    pub(super) next: u32,
    pub(super) end: u32,
    pub(super) byte: u64,
    /// Where the stream ends with it. All segments of new data but the last are full.
    pub(super) end_byte: u64,
    pub(super) retransmission: bool,
    pub(super) cwr: bool,
    /// The last segment carries PSH, as in every offloaded burst.
    pub(super) push: bool,
}
