from pathlib import Path

from wgangp.config import TrainConfig
from wgangp.progress import Progress
from wgangp.run_folder import Run

METRICS = ("wasserstein", "gradient_norm", "gradient_penalty", "images_per_second")


def test_a_run_records_its_ticks_and_tells_what_they_say(tmp_path: Path) -> None:
    run = Run(TrainConfig(), tmp_path, None)
    assert run.verdict().word == "-"
    for tick, fid in enumerate([400, 200, 100, 60, 50, 45], start=1):
        metrics = {"fid": float(fid), "fid_standard_error": 0.51, "best_fid": float(fid), "heldout_gap": 0.0}
        progress = Progress(tick, 9000 * tick, metrics | dict.fromkeys(METRICS, 1.0), b"png", None, "")
        line = run.record(progress)

    assert line.startswith("54/90 kimg  fid 45.0 +- 0.5  best 45.0  wasserstein 1  ")
    assert run.verdict().word == "improving"
    run.forget_after(3)
    assert run.verdict().evidence == "3 ticks are too few to say"
