"""The notebook that ships runs as it stands, but for where its sweep goes."""

import os
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).resolve().parent.parent / "search_spaces" / "sweep.ipynb"


@pytest.mark.slow
def test_the_notebook_runs_and_shows_trials_wall_and_samples(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    runs = '"../runs"'
    assert sum(runs in cell.source for cell in notebook.cells) == 1
    for cell in notebook.cells:
        cell.source = cell.source.replace(runs, f'"{tmp_path}"')
    monkeypatch.setenv("WGANGP_CACHE", str(tmp_path / "cache"))
    assert "MLFLOW_TRACKING_URI" not in os.environ

    NotebookClient(notebook, timeout=300, kernel_name="python3").execute(cwd=NOTEBOOK.parent)

    printed, table, wall, drawn, page = (cell.outputs for cell in notebook.cells if cell.cell_type == "code")
    text = "".join(output.get("text", "") for output in printed)
    assert "winner t0" in text and "Traceback" not in text
    assert "best_fid" in table[-1].data["text/html"]
    assert wall[-1].data["image/png"]
    assert drawn[-1].data["text/plain"].startswith("((16, ")
    assert Path(page[-1].data["text/plain"].split("'")[1]).exists()
