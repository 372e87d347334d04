"""``python -m hookturn`` takes no code from the folder where it is run."""

from __future__ import annotations

import os
import subprocess
import sys


def test_the_current_folder_provides_no_plugins(tmp_path) -> None:
    (tmp_path / "evil.py").write_text("open('ran', 'w')\n")
    info = tmp_path / "evil-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: evil\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[hookturn]\nevil = evil\n")
    argv = [sys.executable, "-m", "hookturn", "plugins", "--json"]
    done = subprocess.run(
        argv, cwd=tmp_path, capture_output=True, text=True, env=dict(os.environ), check=True
    )
    assert '"evil"' not in done.stdout
    assert not (tmp_path / "ran").exists()
