//! Explicit congestion notification: what the two ends agree on in the handshake (RFC 9768 section
//! 3.1, RFC 3168 section 6.1.1), and what each end's packets carry afterwards.

use sojourn_cca::{EcnFeedback, EcnRequest};
use sojourn_core::{AckBody, Ecn, EcnMode, TcpEcn};

use super::accecn::Marks;

/// What the sender asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EcnOffer {
    Off,
    /// RFC 3168.
    Classic,
    /// RFC 9768, or as much of RFC 3168 as the other end supports.
    Accurate,
}

/// What the receiver agrees to if it is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EcnSupport {
    Off,
    /// RFC 3168.
    Classic,
    /// RFC 3168, echoing as RFC 8257 section 3.2 says.
    MarkByMark,
    /// RFC 9768 and RFC 3168; the latter with the echo that the connection's congestion control
    /// asks for.
    Accurate,
}

/// How the receiver reports marks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Echo {
    #[default]
    Off,
    /// ECE until the sender answers (RFC 3168 section 6.1.3).
    Latched,
    /// ECE for as long as what arrives is marked (RFC 8257 section 3.2).
    MarkByMark,
    /// Counters (RFC 9768 section 3.2).
    Counters,
}

impl EcnOffer {
    /// What a controller asks for if the flow sets nothing.
    pub(super) fn following(request: EcnRequest) -> Self {
        match request {
            EcnRequest::Host => Self::Off,
            EcnRequest::MarkByMark => Self::Classic,
            EcnRequest::L4s => Self::Accurate,
        }
    }

    /// The flags of a request that was sent `repeats` times before. A path may drop requests with
    /// flags that it does not know, so later repetitions leave them out (RFC 9768 section 3.1.4.1,
    /// RFC 3168 section 6.1.1.1).
    pub(super) fn flags(self, repeats: u32) -> TcpEcn {
        TcpEcn::from_bits(match self {
            Self::Classic if repeats == 0 => 0b011,
            Self::Accurate if repeats <= 1 => 0b111,
            Self::Off | Self::Classic | Self::Accurate => 0,
        })
    }

    /// RFC 9768 table 2 and section 3.1.3, as the requesting end reads the answer.
    pub(super) fn agreed(self, answer: TcpEcn) -> EcnFeedback {
        match (self, answer.bits()) {
            (Self::Accurate, 0b010..=0b110) => EcnFeedback::Accurate,
            (Self::Accurate, 0b001) => EcnFeedback::Classic,
            // An answer that repeats the request comes from a broken host.
            (Self::Accurate, _) | (Self::Off, _) => EcnFeedback::Off,
            (Self::Classic, bits) if bits & 0b011 == 0b001 => EcnFeedback::Classic,
            (Self::Classic, _) => EcnFeedback::Off,
        }
    }
}

impl EcnSupport {
    /// RFC 9768 table 2 and section 3.1.3, as the answering end reads the request.
    pub(super) fn agrees_to(self, asked: TcpEcn, request: EcnRequest) -> Echo {
        let classic = match (self, request) {
            (Self::MarkByMark, _) | (Self::Accurate, EcnRequest::MarkByMark) => Echo::MarkByMark,
            _ => Echo::Latched,
        };
        match (self, asked.bits()) {
            (Self::Off, _) | (_, 0) => Echo::Off,
            (Self::Accurate, 0b011) => classic,
            (Self::Accurate, _) => Echo::Counters,
            // RFC 3168 does not know the third flag and ignores it.
            (_, 0b011 | 0b111) => classic,
            _ => Echo::Off,
        }
    }
}

impl Echo {
    /// The flags of the answer to a request that arrived with the codepoint `arrived`.
    pub(super) fn answer(self, arrived: Ecn) -> TcpEcn {
        TcpEcn::from_bits(match self {
            Self::Off => 0,
            Self::Latched | Self::MarkByMark => 0b001,
            Self::Counters => match arrived {
                Ecn::NotEct => NOT_ECT,
                Ecn::Ect1 => 0b011,
                Ecn::Ect0 => 0b100,
                Ecn::Ce => CE,
            },
        })
    }

    /// The codepoint of acknowledgements. As on Linux they are ECN-capable unless the feedback is
    /// that of RFC 3168 (section 6.1.4).
    pub(super) fn codepoint(self, request: EcnRequest) -> Ecn {
        match self {
            Self::Off | Self::Latched => Ecn::NotEct,
            Self::MarkByMark => Ecn::Ect0,
            Self::Counters => accurate_codepoint(request),
        }
    }
}

/// The code for a request that arrived unchanged (RFC 9768 table 2).
const NOT_ECT: u8 = 0b010;
const CE: u8 = 0b110;

fn accurate_codepoint(request: EcnRequest) -> Ecn {
    match request {
        EcnRequest::L4s => Ecn::Ect1,
        EcnRequest::Host | EcnRequest::MarkByMark => Ecn::Ect0,
    }
}

/// The sender's side of a connection.
#[derive(Clone, Debug)]
pub(super) struct SenderEcn {
    pub(super) feedback: EcnFeedback,
    /// The codepoint of new data, and of repeated data.
    pub(super) fresh: Ecn,
    pub(super) repeated: Ecn,
    /// The sender still has to tell the receiver that it saw the congestion echo (RFC 3168 section
    /// 6.1.2).
    pub(super) owes_cwr: bool,
    /// The flags that data carries otherwise.
    pub(super) flags: TcpEcn,
    marks: Marks,
    has_feedback: bool,
    /// An acknowledgement arrived that could be marked, or was marked.
    pub(super) saw_capable: bool,
}

impl SenderEcn {
    /// Before anything is agreed on.
    pub(super) fn off() -> Self {
        Self {
            feedback: EcnFeedback::Off,
            fresh: Ecn::NotEct,
            repeated: Ecn::NotEct,
            owes_cwr: false,
            flags: TcpEcn::NONE,
            marks: Marks::default(),
            has_feedback: false,
            saw_capable: false,
        }
    }

    pub(super) fn mode(&self) -> EcnMode {
        match self.feedback {
            EcnFeedback::Off => EcnMode::Disabled,
            EcnFeedback::Classic => EcnMode::Rfc3168,
            EcnFeedback::Accurate => EcnMode::AccEcn,
        }
    }

    pub(super) fn agree(offer: EcnOffer, request: EcnRequest, answer: TcpEcn) -> Self {
        let feedback = offer.agreed(answer);
        let (fresh, repeated) = match feedback {
            EcnFeedback::Off => (Ecn::NotEct, Ecn::NotEct),
            // Repeated data is not ECN-capable (RFC 3168 section 6.1.5), except with DCTCP.
            EcnFeedback::Classic if request == EcnRequest::MarkByMark => (Ecn::Ect0, Ecn::Ect0),
            EcnFeedback::Classic => (Ecn::Ect0, Ecn::NotEct),
            EcnFeedback::Accurate => (accurate_codepoint(request), accurate_codepoint(request)),
        };
        let is_accurate = feedback == EcnFeedback::Accurate;
        let mut ecn = Self {
            feedback,
            fresh,
            repeated,
            flags: if is_accurate { super::accecn::FIRST_ACE } else { TcpEcn::NONE },
            ..Self::off()
        };
        // The request had no codepoint, so one that arrived was put in on the path (RFC 9768
        // section 3.2.2.3). The reserved answer counts as none.
        if is_accurate && !matches!(answer.bits(), NOT_ECT | 0b101) {
            ecn.stop_marking();
        }
        ecn
    }

    /// The answer reports a mark on the request.
    pub(super) fn is_request_marked(&self, answer: TcpEcn) -> bool {
        self.feedback == EcnFeedback::Accurate && answer.bits() == CE
    }

    /// An acknowledgement that arrives with a mark counts as any other marked packet.
    pub(super) fn on_marked_ack(&mut self) {
        if self.feedback == EcnFeedback::Accurate {
            self.flags = TcpEcn::from_bits(self.flags.bits() + 1);
        }
    }

    /// What an acknowledgement that newly delivers `delivered` segments reports: how many segments
    /// were marked, and whether that is congestion. If a later one overtook it, it reports nothing
    /// new.
    pub(super) fn on_ack(
        &mut self,
        ack: &AckBody,
        delivered: u32,
        is_news: bool,
        mss: u32,
    ) -> (u32, bool) {
        match self.feedback {
            EcnFeedback::Off => (0, false),
            EcnFeedback::Classic => {
                let ece = ack.ecn.contains(TcpEcn::ECE);
                (if ece { delivered } else { 0 }, ece)
            }
            EcnFeedback::Accurate => {
                if !core::mem::replace(&mut self.has_feedback, true) && ack.ecn == TcpEcn::NONE {
                    self.distrust();
                    return (0, false);
                }
                if !is_news {
                    return (0, false);
                }
                let told = self.marks.on_ack(ack.ecn, ack.ce_bytes, delivered, mss);
                if told.is_inconsistent {
                    self.stop_marking();
                }
                (told.marked, told.marked > 0)
            }
        }
    }

    /// The counter begins at five, so a device on the path clears it (RFC 9768 section 3.2.2.4).
    #[cold]
    fn distrust(&mut self) {
        self.stop_marking();
        self.feedback = EcnFeedback::Off;
    }

    fn stop_marking(&mut self) {
        (self.fresh, self.repeated) = (Ecn::NotEct, Ecn::NotEct);
    }
}

/// Bytes of TCP options that hold the counters beside timestamps and `sack_count` blocks, as far as
/// there is room. Blocks come first (RFC 9768 section 3.2.3.3).
pub(super) fn option_length(sack_count: u8) -> u8 {
    match sack_count {
        // Three counters: eleven bytes and one of padding.
        0 | 1 => 12,
        2 => 8,
        _ => 0,
    }
}
