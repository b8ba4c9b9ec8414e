"""The command line, run as a user's process; at its end it tells what the driver had become.

    python driver.py FACTS.json TRAINER ARGUMENTS...

TRAINER is the module that trains, `wgangp.trainer` for the real one: no flag of the command line reaches it.
KILL_PLAN in the environment is a folder with a plan of how the driver is to die (`faults/kill_plan.py`).
"""

import json
import os
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from sweeps import run


def peak_bytes() -> int:
    """Most resident memory so far. (getrusage would count what the parent held when it forked.)"""
    (kilobytes,) = re.findall(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(kilobytes) * 1024


def main(facts_file: str, trainer: str, *arguments: str) -> int:
    if trainer != "wgangp.trainer":
        from sweeps import sweep

        for door in (sweep.run_sweep, sweep.resume_sweep, sweep.plan, sweep.plan_resume):
            door.__kwdefaults__["trainer"] = trainer
    if folder := os.environ.get("KILL_PLAN"):
        from tests.faults import kill_plan

        kill_plan.arm(Path(folder))
    status = run.main(list(arguments))
    facts = {
        "tensorflow": "tensorflow" in sys.modules or "keras" in sys.modules,
        "peak_bytes": peak_bytes(),
    }
    Path(facts_file).write_text(json.dumps(facts))
    return status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
