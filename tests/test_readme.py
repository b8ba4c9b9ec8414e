"""What the README says that a change elsewhere could make untrue."""

import re
from pathlib import Path

import pytest

from sweeps import space_file
from wgangp import settings_file
from wgangp.errors import UserError

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text()
GP = ROOT / "search_spaces" / "gp.yaml"


def test_every_link_leads_somewhere() -> None:
    linked = [target for target in re.findall(r"\]\(([^)]+)\)", README) if "://" not in target]
    headings = {
        re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-")
        for heading in re.findall(r"^#+ (.+)$", README, re.MULTILINE)
    }

    assert len(linked) > 15
    assert [each for each in linked if each.startswith("#") and each[1:] not in headings] == []
    assert [each for each in linked if not each.startswith("#") and not (ROOT / each).exists()] == []


def test_every_file_it_places_is_there() -> None:
    section = README.split("## What is where")[1].split("\n## ")[0]
    there = {path.name for path in ROOT.glob("*/*.py")}

    assert set(re.findall(r"\b\w+\.py\b", section)) - there == set()


def test_the_mistake_it_shows_is_told_so() -> None:
    wrong = GP.read_text().replace("  n_critic:     {", "  n_critc:      {")
    with pytest.raises(UserError) as caught:
        space_file.check(settings_file.parse(wrong, name="gp.yaml"), default_name="gp")

    assert f"    {caught.value.problems[0]}\n" in README


def test_the_noise_it_draws_from_fits_the_model_of_gp() -> None:
    (size,) = re.findall(r"normal\(size=\(16, (\d+)\)\)", README)

    assert int(size) == space_file.load(GP).base.latent_size
