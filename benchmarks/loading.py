"""Memory and time of loading 50,000 colour images of 32x32: from a folder, from an .npz file, from the cache.

    .venv/bin/python benchmarks/loading.py [--images 50000]

Each is loaded in a process of its own; memory is what that process held at most beyond what it held with
everything imported.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

ROOT = Path(__file__).resolve().parent.parent
LOAD = """
import json, re, sys, time
from pathlib import Path
sys.path.insert(0, {root!r})
from wgangp import datasets
from wgangp.config import TrainConfig

def held(word):
    return int(re.search(word + r":\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]) * 1024

before, begin = held("VmRSS"), time.perf_counter()
config, cache = TrainConfig(dataset=sys.argv[1]), Path(sys.argv[2])
found = datasets.load(config, cache=cache, say=lambda line: None)
seconds = time.perf_counter() - begin
held_most = held("VmHWM") - before
print(json.dumps({{"seconds": seconds, "bytes": held_most, "size": found.images.nbytes}}))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=50_000)
    count = parser.parse_args().images
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        pixels = np.random.default_rng(0).integers(0, 256, (count, 32, 32, 3), np.uint8)
        np.savez(work / "images.npz", images=pixels)
        for number, image in enumerate(pixels):
            path = work / "images" / str(number % 10) / f"{number:06d}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(image).save(path, compress_level=1)
        print(
            f"| {count:,} images of 32x32x3 | seconds | memory | times the array |\n| --- | --- | --- | --- |"
        )
        for source in ("images", "images.npz"):
            for how in ("read", "from the cache"):
                found = load(work / source, work / "cache")
                megabytes, times = found["bytes"] / 1e6, found["bytes"] / found["size"]
                print(
                    f"| {source}, {how} | {found['seconds']:.1f} | {megabytes:.0f} MB | {times:.1f} |",
                    flush=True,
                )


def load(source: Path, cache: Path) -> dict[str, float]:
    """Seconds, bytes and the size of the array, of one start."""
    command = [sys.executable, "-c", LOAD.format(root=str(ROOT)), str(source), str(cache)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


if __name__ == "__main__":
    main()
