"""What a space says of processes and devices, and what Ray and the trainers are told of it."""

from typing import Any

import pytest
from pydantic import ValidationError

from sweeps.resources import Resources


@pytest.mark.parametrize(
    ("given", "wrong"),
    [
        ({"workers": 2}, ""),
        ({"workers": 2, "strategy": "multi_worker", "cpus": 3, "gpus": 2}, ""),
        ({"workers": 1, "strategy": "parameter_server"}, ""),
        ({"workers": 3, "strategy": "parameter_server"}, ""),
        ({"strategy": "tpu"}, ""),
        ({"strategy": "multi_worker"}, "must be at least 2 under strategy multi_worker, got 1; or use auto"),
        (
            {"workers": 2, "strategy": "mirrored"},
            "must be 1 under strategy mirrored, got 2;"
            " several go with auto, multi_worker or parameter_server",
        ),
        (
            {"strategy": "parameter_server", "cpus": 0.5},
            "must be a whole number for each worker of a trial, got 0.5",
        ),
        ({"workers": 2, "gpus": 0.5}, "must be a whole number for each worker of a trial, got 0.5"),
        ({"placement": "split", "cpus": 2}, ""),
        ({"placement": "split", "gpus": 2}, ""),
        ({"placement": "split", "gpus": 2, "strategy": "one_device"}, ""),
        (
            {"placement": "split"},
            "must be together with 1 CPUs and 0 GPUs, got split;"
            " for that give a trial 2 GPUs, or no GPU and at least 2 CPUs",
        ),
        (
            {"placement": "split", "cpus": 2, "gpus": 1},
            "must be together with 2 CPUs and 1 GPUs, got split;"
            " for that give a trial 2 GPUs, or no GPU and at least 2 CPUs",
        ),
        (
            {"placement": "split", "cpus": 2, "strategy": "mirrored"},
            "must be together under strategy mirrored, got split; or use one_device",
        ),
        (
            {"placement": "split", "cpus": 2, "workers": 2},
            "must be together with 2 workers, got split; or use one worker",
        ),
    ],
)
def test_what_does_not_go_together_is_said(given: dict[str, Any], wrong: str) -> None:
    if not wrong:
        Resources(**given)
        return
    with pytest.raises(ValidationError) as caught:
        Resources(**given)
    assert [entry["msg"] for entry in caught.value.errors()] == [f"Value error, {wrong}"]


@pytest.mark.parametrize(
    ("given", "roles", "bundles", "cores", "replicas"),
    [
        ({}, {}, [{"CPU": 1}], 1, 1),
        ({"cpus": 0.5, "gpus": 0.5}, {}, [{"CPU": 0.5, "GPU": 0.5}], 1, 1),
        ({"cpus": 4, "strategy": "mirrored"}, {}, [{"CPU": 4}], 4, 4),
        ({"workers": 2}, {"worker": 2}, [{}, {"CPU": 1}, {"CPU": 1}], 2, 2),
        (
            {"workers": 2, "cpus": 3, "gpus": 2, "strategy": "multi_worker"},
            {"worker": 2},
            [{}, {"CPU": 3, "GPU": 2}, {"CPU": 3, "GPU": 2}],
            6,
            4,
        ),
        (
            {"workers": 2, "strategy": "parameter_server"},
            {"chief": 1, "ps": 1, "worker": 2},
            [{}, {"CPU": 1}, {"CPU": 1}],
            2,
            1,
        ),
        ({"gpus": 2, "placement": "split"}, {}, [{"CPU": 1, "GPU": 2}], 1, 1),  # not mirrored
        ({"cpus": 2, "placement": "split"}, {}, [{"CPU": 2}], 2, 1),
    ],
)
def test_a_trial_has_its_processes_devices_and_cost(
    given: dict[str, Any], roles: dict, bundles: list, cores: int, replicas: int
) -> None:
    resources = Resources(**given)
    assert resources.roles == roles and next(iter(roles), None) != "ps"
    assert resources.bundles == bundles
    assert (resources.cores, resources.replicas) == (cores, replicas)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "one_device, 1 CPUs, 0 GPUs, 1 replica(s)"),
        ({"gpus": 2}, "mirrored, 1 CPUs, 2 GPUs, 2 replica(s)"),
        ({"workers": 2}, "multi_worker, 2 workers of 1 CPUs, 0 GPUs, 2 replica(s)"),
        ({"strategy": "mirrored", "cpus": 2}, "mirrored, 2 CPUs, 0 GPUs, 2 replica(s)"),
        (
            {"strategy": "parameter_server"},
            "parameter_server, 1 worker of 1 CPUs, 0 GPUs beside a chief and a parameter server:"
            " gradients are stale, no resume is exact",
        ),
        (
            {"gpus": 2, "placement": "split"},
            "one_device, 1 CPUs, 2 GPUs, generator and critic apart, 1 replica(s)",
        ),
    ],
)
def test_a_plan_says_what_each_trial_trains_on(given: dict[str, Any], said: str) -> None:
    assert str(Resources(**given)) == said


def test_a_tpu_that_is_not_there_is_missed_before_any_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sweeps.resources.missing", lambda strategy: "strategy: tpu needs a TPU. Use auto.")
    (problem,) = Resources(strategy="tpu").problems(cpus=2, gpus=0)

    assert problem == (("resources", "strategy"), "tpu needs a TPU. Use auto.")
