"""Every setting of one training run: its default, its range, its unit, its meaning.

A `TrainConfig` is what a space file may fix or search, what a trial trains, what MLflow records as
parameters and what `best.yaml` holds. This module imports no TensorFlow: the driver of a sweep reads it.
"""

import os
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic.config import JsonDict

from wgangp.rules import clashes
from wgangp.user_code import is_code
from wgangp.wording import sentence

FIXED: JsonDict = {"searchable": False}
"""Marks fields that make trials comparable: a sweep fixes them and never searches them."""

KIMG: JsonDict = {"unit": "kimg"}
IMAGES: JsonDict = {"unit": "images"}

SHIPPED, DOWNLOADED = ("mnist5k", "digits"), ("mnist", "fashion_mnist", "cifar10", "cifar100")
DATASETS = (*SHIPPED, *DOWNLOADED)
ARCHITECTURES = ("dcgan", "resnet")
FEATURES = ("classifier", "random", "inception")
NAMES = {"architecture": ARCHITECTURES, "features": FEATURES}
"""What these fields may name, besides a function of the user's own."""

NETWORK_FIELDS = (
    *("architecture", "width", "latent_size", "activation", "generator_norm", "critic_norm", "options"),
    *("precision", "flips"),
)
"""Whatever decides whether networks can be built for the data, and trained on it."""

Seed = Annotated[int, Field(ge=0, lt=2**31)]
LearningRate = Annotated[float, Field(gt=0, le=1)]
Score = Literal["fid", "kid", "precision", "recall", "density", "coverage", "inception_score"]


class TrainConfig(BaseModel):
    """Settings of one WGAN-GP training run. Defaults are those of Gulrajani et al. 2017 (arXiv 1704.00028).

    kimg: thousands of real images the critic has seen, each critic step counting its whole global batch.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    dataset: str = Field(
        "mnist5k",
        min_length=1,
        description="mnist5k, digits; mnist, fashion_mnist, cifar10, cifar100, which Keras downloads; a"
        " folder of images, an .npz file, or my_data.py:load",
        json_schema_extra=FIXED,
    )
    image_size: int | None = Field(
        None,
        ge=4,
        le=1024,
        description="of both sides, to which images are cut and resized (default: as they are)",
        json_schema_extra=FIXED | {"unit": "pixels"},
    )
    channels: Literal[1, 3] | None = Field(
        None,
        description="1 grey, 3 colour (default: as they are; of a folder 1 if all are grey)",
        json_schema_extra=FIXED,
    )
    data_range: list[float] | None = Field(
        None,
        description="[low, high] of data that are not bytes, which becomes -1..1",
        json_schema_extra=FIXED,
    )
    skip_unreadable: bool = Field(
        False, description="pass over files of a folder that are no images", json_schema_extra=FIXED
    )
    train_images: int | None = Field(
        None,
        ge=1,
        description="to train on, a part of each class; held-out part and reference stay (default: all)",
        json_schema_extra=FIXED | IMAGES,
    )
    flips: bool = Field(False, description="train on each image or its mirror image, at random")
    architecture: str = Field("dcgan", description="dcgan, resnet, or my_networks.py:build")
    width: int = Field(16, ge=1, le=1024, description="w: channels of the widest picture-sized layer")
    latent_size: int = Field(128, ge=1, le=4096, description="length of the noise vector z")
    activation: Literal["relu", "leaky_relu", "elu", "silu", "tanh"] | None = Field(
        None, description="of hidden layers (default: relu; leaky_relu in the critic of dcgan)"
    )
    generator_norm: Literal["none", "batch"] = Field(
        "none", description="normalisation of hidden layers: batch over the global batch"
    )
    critic_norm: Literal["none", "layer"] = Field(
        "none", description="of each image by itself; over the batch it would spoil the penalty"
    )
    options: JsonValue = Field(
        None, description="anything YAML can say, for your own networks: settings.options"
    )

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
    lr_schedule: Literal["constant", "linear"] = Field(
        "constant", description="of both rates; linear: falling to 0 over the budget"
    )
    adam_beta1: float = Field(0.0, ge=0, lt=1, description="beta1 of both Adam optimizers")
    adam_beta2: float = Field(0.9, ge=0, lt=1, description="beta2 of both Adam optimizers")
    ema_decay: float = Field(
        0.0,
        ge=0,
        lt=1,
        description="per generator step, of the average whose images are scored; 0: no average",
    )
    batch_size: int = Field(
        64, ge=1, le=65536, description="m: per step, over all replicas (global)", json_schema_extra=IMAGES
    )
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
        90, gt=0, le=1e6, description="length of the training", json_schema_extra=FIXED | KIMG
    )
    tick_kimg: float = Field(
        9, gt=0, le=1e6, description="from one evaluation to the next", json_schema_extra=FIXED | KIMG
    )
    scores: list[Score] = Field(
        ["fid", "precision", "recall"], description="of each tick", json_schema_extra=FIXED
    )
    features: str = Field(
        "classifier",
        description="in which images are compared: of a classifier of the classes, of random convolutions"
        " (for images without labels), Inception of 2015, or my_features.py:embed",
        json_schema_extra=FIXED,
    )
    inception: str | None = Field(
        None,
        description="file of Inception's graph or its archive (default: WGANGP_INCEPTION, else downloaded)",
        json_schema_extra=FIXED,
    )
    fid_samples: int = Field(
        2000, ge=10, le=1_000_000, description="generated per evaluation", json_schema_extra=FIXED | IMAGES
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

    @field_validator("architecture", "features")
    @classmethod
    def _named(cls, value: str, info: ValidationInfo) -> str:
        names = NAMES[str(info.field_name)]
        if value not in names and not is_code(value):
            raise ValueError(f"must be {', '.join(names)} or file.py:function, got {value!r}")
        return value

    @field_validator("data_range")
    @classmethod
    def _ascending(cls, ends: list[float] | None) -> list[float] | None:
        if ends is not None and (len(ends) != 2 or ends[0] >= ends[1]):
            raise ValueError(f"must be [low, high] with low below high, got {ends}")
        return ends

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
