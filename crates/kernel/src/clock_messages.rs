//! What a guest and whoever owns its clock say to each other: the messages of `um_timetravel.h`, which is part of the
//! kernel's interface.

use crate::fault::Fault;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Says {
    Ack,
    Start,
    /// It has something to do at this time; the last request counts.
    Request,
    /// It does nothing before it is told to run.
    Wait,
    /// It asks for the time.
    Get,
    /// It tells the time.
    Update,
    /// From here on it runs.
    Run,
    /// It need not ask before this time.
    FreeUntil,
    /// It asks for the time of day.
    TimeOfDay,
}

const NUMBERS: [Says; 9] = [
    Says::Ack,
    Says::Start,
    Says::Request,
    Says::Wait,
    Says::Get,
    Says::Update,
    Says::Run,
    Says::FreeUntil,
    Says::TimeOfDay,
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClockMessage {
    pub(crate) says: Says,
    /// An acknowledgement repeats that of what it acknowledges.
    pub(crate) number: u32,
    /// In nanoseconds of the guest's clock.
    pub(crate) time: u64,
}

impl ClockMessage {
    pub(crate) const LEN: usize = 16;

    pub(crate) fn read(bytes: &[u8; Self::LEN]) -> Result<Self, Fault> {
        let [a, b, c, d, e, f, g, h, time @ ..] = *bytes;
        let kind = u32::from_ne_bytes([a, b, c, d]);
        let says = NUMBERS.get(kind as usize).copied();
        let says = says.ok_or_else(|| {
            Fault::Nonsense(format!("a message of kind {kind} on the socket of its clock"))
        })?;
        Ok(Self { says, number: u32::from_ne_bytes([e, f, g, h]), time: u64::from_ne_bytes(time) })
    }

    pub(crate) fn bytes(self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        bytes[..4].copy_from_slice(&(self.says as u32).to_ne_bytes());
        bytes[4..8].copy_from_slice(&self.number.to_ne_bytes());
        bytes[8..].copy_from_slice(&self.time.to_ne_bytes());
        bytes
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn kinds_have_the_numbers_of_the_interface() {
        for (number, says) in NUMBERS.into_iter().enumerate() {
            assert_eq!(says as usize, number);
        }
        assert_eq!((Says::Run as u32, Says::FreeUntil as u32, Says::TimeOfDay as u32), (6, 7, 8));
    }

    proptest! {
        #[test]
        fn any_sixteen_bytes_are_a_message_or_named_nonsense(bytes: [u8; 16]) {
            match ClockMessage::read(&bytes) {
                Ok(message) => prop_assert_eq!(message.bytes(), bytes),
                Err(fault) => prop_assert!(fault.to_string().contains("protocol")),
            }
        }
    }
}
