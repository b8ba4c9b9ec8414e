"""Rules between settings: what does not go together, whatever the data. For `config` and `sweeps.space`."""

import math
from collections.abc import Mapping
from typing import Any

from wgangp.wording import Clash


def clashes(settings: Mapping[str, Any]) -> list[Clash]:
    """Rules between fields that `settings` break. A rule is left out if one of its fields is absent."""
    found = []
    if {"n_critic", "batch_size", "tick_kimg"} <= settings.keys():
        n_critic, batch_size, tick = settings["n_critic"], settings["batch_size"], settings["tick_kimg"]
        if n_critic * batch_size > 1000 * tick:
            message = (
                f"tick_kimg must hold a generator step, n_critic x batch_size = {n_critic} x {batch_size}"
                f" = {n_critic * batch_size / 1000:g} kimg, got {tick:g}; raise it or lower one of the two"
            )
            found.append(Clash(message, fields=("tick_kimg", "n_critic", "batch_size")))
    if settings.get("run_eagerly") and settings.get("jit_compile"):
        message = "run_eagerly and jit_compile must not both be true: run by operations, nothing is compiled"
        found.append(Clash(message, fields=("run_eagerly", "jit_compile")))
    features = settings.get("features")
    if settings.get("inception") and features not in (None, "inception"):
        message = f"inception must be left out with features: {features}; set features: inception to use it"
        found.append(Clash(message, fields=("inception", "features")))
    if "inception_score" in (settings.get("scores") or ()) and features not in (
        None,
        "classifier",
        "inception",
    ):
        message = (
            "scores must not name inception_score, which needs the probabilities of classes that only the"
            f" features classifier and inception give, got features: {features}"
        )
        found.append(Clash(message, fields=("scores", "features")))
    if {"budget_kimg", "tick_kimg"} <= settings.keys():
        budget, tick = settings["budget_kimg"], settings["tick_kimg"]
        if not is_multiple(budget, tick):
            message = f"budget_kimg must be a multiple of tick_kimg ({tick:g}), got {budget:g}"
            found.append(Clash(message, fields=("budget_kimg", "tick_kimg")))
    return found


def misfits(
    settings: Mapping[str, Any], *, replicas: int, asynchronous: bool, train_images: int
) -> list[Clash]:
    """What of these settings does not go with so many replicas and images.

    Args:
        settings: all fields of `TrainConfig`, by name.
        replicas: that share a batch.
        asynchronous: whether parameter servers keep the weights.
        train_images: images to train on.
    """
    batch_size, accumulation_steps = settings["batch_size"], settings["accumulation_steps"]
    found = []
    parts = replicas * accumulation_steps
    if batch_size % parts:
        each = f"the {replicas} replicas of a trial"
        if accumulation_steps > 1:
            each = f"replicas x accumulation_steps = {replicas} x {accumulation_steps} = {parts}"
        message = f"batch_size must be divisible by {each}, got {batch_size}"
        found.append(Clash(message, fields=("batch_size", "accumulation_steps")))
    if batch_size > train_images:
        message = (
            f"batch_size must be at most the {train_images} training images, got {batch_size};"
            " use a smaller batch"
        )
        found.append(Clash(message, fields=("batch_size",)))
    if settings["generator_norm"] == "batch" and (accumulation_steps > 1 or asynchronous):
        reason = "under parameter_server" if asynchronous else f"with accumulation_steps {accumulation_steps}"
        message = f"generator_norm must be none {reason}, got batch, whose statistics are of the whole batch"
        found.append(Clash(message, fields=("generator_norm", "accumulation_steps")))
    if settings["jit_compile"] and replicas > 1:
        found.append(Clash(f"jit_compile must be false with {replicas} replicas", fields=("jit_compile",)))
    for field in ("run_eagerly", "jit_compile"):
        if settings[field] and asynchronous:
            found.append(Clash(f"{field} must be false under parameter_server", fields=(field,)))
    return found


def is_multiple(value: float, unit: float) -> bool:
    """Whether `value` is a whole, positive number of `unit`s, up to rounding of decimal fractions."""
    if not math.isfinite(value / unit):
        return False
    count = round(value / unit)
    return count >= 1 and abs(count * unit - value) <= 1e-9 * value
