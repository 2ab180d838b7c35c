//! What the receiver of a connection offers, as far as it is known without one: how much in the answer of the handshake, in
//! which units, and how much at most.

use alloc::string::ToString;
use alloc::vec::Vec;
use core::fmt;

use sojourn_core::param::Form;
use sojourn_core::{ETHERNET_HEADER, truesize_of};

use crate::tcp::{Config, Windows};

/// Windows of a handshake are not scaled (RFC 7323 section 2.2).
const MOST_UNSCALED: u64 = 65_535;
/// RFC 7323 section 2.3.
const LARGEST_SCALE: u32 = 14;
/// Memory that a segment of an offloaded packet takes.
const TRUESIZE_OFFLOADED: u32 = 3_365;

/// The window of the handshake's answer, in bytes.
pub fn first_window(config: &Config) -> u16 {
    let mss = u64::from(config.mss);
    let first = match &config.receive_window {
        Some(windows) => sizes(windows)[0],
        None => {
            // What a segment takes is not known yet.
            let space =
                config.receive_buffer.map_or(config.initial_receive_buffer, |asked| 2 * asked);
            let full = space * config.adv_win_scale.map_or(128, share) / 256;
            if full > mss { full - full % mss } else { full }
        }
    };
    first.min(MOST_UNSCALED) as u16
}

/// The scale that the handshake announces: like Linux, as many bits as the largest buffer has more than 16, or the window if that is
/// what is stated. A buffer that the application has set does not grow, and half of it is window when the handshake is.
pub fn window_scale(config: &Config) -> u8 {
    let largest = match (&config.receive_window, config.receive_buffer) {
        (Some(windows), _) => sizes(windows).into_iter().max().unwrap_or(0),
        (None, Some(asked)) => asked,
        (None, None) => config.most_receive_buffer,
    };
    (u64::BITS - largest.leading_zeros()).saturating_sub(16).min(LARGEST_SCALE) as u8
}

/// The most bytes of payload that the receiver ever offers, if full segments arrive and the application reads at once.
pub fn most_window(config: &Config) -> u64 {
    if let Some(windows) = &config.receive_window {
        return sizes(windows).into_iter().max().unwrap_or(0);
    }
    let mss = u64::from(config.mss);
    let memory = u64::from(match config.offload {
        false => truesize_of(config.mss + config.header + ETHERNET_HEADER),
        true => TRUESIZE_OFFLOADED,
    });
    let space = config.receive_buffer.map_or(config.most_receive_buffer, |asked| 2 * asked);
    let part = config.adv_win_scale.map_or((mss << 8) / memory, share);
    // One segment is held until the application has read it, but a buffer in which there is no room for that keeps its first window.
    let grown = space.saturating_sub(memory) * part / 256;
    let most = grown.max(u64::from(first_window(config)).min(2 * mss).min(space * part / 256));
    most - most % mss.min(most).max(1)
}

/// In 1/256, all but one part in 2 to the power of `scale`.
fn share(scale: u32) -> u64 {
    256 - (256 >> scale)
}

/// All windows in order, as they are written: `64000 at 0s 256000 at 10s`.
fn sizes(windows: &Windows) -> Vec<u64> {
    struct Written<'a>(&'a Windows);
    impl fmt::Display for Written<'_> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            Windows::show(self.0, f)
        }
    }
    let text = Written(windows).to_string();
    text.split(' ').step_by(3).map(|size| size.parse().expect("it is shown in bytes")).collect()
}

#[cfg(test)]
mod tests {
    use sojourn_core::{Params, Words};

    use super::*;

    fn config(text: &str) -> Config {
        Config::parse(&mut Words::new(text)).unwrap()
    }

    /// What Linux says of a new connection over Ethernet: `win 65160, options [mss 1460,sackOK,TS,nop,wscale 7]`.
    #[test]
    fn a_handshake_offers_what_linux_offers() {
        let usual = Config::default();
        assert_eq!((first_window(&usual), window_scale(&usual)), (65_160, 7));
        // Since Linux 6.17.
        let later = Config { most_receive_buffer: 32 << 20, ..Config::default() };
        assert_eq!(window_scale(&later), 10);
    }

    #[test]
    fn a_stated_window_is_offered_as_it_is_with_the_least_scale_that_holds_it() {
        let of = |windows| {
            let config = Config { receive_window: Some(windows), ..Config::default() };
            (first_window(&config), window_scale(&config), most_window(&config))
        };
        assert_eq!(of(Windows::from(5_000)), (5_000, 0, 5_000));
        assert_eq!(of(Windows::from(65_535)), (65_535, 0, 65_535));
        assert_eq!(of(Windows::from(65_536)), (65_535, 1, 65_536));
        assert_eq!(of(Windows::from(1 << 40)), (65_535, 14, 1 << 40));
        let changing = Config::PARAMS.iter().find(|param| param.name == "receive_window").unwrap();
        let read = |text| Windows::read(text, changing).unwrap();
        assert_eq!(of(read("64kB at 0s 1MB at 10s 3kB at 20s")), (64_000, 4, 1_000_000));
    }

    /// Of 6 MiB in segments that take 2416 bytes for 1448, in 1/256 and without one of them, 3 758 684 bytes.
    #[test]
    fn the_most_is_the_share_of_the_memory_that_payload_takes() {
        assert_eq!(most_window(&Config::default()), 2_595 * 1448);
        let of = |text| most_window(&config(text)) / 1448;
        assert_eq!(of("most_receive_buffer 128KiB"), 53);
        assert_eq!(of("most_receive_buffer 256kB adv_win_scale 1"), 87);
        assert_eq!(of("most_receive_buffer 256kB adv_win_scale 8"), 174);
        assert_eq!(of("most_receive_buffer 256kB offload true"), 74);
        let tiny = "initial_receive_buffer 2304B most_receive_buffer 2304B";
        assert_eq!(most_window(&config(tiny)), 1152);
    }
}
