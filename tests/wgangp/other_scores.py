"""Scores by pytorch-fid and torch-fidelity, in the environment of `make references`.

    .venv-references/bin/python other_scores.py SETS.npz FOUND.json

SETS holds float64 features `<name>/fake` and `<name>/real`. FOUND has, by name, fid of both, and of
torch-fidelity kid (all samples as one subset), precision, recall, and inception_score (the fake ones as
logits).
"""

import json
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import scipy.linalg
import torch
from pytorch_fid import fid_score
from torch_fidelity.metric_fid import fid_features_to_statistics, fid_statistics_to_metric
from torch_fidelity.metric_isc import isc_features_to_metric
from torch_fidelity.metric_kid import kid_features_to_metric
from torch_fidelity.metric_prc import prc_features_to_metric

# pytorch-fid 0.3.0 takes apart the pair that scipy returned for disp=False before 1.17.
fid_score.linalg = SimpleNamespace(sqrtm=lambda matrix, disp: (scipy.linalg.sqrtm(matrix), None))


def scores(fake: np.ndarray, real: np.ndarray) -> dict[str, Any]:
    moments = [part for one in (fake, real) for part in (one.mean(axis=0), np.cov(one, rowvar=False))]
    a, b = torch.from_numpy(fake), torch.from_numpy(real)
    found: dict[str, Any] = {"pytorch_fid": float(fid_score.calculate_frechet_distance(*moments))}
    if fake.shape[1] > 1:  # it takes no variance for a covariance
        statistics = [fid_features_to_statistics(one) for one in (a, b)]
        found |= fid_statistics_to_metric(*statistics, verbose=False)
    found |= kid_features_to_metric(a, b, kid_subsets=1, kid_subset_size=len(fake), verbose=False)
    found |= prc_features_to_metric(a, b, prc_neighborhood=3, verbose=False)
    return found | isc_features_to_metric(a, splits=1)


if __name__ == "__main__":
    with np.load(sys.argv[1]) as sets:
        names = sorted({key.rpartition("/")[0] for key in sets.files})
        found = {name: scores(sets[f"{name}/fake"], sets[f"{name}/real"]) for name in names}
    with open(sys.argv[2], "w") as file:
        json.dump(found, file)
