"""Seeds that follow from other things, so that nothing depends on when or where it is run."""

import hashlib


def derived_seed(*parts: object) -> int:
    """A seed that follows from `parts`: the first 31 bits of the SHA-256 of `part:part:...`."""
    digest = hashlib.sha256(":".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1
