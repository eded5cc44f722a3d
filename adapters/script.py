"""A plan as a POSIX sh script: what ``curl … /reef/harness/install | bash`` runs. It must leave what `apply` leaves.

All of it is functions until the last line, which is one brace group: a download that was cut off anywhere runs nothing.
No sudo, no rc file, nothing read from the terminal. Every value of the plan is quoted by `shlex.quote` alone.
"""

import re
import shlex
from pathlib import Path
from typing import Final

from adapters.apply import NPM_FLAGS, PIP, PIP_CHECKED, PIP_FLAGS, requirements
from adapters.plan import InstallPlan
from daemon.core.errors import ReefError
from daemon.core.plaintext import marked

_TEMPLATE: Final = r"""#!/bin/sh
# Installs @TITLE@ for Reef, into Reef's own home. Nothing else on this machine is changed.

say() { printf '%s\n' "$*" >&2; }

# die MESSAGE WHAT-TO-DO
die() {
    say "error: $1"
    say "  hint: $2"
    exit 1
}

# write PATH MODE TEXT
write() {
    mkdir -p "$(dirname -- "$1")"
    new=$(dirname -- "$1")/.$(basename -- "$1").new
    printf '%s' "$3" >"$new"
    chmod "$2" "$new"
    mv -f "$new" "$1"
}

@INSTALLS@# receipt: what was installed; see adapters/receipt.py for its form.
receipt() {
    printf '# reef %s %s\n' @ADAPTER@ @VERSION@
    printf '# packages %s\n' @SPECS_LINE@
    tab=$(printf '\t')
    everything -type l | LC_ALL=C sort | while IFS= read -r one; do
        printf '# link%s%s%s%s\n' "$tab" "$(readlink "$one")" "$tab" "$one"
    done
    [ -z "$link" ] || printf '# link%s%s%s%s\n' "$tab" "$home/"@WRAPPER@ "$tab" "$link"
    sums=sha256sum
    command -v sha256sum >/dev/null 2>&1 || sums='shasum -a 256'
    everything -type f -exec $sums {} + | LC_ALL=C sort -k 2
}

everything() {
    for top in @CONTENTS@; do
        [ ! -e "$top" ] || find "$top" "$@"
    done
}

main() {
    set -eu
    umask 077
@FIRST@    home=@HOME@
    root=$home/@FOLDER@
    wrapper=$home/@WRAPPER@
    link=@LINK@
    if [ "$link" ]; then
        [ -d "$HOME/.local/bin" ] || die "there is no $HOME/.local/bin for the link" "mkdir -p it, and put it on PATH"
        link=$HOME/.local/bin/@NAME@
        case $link$wrapper in
        *[[:cntrl:]]*) die "$link or $wrapper fits no line of a receipt" "install without the link" ;;
        esac
        if [ -e "$link" ] || [ -L "$link" ]; then
            [ "$(readlink "$link" || true)" = "$wrapper" ] ||
                die "$link exists and is not this Reef's" "move it away, or install without the link"
        fi
    fi
    mkdir -p "$home/run" "$home/agents"
    chmod 700 "$home" "$home/run" "$home/agents"
    exec 9>>"$home/"@LOCK@ # npm and pip have it too: they go on where this is killed
    @PYTHON@ -I -c 'import fcntl; fcntl.flock(9, fcntl.LOCK_EX | fcntl.LOCK_NB)' 2>/dev/null || {
        say @ADAPTER@" is being installed already; waiting"
        @PYTHON@ -I -c 'import fcntl; fcntl.flock(9, fcntl.LOCK_EX)'
    }
    if [ -z "$link" ] && [ -f "$root/receipt" ]; then # one that an install before made
        link=$(sed -n 's/^# link.*@TAB@\(\/.*\)$/\1/p' "$root/receipt" | head -n 1)
        [ -L "$link" ] || link=''
    fi
    mkdir -p "$root"
    chmod 700 "$root"
    if [ "$(sed -n 2p "$root/receipt" 2>/dev/null)" != '# packages '@SPECS_LINE@ ] || [ ! -f @PROGRAM@ ]; then
        packages
    fi
@WRITES@
    [ -z "$link" ] || [ -L "$link" ] || ln -s "$wrapper" "$link"
    cd "$home"
    receipt >"$root/.receipt.new"
    mv -f "$root/.receipt.new" "$root/receipt"
    exec 9>&-
    # The wrapper looks whether a first request arrives: an agent that passes over its settings says nothing.
    say "waiting for a first request of "@ADAPTER@" to reach Reef"
    REEF_CHECK=1 "$wrapper" </dev/null >&2 ||
        die @ADAPTER@" "@VERSION@" is in place, but no request of it reached Reef" "reef doctor"
    say @ADAPTER@" "@VERSION@" is installed; run it: ${link:-$wrapper}"
}

{ main "$@"; }
"""


_PACKAGES: Final = r"""
packages() {
    say "installing "@SPECS_SAID@
    rm -f "$root/receipt"
    private=$root/private
    trap 'rm -rf "$private"' EXIT
    mkdir -p "$private"
    bring
    [ -f @PROGRAM@ ] || die @SPEC@" has no "@PROGRAM@ "reef harness install --help"
    found=$(
        export HOME="$private" @ENVIRONMENT@
        @ASKS_VERSION@ </dev/null 2>&1 | tail -n 1
    ) || found=
    rm -rf "$private"
    [ "$found" = @SAYS_VERSION@ ] ||
        die @ADAPTER@" "@VERSION@" was asked for, '$found' answers" "rm -r $root/node_modules $root/venv"
}

# not_at_home: what an installer keeps goes into a folder that is taken away again.
not_at_home() {
    export HOME="$private" XDG_CONFIG_HOME="$private/config" XDG_CACHE_HOME="$private/cache"
    export XDG_DATA_HOME="$private/data" XDG_STATE_HOME="$private/state"
}
"""
_NPM: Final = r"""
# known SPEC INTEGRITY: whether npm brought that very archive; nothing of it has run yet.
known() {
    grep -qF "\"$2\"" "$root/node_modules/.package-lock.json" && return
    rm -rf "$root/node_modules"
    die "npm brought another $1 than the one that Reef knows" "npm config get registry"
}

bring() {
    (
        cd "$root"
        if [ -f "${HOME:-}/.npmrc" ] && [ -z "${NPM_CONFIG_USERCONFIG:-}${npm_config_userconfig:-}" ]; then
            export npm_config_userconfig="$HOME/.npmrc"
        fi
        not_at_home
        export npm_config_cache="$private/cache"
        @INSTALLER@ install --prefix "$(pwd -P)" @FLAGS@ @SPECS@ </dev/null >&2
    ) || die "npm failed" "npm ping"
@CHECKS@
}

"""
_PIP: Final = r"""
bring() {
    rm -rf "$root/venv"
    printf '%s' @REQUIREMENTS@ >"$private/checked.txt"
    (
        cd "$root"
        for own in "${HOME:-}/.config/pip/pip.conf" "${HOME:-}/.pip/pip.conf"; do
            [ ! -f "$own" ] || [ "${PIP_CONFIG_FILE:-}" ] || export PIP_CONFIG_FILE="$own"
        done
        not_at_home
        @INSTALLER@ -m venv --without-pip "$root/venv" >&2 &&
            @PIP@ "$root/venv/bin/python" install @FLAGS@ @CHECKED@ --requirement "$private/checked.txt" >&2 &&
            @PIP@ "$root/venv/bin/python" install @FLAGS@ @SPECS@ >&2
    ) || die "pip failed" "pip download --no-deps "@SPEC@
    find "$root/venv" -depth -type d -exec rmdir {} + 2>/dev/null || true # no receipt lists an empty folder
}

"""
_THERE: Final = r"""
packages() {
    rm -f "$root/receipt"
    say @ADAPTER@" "@VERSION@" is there: "@PROGRAM@
}

"""
_FIRST: Final = """    if sh -c @FOUND@; then
        exit 0
    fi
    say "what is on PATH is not used; Reef installs its own"
"""


def script(plan: InstallPlan, found: InstallPlan | None = None) -> str:
    """The whole script. ``found``: the same with an agent that is there, which is tried first."""
    quote = shlex.quote
    writes = [f'    write "$home/"{quote(file.path)} {file.mode:o} {quote(file.text)}' for file in plan.files]
    values = {
        "TITLE": f"{plan.adapter} {plan.version}",
        "SPECS_SAID": quote(f"{' and '.join(plan.specs)}, {plan.installed_mb} MB on disk, into {plan.root}"),
        "SPECS_LINE": quote(" ".join(plan.specs)),
        "SPECS": " ".join(map(quote, plan.specs)),
        "SPEC": quote(" ".join(plan.specs[:1])),
        "CHECKS": "\n".join(f"    known {quote(one.spec)} {quote(one.integrity)}" for one in plan.packages),
        "REQUIREMENTS": quote(requirements(plan)),
        "TAB": "\t",
        "INSTALLER": quote(str(plan.installer)),
        "PIP": " ".join(map(quote, PIP)),
        "PYTHON": quote(PIP[0]),
        "LOCK": quote(plan.lock),
        "FLAGS": " ".join(PIP_FLAGS if plan.pip else NPM_FLAGS),
        "CHECKED": " ".join(PIP_CHECKED),
        "ENVIRONMENT": " ".join(f"{name}={quote(value)}" for name, value in plan.environment.items()),
        "ASKS_VERSION": " ".join(map(quote, plan.asks_version)),
        "SAYS_VERSION": quote(plan.says_version),
        "PROGRAM": quote(plan.command[-1]),
        "VERSION": quote(plan.version),
        "ADAPTER": plan.adapter,
        "HOME": quote(str(plan.home)),
        "FOLDER": plan.folder,
        "WRAPPER": quote(plan.wrapper),
        "NAME": quote(Path(plan.wrapper).name),
        "LINK": "yes" if plan.link else "''",
        "CONTENTS": " ".join(map(quote, plan.contents)),
        "WRITES": "\n".join(writes),
        "FOUND": quote(script(found)) if found else "",
    }
    installs = f"{_PIP if plan.pip else _NPM}{_PACKAGES}" if plan.packages else _THERE
    text = _TEMPLATE.replace("@INSTALLS@", installs.strip() + "\n\n").replace("@FIRST@", _FIRST if found else "")
    # In one pass, so that a value which looks like a place is left alone.
    return re.sub(r"@([A-Z_]+)@", lambda place: values[place[1]], text)


def refusal(error: ReefError) -> str:
    """Instead of a script: what says why there is none, and fails. It is piped into the same shell."""
    said = [f"error: {error.message}", *([f"  hint: {error.hint}"] if error.hint else [])]
    return f"{{ printf '%s\\n' {' '.join(shlex.quote(marked(line)) for line in said)} >&2; exit 1; }}\n"
