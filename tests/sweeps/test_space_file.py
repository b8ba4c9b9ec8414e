import math
from pathlib import Path

import pytest

from sweeps import space_file, unchanged
from sweeps.search import Choices, FloatRange, IntRange
from sweeps.sections import Baseline
from sweeps.space import Space
from wgangp import settings_file
from wgangp.errors import UserError

SHIPPED = sorted((Path(__file__).resolve().parents[2] / "search_spaces").glob("*.yaml"))
ALL_KINDS = """\
search:
  gp_weight:    {type: float, low: 1e-1, high: 1E+2, log: true}
  critic_lr:    {type: float, low: 0.1, high: 1, step: 0.1}
  n_critic:     {type: int, low: 1, high: 9, step: 4}
  precision:    {type: categorical, choices: [float32, float64]}
  init_seed:    {type: categorical, choices: [null, 3]}
enqueue:
  - {gp_weight: 10, n_critic: 5, critic_lr: 0.3, prune: true}
  - {critic_lr: 1, precision: float64, init_seed: 3}
train: {batch_size: 8, adam_beta2: 9e-1, tick_kimg: 0.1, budget_kimg: 0.9}
pruner: {first_rung_kimg: 0.3}
"""
ONE = """\
search: {gp_weight: {type: float, low: 0.1, high: 100}}
enqueue: [{gp_weight: 1}]
train: {width: 16}
"""


def parsed(text: str, *overrides: str) -> Space:
    return space_file.check(settings_file.parse(text, name="gp.yaml", overrides=overrides), default_name="gp")


def test_the_spaces_that_ship_load() -> None:
    spaces = {
        path.name: space_file.load(
            path, overrides=["train.dataset=digits"] if path.name == "own_images.yaml" else []
        )
        for path in SHIPPED
    }

    assert spaces["gp.yaml"].sweep.trials == 16
    assert [baseline.params["critic_lr"] for baseline in spaces["gp.yaml"].enqueue] == [1e-4, 3e-4]
    assert spaces["gp.yaml"].rungs == [1, 3, 9]


def test_what_is_left_out_takes_its_default() -> None:
    space = parsed("search: {n_critic: {type: int, low: 1, high: 8}}\ntrain:\nenqueue:\n")

    assert (space.name, space.enqueue, space.train) == ("gp", [], {})
    assert (space.sampler.name, space.pruner.name, space.pruner.reduction_factor) == (
        "tpe",
        "successive_halving",
        3,
    )
    assert (space.sweep.trials, space.sweep.retries, space.sweep.seed) == (16, 2, 0)
    assert (space.resources.strategy, space.resources.cpus, space.resources.gpus) == ("auto", 1, 0)
    assert space.first_rung == 1


def test_numbers_are_those_of_yaml_1_2_and_every_kind_of_search_is_read() -> None:
    space = parsed(ALL_KINDS)

    assert space.search == {
        "gp_weight": FloatRange(type="float", low=0.1, high=100.0, log=True),
        "critic_lr": FloatRange(type="float", low=0.1, high=1, step=0.1),
        "n_critic": IntRange(type="int", low=1, high=9, step=4),
        "precision": Choices(type="categorical", choices=["float32", "float64"]),
        "init_seed": Choices(type="categorical", choices=[None, 3]),
    }
    assert space.train["adam_beta2"] == 0.9
    assert (space.first_rung, space.base.ticks) == (3, 9)


def test_a_searched_setting_left_out_of_a_baseline_takes_its_default() -> None:
    paper, other = parsed(ALL_KINDS).enqueue

    assert paper == Baseline(
        params={
            "gp_weight": 10,
            "n_critic": 5,
            "critic_lr": 0.3,
            "precision": "float32",
            "init_seed": None,
        },
        prune=True,
    )
    assert other.params == {
        "critic_lr": 1,
        "precision": "float64",
        "init_seed": 3,
        "gp_weight": 10.0,
        "n_critic": 5,
    }
    assert not other.prune


@pytest.mark.parametrize(
    ("field", "value", "holds"),
    [
        ("gp_weight", 0.1, True),
        ("gp_weight", 100, True),
        ("gp_weight", math.nextafter(100, 101), False),
        ("gp_weight", True, False),
        ("gp_weight", "1", False),
        ("critic_lr", 0.7, True),
        ("critic_lr", 0.1, True),
        ("critic_lr", 1, True),
        ("critic_lr", 0.75, False),
        ("n_critic", 5, True),
        ("n_critic", 4, False),
        ("n_critic", 5.0, False),
        ("n_critic", 13, False),
        ("precision", "float64", True),
        ("precision", "float16", False),
        ("init_seed", None, True),
        ("init_seed", 3, True),
        ("init_seed", 3.0, False),
    ],
)
def test_a_range_holds_its_ends_and_its_steps_only(field: str, value: object, holds: bool) -> None:
    assert parsed(ALL_KINDS).search[field].holds(value) is holds  # type: ignore[arg-type]


def test_a_frozen_space_is_read_back_as_it_was(tmp_path: Path) -> None:
    space = parsed(ALL_KINDS, "sweep.trials=7", "name=other")
    settings_file.dump(space.values(), tmp_path / "space.yaml", comment="Frozen from gp.yaml.")
    again = space_file.load(tmp_path / "space.yaml")

    assert again.values() == space.values()
    assert (again.name, again.enqueue, again.search) == ("other", space.enqueue, space.search)
    assert [path.name for path in tmp_path.iterdir()] == ["space.yaml"]


def test_overrides_are_applied_and_checked_as_if_they_were_written() -> None:
    space = parsed(
        ALL_KINDS, "train.width=32", "sampler.name=random", "search.n_critic.high=5", "train.adam_beta1=1e-1"
    )

    assert (space.train["width"], space.train["adam_beta1"]) == (32, 0.1)
    assert (space.sampler.name, space.search["n_critic"].ends()) == ("random", [1, 5, 5])


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (
            ["train.widht=3", "sweep.trials=true"],
            [
                "--set sweep.trials=true: sweep.trials: must be a valid integer, got true",
                "--set train.widht=3: train.widht: unknown setting. Did you mean 'width'?",
            ],
        ),
        (
            ["search.n_critic={type: int, low: 3, high: 1}"],
            [
                "--set search.n_critic={type: int, low: 3, high: 1}: search.n_critic:"
                " low must be below high, got 3 and 1; swap or widen them",
            ],
        ),
        (
            ["train.width", "=3", "train..width=3", "train.width=[1", "name.x=3"],
            [
                "--set train.width: must be key=value, for example --set train.width=32",
                "--set =3: must be key=value, for example --set train.width=32",
                "--set train..width=3: must be key=value, for example --set train.width=32",
                "--set train.width=[1:1: is not YAML: expected ',' or ']', but got '<stream end>'.",
                "--set name.x=3: name is a single value and has no keys below it",
            ],
        ),
    ],
)
def test_a_wrong_override_is_named_as_it_was_given(overrides: list[str], said: list[str]) -> None:
    with pytest.raises(UserError) as caught:
        parsed("name: gp\n" + ALL_KINDS, *overrides)

    assert list(caught.value.problems) == said


def test_a_sweep_may_grow_and_change_nothing_else() -> None:
    frozen = parsed(ALL_KINDS).values()
    unchanged.check_unchanged(parsed(ALL_KINDS, "sweep.trials=40"), frozen)

    changes = ["search.gp_weight.high=50", "sweep.seed=1", "train.width=8", "enqueue=[]"]
    with pytest.raises(UserError) as caught:
        unchanged.check_unchanged(parsed(ONE, *changes), parsed(ONE).values())

    assert list(caught.value.problems) == [
        f"{where}: must be {there} as the sweep was started with, got {here}"
        for where, there, here in [
            ("--set search.gp_weight.high=50: search.gp_weight.high", "100.0", "50.0"),
            ("--set enqueue=[]: enqueue[0].gp_weight", "1", "nothing"),
            ("--set train.width=8: train.width", "16", "8"),
            ("--set sweep.seed=1: sweep.seed", "0", "1"),
        ]
    ] + ["Start a new sweep to change settings; only --trials can grow."]


def test_a_default_that_is_written_out_is_no_change() -> None:
    grown = ["train.tick_kimg=9", "sampler.name=tpe", "train.seed=0", "train.evaluation_seed=0"]
    unchanged.check_unchanged(parsed(ONE, *grown), parsed(ONE).values())
    unchanged.check_unchanged(parsed(ONE), parsed(ONE, *grown).values())

    for change, said in {
        "train.seed=1": "--set train.seed=1: train.seed: must be 0 as the sweep was started with, got 1",
        "train.init_seed=0": "--set train.init_seed=0: train.init_seed: must be nothing as .*, got 0",
    }.items():
        with pytest.raises(UserError, match=said):
            unchanged.check_unchanged(parsed(ONE, change), parsed(ONE).values())


def test_a_setting_that_came_into_being_since_is_unchanged_at_its_default() -> None:
    frozen = parsed(ONE).values()
    del frozen["resources"]["placement"], frozen["train"]["accumulation_steps"], frozen["train"]["scores"]
    unchanged.check_unchanged(parsed(ONE), frozen)

    with pytest.raises(UserError, match=r"resources\.placement: must be nothing as .*, got 'split'"):
        unchanged.check_unchanged(parsed(ONE, "resources={cpus: 2, placement: split}"), frozen)


def test_a_file_without_a_name_lends_its_own_where_that_can_be_one(tmp_path: Path) -> None:
    for name in ("my-space.yaml", "my.space.yaml"):
        (tmp_path / name).write_text(ONE)

    assert space_file.load(tmp_path / "my-space.yaml").name == "my-space"
    with pytest.raises(
        UserError, match=r"name: must be letters, .* \(default: the file's name\), got 'my\.space'"
    ):
        space_file.load(tmp_path / "my.space.yaml")


def test_files_that_are_no_settings_are_refused(tmp_path: Path) -> None:
    (tmp_path / "large.yaml").write_text("#" * 50_001)
    (tmp_path / "latin.yaml").write_bytes("name: é".encode("latin-1"))

    for name, said in {
        "large.yaml": r"large\.yaml: must be at most 50,000 bytes",
        "latin.yaml": r"latin\.yaml: must be UTF-8 text: .* at byte 6\.",
        "absent.yaml": r"absent\.yaml: cannot be read: No such file or directory\. Check the path\.",
        ".": "cannot be read: Is a directory",
    }.items():
        with pytest.raises(UserError, match=said):
            space_file.load(tmp_path / name)
