"""An engine that nobody closes leaves no open database behind: Python 3.13 warns of one."""

from __future__ import annotations

import gc
import warnings
from pathlib import Path

from hookturn import Engine
from hookturn_builtins import error_report, turn_stats


def test_databases_close_with_their_owner(tmp_path: Path) -> None:
    engine = Engine(project_dir=tmp_path)
    for module, name in ((turn_stats, "turn-stats"), (error_report, "error-report")):
        engine.register(module.plugin(module.plugin.Config()), name, layer="builtin")
    session = engine.session()
    session.start()
    session.fail("Odd", "went wrong")
    session.end()
    assert list(tmp_path.glob(".hookturn/*.sqlite"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        del engine, session
        gc.collect()
    assert [str(item.message) for item in caught if item.category is ResourceWarning] == []
