//! What the buffers at both ends allow in flight.
//!
//! A receive buffer offers a window. A send buffer is no window: it is memory for what was written and is not acknowledged, and says when
//! the application sleeps and wakes. One that sleeps is woken when two thirds of the memory are taken, and one that was woken fills the window,
//! whatever the memory. So what is in flight goes down from the window to what those two thirds hold, and up at once.

use alloc::format;

use sojourn_core::SpecError;
use sojourn_host::offer::most_window;
use sojourn_host::tcp::Config;

/// Bytes of Linux's structures in a buffer of what is sent; room for headers is `header_room`.
const STRUCTURES: u32 = 576;
/// What a buffer takes more where room and what goes with the data would be a power of two.
const CACHE_LINE: u32 = 64;
const WITH_DATA: u32 = 320;
/// Segments of a burst, as one acknowledgement stands for two.
const BURST: f64 = 2.0;
/// A window of more than so much of what the send buffer holds when the application is woken is empty at times: nothing is sent until
/// the first of the last burst has come back.
const MOST: f64 = 2.0;

/// Refuses a send buffer that decides how the sender sends, and not only how much. Linux's own sizes of both buffers are taken whatever the
/// segments are.
///
/// # Errors
/// Says how large the send buffer must be.
pub(crate) fn check(transport: &Config) -> Result<(), SpecError> {
    let usual = Config::default();
    let is_usual = transport.send_buffer == usual.send_buffer
        && transport.most_send_buffer == usual.most_send_buffer
        && transport.most_receive_buffer == usual.most_receive_buffer;
    let window = most_window(transport) as f64;
    if is_usual || when_woken(transport).is_none_or(|woken| window <= MOST * woken) {
        return Ok(());
    }
    let enough = libm::ceil(window / MOST * memory_when_woken(transport)) as u64;
    let key = match transport.send_buffer == usual.send_buffer {
        true => "most_send_buffer",
        false => "send_buffer",
    };
    let problem = "the fluid engine has no send buffer that is small beside the receive window: its application sleeps until most of what \
                   was sent has been acknowledged, and then fills the window at once";
    Err(SpecError::new(problem).allow([
        format!("{key} = \"{enough}B\" or more"),
        "send_buffer = \"0\"".into(),
        "a smaller 'most_receive_buffer'".into(),
        "engine = \"sim\"".into(),
    ]))
}

/// Bytes of payload, on average while the window is full.
pub(crate) fn most_in_flight(transport: &Config) -> f64 {
    let window = most_window(transport) as f64;
    let Some(woken) = when_woken(transport).filter(|woken| *woken < window) else {
        return window;
    };
    let window = window.min(MOST * woken);
    if window <= 1.5 * woken {
        // What lies ready when the application falls asleep keeps the window full for a while. Then it empties until the application is
        // woken. This is its mean over what is acknowledged meanwhile.
        window - (window - woken) * (window - woken) / woken
    } else {
        (window + woken) / 2.0
    }
}

/// Bytes of payload in flight when the application is woken, if the send buffer has a limit.
fn when_woken(transport: &Config) -> Option<f64> {
    let memory = transport.send_buffer.most(transport.most_send_buffer)?;
    Some(memory as f64 / memory_when_woken(transport))
}

/// Bytes of the send buffer for each byte of payload in flight when the application is woken.
fn memory_when_woken(transport: &Config) -> f64 {
    let room = transport.header_room;
    let line = if (room + WITH_DATA).is_power_of_two() { CACHE_LINE } else { 0 };
    let overhead = transport.buffer_overhead.unwrap_or(room + STRUCTURES + line);
    1.5 * (1.0 + f64::from(overhead) / (BURST * f64::from(transport.mss)))
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use sojourn_host::tcp::SendBuffer;

    use super::*;

    /// Over Ethernet 300 000 bytes hold 152 740 of payload in pairs of segments when two thirds are taken; of a receive buffer of 256 kB
    /// 150 592 are window.
    #[test]
    fn a_window_that_fits_what_is_taken_when_the_application_is_woken_is_all_in_flight() {
        let with = |send: u64| Config {
            most_receive_buffer: 256_000,
            send_buffer: SendBuffer::Bytes(send),
            ..Config::default()
        };
        assert!((when_woken(&with(300_000)).unwrap() - 152_742.6).abs() < 1.0);
        assert_eq!(most_in_flight(&with(300_000)), 150_592.0);
        assert_eq!(most_in_flight(&with(0)), 150_592.0);
        let woken = when_woken(&with(200_000)).unwrap();
        let most = most_in_flight(&with(200_000));
        assert!(woken < most && most < 150_592.0, "{woken} < {most}");
        // Both forms say the same where they meet.
        let meeting = 150_592.0 / 1.5 * memory_when_woken(&with(1));
        let [below, above] =
            [meeting + 1.0, meeting - 1.0].map(|send| most_in_flight(&with(send as u64)));
        assert!((below - above).abs() < 2.0, "{below} and {above}");
    }

    #[test]
    fn the_refusal_names_a_size_that_is_taken() {
        let with = |send| Config { send_buffer: SendBuffer::Bytes(send), ..Config::default() };
        let error = check(&with(64_000)).unwrap_err().to_string();
        let size = error.split("send_buffer = \"").nth(1).unwrap().split('B').next().unwrap();
        let size = size.parse().unwrap();
        assert_eq!(check(&with(size)), Ok(()));
        assert!(check(&with(size - 2)).is_err());
        let small = Config { most_send_buffer: 64_000, ..Config::default() };
        assert!(check(&small).unwrap_err().to_string().contains("most_send_buffer = "));
        // A default is never refused, whatever the segments.
        assert_eq!(check(&Config { mss: 8948, ..Config::default() }), Ok(()));
    }
}
