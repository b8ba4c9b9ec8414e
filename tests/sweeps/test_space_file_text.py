"""Text that is no plain YAML, or hostile: one line says so, nothing of it is carried out."""

import time

import pytest

from wgangp import settings_file
from wgangp.errors import UserError

NO_YAML: dict[str, tuple[str, str]] = {
    "nothing": ("", r"gp\.yaml: must be `key: value` lines, got nothing\."),
    "a list": ("[1, 2]", r"gp\.yaml: must be `key: value` lines, got \[1, 2\]\."),
    "a repeated key": (
        "search:\n  n_critic: {}\n  n_critic: {}",
        r'gp\.yaml:3: is not YAML: found duplicate key "n_critic".*',
    ),
    "an open bracket": (
        "a: 1\nsearch: {gp_weight: {low: 1",
        r"gp\.yaml:2: is not YAML: expected ',' or '}', .*",
    ),
    "a tab": ("search:\n\tgp_weight: 1", r"gp\.yaml:2: is not YAML: found character '\\t' .*"),
    "a tag that runs code": (
        'search: !!python/object/apply:os.mkdir ["hit"]',
        r"gp\.yaml:1: is not YAML: could not determine a constructor for the tag .*os\.mkdir'\.",
    ),
    "a tag of one's own": ("a:\n  b: !x {c: 1}", r"gp\.yaml:2: is not YAML: .* the tag '!x'\."),
    "an alias": ("a: &x {b: 1}\nsearch: *x", r"gp\.yaml:1: must not use YAML aliases \(\*name\); .*"),
    "an alias of itself": ("a: &x [*x]", r"gp\.yaml:1: must not use YAML aliases \(\*name\); .*"),
    "a billion laughs": (
        "a: &a [x, x]\n"
        + "".join(f"{b}: &{b} [*{a}, *{a}]\n" for a, b in zip("abcdef", "bcdefg", strict=True)),
        r"gp\.yaml:\d: must not use YAML aliases \(\*name\); .*",
    ),
    "deep lists": ("a: " + "[" * 1000, r"gp\.yaml: is nested too deeply for a settings file\."),
    "deep maps": ("a: " + "{a: " * 1000, r"gp\.yaml: is nested too deeply for a settings file\."),
    "a control character": ("name: a\x07b", r"gp\.yaml: is not YAML: unacceptable character #x0007.*"),
    "an impossible date": ("name: 2024-13-45", r"gp\.yaml: is not YAML: month must be in 1\.\.12\."),
    "two documents": ("a: 1\n---\nb: 2", r"gp\.yaml:2: is not YAML: but found another document\."),
}


@pytest.mark.parametrize(("text", "said"), NO_YAML.values(), ids=NO_YAML)
def test_what_is_no_plain_yaml_is_refused_in_one_line(text: str, said: str) -> None:
    with pytest.raises(UserError, match=rf"\A{said}\Z"):
        settings_file.parse(text, name="gp.yaml")


@pytest.mark.parametrize("part", ["[", "{a: ", "[a, ", "[[], ", '["]", ', "- ", "? ", "x, "])
def test_hostile_text_takes_no_time(part: str) -> None:
    text = "a: [" + part * (settings_file.MAX_BYTES // len(part))
    began = time.process_time()

    with pytest.raises(UserError):
        settings_file.parse(text, name="gp.yaml")

    assert time.process_time() - began < 2
