//! A home behind an access line: which links it is made of.

use sojourn_core::{PortId, Span, SpecError};
use sojourn_link::{JitterConfig, LossConfig, RateSpec};
use sojourn_scenario::Link;

use super::shape::Shape;
use super::{Sources, Wrong};
use crate::spec::{GatewaySpec, Notation, QueueSpec, Text};

/// Linux's queue if nobody set another one (`txqueuelen`).
const ROUTER_QUEUE: &str = "pfifo limit 1000";
/// Modems and access nodes hold some hundred milliseconds.
const LINE_QUEUE: &str = "bfifo limit 250ms";
const LAN: &str = "1Gbps";

/// One link, with the values of the gateway's keys.
struct Part<'a> {
    name: &'static str,
    queue: Option<&'a Text<QueueSpec>>,
    queue_key: &'static str,
    default_queue: &'static str,
    rate: Option<&'a Text<RateSpec>>,
    rate_key: &'static str,
    delay: Span,
    loss: Option<&'a Text<LossConfig>>,
    jitter: Option<&'a Text<JitterConfig>>,
}

pub(super) fn build(spec: &GatewaySpec, sources: &mut Sources<'_>) -> Result<Shape, Wrong> {
    let down = vec![PortId(0), PortId(1)];
    let up = vec![PortId(2), PortId(3)];
    let mut shape = Shape::sides((down, up), None);
    let rtt = spec.rtt.value;
    let parts = [
        Part {
            name: "provider",
            queue: spec.provider_queue.as_ref(),
            queue_key: "provider_queue",
            default_queue: LINE_QUEUE,
            rate: Some(&spec.down),
            rate_key: "down",
            delay: rtt / 2,
            loss: spec.loss.as_ref(),
            jitter: spec.jitter.as_ref(),
        },
        Part {
            name: "ingress",
            queue: spec.ingress.as_ref(),
            queue_key: "ingress",
            ..at_home(&spec.ingress_shaper, "ingress_shaper", spec)
        },
        Part {
            name: "router",
            queue: spec.queue.as_ref(),
            queue_key: "queue",
            ..at_home(&spec.shaper, "shaper", spec)
        },
        Part {
            name: "modem",
            queue: spec.modem_queue.as_ref(),
            queue_key: "modem_queue",
            default_queue: LINE_QUEUE,
            rate: Some(&spec.up),
            rate_key: "up",
            delay: rtt - rtt / 2,
            loss: spec.up_loss.as_ref(),
            jitter: spec.up_jitter.as_ref(),
        },
    ];
    for part in parts {
        add(&mut shape, &part, rtt, sources)?;
    }
    Ok(shape)
}

/// A queue of the router, in front of a shaper or else a wire of the home.
fn at_home<'a>(
    shaper: &'a Option<Text<RateSpec>>,
    shaper_key: &'static str,
    spec: &'a GatewaySpec,
) -> Part<'a> {
    let (rate, rate_key) = match shaper {
        Some(shaper) => (Some(shaper), shaper_key),
        None => (spec.lan.as_ref(), "lan"),
    };
    Part {
        name: "",
        queue: None,
        queue_key: "",
        default_queue: ROUTER_QUEUE,
        rate,
        rate_key,
        delay: Span::ZERO,
        loss: None,
        jitter: None,
    }
}

fn add(
    shape: &mut Shape,
    part: &Part<'_>,
    rtt: Span,
    sources: &mut Sources<'_>,
) -> Result<(), Wrong> {
    let wrong = |key: &str, problem: SpecError| Wrong::new(format!("gateway.{key}"), problem);
    let rate = or_default(part.rate, LAN).map_err(|error| wrong(part.rate_key, error))?;
    let queue =
        or_default(part.queue, part.default_queue).map_err(|error| wrong(part.queue_key, error))?;
    let completed = sources.rate(&rate, &format!("gateway.{}", part.rate_key))?;
    let kinds = sources.registry.queues();
    let limited = queue.value.complete(kinds, None, completed.mean(), rtt);
    let limited = limited.and_then(|queue| queue.check_on(completed.constant()).map(|()| queue));
    let limited = limited.map_err(|error| wrong(part.queue_key, error))?;
    let link = Link {
        loss: part.loss.map(|loss| loss.value.clone()).unwrap_or_default(),
        jitter: part.jitter.map(|jitter| jitter.value.clone()).unwrap_or_default(),
        ..Link::new(part.name, limited, completed, part.delay)
    };
    shape.add_link(link, queue.text, rate.text);
    Ok(())
}

fn or_default<T: Notation + Clone>(
    written: Option<&Text<T>>,
    default: &str,
) -> Result<Text<T>, SpecError> {
    match written {
        Some(text) => Ok(text.clone()),
        None => Ok(Text { text: default.to_owned(), value: T::read(default)? }),
    }
}
