"""The text of ``reef-pi`` and its like: a few lines of sh that find Reef's Python and hand everything over.

Python runs isolated (``-I``): the person stands in a project of theirs, whose files must not be imported. An installed
Reef is found by install.sh's receipt, since every upgrade is a new environment; a clone by its path.
"""

import re
import shlex
import sys
from pathlib import Path
from typing import Final

from adapters.agent import Adapter
from daemon.core.paths import Home

_TEXT: Final = """#!/bin/sh
# @COMMAND@: the agent with Reef's release, model and feedback. Written by `reef harness install`; see the receipt.
export REEF_HOME=@HOME@
python=@PYTHON@
@CURRENT@[ -x "$python" ] || {
    echo "@COMMAND@: Reef's program is gone: $python" >&2
    echo "  hint: install Reef again, then: reef harness install --adapter @NAME@" >&2
    exit 127
}
exec "$python" -I -c @CODE@ "$@"
"""
_CURRENT: Final = """current=$(sed -n 's/^current //p' @RECEIPT@ 2>/dev/null)
[ ! -x "$current/bin/python" ] || python=$current/bin/python
"""
#: Ctrl-C ends the start as it would end the agent, without a word from Python; where it is ignored it stays so.
_SIGNALS: Final = "import signal as s; s.getsignal(2) is s.default_int_handler and s.signal(2, s.SIG_DFL); "


def text(home: Home, adapter: Adapter) -> str:
    """The wrapper's text for the Python that runs now."""
    package_root = Path(__file__).parents[1]
    installed = package_root.is_relative_to(sys.prefix)
    receipt = Path(sys.prefix).parent / "receipt"
    current = _CURRENT.replace("@RECEIPT@", shlex.quote(str(receipt))) if installed and receipt.is_file() else ""
    path = "" if installed else f"import sys; sys.path.insert(0, {str(package_root)!r}); "
    values = {
        "NAME": adapter.name,
        "COMMAND": adapter.command,
        "HOME": shlex.quote(str(home.root)),
        "PYTHON": shlex.quote(sys.executable),
        "CURRENT": current,
        "CODE": shlex.quote(f"{_SIGNALS}{path}from reef_cli.wrapped import main; main({adapter.name!r})"),
    }
    return re.sub(r"@([A-Z]+)@", lambda place: values[place[1]], _TEXT)
