"""scripts/docs_blocks.py, which collects and runs the code of the documentation, for tests of it."""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "scripts"))
import docs_blocks

sys.path.pop(0)

__all__ = ["ROOT", "docs_blocks"]
