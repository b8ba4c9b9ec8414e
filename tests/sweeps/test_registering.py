from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mlflow import MlflowClient
from mlflow.exceptions import MlflowException

from sweeps import store
from sweeps.folder import SweepFolder
from sweeps.outbox import Outbox

Send = Callable[..., tuple[int, str | None]]

TAGS = {"trial": "t003", "features_sha256": "ab", "fid": 25.0}


def model_of(folder: SweepFolder, content: str = "weights") -> dict[str, Any]:
    """A line's model, made in the sweep's folder. What is in it is nobody's business here."""
    path = folder.best / "model" / "data"
    path.mkdir(parents=True, exist_ok=True)
    (path.parent / "MLmodel").write_text("flavors: {}\n")
    (path / "model.keras").write_text(content)
    return {"folder": "best/model", "name": "gp", "tags": TAGS}


def test_the_model_is_registered_with_its_files_and_both_aliases(
    folder: SweepFolder, outbox: Outbox, send: Send, uri: str
) -> None:
    outbox.append(model=model_of(folder))
    assert send() == (0, None)

    client = MlflowClient(uri)
    version = client.get_model_version_by_alias("gp", "best")
    assert version.version == client.get_model_version_by_alias("gp", "gp-0001").version
    assert version.tags == {
        "trial": "t003",
        "features_sha256": "ab",
        "fid": "25.0",
        "sweep_id": "gp-0001-abcd",
    }
    place = Path(version.source.removeprefix("file://"))
    assert (place / "data" / "model.keras").read_text() == "weights"
    (run,) = client.search_runs([client.get_experiment_by_name("gp").experiment_id])
    assert [output.model_id for output in run.outputs.model_outputs] == [
        client.search_logged_models([run.info.experiment_id])[0].model_id
    ]


def test_a_line_sent_twice_makes_no_second_version(
    folder: SweepFolder, outbox: Outbox, send: Send, uri: str
) -> None:
    outbox.append(model=model_of(folder))
    send()
    outbox.mark_sent(0)
    send()

    assert len(MlflowClient(uri).search_model_versions("name = 'gp'")) == 1


@pytest.mark.parametrize(
    "step",
    [
        "create_logged_model",
        "log_model_artifacts",
        "finalize_logged_model",
        "log_outputs",
        "create_model_version",
        "set_registered_model_alias",
    ],
)
def test_what_stopped_half_way_is_finished_once_by_the_next_try(
    step: str, folder: SweepFolder, outbox: Outbox, send: Send, uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    done, tries = getattr(MlflowClient, step), []

    def dies_after(self: MlflowClient, *args: Any, **kwargs: Any) -> Any:
        answer = done(self, *args, **kwargs)
        tries.append(step)
        if len(tries) == 1:
            raise ConnectionError("gone")
        return answer

    monkeypatch.setattr(MlflowClient, step, dies_after)
    outbox.append(model=model_of(folder))
    assert send() == (0, None)

    client = MlflowClient(uri)
    (version,) = client.search_model_versions("name = 'gp'")
    assert len(client.search_logged_models(["1"])) == 1
    assert client.get_model_version_by_alias("gp", "best").version == version.version
    assert Path(version.source.removeprefix("file://"), "data", "model.keras").exists()


def test_best_is_the_lowest_fid_in_the_same_features_and_else_the_newest(
    folder: SweepFolder, outbox: Outbox, send: Send, uri: str
) -> None:
    model, client = model_of(folder), MlflowClient(uri)

    def best_after(**tags: Any) -> str:
        outbox.append(model=model | {"tags": TAGS | tags})
        assert send() == (0, None)
        return client.get_model_version_by_alias("gp", "best").tags["trial"]

    assert best_after(trial="t001", fid=25.0) == "t001"
    assert best_after(trial="t002", fid=30.0) == "t001"
    assert best_after(trial="t003", fid=20.0) == "t003"
    assert best_after(trial="t004", fid=90.0, features_sha256="cd") == "t004"
    assert client.get_model_version_by_alias("gp", "gp-0001").tags["trial"] == "t004"


def test_a_model_that_is_gone_is_said_and_holds_nothing_up(
    folder: SweepFolder, outbox: Outbox, send: Send, uri: str
) -> None:
    outbox.append(model={"folder": "best/model", "name": "gp", "tags": TAGS})
    outbox.append(tick=1, step=1, metrics={"best_fid": 1.0})

    assert send() == (0, None)
    assert "best/model: is gone" in outbox.refused.read_text()
    with pytest.raises(MlflowException):
        MlflowClient(uri).get_registered_model("gp")


def test_a_model_that_moved_with_its_database_is_found_again(
    folder: SweepFolder, outbox: Outbox, send: Send, tmp_path: Path
) -> None:
    outbox.append(model=model_of(folder))
    send()
    moved = folder.out.rename(tmp_path / "elsewhere")
    store.mend_addresses(moved / "mlflow.db")

    client = MlflowClient(f"sqlite:///{moved / 'mlflow.db'}")
    version = client.get_model_version_by_alias("gp", "best")
    uri = client.get_model_version_download_uri("gp", version.version)
    for address in (version.source, uri, client.search_logged_models(["1"])[0].artifact_location):
        assert Path(address.removeprefix("file://"), "data", "model.keras").read_text() == "weights"
