"""What the sampler `gp` offers, with the PyTorch that it needs and that is not beside TensorFlow.

    .venv-references/bin/python gp_offers.py SEED SIGN

Prints the settings of 14 trials, whose score is 50 + SIGN x the distance of gp_weight from 20, as JSON.
"""

import json
import sys
from pathlib import Path

import optuna

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from sweeps import sampling, space_file
from wgangp import settings_file

SPACE = """\
search:
  gp_weight: {type: float, low: 0, high: 100}
  n_critic: {type: int, low: 1, high: 8}
  penalty: {type: categorical, choices: [two_sided, clip]}
sampler: {name: gp, n_startup_trials: 6}
pruner: {name: none}
"""


def main(seed: str, sign: str) -> None:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    file = settings_file.parse(SPACE, name="gp.yaml", overrides=[f"sweep.seed={seed}"])
    space = space_file.check(file, default_name="gp")
    trials: list[optuna.trial.FrozenTrial] = []
    for number in range(1, 15):
        params = sampling.propose(space, number, trials).params
        trials.append(
            optuna.trial.create_trial(
                value=50 + float(sign) * abs(float(params["gp_weight"]) - 20),  # type: ignore[arg-type]
                params=params,
                distributions=sampling.distributions(space),
                user_attrs={"label": f"t{number:03d}"},
            )
        )
    print(json.dumps([trial.params for trial in trials]))


if __name__ == "__main__":
    main(*sys.argv[1:])
