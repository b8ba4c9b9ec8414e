"""Every setting of one training run: its default, its range, its unit, its meaning.

A `TrainConfig` is what a space file may fix or search, what a trial trains, what MLflow records as
parameters and what `best.yaml` holds. This module imports no TensorFlow: the driver of a sweep reads it.
"""

import math
import os
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator
from pydantic.config import JsonDict

from wgangp.wording import Clash, sentence

FIXED: JsonDict = {"searchable": False}
"""Marks fields that make trials comparable: a sweep fixes them and never searches them."""

Seed = Annotated[int, Field(ge=0, lt=2**31)]
LearningRate = Annotated[float, Field(gt=0, le=1)]
Score = Literal["fid", "kid", "precision", "recall", "density", "coverage", "inception_score"]


class TrainConfig(BaseModel):
    """Settings of one WGAN-GP training run. Defaults are those of Gulrajani et al. 2017 (arXiv 1704.00028).

    kimg: thousands of real images the critic has seen, each critic step counting its whole global batch.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    dataset: Literal["mnist5k", "digits"] = Field(
        "mnist5k", description="images and their classes", json_schema_extra=FIXED
    )
    train_images: int | None = Field(
        None,
        ge=1,
        description="to train on, a part of each class; held-out part and reference stay (default: all)",
        json_schema_extra=FIXED,
    )
    architecture: Literal["dcgan"] = Field("dcgan", description="generator and critic")
    width: int = Field(16, ge=1, le=1024, description="w: channels of the widest picture-sized layer")
    latent_size: int = Field(128, ge=1, le=4096, description="length of the noise vector z")

    penalty: Literal["two_sided", "one_sided", "zero_centered", "r1", "clip"] = Field(
        "two_sided", description="what keeps the critic smooth; clip: of its weights, no penalty"
    )
    gp_weight: float = Field(10.0, ge=0, le=1e6, description="lambda: weight of the penalty")
    weight_clip: float = Field(0.01, gt=0, le=1e3, description="bound of the critic's weights under clip")
    drift: float = Field(0.0, ge=0, le=1e3, description="weight of E D(x)^2 in the critic's loss")
    n_critic: int = Field(5, ge=1, le=100, description="critic steps per generator step")
    optimizer: Literal["adam", "rmsprop", "sgd"] = Field("adam", description="of both networks")
    critic_lr: LearningRate = Field(1e-4, description="alpha of the critic's optimizer")
    generator_lr: LearningRate = Field(1e-4, description="alpha of the generator's optimizer")
    adam_beta1: float = Field(0.0, ge=0, lt=1, description="beta1 of both Adam optimizers")
    adam_beta2: float = Field(0.9, ge=0, lt=1, description="beta2 of both Adam optimizers")
    ema_decay: float = Field(
        0.0,
        ge=0,
        lt=1,
        description="per generator step, of the average whose images are scored; 0: no average",
    )
    batch_size: int = Field(64, ge=1, le=65536, description="m: images per step, over all replicas (global)")
    accumulation_steps: int = Field(
        1, ge=1, le=65536, description="parts in which a replica works through its batch: less memory"
    )
    precision: Literal["float32", "float64", "bfloat16"] = Field(
        "float32", description="of arithmetic; weights, norms and losses are float32 under bfloat16"
    )
    allreduce_precision: Literal["full", "bfloat16"] = Field(
        "full", description="in which replicas exchange gradients"
    )
    run_eagerly: bool = Field(
        False, description="operation by operation, to debug: slow", json_schema_extra=FIXED
    )
    jit_compile: bool = Field(
        False, description="by XLA, for one replica: slow on a CPU", json_schema_extra=FIXED
    )

    budget_kimg: float = Field(
        90, gt=0, le=1e6, description="length of the training, kimg", json_schema_extra=FIXED
    )
    tick_kimg: float = Field(9, gt=0, le=1e6, description="kimg between evaluations", json_schema_extra=FIXED)
    scores: list[Score] = Field(
        ["fid", "precision", "recall"], description="of each tick", json_schema_extra=FIXED
    )
    features: Literal["classifier", "inception"] = Field(
        "classifier",
        description="in which images are compared: of a classifier of the data set, or Inception of 2015",
        json_schema_extra=FIXED,
    )
    inception: str | None = Field(
        None,
        description="file of Inception's graph or its archive (default: WGANGP_INCEPTION, else downloaded)",
        json_schema_extra=FIXED,
    )
    fid_samples: int = Field(
        2000, ge=10, le=1_000_000, description="generated images per evaluation", json_schema_extra=FIXED
    )

    seed: Seed = Field(0, description="data order and training noise")
    init_seed: Seed | None = Field(None, description="initial weights (default: seed)")
    evaluation_seed: Seed | None = Field(
        None, description="noise of FID and sample grid (default: seed)", json_schema_extra=FIXED
    )
    split_seed: Seed = Field(
        0, description="held-out part, feature network, reference", json_schema_extra=FIXED
    )

    @field_validator("precision", mode="before")
    @classmethod
    def _no_float16(cls, precision: object) -> object:
        if precision == "float16":
            raise ValueError(
                "must not be float16: its range is too small for the gradient of a gradient, and scaling the"
                " loss does not help the penalty. Use bfloat16"
            )
        return precision

    @field_validator("scores")
    @classmethod
    def _with_fid(cls, names: list[str]) -> list[str]:
        if "fid" not in names or len(set(names)) < len(names):
            raise ValueError(f"must name fid, which ranks the trials, and each score once, got {names}")
        return names

    @model_validator(mode="after")
    def _sound(self) -> "TrainConfig":
        for clash in clashes(vars(self)):
            raise clash
        return self

    @property
    def ticks(self) -> int:
        """Number of ticks in the budget."""
        return round(self.budget_kimg / self.tick_kimg)

    def resolved(self) -> "TrainConfig":
        """The same settings with what was left to default or to the environment written out."""
        return self.model_copy(
            update={
                "inception": self.inception or _inception_of_environment(self.features),
                "init_seed": self.seed if self.init_seed is None else self.init_seed,
                "evaluation_seed": self.seed if self.evaluation_seed is None else self.evaluation_seed,
            }
        )


def _inception_of_environment(features: str) -> str | None:
    named = os.environ.get("WGANGP_INCEPTION") if features == "inception" else None
    return os.path.abspath(os.path.expanduser(named)) if named else None


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
    if settings.get("inception") and settings.get("features") == "classifier":
        message = "inception must be left out with features: classifier; set features: inception to use it"
        found.append(Clash(message, fields=("inception", "features")))
    if {"budget_kimg", "tick_kimg"} <= settings.keys():
        budget, tick = settings["budget_kimg"], settings["tick_kimg"]
        if not is_multiple(budget, tick):
            message = f"budget_kimg must be a multiple of tick_kimg ({tick:g}), got {budget:g}"
            found.append(Clash(message, fields=("budget_kimg", "tick_kimg")))
    return found


def misfits(
    *,
    batch_size: int,
    accumulation_steps: int,
    run_eagerly: bool,
    jit_compile: bool,
    replicas: int,
    asynchronous: bool,
    train_images: int,
) -> list[Clash]:
    """What of these settings does not go with so many replicas and images.

    Args:
        batch_size: and the next three, as in `TrainConfig`.
        accumulation_steps: see there.
        run_eagerly: see there.
        jit_compile: see there.
        replicas: that share a batch.
        asynchronous: whether parameter servers keep the weights.
        train_images: images to train on.
    """
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
    if jit_compile and replicas > 1:
        found.append(Clash(f"jit_compile must be false with {replicas} replicas", fields=("jit_compile",)))
    for field, value in (("run_eagerly", run_eagerly), ("jit_compile", jit_compile)):
        if value and asynchronous:
            found.append(Clash(f"{field} must be false under parameter_server", fields=(field,)))
    return found


def is_multiple(value: float, unit: float) -> bool:
    """Whether `value` is a whole, positive number of `unit`s, up to rounding of decimal fractions."""
    if not math.isfinite(value / unit):
        return False
    count = round(value / unit)
    return count >= 1 and abs(count * unit - value) <= 1e-9 * value


def field_error(field: str, value: object) -> str | None:
    """What `value` breaks of the type and range of one field, or None; other fields do not matter."""
    values: dict[str, Any] = {field: value}
    try:
        TrainConfig(**values)
    except ValidationError as error:
        for entry in error.errors():
            if entry["loc"][:1] == (field,):
                return sentence(entry)
    return None


def is_searchable(field: str) -> bool:
    """Whether a sweep may search `field` (a name of `TrainConfig`)."""
    extra: Any = TrainConfig.model_fields[field].json_schema_extra or {}
    return bool(extra.get("searchable", True))
