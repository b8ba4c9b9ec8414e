"""What one tick of training came to, as plain values: any process can read it, TensorFlow or not."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Progress:
    """What one tick came to.

    Attributes:
        tick: 1, 2, ...
        images_seen: real images the critic has seen.
        metrics: fid, best_fid, the means of `gan.SUMS` over the tick, heldout_gap, images_per_second (of the
            training alone). Not all are finite if the run has diverged.
        samples: PNG of the grid of fixed noise.
        outcome: None while it goes on; `complete` or `diverged`.
        reason: why it diverged, else empty.
    """

    tick: int
    images_seen: int
    metrics: dict[str, float]
    samples: bytes
    outcome: str | None
    reason: str
