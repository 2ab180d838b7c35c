//! One direction between the access point and a station, for one access category.

use sojourn_core::{Span, Time};

use super::staged::Cost;
use super::{Config, Radio};
use crate::mac::block_ack::{Agreement, Fate, Msdu};
use crate::mac::frames;
use crate::mac::response::control_mode;
use crate::phy::{Format, Mode};
use crate::store::Released;

pub(crate) struct Link {
    pub(crate) sending: Sending,
    /// What airtime queue limits take a packet to need when it sends so.
    pub(super) cost: Cost,
    /// Its position among the modes of its port.
    pub(crate) choice: u16,
    pub(crate) agreement: Agreement,
}

/// How it sends, with the durations of the control frames that go with it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sending {
    pub(crate) mode: Mode,
    pub(crate) error: f64,
    /// Octets of the longest PSDU.
    pub(crate) longest: u32,
    /// Frames of the block ack window.
    pub(crate) window: u32,
    pub(crate) ack: Span,
    pub(crate) block_ack: Span,
    pub(crate) block_ack_req: Span,
    pub(crate) rts: Span,
    pub(crate) cts: Span,
    /// PSDUs of more octets are sent behind an RTS.
    pub(crate) rts_threshold: u32,
    /// The formats in which a CTS and an Ack come.
    pub(crate) answers: [Format; 2],
}

impl Link {
    pub(crate) fn new(radio: Radio, config: &Config) -> Self {
        let (sending, cost) = (Sending::new(radio, config), Cost::new(&radio.mode));
        Self { sending, cost, choice: 0, agreement: Agreement::new() }
    }

    /// When the oldest frame arrived that has been sent before and must be sent again.
    pub(crate) fn first_to_send(&self) -> Option<u64> {
        if self.agreement.to_repeat == 0 && !self.agreement.bar_due {
            return None;
        }
        self.agreement.first_open().map(|msdu| msdu.order)
    }
}

impl Sending {
    pub(crate) fn new(radio: Radio, config: &Config) -> Self {
        let control = control_mode(&radio.mode);
        let window = radio.window(&config.limits);
        let protection = config.protection.filter(|_| radio.mode.format() > Format::NonHt);
        let rts = protection.unwrap_or(control);
        Self {
            mode: radio.mode,
            error: radio.error,
            longest: radio.longest(&config.limits),
            window,
            ack: control.txtime(frames::ACK),
            block_ack: control.txtime(frames::block_ack(window)),
            block_ack_req: control.txtime(frames::BLOCK_ACK_REQ),
            rts: rts.txtime(frames::RTS),
            cts: rts.txtime(frames::CTS),
            rts_threshold: protection.map_or(config.rts_threshold, |_| 0),
            answers: [rts.format(), control.format()],
        }
    }

    /// The format of what answers the first frame, an RTS or data.
    pub(crate) fn answer(&self, has_rts: bool) -> Format {
        self.answers[usize::from(!has_rts)]
    }

    /// RTS and CTS with the spaces after them, if a PSDU may be so long that they are sent.
    pub(crate) fn protection(&self, config: &Config) -> Span {
        match self.rts_threshold {
            u32::MAX => Span::ZERO,
            _ => self.rts + config.sifs + self.cts + config.sifs,
        }
    }
}

#[inline]
pub(crate) fn msdu(packet: &Released, mpdu_octets: u32, ppdu: u32) -> Msdu {
    Msdu {
        packet: packet.slot,
        ip_len: packet.ip_len,
        order: packet.order,
        mpdu_octets,
        attempts: 0,
        ppdu,
        fate: Fate::Open,
        received: Time::NEVER,
        is_passed_on: false,
    }
}

/// Octets of an A-MSDU of `joined` MSDUs once another packet joins. A lone MSDU has no subframe
/// header.
pub(crate) fn amsdu_octets(body: u32, joined: usize, ip_octets: u32) -> u32 {
    let before = if joined == 1 { frames::msdu_subframe(body) } else { body.next_multiple_of(4) };
    before + frames::MSDU_SUBFRAME_HEADER + ip_octets + frames::LLC_SNAP
}
