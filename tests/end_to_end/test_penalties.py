"""A sweep that searches what keeps the critic smooth, and the optimizer, with the real trainer."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wgangp.losses import PENALTIES

SPACE = """
name: digits
search:
  penalty: {type: categorical, choices: [two_sided, one_sided, zero_centered, r1, clip]}
  optimizer: {type: categorical, choices: [adam, rmsprop, sgd]}
enqueue:
  - {penalty: two_sided, optimizer: adam}
  - {penalty: one_sided, optimizer: adam}
  - {penalty: zero_centered, optimizer: rmsprop}
  - {penalty: r1, optimizer: adam}
  - {penalty: clip, optimizer: rmsprop}
train:
  {dataset: digits, width: 4, batch_size: 32, gp_weight: 2, critic_lr: 1.0e-3, generator_lr: 1.0e-3,
   drift: 1.0e-3, budget_kimg: 6, tick_kimg: 3, fid_samples: 200}
pruner: {name: none}
sweep: {trials: 7, seed: 1}
"""


@pytest.mark.slow
def test_penalties_and_optimizers_are_searched_recorded_and_effective(sweep: Any, tmp_path: Path) -> None:
    space = tmp_path / "penalties.yaml"
    space.write_text(SPACE)

    assert sweep.run("--space", str(space)) == 0, sweep.output

    _, runs = sweep.runs()
    assert len(runs) == 7
    assert {run.data.params["penalty"] for run in runs.values()} == set(PENALTIES)
    for label, run in runs.items():
        params, metrics = run.data.params, run.data.metrics
        assert params == {**params, "gp_weight": "2.0", "drift": "0.001", "weight_clip": "0.01"}
        assert (metrics["gradient_penalty"] == 0) == (params["penalty"] == "clip"), label
        checkpoint = max(sweep.folder.glob(f"trials/*/{label}/checkpoint_*/arrays.npz"))
        with np.load(checkpoint) as arrays:
            largest = max(np.abs(arrays[f"critic/{place}"]).max() for place in range(6))
        assert (largest <= np.float32(0.01)) == (params["penalty"] == "clip"), label
    sweep.assert_everything_agrees()
