"""One SQLite file per workspace: model calls by content, transcripts, decisions, labels, runs.

Known to the doors only. Several processes may use one workspace at once, and a process may be killed at any moment.
"""

from pluribus.store.calls import CallCache
from pluribus.store.workspace import RunRow, Store

__all__ = ["CallCache", "RunRow", "Store"]
