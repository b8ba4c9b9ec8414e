"""The command line, run as a user's process; at its end it tells what the driver had become.

python driver.py FACTS.json ARGUMENTS...
"""

import json
import resource
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from sweeps.run import main

if __name__ == "__main__":
    status = main(sys.argv[2:])
    facts = {
        "tensorflow": "tensorflow" in sys.modules or "keras" in sys.modules,
        "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }
    Path(sys.argv[1]).write_text(json.dumps(facts))
    sys.exit(status)
