"""The sample wall: what the best trials drew from the same noise, rung by rung, in one picture."""

import io
import math
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

from sweeps.folder import SweepFolder
from sweeps.records import TrialRecord, complete, short, tenths, trials_of
from sweeps.results import Results
from sweeps.space import Space
from wgangp import files

ROWS = 6
"""Trials on the wall: the best complete ones, then the best of the others."""
CELL = 170
"""Pixels of a cell's side at most, unless one image is larger."""
GRID = 8
"""Images in a row, and rows, of the samples of a tick."""

_EDGE, _HEAD, _LEFT = 8, 18, 180
_TEXT, _LINE = 13, 17


def ticks(space: Space) -> list[int]:
    """The ticks whose samples are kept: the rungs, and the last."""
    return sorted({*space.milestones, space.base.ticks})


def keep(folder: SweepFolder, label: str, tick: int, picture: bytes) -> None:
    """Keep a trial's samples of one tick, a PNG, for the wall."""
    path = _kept(folder, label, tick)
    path.parent.mkdir(parents=True, exist_ok=True)
    files.write(path, picture)


def draw(results: Results) -> bytes | None:
    """The wall as a PNG; None if nothing was kept to hang on it."""
    columns = ticks(results.space)
    rows = [one for one in _best(results.records) if any(_has(results, one, tick) for tick in columns)]
    rows = rows[:ROWS]
    columns = [tick for tick in columns if any(_has(results, one, tick) for one in rows)]
    if not rows:
        return None
    grid = "x" in results.facts["image_size"]  # vectors are drawn as points
    cells = {
        (row, column): _cell(_kept(results.folder, record.label, tick), grid=grid)
        for row, record in enumerate(rows)
        for column, tick in enumerate(columns)
        if _has(results, record, tick)
    }
    width = max(cell.width for cell in cells.values()) + _EDGE
    captions = _LINE * max(len(_caption(record)) for record in rows)
    height = max(_HEAD + max(cell.height for cell in cells.values()), captions) + _EDGE
    wall = Image.new("RGB", (_LEFT + len(columns) * width, len(rows) * height), "white")
    pen, font = ImageDraw.Draw(wall), ImageFont.load_default(_TEXT)
    for row, record in enumerate(rows):
        for line, words in enumerate(_caption(record)):
            pen.text((_EDGE, row * height + line * _LINE), words, fill="black", font=font)
        for column, tick in enumerate(columns):
            if (row, column) in cells:
                corner = (_LEFT + column * width, row * height)
                fid = tenths(record.ticks[tick].get("fid", math.nan))
                kimg = tick * results.space.base.tick_kimg
                pen.text(corner, f"{kimg:g} kimg: FID {fid}", fill="black", font=font)
                wall.paste(cells[row, column], (corner[0], corner[1] + _HEAD))
    file = io.BytesIO()
    wall.save(file, "PNG", optimize=True)
    return file.getvalue()


def _cell(path: Path, *, grid: bool) -> Image.Image:
    """The upper left images of a grid, uncut, as many as fit into `CELL` pixels; of a plot all."""
    picture = Image.open(path).convert("RGB")
    if not grid:
        return picture
    across, down = (max(1, min(GRID, CELL // max(1, side // GRID))) for side in picture.size)
    return picture.crop((0, 0, across * picture.width // GRID, down * picture.height // GRID))


def _best(records: list[TrialRecord]) -> list[TrialRecord]:
    trained = complete(records)
    others = [one for one in trials_of(records) if one not in trained and math.isfinite(one.best_fid)]
    return [*trained, *sorted(others, key=lambda one: one.best_fid)]


def _caption(record: TrialRecord) -> list[str]:
    head = record.label + (" baseline" if record.baseline else "")
    return [head, *(f"{field} {short(value)}"[:26] for field, value in record.params.items())]


def _has(results: Results, record: TrialRecord, tick: int) -> bool:
    return tick in record.ticks and _kept(results.folder, record.label, tick).exists()


def _kept(folder: SweepFolder, label: str, tick: int) -> Path:
    return folder.samples / label / f"{tick:05d}.png"
