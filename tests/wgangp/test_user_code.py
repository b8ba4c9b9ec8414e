"""Functions of a user's own: found unrun, told by their line, frozen with a run, and refused when changed."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from wgangp import frozen_code, outside, settings_file, user_code
from wgangp.errors import UserError
from wgangp.user_code import UserCode

Write = Callable[..., str]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a file of code; the setting that names its function."""

    def write(text: str, *, function: str = "f", name: str = "my.py") -> str:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return f"{path}:{function}"

    return write


def refused(function: Callable, *arguments: object, **named: object) -> str:
    with pytest.raises(UserError) as caught:
        function(*arguments, **named)
    (problem,) = caught.value.problems
    assert "\n" not in problem
    return problem


@pytest.mark.parametrize(
    ("value", "is_one"),
    [
        ("my.py:f", True),
        ("/a b/my.py:f", True),
        ("my.py:", True),
        ("my.py:1", True),
        ("my.py", False),
        ("my.txt:f", False),
        ("a.py:b/c", False),
        ("dcgan", False),
        (None, False),
        (3, False),
    ],
)
def test_what_names_a_function(value: object, is_one: bool) -> None:
    assert user_code.is_code(value) == is_one


@pytest.mark.parametrize(
    "text", ["def f(): ...", "class f: ...", "from os import path as f", "f = lambda: 1", "import os as f"]
)
def test_what_may_be_a_function_is_found_without_running_it(write: Write, text: str) -> None:
    code = user_code.read(write(f"raise SystemExit\n{text}\n"))

    assert (code.function, code.name, code.text) == ("f", "my.py:f", f"raise SystemExit\n{text}\n")


def test_two_texts_have_two_hashes_wherever_they_are(write: Write) -> None:
    one, same = (user_code.read(write("def f(): ...", name=name)) for name in ("a/my.py", "b/my.py"))

    assert one.sha256 == same.sha256 != user_code.read(write("def f(): ... ")).sha256


@pytest.mark.parametrize(
    ("text", "function", "said"),
    [
        ("def g(): ...\nx = 1\n", "f", "my.py must have a function f; it has g, x."),
        ("", "f", "my.py must have a function f; it has no function."),
        ("def f(:\n", "f", "my.py:1 is not Python: "),
        ("x = 1\n  y = 2\n", "f", "my.py:2 is not Python: "),
        ("def f(): ...", "f()", "must be file.py:function, got "),
        ("def f(): ...", "", "must be file.py:function, got "),
        ("x = '\0'\n", "f", "my.py is not Python: "),
    ],
)
def test_code_that_cannot_be_used_is_refused_unrun(write: Write, text: str, function: str, said: str) -> None:
    assert said in refused(user_code.read, write(text, function=function))


def test_files_that_cannot_be_read_are_refused(write: Write, tmp_path: Path) -> None:
    assert refused(user_code.read, f"{tmp_path}/no.py:f") == (
        f"{tmp_path}/no.py cannot be read: No such file or directory. Check the path."
    )
    (tmp_path / "folder.py").mkdir()
    assert "cannot be read: Is a directory." in refused(user_code.read, f"{tmp_path}/folder.py:f")
    (tmp_path / "latin.py").write_bytes("def f(): return 'é'".encode("latin-1"))
    assert "latin.py is not Python: UnicodeDecodeError" in refused(user_code.read, f"{tmp_path}/latin.py:f")


def test_code_is_run_in_a_module_in_which_its_classes_are_found(write: Write) -> None:
    code = user_code.read(
        write(
            "from __future__ import annotations\nimport dataclasses\n\n@dataclasses.dataclass\nclass A:\n"
            "    x: int = 3\n\ndef f():\n    return A().x, __file__\n"
        )
    )

    assert code.load()() == (3, str(code.path))


def test_an_error_is_told_by_the_last_line_of_the_users_file(write: Write) -> None:
    code = user_code.read(write("import json\n\ndef g():\n    json.loads('{')\n\ndef f():\n    g()\n"))

    said = refused(code.call, code.load())
    assert said.startswith(f"{code.path}:4: f failed: JSONDecodeError: ")


# Frozen -------------------------------------------------------------------------------------------------


@pytest.fixture
def code(write: Write) -> dict[str, UserCode]:
    """Two files of one name and one of another."""
    values = [
        write("def f(): return 1", name="a/my.py"),
        write("def f(): return 2", name="b/my.py"),
        write("def f(): return 3", name="b/other.py"),
    ]
    return {value: user_code.read(value) for value in values}


def test_what_is_frozen_comes_back_when_the_files_are_gone(code: dict[str, UserCode], tmp_path: Path) -> None:
    frozen_code.write(tmp_path / "kept", code)
    for each in code.values():
        each.path.unlink()

    found = frozen_code.read(tmp_path / "kept")
    assert found == code
    assert [each.load()() for each in found.values()] == [1, 2, 3]
    assert frozen_code.changed(found) == []  # gone, and not needed


def test_what_was_changed_since_is_known(code: dict[str, UserCode]) -> None:
    first, *_ = code.values()
    first.path.write_text("def f(): return 7")

    assert frozen_code.changed(code) == [first]


def test_without_code_nothing_is_written(tmp_path: Path) -> None:
    frozen_code.write(tmp_path / "kept", {})

    assert frozen_code.read(tmp_path / "kept") == {}
    assert not (tmp_path / "kept").exists()


def edit_copy(kept: Path) -> None:
    (kept / "code" / "my.py").write_text("def f(): return 9")


def swap(kept: Path) -> None:
    names = [kept / "code" / name for name in ("my.py", "other_my.py")]
    texts = [path.read_text() for path in names]
    for path, text in zip(names, reversed(texts), strict=True):
        path.write_text(text)


def lose(kept: Path) -> None:
    (kept / "code" / "other.py").unlink()


def cut(kept: Path) -> None:
    (kept / "code.json").write_text((kept / "code.json").read_text()[:40])


def other_json(kept: Path) -> None:
    (kept / "code.json").write_text(json.dumps({"a.py:f": 3}))


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (edit_copy, "code/my.py: was changed: its sha256 must be "),
        (swap, "was changed: its sha256 must be "),
        (lose, "the kept code cannot be read: [Errno 2] No such file"),
        (cut, "the kept code cannot be read: "),
        (other_json, "the kept code cannot be read: "),
    ],
)
def test_a_copy_that_is_not_what_was_kept_is_refused(
    code: dict[str, UserCode], tmp_path: Path, damage: Callable[[Path], None], said: str
) -> None:
    frozen_code.write(tmp_path / "kept", code)
    damage(tmp_path / "kept")

    assert said in refused(frozen_code.read, tmp_path / "kept")


# Where a file names it ----------------------------------------------------------------------------------


def test_paths_are_those_of_the_file_that_names_them_or_of_the_working_folder(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    value = write("def f(): ...", name="deep/my.py")
    (tmp_path / "deep" / "pictures").mkdir()
    (tmp_path / "deep" / "space.yaml").write_text(
        "train: {architecture: my.py:f, features: random, dataset: pictures}"
    )
    monkeypatch.chdir(tmp_path)
    file = settings_file.read(Path("deep/space.yaml"), overrides=["train.dataset=deep/my.py:f"])

    def named(field: str) -> object:
        return outside.absolute(field, file.values["train"][field], file=file, key=("train", field))

    assert (named("architecture"), named("features"), named("dataset")) == (value, "random", value)
    plain = settings_file.read(Path("deep/space.yaml"), overrides=[])
    assert outside.absolute("dataset", "pictures", file=plain, key=("train", "dataset")) == str(
        tmp_path / "deep" / "pictures"
    )
    assert outside.absolute("width", "my.py:f", file=plain, key=("train", "width")) == "my.py:f"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("mnist5", "unknown data set 'mnist5'. Did you mean 'mnist5k'?"),
        ("pictures.zip", "must be a folder, an .npz file or file.py:function, got the file "),
        ("nowhere", "an .npz file or file.py:function; there is no "),
        ("no.py:f", "no.py cannot be read: No such file or directory. Check the path."),
    ],
)
def test_data_that_are_nowhere_are_refused_with_the_line(tmp_path: Path, value: str, said: str) -> None:
    (tmp_path / "pictures.zip").touch()
    path = tmp_path / "space.yaml"
    path.write_text(f"train:\n  dataset: {value}\n")
    file = settings_file.read(path, overrides=[])

    problem = refused(outside.absolute, "dataset", value, file=file, key=("train", "dataset"))
    assert problem.startswith("space.yaml:2: train.dataset: ") and said in problem


def test_what_a_run_keeps_needs_no_file(write: Write, tmp_path: Path) -> None:
    value = write("def f(): ...")
    frozen_code.write(tmp_path / "features", {value: user_code.read(value)})
    os.unlink(tmp_path / "my.py")
    (tmp_path / "space.yaml").write_text(f"train: {{architecture: '{value}'}}")
    file = settings_file.read(tmp_path / "space.yaml", overrides=[])
    asked = {"file": file, "key": ("train", "architecture")}

    assert outside.absolute("architecture", value, frozen=tmp_path / "features", **asked) == value
    assert "cannot be read" in refused(outside.absolute, "architecture", value, **asked)
