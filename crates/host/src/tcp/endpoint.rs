use alloc::string::String;

use sojourn_core::{FlowSample, Packet, Time};

use super::reader::Reads;
use super::{Receiver, Sender};
use crate::{Around, Endpoint};

impl Endpoint for Sender {
    fn on_packet(&mut self, now: Time, packet: &Packet, around: &mut Around<'_>) {
        Self::on_packet(self, now, packet, &mut around.observer);
    }

    fn on_wake(&mut self, now: Time, around: &mut Around<'_>) {
        Self::on_wake(self, now, &mut around.observer);
    }

    fn poll_transmit(&mut self, now: Time, _: &mut Around<'_>) -> Option<Packet> {
        Self::poll_transmit(self, now)
    }

    fn next_wake(&self) -> Time {
        Self::next_wake(self)
    }

    fn sample(&self, now: Time) -> Option<FlowSample> {
        Some(Self::sample(self, now))
    }

    fn check(&self) -> Result<(), String> {
        match self.has_counted_right() {
            true => Ok(()),
            false => {
                Err("other segments are counted as in flight than the scoreboard shows".into())
            }
        }
    }
}

impl<R: Reads + Send> Endpoint for Receiver<R> {
    fn on_packet(&mut self, now: Time, packet: &Packet, around: &mut Around<'_>) {
        Self::on_packet(self, now, packet, &mut around.observer);
    }

    fn on_wake(&mut self, now: Time, around: &mut Around<'_>) {
        Self::on_wake(self, now, &mut around.observer);
    }

    fn poll_transmit(&mut self, now: Time, _: &mut Around<'_>) -> Option<Packet> {
        Self::poll_transmit(self, now)
    }

    fn next_wake(&self) -> Time {
        Self::next_wake(self)
    }
}
