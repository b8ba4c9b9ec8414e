"""A table of bad space files and all that is said of them, in the order in which it is said."""

from pathlib import Path

import pytest

from sweeps import space_file
from wgangp import settings_file
from wgangp.errors import UserError

SEARCH = "search: {gp_weight: {type: float, low: 0.1, high: 100, log: true}}\n"
FIXED = "cannot be searched, trials would not compare; fix it under train."
NAME = "must be letters, digits, '-' or '_', 64 at most (default: the file's name)"
INSIDE = "change it or the search."

BAD: dict[str, tuple[str, list[str]]] = {
    "an unknown section": (
        SEARCH + "serch: {}",
        ["gp.yaml:2: serch: unknown setting. Did you mean 'search'?"],
    ),
    "unknown keys of every section": (
        SEARCH
        + """\
train: {widht: 3}
sampler: {nam: tpe}
pruner: {first_rung: 9}
sweep: {trails: 3}
resources: {cpu: 1}
study: {url: x}
objective: {metrics: fid}
enqueue:
  - {gp_weight: 1, prnue: true}
""",
        [
            "gp.yaml:8: objective.metrics: unknown setting. Did you mean 'metric'?",
            "gp.yaml:3: sampler.nam: unknown setting. Did you mean 'name'?",
            "gp.yaml:4: pruner.first_rung: unknown setting. Did you mean 'first_rung_kimg'?",
            "gp.yaml:5: sweep.trails: unknown setting. Did you mean 'trials'?",
            "gp.yaml:6: resources.cpu: unknown setting. Did you mean 'cpus'?",
            "gp.yaml:7: study.url: unknown setting. Known: storage.",
            "gp.yaml:2: train.widht: unknown setting. Did you mean 'width'?",
            "gp.yaml:10: enqueue[0].prnue: unknown setting. Did you mean 'prune'?",
        ],
    ),
    "unknown keys of a search": (
        """\
search:
  n_critc: {type: int, low: 1, high: 8}
  n_critic: {type: int, low: 1, hihg: 8, high: 8}
""",
        [
            "gp.yaml:2: search.n_critc: unknown setting. Did you mean 'n_critic'?",
            "gp.yaml:3: search.n_critic.hihg: unknown setting. Did you mean 'high'?",
        ],
    ),
    "a missing end": (
        "search: {gp_weight: {type: float, high: 1}}",
        ["gp.yaml:1: search.gp_weight.low: is required; add it."],
    ),
    "reversed and empty ranges, log from 0": (
        """\
search:
  n_critic: {type: int, low: 8, high: 1}
  gp_weight: {type: float, low: 1, high: 1}
  critic_lr: {type: float, low: 0, high: 1e-2, log: true}
  width: {type: int, low: -4, high: 4, log: true}
""",
        [
            "gp.yaml:2: search.n_critic: low must be below high, got 8 and 1; swap or widen them",
            "gp.yaml:3: search.gp_weight: low must be below high, got 1 and 1; swap or widen them",
            "gp.yaml:4: search.critic_lr: low must be above 0 with log, got 0; raise it or remove log",
            "gp.yaml:5: search.width: low must be above 0 with log, got -4; raise it or remove log",
        ],
    ),
    "steps": (
        """\
search:
  n_critic: {type: int, low: 1, high: 8, log: true, step: 7}
  gp_weight: {type: float, low: 0, high: 1, step: 0.3}
  batch_size: {type: int, low: 32, high: 64, step: 24}
  width: {type: int, low: 8, high: 32, step: 0}
  adam_beta2: {type: float, low: 0, high: 0.5, step: -0.1}
""",
        [
            "gp.yaml:2: search.n_critic: log and step cannot be combined; remove one",
            "gp.yaml:3: search.gp_weight: high - low must be a multiple of step (0.3), got 1",
            "gp.yaml:4: search.batch_size: high - low must be a multiple of step (24), got 32",
            "gp.yaml:5: search.width.step: must be greater than or equal to 1, got 0",
            "gp.yaml:6: search.adam_beta2.step: must be greater than 0, got -0.1",
        ],
    ),
    "repeated choices": (
        "search: {critic_lr: {type: categorical, choices: [1e-4, 1e-3, 1e-4]}}",
        ["gp.yaml:1: search.critic_lr.choices: must be distinct, got 0.0001 twice; remove one"],
    ),
    "a field in both search and train": (
        SEARCH + "train:\n  width: 8\n  gp_weight: 4",
        ["gp.yaml:4: train.gp_weight: stands in search too; remove one of the two."],
    ),
    "values outside a field's own range": (
        """\
search:
  n_critic: {type: int, low: 0, high: 101}
  gp_weight: {type: float, low: -1, high: 2e6}
  critic_lr: {type: categorical, choices: [1e-4, 2.0, 3.0]}
  adam_beta1: {type: float, low: 0, high: 1}
  precision: {type: categorical, choices: [float32, float16]}
train:
  {width: 0, batch_size: 70000, adam_beta2: 1}
""",
        [
            "gp.yaml:2: search.n_critic.low: must be greater than or equal to 1, got 0",
            "gp.yaml:2: search.n_critic.high: must be less than or equal to 100, got 101",
            "gp.yaml:3: search.gp_weight.low: must be greater than or equal to 0, got -1.0",
            "gp.yaml:3: search.gp_weight.high: must be less than or equal to 1000000, got 2000000.0",
            "gp.yaml:4: search.critic_lr.choices: must be less than or equal to 1, got 2.0",
            "gp.yaml:4: search.critic_lr.choices: must be less than or equal to 1, got 3.0",
            "gp.yaml:5: search.adam_beta1.high: must be less than 1, got 1.0",
            "gp.yaml:6: search.precision.choices: must not be float16: its range is too small for"
            " the gradient of a gradient, and scaling the loss does not help the penalty. Use bfloat16",
            "gp.yaml:8: train.width: must be greater than or equal to 1, got 0",
            "gp.yaml:8: train.adam_beta2: must be less than 1, got 1",
            "gp.yaml:8: train.batch_size: must be less than or equal to 65536, got 70000",
        ],
    ),
    "wrong types": (
        """\
search:
  n_critic: {type: float, low: 1, high: 8}
  gp_weight: {type: float, low: true, high: "1e-4"}
  width: {type: int, low: 1.5, high: 8}
  adam_beta1: {type: float, low: .nan, high: .inf}
  batch_size: {type: categorical, choices: [true, 32]}
  latent_size: {type: int, low: 1, high: 8, log: yes}
train: {critic_lr: "1e-4", adam_beta2: 1.5e, precision: off, generator_lr: true}
sweep: {trials: 1.5, seed: true}
""",
        [
            "gp.yaml:9: sweep.trials: must be a valid integer, got 1.5",
            "gp.yaml:9: sweep.seed: must be a valid integer, got true",
            "gp.yaml:2: search.n_critic.type: must be int for a whole number, got 'float'",
            "gp.yaml:3: search.gp_weight.low: must be a valid number, got true",
            "gp.yaml:3: search.gp_weight.high: must be a valid number, got '1e-4'",
            "gp.yaml:4: search.width.low: must be a valid integer, got 1.5",
            "gp.yaml:5: search.adam_beta1.low: must be a finite number, got nan",
            "gp.yaml:5: search.adam_beta1.high: must be a finite number, got inf",
            "gp.yaml:6: search.batch_size.choices: must be a valid integer, got true",
            "gp.yaml:7: search.latent_size.log: must be a valid boolean, got 'yes'",
            "gp.yaml:8: train.critic_lr: must be a valid number, got '1e-4'",
            "gp.yaml:8: train.generator_lr: must be a valid number, got true",
            "gp.yaml:8: train.adam_beta2: must be a valid number, got '1.5e'",
            "gp.yaml:8: train.precision: must be 'float32', 'float64' or 'bfloat16', got 'off'",
        ],
    ),
    "scores and features": (
        SEARCH
        + """\
train:
  scores: [fid, kid, kid]
  features: vgg
  inception: missing.pb
  train_images: 0
""",
        [
            "gp.yaml:6: train.train_images: must be greater than or equal to 1, got 0",
            "gp.yaml:3: train.scores: must name fid, which ranks the trials, and each score once, got"
            " ['fid', 'kid', 'kid']",
            "gp.yaml:4: train.features: must be classifier, random, inception or file.py:function, got 'vgg'",
            f"gp.yaml:5: train.inception: must be a file, got {Path('missing.pb').absolute()}."
            " Check the path.",
        ],
    ),
    "scores without the one that ranks, and none of ours": (
        SEARCH + "train: {scores: [kid]}\nfinalists: {count: 101, seeds: 1}",
        [
            "gp.yaml:3: finalists.count: must be less than or equal to 100, got 101",
            "gp.yaml:3: finalists.seeds: must be greater than or equal to 2, got 1",
            "gp.yaml:2: train.scores: must name fid, which ranks the trials, and each score once, got"
            " ['kid']",
        ],
    ),
    "a score nobody knows": (
        SEARCH + "train:\n  scores:\n    - fid\n    - lpips",
        [
            "gp.yaml:3: train.scores: must be 'fid', 'kid', 'precision', 'recall', 'density', 'coverage' or"
            " 'inception_score', got 'lpips'"
        ],
    ),
    "a graph that nothing would read": (
        SEARCH + f"train:\n  inception: {__file__}",
        [
            "gp.yaml:3: train: inception must be left out with features: classifier; set features: inception"
            " to use it"
        ],
    ),
    "kinds of search that are none": (
        "search:\n  n_critic: 5\n  gp_weight: {type: real, low: 1, high: 2}\n  width: [1, 2]",
        [
            "gp.yaml:2: search.n_critic.type: must be one of float, int, categorical, got 5",
            "gp.yaml:3: search.gp_weight.type: must be one of float, int, categorical, got 'real'",
            "gp.yaml:4: search.width.type: must be one of float, int, categorical, got [1, 2]",
        ],
    ),
    "fields that cannot be searched": (
        "search:\n"
        + "".join(
            f"  {field}: {{type: int, low: 1, high: 2}}\n"
            for field in ("dataset", "budget_kimg", "tick_kimg", "fid_samples", "split_seed")
        ),
        [
            f"gp.yaml:{line}: search.{field}: {FIXED}"
            for line, field in enumerate(
                ("dataset", "budget_kimg", "tick_kimg", "fid_samples", "split_seed"), start=2
            )
        ],
    ),
    "baselines outside the search": (
        """\
search:
  gp_weight: {type: float, low: 0.1, high: 100, log: true}
  n_critic: {type: int, low: 1, high: 8, step: 7}
  critic_lr: {type: float, low: 1e-3, high: 1e-2}
enqueue:
  - {gp_weight: 0, n_critic: 5, critic_lr: 1e-4}
  - {gp_weight: "10", n_critic: 1.0}
  - {gp_weight: 1, n_critic: 1, critic_lr: 1e-3, width: 16, prune: 1}
  - 7
""",
        [
            f"gp.yaml:6: enqueue[0].gp_weight: must lie inside the search, got 0; {INSIDE}",
            f"gp.yaml:6: enqueue[0].n_critic: must lie inside the search, got 5; {INSIDE}",
            f"gp.yaml:6: enqueue[0].critic_lr: must lie inside the search, got 0.0001; {INSIDE}",
            f"gp.yaml:7: enqueue[1].gp_weight: must lie inside the search, got '10'; {INSIDE}",
            f"gp.yaml:7: enqueue[1].n_critic: must lie inside the search, got 1.0; {INSIDE}",
            "gp.yaml:7: enqueue[1].critic_lr: is left out and its default is outside the search,"
            f" got 0.0001; {INSIDE}",
            "gp.yaml:8: enqueue[2].prune: must be true or false, got 1",
            "gp.yaml:8: enqueue[2].width: is not searched;"
            " a baseline gives values for searched settings only.",
            "gp.yaml:9: enqueue[3]: must be `setting: value` pairs, got 7",
        ],
    ),
    "fewer trials than baselines": (
        SEARCH + "enqueue: [{gp_weight: 1}, {gp_weight: 2}]\nsweep: {trials: 1}",
        ["gp.yaml:3: sweep.trials: must be at least the 2 baselines in enqueue, got 1"],
    ),
    "a budget that is no multiple of the tick": (
        SEARCH + "train: {budget_kimg: 10, tick_kimg: 3}",
        ["gp.yaml:2: train: budget_kimg must be a multiple of tick_kimg (3), got 10"],
    ),
    "a tick above the budget": (
        SEARCH + "train: {budget_kimg: 10, tick_kimg: 20}",
        ["gp.yaml:2: train: budget_kimg must be a multiple of tick_kimg (20), got 10"],
    ),
    "a first rung that is no multiple of the tick and above the budget": (
        SEARCH + "train: {budget_kimg: 9, tick_kimg: 3}\npruner: {first_rung_kimg: 10}",
        [
            "gp.yaml:3: pruner.first_rung_kimg: must be a multiple of tick_kimg (3), got 10",
            "gp.yaml:3: pruner.first_rung_kimg: must be at most budget_kimg (9), got 10",
        ],
    ),
    "resources there are not": (
        SEARCH + "resources: {workers: 2, strategy: tpu, gpus: 1.5, cpus: 0, placement: apart}",
        [
            "gp.yaml:2: resources.workers: must be 1 under strategy tpu, got 2;"
            " several go with auto, multi_worker or parameter_server",
            "gp.yaml:2: resources.cpus: must be greater than 0, got 0",
            "gp.yaml:2: resources.gpus: must be a fraction of one GPU or a whole number of GPUs, got 1.5",
            "gp.yaml:2: resources.placement: must be 'together' or 'split', got 'apart'",
        ],
    ),
    "a strategy there is not": (
        SEARCH + "resources: {strategy: horovod, workers: 0}",
        [
            "gp.yaml:2: resources.strategy: must be 'auto', 'one_device', 'mirrored', 'multi_worker',"
            " 'parameter_server' or 'tpu', got 'horovod'",
            "gp.yaml:2: resources.workers: must be greater than or equal to 1, got 0",
        ],
    ),
    "workers that share processors": (
        SEARCH + "resources: {workers: 2, cpus: 1.5, gpus: 0.5, placement: split}",
        [
            "gp.yaml:2: resources.cpus: must be a whole number for each worker of a trial, got 1.5",
            "gp.yaml:2: resources.gpus: must be a whole number for each worker of a trial, got 0.5",
            "gp.yaml:2: resources.placement: must be together with 2 workers, got split; or use one worker",
        ],
    ),
    "words whose turn has not come, numbers out of range": (
        SEARCH
        + """\
objective: {metric: kid, direction: maximize}
sampler: {name: bohb, n_startup_trials: 0}
pruner: {name: threshold, reduction_factor: 1}
sweep: {trials: 0, retries: -1, seed: -1, max_concurrent: 0}
""",
        [
            "gp.yaml:2: objective.metric: must be 'fid', got 'kid'",
            "gp.yaml:2: objective.direction: must be 'minimize', got 'maximize'",
            "gp.yaml:3: sampler.name: must be 'tpe', 'random', 'qmc', 'gp' or 'cmaes', got 'bohb'",
            "gp.yaml:3: sampler.n_startup_trials: must be greater than or equal to 1, got 0",
            "gp.yaml:4: pruner.name: must be 'successive_halving', 'hyperband', 'median', 'percentile',"
            " 'patient' or 'none', got 'threshold'",
            "gp.yaml:4: pruner.reduction_factor: must be greater than or equal to 2, got 1",
            "gp.yaml:5: sweep.trials: must be greater than or equal to 1, got 0",
            "gp.yaml:5: sweep.retries: must be greater than or equal to 0, got -1",
            "gp.yaml:5: sweep.seed: must be greater than or equal to 0, got -1",
            "gp.yaml:5: sweep.max_concurrent: must be greater than or equal to 1, got 0",
        ],
    ),
    "a pruner that does not suit ticks, and what other pruners and the report need": (
        SEARCH
        + """\
train: {tick_kimg: 3, budget_kimg: 9}
pruner: {name: wilcoxon, patience_kimg: 10, percentile: 100, n_startup_trials: 0}
compare: [core_seconds, seconds]
""",
        [
            "gp.yaml:3: pruner.name: must not be wilcoxon, which compares scores on the same problem"
            " instances, and ticks are no instances: each depends on the one before; take median",
            "gp.yaml:3: pruner.n_startup_trials: must be greater than or equal to 1, got 0",
            "gp.yaml:3: pruner.percentile: must be less than 100, got 100",
            "gp.yaml:4: compare: must be a list of core_seconds, each once, got ['core_seconds', 'seconds']",
        ],
    ),
    "a patience of no whole tick, a comparison of one thing twice": (
        SEARCH
        + """\
train: {tick_kimg: 3, budget_kimg: 9}
pruner: {name: patient, patience_kimg: 10}
compare: [core_seconds, core_seconds]
""",
        [
            "gp.yaml:4: compare: must be a list of core_seconds, each once,"
            " got ['core_seconds', 'core_seconds']",
            "gp.yaml:3: pruner.patience_kimg: must be a multiple of tick_kimg (3), got 10",
            "gp.yaml:3: pruner.patience_kimg: must be at most budget_kimg (9), got 10",
        ],
    ),
    "an empty search": ("search: {}", ["gp.yaml:1: search: must name at least one setting to search."]),
    "no search": ("train: {width: 3}", ["gp.yaml: search: must name at least one setting to search."]),
    "sections of another shape": (
        "search: [1]\ntrain: 3\nenqueue: {gp_weight: 1}",
        [
            "gp.yaml:1: search: must be `setting: value` lines, got [1]",
            "gp.yaml:2: train: must be `setting: value` lines, got 3",
            "gp.yaml:3: enqueue: must be a list of settings, got {'gp_weight': 1}",
        ],
    ),
    "a name that would leave the folder": (SEARCH + "name: ../x", [f"gp.yaml:2: name: {NAME}, got '../x'"]),
    "a name that no alias can have": (SEARCH + "name: gp.v2", [f"gp.yaml:2: name: {NAME}, got 'gp.v2'"]),
    "a name that is a number": (SEARCH + "name: 7", [f"gp.yaml:2: name: {NAME}, got 7"]),
}


@pytest.mark.parametrize(("text", "said"), BAD.values(), ids=BAD)
def test_every_mistake_is_said_with_its_line_and_key(text: str, said: list[str]) -> None:
    with pytest.raises(UserError) as caught:
        space_file.check(settings_file.parse(text, name="gp.yaml"), default_name="gp")

    assert list(caught.value.problems) == said
