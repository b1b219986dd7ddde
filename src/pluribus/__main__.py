"""`python -m pluribus`, and `accelerate launch -m pluribus train …` on several devices."""

from __future__ import annotations

import sys

from pluribus.cli import main

if __name__ == "__main__":
    sys.exit(main())
