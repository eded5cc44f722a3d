"""The daemon's process: what it says when it cannot start."""

import os
import subprocess
import sys

from daemon.core.paths import Home


def test_a_folder_in_place_of_a_file_is_named_without_a_traceback(reef_home: Home) -> None:
    reef_home.config.write_text("server: {port: 0}\n")
    reef_home.log.mkdir()
    command = [sys.executable, "-m", "daemon.server"]
    environment = {**os.environ, "REEF_HOME": str(reef_home.root)}
    ended = subprocess.run(command, env=environment, capture_output=True, timeout=60, check=False)
    said = ended.stderr.decode()
    assert (ended.returncode, str(reef_home.log) in said, "Traceback" in said) == (1, True, False)
