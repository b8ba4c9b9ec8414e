"""What each sampler offers: by the sweep's seed, and the same however often it is started again."""

import importlib.util
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sweeps.folder import SweepFolder
from sweeps.records import Ending, Metrics
from sweeps.study import SweepStudy

OpenStudy = Callable[..., SweepStudy]
Offers = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def offers(open_study: OpenStudy, folder: SweepFolder, measured: Callable[..., Metrics]) -> Offers:
    """Has a sweep score its trials by `fid`, one after the other; what they were offered."""

    def offers(
        *overrides: str,
        trials: int = 12,
        fid: Callable[[dict[str, Any]], float] = lambda params: 50 + abs(params["gp_weight"] - 3),
        disturb: str = "",
    ) -> list[dict[str, Any]]:
        folder.journal.unlink(missing_ok=True)
        asked = (f"sweep.trials={trials}", "sweep.retries=0", "pruner.name=none", *overrides)
        study = open_study(*asked)
        for _ in range(trials):
            label = study.ask().label
            if disturb == "started again":
                study = open_study(*asked)
                assert study.ask().label == label
            elif disturb == "failed":
                assert study.fail(label, reason="killed") == Ending("failed", "killed")
                study = open_study(*asked)
                assert study.ask().label == label
            params = study.record(label).params
            study.report(label, tick=1, metrics=measured(fid(params), 1), ending=Ending("complete"))
            study.end(label)
        return [record.params for record in study.records()]

    return offers


SAMPLERS = [("tpe", True), ("random", False), ("qmc", False), ("cmaes", True)]


@pytest.mark.parametrize(("name", "learns"), SAMPLERS)
def test_offers_follow_from_the_seed_and_from_what_was_measured(
    offers: Offers, name: str, learns: bool
) -> None:
    asked = f"sampler.name={name}"
    once = offers(asked)

    assert len({offer["gp_weight"] for offer in once}) == 12
    assert offers(asked, disturb="started again") == once
    assert offers(asked, disturb="failed") == once
    assert not any(a == b for a, b in zip(offers(asked, "sweep.seed=1"), once, strict=True))
    assert (offers(asked, fid=lambda params: -params["gp_weight"] + 200) != once) == learns


def test_qmc_is_one_sequence_that_fills_the_space_evenly(offers: Offers) -> None:
    asked = (
        "sampler.name=qmc",
        "search.n_critic={type: int, low: 1, high: 8}",
        "search.gp_weight={type: float, low: 0, high: 8}",
        "search.penalty={type: categorical, choices: [two_sided, one_sided, r1, clip]}",
    )
    found = offers(*asked, trials=8)

    # of 8 points of Sobol's sequence, scrambled or not, each eighth of each side has one
    assert sorted(int(offer["gp_weight"]) for offer in found) == list(range(8))
    assert sorted(offer["n_critic"] for offer in found) == list(range(1, 9))
    assert sorted(offer["penalty"] for offer in found) == [
        *("clip", "clip", "one_sided", "one_sided", "r1", "r1", "two_sided", "two_sided")
    ]
    baseline = "enqueue=[{gp_weight: 7, n_critic: 1, penalty: clip}]"
    assert offers(*asked, baseline, trials=9)[1:] == found


def test_cmaes_comes_near_the_optimum(offers: Offers) -> None:
    def off(params: dict[str, Any]) -> float:
        return (params["gp_weight"] / 100 - 0.2) ** 2 + (params["adam_beta1"] - 0.8) ** 2

    asked = (
        "sampler={name: cmaes, n_startup_trials: 1}",
        "search.gp_weight={type: float, low: 0, high: 100}",
        "search.adam_beta1={type: float, low: 0, high: 0.9}",
    )
    far = [off(offer) for offer in offers(*asked, trials=60, fid=lambda params: 10 + off(params))]

    assert sum(far[-12:]) < 0.2 * sum(far[:12])


@pytest.mark.slow
def test_gp_follows_from_the_seed_and_comes_near_the_optimum() -> None:
    def offers(seed: int, sign: int) -> list[dict[str, Any]]:
        here = Path(__file__)
        python = here.parents[2] / ".venv-references" / "bin" / "python"
        command = [str(python), str(here.with_name("gp_offers.py")), str(seed), str(sign)]
        return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    found = offers(0, 1)
    assert offers(0, 1) == found
    assert offers(1, 1)[0] != found[0]
    other = offers(0, -1)
    assert other[:6] == found[:6] and other[6:] != found[6:]
    far = [abs(offer["gp_weight"] - 20) for offer in found]
    assert min(far[8:]) < 2
    assert sum(far[8:]) / 6 < sum(far[:6]) / 6


@pytest.mark.parametrize(("sampler", "package"), [("gp", "torch"), ("cmaes", "cmaes")])
def test_a_sampler_whose_package_is_missing_is_refused_with_the_line_that_installs_it(
    make_space: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, sampler: str, package: str
) -> None:
    from wgangp.errors import UserError

    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == package else find(name))
    with pytest.raises(UserError) as caught:
        make_space(f"sampler.name={sampler}")

    (said,) = caught.value.problems
    assert said.startswith(
        f"--set sampler.name={sampler}: sampler.name: {sampler} needs the package {package}"
    )
    assert said.endswith(f"-m pip install {package}")
