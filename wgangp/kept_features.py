"""Feature network and reference as arrays: in the cache, and frozen in a run's folder. For `prepared`."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from wgangp import arrays, files, frechet, scores
from wgangp.errors import UserError

_MEND = "Put a copy back; or remove the folder, and they are made anew and must come out the same."
_WEIGHT, _REFERENCE = "weight/", "reference/"


@dataclass(frozen=True)
class KeptFeatures:
    """What scores depend on.

    Attributes:
        weights: of the feature network.
        accuracy: of a classifier, else None.
        reference: what generated images are compared with.
    """

    weights: dict[str, np.ndarray]
    accuracy: float | None
    reference: scores.Reference

    @property
    def sha256(self) -> str:
        """Hex sha256 of weights and reference."""
        return arrays.digest({name: array for name, array in self._arrays().items() if name != "accuracy"})

    def save(self, path: Path) -> None:
        """Write to one file; see `load`."""
        arrays.save(path, self._arrays())

    def freeze(self, folder: Path, facts: dict[str, Any]) -> None:
        """Write weights.npz, reference.npz, and the facts as features.json; see `thaw`."""
        kept = self._arrays()
        arrays.save(folder / "weights.npz", _part(kept, _WEIGHT))
        arrays.save(folder / "reference.npz", _part(kept, _REFERENCE))
        files.write(folder / "features.json", json.dumps(facts, indent=2).encode())

    def _arrays(self) -> dict[str, np.ndarray]:
        of_reference = {**vars(self.reference.gaussian), "features": self.reference.features}
        return {
            **{_WEIGHT + name: weight for name, weight in self.weights.items()},
            **{_REFERENCE + name: np.asarray(value) for name, value in of_reference.items()},
            **({} if self.accuracy is None else {"accuracy": np.asarray(self.accuracy)}),
        }


def load(path: Path) -> KeptFeatures:
    """What `save` wrote.

    Raises:
        arrays.DamagedFile: it is not there, or not whole.
    """
    return _assembled(arrays.load(path))


def thaw(folder: Path, data: dict[str, Any], *, name: str) -> KeptFeatures:
    """What `freeze` wrote.

    Raises:
        UserError: it is not whole, does not belong to `data`, or is not the network of this name.
    """
    try:
        facts = json.loads((folder / "features.json").read_text())
        found = {_WEIGHT + key: array for key, array in arrays.load(folder / "weights.npz").items()}
        found |= {_REFERENCE + key: array for key, array in arrays.load(folder / "reference.npz").items()}
        if "features_accuracy" in facts:
            found["accuracy"] = np.asarray(float(facts["features_accuracy"]))
        frozen = {fact: facts[fact] for fact in (*data, "features", "features_sha256")}
        kept = _assembled(found)
    except (OSError, ValueError, KeyError, TypeError, arrays.DamagedFile) as error:
        raise UserError(f"{folder}: the frozen features cannot be read: {error}. {_MEND}") from error
    if frozen["features_sha256"] != kept.sha256:
        raise UserError(f"{folder}: the frozen features are damaged: their sha256 does not hold. {_MEND}")
    for fact, value in data.items():
        if frozen[fact] != value:
            raise UserError(
                f"{folder}: the frozen features belong to other data: {fact} must be {frozen[fact]},"
                f" got {value}."
            )
    if frozen["features"] != name:
        raise UserError(
            f"{folder}: the frozen features are others: features must be {frozen['features']}, got {name}."
        )
    return kept


def _assembled(found: dict[str, np.ndarray]) -> KeptFeatures:
    reference = _part(found, _REFERENCE)
    some = reference.pop("features")  # which those of older versions lack
    count = int(reference.pop("count"))
    gaussian = frechet.Gaussian(**reference, count=count)
    accuracy = float(found["accuracy"]) if "accuracy" in found else None
    return KeptFeatures(_part(found, _WEIGHT), accuracy, scores.Reference(gaussian, some))


def _part(found: dict[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    return {name.removeprefix(prefix): array for name, array in found.items() if name.startswith(prefix)}
