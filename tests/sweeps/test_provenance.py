"""What a start runs under, and what changed since the one before."""

import platform
from pathlib import Path

import optuna
import pytest

from sweeps import provenance


def test_versions_and_commit_are_those_of_this_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git = tmp_path / "git"
    git.write_text("#!/bin/sh\necho 1a2b3c\n")
    git.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    under = provenance.conditions()
    assert under["version_python"] == platform.python_version()
    assert under["version_optuna"] == optuna.__version__
    assert under["git_commit"] == "1a2b3c"
    assert provenance.in_words(under).startswith(f"python {platform.python_version()}, ray ")
    assert provenance.in_words(under).endswith(", commit 1a2b3c")


@pytest.mark.parametrize("git", [None, "#!/bin/sh\necho no repository >&2; exit 128\n"])
def test_without_git_or_a_repository_no_commit_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, git: str | None
) -> None:
    if git:
        (tmp_path / "git").write_text(git)
        (tmp_path / "git").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=None if git is None else ":")
    assert "git_commit" not in provenance.conditions()


def test_differences_name_what_changed_came_and_went() -> None:
    before = {"version_ray": "2.60.0", "version_keras": "3.15.1", "git_commit": "1a"}
    assert provenance.differences(before, before) == []
    now = {"version_ray": "2.61.0", "version_keras": "3.15.1", "version_numpy": "2.4"}
    assert provenance.differences(before, now) == [
        "ray was 2.60.0, is 2.61.0",
        "commit was 1a, is unknown",
        "numpy was unknown, is 2.4",
    ]
