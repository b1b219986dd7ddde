"""`pluribus version`."""

from __future__ import annotations

import pluribus


def version() -> int:
    """Print the version."""
    print(f"pluribus {pluribus.__version__}")
    return 0
