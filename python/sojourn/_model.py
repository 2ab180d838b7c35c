"""Closed forms: what papers compute where others simulate."""

from __future__ import annotations

from . import _native as extension
from ._given import unicode


def model(name: str, **parameters: float | str) -> dict[str, float]:
    """What a closed form gives at one point, as ``sojourn model NAME`` prints it; units are in the names.

    >>> round(model("square-root", p=0.01, rtt="40ms")["goodput_mbps"], 2)
    3.55

    `models` lists all with their parameters. Times, rates and sizes are texts with units: ``"20ms"``.
    """
    with unicode("model", [name, *map(str, parameters.values())]):
        return dict(extension.model(" ".join([name, *(f"{key}={value}" for key, value in parameters.items())])))


def models() -> dict[str, dict[str, str]]:
    """Every closed form: what it is, under "", and each parameter's default and what that is."""
    return {
        name: {"": doc, **{parameter: f"{default}: {what}" for parameter, default, what in parameters}}
        for name, doc, parameters in extension.models()
    }
