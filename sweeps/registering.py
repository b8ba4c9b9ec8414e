"""The winner's model in MLflow's registry: uploaded once, under the space's name, with aliases.

Every step looks for what an earlier try has done, so that sending a line twice changes nothing.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities.model_registry import ModelVersion

BEST = "best"
"""The alias of the best model of a space: `models:/gp@best`. Each sweep's winner has the sweep's as well."""


def register(
    client: "MlflowClient",
    *,
    experiment_id: str,
    run_id: str,
    name: str,
    folder: Path,
    sweep: str,
    tags: dict[str, Any],
) -> None:
    """Register the model in `folder`.

    Args:
        client: of the store that has the sweep.
        experiment_id: the sweep's.
        run_id: the sweep's own run.
        name: of the registered model.
        folder: as `model.package` makes it.
        sweep: its name, which becomes an alias.
        tags: sweep_id and trial, by which it is found again; features_sha256 and fid, by which the best of
            several is known.
    """
    from mlflow.exceptions import MlflowException

    known = {key: str(value) for key, value in tags.items()}
    try:
        client.create_registered_model(name)
    except MlflowException as error:
        if error.error_code != "RESOURCE_ALREADY_EXISTS":
            raise
    versions = client.search_model_versions(f"name = '{name}'")
    version = next((one for one in versions if _same(one.tags, known)), None)
    if version is None:
        model = _uploaded(client, experiment_id, run_id, folder, known)
        version = client.create_model_version(
            name,
            # Not models:/..., which MLflow would look up in whatever store is the process's own.
            source=model.artifact_location,
            run_id=run_id,
            model_id=model.model_id,
            tags=known,
            await_creation_for=0,
        )
    client.set_registered_model_alias(name, sweep, version.version)
    if _is_best(client, name, known):
        client.set_registered_model_alias(name, BEST, version.version)


def _uploaded(
    client: "MlflowClient", experiment_id: str, run_id: str, folder: Path, known: dict[str, str]
) -> Any:
    """The model in the run's experiment, whole."""
    from mlflow.entities import LoggedModelOutput, LoggedModelStatus

    ours = " AND ".join(f"tags.{key} = '{known[key]}'" for key in ("sweep_id", "trial"))
    found = client.search_logged_models([experiment_id], filter_string=ours)
    if found:
        model = found[0]
    else:
        model = client.create_logged_model(
            experiment_id, name="generator", source_run_id=run_id, tags=known, model_type="generator"
        )
    if model.status != LoggedModelStatus.READY:
        client.log_model_artifacts(model.model_id, str(folder))
        client.finalize_logged_model(model.model_id, "READY")
        client.log_outputs(run_id, [LoggedModelOutput(model.model_id, step=0)])
    return model


def _is_best(client: "MlflowClient", name: str, known: dict[str, str]) -> bool:
    """Whether no other has a lower FID in the same features; in others, the newest is what is wanted."""
    try:
        best: ModelVersion = client.get_model_version_by_alias(name, BEST)
    except Exception as error:
        if getattr(error, "error_code", None) in ("RESOURCE_DOES_NOT_EXIST", "INVALID_PARAMETER_VALUE"):
            return True
        raise
    if best.tags.get("features_sha256") != known["features_sha256"]:
        return True
    return float(known["fid"]) <= float(best.tags.get("fid", "inf"))


def _same(tags: dict[str, str], known: dict[str, str]) -> bool:
    return all(tags.get(key) == known[key] for key in ("sweep_id", "trial"))
