"""The command line, run as a user's process; at its end it tells what the driver had become.

python driver.py FACTS.json ARGUMENTS...
"""

import json
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from sweeps.run import main


def peak_bytes() -> int:
    """Most resident memory so far. (getrusage would count what the parent held when it forked.)"""
    (kilobytes,) = re.findall(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(kilobytes) * 1024


if __name__ == "__main__":
    status = main(sys.argv[2:])
    facts = {
        "tensorflow": "tensorflow" in sys.modules or "keras" in sys.modules,
        "peak_bytes": peak_bytes(),
    }
    Path(sys.argv[1]).write_text(json.dumps(facts))
    sys.exit(status)
