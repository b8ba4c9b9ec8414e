"""What a start of a sweep runs under: versions of Python and the libraries, and the commit."""

import platform
import shutil
import subprocess
from importlib.metadata import version

from sweeps.cluster import ROOT

LIBRARIES = ("ray", "tensorflow", "keras", "optuna", "mlflow", "numpy")


def conditions() -> dict[str, str]:
    """`version_python`, `version_<library>`, and `git_commit` where there is git and a repository."""
    versions = {f"version_{name}": version(name) for name in LIBRARIES}
    commit = {}
    if shutil.which("git"):
        describe = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=40"]
        git = subprocess.run(describe, capture_output=True, text=True)
        commit = {"git_commit": git.stdout.strip()} if git.returncode == 0 else {}
    return {"version_python": platform.python_version()} | versions | commit


def differences(before: dict[str, str], now: dict[str, str]) -> list[str]:
    """What changed between two starts, in words."""
    return [
        f"{name.removeprefix('version_').replace('git_commit', 'commit')} was {before.get(name, 'unknown')},"
        f" is {now.get(name, 'unknown')}"
        for name in before | now
        if before.get(name) != now.get(name)
    ]


def in_words(under: dict[str, str]) -> str:
    """Conditions as one line: `python 3.11.2, ray 2.60.0, ..., commit 1a2b3c`."""
    names = {name: name.removeprefix("version_").replace("git_commit", "commit") for name in under}
    return ", ".join(f"{names[name]} {value}" for name, value in under.items())
