"""The house: which file may import which, who owns which library, and what no file may say."""

import ast
import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest

ROOT = Path(__file__).resolve().parent.parent

# Each file imports only files earlier in its list; sweeps may import all of wgangp, wgangp nothing of sweeps.
ORDER = {
    "sweeps": [
        "folder",
        "interrupt",
        "disk",
        "memory",
        "search",
        "sections",
        "resources",
        "space",
        "conditions",
        "baselines",
        "naming",
        "space_file",
        "fields",
        "schema",
        "unchanged",
        "seeds",
        "records",
        "finalists",
        "storage",
        "attributes",
        "pruning",
        "sampling",
        "charter",
        "lineage",
        "study",
        "history",
        "scheduling",
        "failures",
        "gang",
        "trial",
        "outbox",
        "outlook",
        "store",
        "registering",
        "sending",
        "tracking",
        "results",
        "wall",
        "shared_view",
        "recording",
        "sparkline",
        "progress",
        "ranking",
        "pareto",
        "early",
        "choices",
        "advice",
        "answer",
        "plots",
        "page",
        "markdown",
        "report",
        "several",
        "reporting",
        "cluster",
        "provenance",
        "model",
        "preparation",
        "probing",
        "tuning",
        "closing",
        "sweep",
        "run",
    ],
    "wgangp": [
        "errors",
        "wording",
        "files",
        "quiet",
        "user_code",
        "settings_file",
        "rules",
        "config",
        "strategies",
        "progress",
        "arrays",
        "checkpoints",
        "frozen_code",
        "outside",
        "conversion",
        "image_folder",
        "npz",
        "downloads",
        "datasets",
        "splitting",
        "randomness",
        "layers",
        "dcgan",
        "resnet",
        "networks",
        "losses",
        "network_check",
        "optimizers",
        "update",
        "asynchronous",
        "gan",
        "features",
        "random_features",
        "inception",
        "frechet",
        "neighbours",
        "scores",
        "feature_network",
        "kept_features",
        "prepared",
        "evaluation",
        "convergence",
        "pictures",
        "export",
        "winner",
        "measuring",
        "trainer",
        "run_folder",
        "opening",
        "train",
        "sample",
    ],
}

# The only files that may import a library.
OWNERS = {
    "optuna": {
        f"sweeps/{name}.py"
        for name in (
            "storage",
            "attributes",
            "pruning",
            "sampling",
            "charter",
            "lineage",
            "study",
            "history",
            "plots",
        )
    },
    "mlflow": {"sweeps/sending.py", "sweeps/registering.py", "sweeps/model.py"},
    "rich": {"sweeps/progress.py"},
    "ray": {
        f"sweeps/{name}.py"
        for name in (
            "memory",
            "scheduling",
            "gang",
            "trial",
            "recording",
            "cluster",
            "preparation",
            "probing",
            "tuning",
            "closing",
        )
    },
    "ruamel": {"wgangp/settings_file.py"},
}

TENSORFLOW = {"tensorflow", "keras"}
# In sweeps only WORKERS, which run in workers, may import these, and only inside functions.
WORKER_ONLY = {
    f"wgangp.{name}"
    for name in (
        *("layers", "dcgan", "resnet", "networks", "losses", "network_check", "optimizers", "update", "gan"),
        *(
            "features",
            "random_features",
            "inception",
            "feature_network",
            "evaluation",
            "export",
            "winner",
            "trainer",
            "train",
            "sample",
        ),
    )
}
WORKERS = ("sweeps/model.py", "sweeps/trial.py")

Moment = Literal["when imported", "when called", "never"]
"""When an import statement runs; "never" is under `if TYPE_CHECKING`."""


@dataclass(frozen=True)
class Import:
    module: str
    line: int
    moment: Moment

    @property
    def top(self) -> str:
        return self.module.split(".")[0]

    @property
    def file(self) -> str | None:
        """Path of the file of the house that this import reads, if it is one."""
        parts = self.module.split(".")
        return f"{parts[0]}/{parts[1]}.py" if parts[0] in ORDER and len(parts) > 1 else None


def imports(source: str, *, package: str) -> list[Import]:
    """All imports of a file, `import_module("...")` with a literal name included."""
    return list(_imports_below(ast.parse(source), package=package, moment="when imported"))


def _imports_below(node: ast.AST, *, package: str, moment: Moment) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        for module in _imported_modules(child, package=package):
            yield Import(module, child.lineno, moment)
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield from _imports_below(child, package=package, moment="when called")
        elif isinstance(child, ast.If) and ast.unparse(child.test).endswith("TYPE_CHECKING"):
            yield from _imports_below(ast.Module(child.body, []), package=package, moment="never")
            yield from _imports_below(ast.Module(child.orelse, []), package=package, moment=moment)
        else:
            yield from _imports_below(child, package=package, moment=moment)


def _imported_modules(node: ast.AST, *, package: str) -> list[str]:
    match node:
        case ast.Import(names=names):
            return [alias.name for alias in names]
        case ast.ImportFrom(module=module, names=names, level=level):
            base = ".".join(part for part in (package if level else None, module) if part)
            return [f"{base}.{alias.name}" for alias in names] if base in ORDER else [base]
        case ast.Call(
            func=ast.Name(id="import_module" | "__import__") | ast.Attribute(attr="import_module"),
            args=[ast.Constant(value=str(module)), *_],
        ):
            return [module]
    return []


def violations(sources: Mapping[str, str]) -> list[str]:
    """What is wrong with these files, given as path ("sweeps/run.py") -> source; one line each."""
    found = {file: imports(source, package=Path(file).parts[0]) for file, source in sources.items()}
    lines = []
    for file, of_file in sorted(found.items()):
        package, name = Path(file).parts[0], Path(file).with_suffix("").as_posix().partition("/")[2]
        if name == "__init__":
            lines += [
                f"{file}:{each.line}: imports {each.module}; an __init__.py imports nothing"
                for each in of_file
            ]
        elif name not in ORDER[package]:
            lines.append(
                f"{file}: not in the order of the house: place it in ORDER, after all that it imports"
            )
        else:
            lines += [f"{file}:{each.line}: {wrong}" for each in of_file for wrong in _wrongs(file, each)]
            lines += _reaches_tensorflow(file, found) if package == "sweeps" else []
    return lines


def _wrongs(file: str, each: Import) -> Iterator[str]:
    package, name = Path(file).parts[0], Path(file).stem
    if package == "wgangp" and each.top == "sweeps":
        yield f"imports {each.module}; wgangp never imports sweeps"
    elif each.file and Path(each.file).stem not in ORDER[each.top]:
        yield f"imports {each.module}, which is not in the order of the house"
    elif each.file and each.top == package:
        order = ORDER[package]
        if order.index(Path(each.file).stem) >= order.index(name):
            yield f"imports {each.module}, which is not earlier than {name}"
    if each.top in OWNERS and file not in OWNERS[each.top]:
        yield f"imports {each.module}; only {', '.join(sorted(OWNERS[each.top]))} may"
    if package == "sweeps" and (each.top in TENSORFLOW or each.module in WORKER_ONLY):
        if file not in WORKERS and each.moment != "never":
            yield f"imports {each.module}; in sweeps only {' and '.join(WORKERS)} may, inside a function"
        elif each.moment == "when imported":
            yield f"imports {each.module} at module level; only inside a function"


def _reaches_tensorflow(file: str, found: Mapping[str, list[Import]]) -> list[str]:
    """The shortest chain from a file of sweeps to TensorFlow, by what runs when it is imported."""
    chains, seen = [[file]], {file}
    for chain in chains:
        for each in found.get(chain[-1], []):
            if each.moment != "when imported":
                continue
            if each.top in TENSORFLOW and len(chain) > 1:
                return [f"{file}: importing it imports TensorFlow: {' -> '.join([*chain, each.module])}"]
            if each.file and each.file not in seen:
                seen.add(each.file)
                chains.append([*chain, each.file])
    return []


def test_every_file_imports_only_what_the_house_allows() -> None:
    files = [path for package in ORDER for path in (ROOT / package).rglob("*.py")]
    assert len(files) > len(ORDER), f"found no code under {ROOT}"

    wrong = violations({path.relative_to(ROOT).as_posix(): path.read_text("utf-8") for path in files})

    assert not wrong, "\n" + "\n".join(wrong)


@pytest.mark.parametrize(
    ("file", "source", "expected"),
    [
        ("sweeps/study.py", "from sweeps.space import Space", None),
        ("sweeps/study.py", "import sweeps.run", "sweeps.run, which is not earlier than study"),
        ("sweeps/study.py", "from sweeps import sweep", "sweeps.sweep, which is not earlier than study"),
        ("sweeps/study.py", "from . import study", "sweeps.study, which is not earlier than study"),
        ("sweeps/study.py", "from .sweep import run_sweep", "sweeps.sweep, which is not earlier than study"),
        ("sweeps/study.py", "def f():\n    import sweeps.run", "sweeps/study.py:2: imports sweeps.run"),
        ("sweeps/study.py", "from sweeps.utils import x", "sweeps.utils, which is not in the order"),
        ("sweeps/utils.py", "", "sweeps/utils.py: not in the order of the house: place it"),
        ("sweeps/deep/run.py", "", "sweeps/deep/run.py: not in the order of the house: place it"),
        ("sweeps/__init__.py", "import os", "an __init__.py imports nothing"),
        ("wgangp/gan.py", "from wgangp import losses, networks", None),
        (
            "wgangp/gan.py",
            "from wgangp import losses, trainer",
            "wgangp.trainer, which is not earlier than gan",
        ),
        ("wgangp/train.py", "import sweeps.folder", "wgangp never imports sweeps"),
        ("wgangp/train.py", "def f():\n    from ray import tune", "imports ray; only sweeps/"),
        ("wgangp/train.py", "import optuna", "imports optuna; only sweeps/"),
        (
            "wgangp/train.py",
            "import mlflow",
            "imports mlflow; only sweeps/model.py, sweeps/registering.py, sweeps/sending.py may",
        ),
        ("wgangp/config.py", "from ruamel.yaml import YAML", "only wgangp/settings_file.py may"),
        ("sweeps/run.py", "from rich.table import Table", "imports rich.table; only sweeps/progress.py may"),
        (
            "sweeps/run.py",
            "def f():\n    import keras",
            "imports keras; in sweeps only sweeps/model.py and sweeps/trial.py may",
        ),
        ("sweeps/run.py", "if TYPE_CHECKING:\n    from wgangp.trainer import Progress", None),
        (
            "sweeps/run.py",
            "from wgangp import trainer",
            "imports wgangp.trainer; in sweeps only sweeps/model.py and sweeps/trial.py",
        ),
        ("sweeps/trial.py", "def f():\n    import wgangp.trainer", None),
        ("sweeps/trial.py", "def f():\n    import_module('tensorflow')", None),
        ("sweeps/trial.py", "importlib.import_module('wgangp.trainer')", "wgangp.trainer at module level"),
        ("sweeps/trial.py", "class A:\n    import tensorflow as tf", "imports tensorflow at module level"),
        (
            "sweeps/trial.py",
            "try:\n    import tensorflow.keras\nexcept E:\n    pass",
            "keras at module level",
        ),
        ("sweeps/run.py", "from wgangp.scores import fid", "sweeps/run.py -> wgangp/scores.py -> tensorflow"),
    ],
)
def test_a_fault_in_the_house_is_found(file: str, source: str, expected: str | None) -> None:
    wrong = violations({file: source, "wgangp/scores.py": "import tensorflow"})

    assert [expected in line for line in wrong] == [True] if expected else not wrong, wrong


def tracked_files() -> list[Path]:
    """Files that git tracks; without git (an unpacked archive), those of our own folders and of the root."""
    try:
        listed = subprocess.run(
            ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
        )
        files = [ROOT / name for name in listed.stdout.split("\0") if name]
    except (OSError, subprocess.CalledProcessError):
        folders = [".ci", "sweeps", "wgangp", "search_spaces", "benchmarks", "tests"]
        files = [*ROOT.glob("*"), *(path for folder in folders for path in (ROOT / folder).rglob("*"))]
    return [path for path in files if path.is_file() and "__pycache__" not in path.parts]


def of_this_machine(text: bytes, *, folders: list[str]) -> list[str]:
    """Which lines name one of these folders or say where packages come from, each as `line: why`."""
    names = "|".join(re.escape(folder) for folder in folders if len(folder) > 1)
    pattern = re.compile(rf"(?<![\w.-])(?:{names})(?![\w-])|index" + "-url" + "|find" + "-links")
    lines = enumerate(text.decode("utf-8", "replace").split("\n"), start=1)
    return [f"{number}: holds {match[0]!r}" for number, line in lines if (match := pattern.search(line))]


def test_no_tracked_file_speaks_of_this_machine_or_of_where_packages_come_from() -> None:
    folders = [str(ROOT), os.path.expanduser("~")]
    wrong = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in tracked_files()
        for line in of_this_machine(path.read_bytes(), folders=folders)
    ]

    assert not wrong, "\n" + "\n".join(wrong)


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("runs in /home/ada/gp/runs", True),
        ("cd /home/ada", True),
        ("file:///home/ada", True),
        ("see /home/adam or x/home/ada", False),
        ("--extra-index" + "-url here", True),
        ("--find" + "-links here", True),
    ],
)
def test_a_line_about_this_machine_is_found(line: str, found: bool) -> None:
    assert bool(of_this_machine(f"first\n{line}\n".encode(), folders=["/home/ada/gp", "/home/ada"])) is found
