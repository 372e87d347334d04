"""Runs one agent program once against a scripted model. Started in a network of its own, with loopback only.

agent_run.py JOB.json RESULT.json
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from model_server import FakeModel
from webhook_server import Webhook

PORT = 8765
"""Free for certain: the network belongs to this run alone."""

WEBHOOK_PORT = 8766

URL = f"http://127.0.0.1:{PORT}"


def main(job_file, result_file):
    job = json.loads(Path(job_file).read_text())
    with FakeModel(job["script"], PORT) as model, Webhook(*job["webhook"], WEBHOOK_PORT) as webhook:
        begun = time.monotonic()
        process = subprocess.Popen(
            job["argv"], cwd=job["cwd"], env=job["env"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, errors="replace", start_new_session=True,
        )  # fmt: skip
        code = None
        try:
            out, err = process.communicate(timeout=job["limit"])
            code = process.returncode
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
        seconds = time.monotonic() - begun
        # A hook at the session's end may still be at work.
        mark = job.get("until")
        while mark and not Path(mark).exists() and time.monotonic() - begun < seconds + 10:
            time.sleep(0.05)
        requests = list(model.requests)
    result = {"code": code, "seconds": seconds, "stdout": out, "stderr": err, "requests": requests}
    result["webhook"] = webhook.asked
    Path(result_file).write_text(json.dumps(result))


if __name__ == "__main__":
    main(*sys.argv[1:])
