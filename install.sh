#!/bin/sh
# Installs Reef for the current user: ./install.sh --help tells more.
# POSIX sh. Everything is a function until the last line, so that a download that was cut off runs nothing.

usage() {
    cat >&2 <<'HELP'
Usage: ./install.sh [--demo] | --uninstall [--purge] | --help

Installs Reef for you alone, without root, and leaves your shell's start files as they are. Run it again to upgrade.

  --demo        install, then run `reef demo`: the whole of it, on a real model on this machine
  --uninstall   stop the daemon and remove what was installed; your records and models stay
  --purge       with --uninstall: remove your records, models, settings and agents too, and the kept engine
  --help        this text

Environment:
  REEF_INSTALL_DIR     where the program goes             (~/.local/share/reef)
  REEF_HOME            where records and models go        (~/.reef)
  REEF_NO_MODIFY_PATH  set: say nothing about PATH        (nothing is ever changed)
  REEF_PACKAGE         install this package, not the clone that this script lies in

Exit status: 0 done · 1 failed · 2 wrong use · 3 done, but without the embedded engine
HELP
}

say() { printf '%s\n' "$*" >&2; }

# die MESSAGE [WHAT-TO-DO]
die() {
    say ""
    say "Reef: $1"
    [ $# -lt 2 ] || say "  $2"
    exit 1
}

main() {
    set -eu
    demo='' uninstall='' purge=''
    for argument in "$@"; do
        case $argument in
            --demo) demo=yes ;;
            --uninstall) uninstall=yes ;;
            --purge) purge=yes ;;
            -h | --help) usage; exit 0 ;;
            *) say "install.sh: unknown option $argument"; usage; exit 2 ;;
        esac
    done
    if [ "$purge" ] && [ -z "$uninstall" ]; then
        say "install.sh: --purge goes with --uninstall"
        exit 2
    fi
    [ -n "${HOME:-}" ] || die "HOME is not set"
    case $(uname -s) in
        Linux | Darwin) ;;
        *) die "this system ($(uname -s)) is not supported" "on Windows, run this inside WSL" ;;
    esac

    place=${REEF_INSTALL_DIR:-$HOME/.local/share/reef}
    case $place in /*) ;; *) place=$PWD/$place ;; esac
    command=$HOME/.local/bin/reef
    home=${REEF_HOME:-$HOME/.reef}
    receipt=$place/receipt
    # What a person set for other work must not steer this.
    unset PYTHONPATH PYTHONHOME PIP_TARGET PIP_PREFIX PIP_USER PIP_REQUIRE_VIRTUALENV
    export PYTHONSAFEPATH=1 PIP_NO_INPUT=1 PIP_DISABLE_PIP_VERSION_CHECK=1

    if [ "$uninstall" ]; then
        remove
        exit 0
    fi
    install
}

# -- install ------------------------------------------------------------------------------------------------------

install() {
    new='' temporary=''
    trap clean_up EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
    if [ -e "$command" ] && ! ours "$command"; then
        die "$command exists and is not Reef's" "move it away, then run this again"
    fi
    find_source
    find_python
    announce
    mkdir -p "$place" || die "cannot make $place" "set REEF_INSTALL_DIR to a folder of yours"
    take_turn
    temporary=$(mktemp -d)
    make_environment
    install_package
    engine=yes
    say "· the embedded engine"
    calmly "$new/bin/python" -m daemon.engines.wheel || engine=''
    switch
    [ -z "$engine" ] || add_model
    conclude
}

# The folder of the clone that this script lies in; empty when it was piped into a shell.
find_source() {
    source=''
    if [ -z "${REEF_PACKAGE:-}" ] && [ -f "$0" ]; then
        source=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
        grep -q '^name = "reef-agents"' "$source/pyproject.toml" 2>/dev/null || source=''
    fi
    [ -n "$source${REEF_PACKAGE:-}" ] ||
        die "Reef is on no package index yet" "clone its repository and run ./install.sh there, or set REEF_PACKAGE"
}

find_python() {
    python=''
    for candidate in python3 python3.14 python3.13 python3.12 python3.11; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            python=$candidate
            return
        fi
    done
    if command -v uv >/dev/null 2>&1; then
        say "No Python 3.11 or newer here: uv brings one."
        uv python install --quiet 3.13 >&2 || die "uv could not bring Python 3.13"
        python=$(uv python find --no-project 3.13) || die "uv does not find the Python that it brought"
        return
    fi
    die "Python 3.11 or newer is needed, and there is none" \
        "Debian, Ubuntu: sudo apt install python3 python3-venv · Fedora: sudo dnf install python3 · macOS: brew install python"
}

announce() {
    say "Reef goes to      $place"
    say "the command is    $command"
    say "records, models   $home"
    say ""
    say "It downloads, once:"
    say "  Python packages             33 MB  each checked against its locked sha256"
    say "  llama.cpp for Python        a prebuilt wheel where there is one for this machine; else 77 MB of source,"
    say "  (the embedded engine, MIT)  compiled here: about 6 minutes on two cores; kept, so only once"
    say "  SmolLM2-135M-Instruct Q4_1  93 MB  a small model to start with, by HuggingFaceTB, licence Apache-2.0"
    say ""
}

# One install at a time; a second one does not wait, it says so.
take_turn() {
    turn=$place/installing
    if ! mkdir "$turn" 2>/dev/null; then
        holder=$(cat "$turn/pid" 2>/dev/null || true)
        if [ -n "$holder" ] && kill -0 "$holder" 2>/dev/null; then
            turn=''
            die "another install is under way (pid $holder)"
        fi
        say "· an install that was cut off left its mark; going on"
    fi
    echo $$ >"$turn/pid"
}

make_environment() {
    # A new environment beside the old one, which serves until the new one has proved itself.
    new=$place/env-$(date +%Y%m%d%H%M%S)-$$
    say "· an environment of its own"
    if "$python" -c 'import ensurepip, venv' 2>/dev/null; then
        "$python" -m venv "$new" >&2 || die "cannot make an environment with $python"
    elif command -v uv >/dev/null 2>&1; then
        uv venv --quiet --seed --python "$python" "$new" >&2 || die "uv cannot make an environment with $python"
    else
        die "$python has no ensurepip, so it cannot make an environment" \
            "Debian, Ubuntu: sudo apt install python3-venv, then run this again"
    fi
}

pip() { "$new/bin/python" -m pip "$@" >&2; }

install_package() {
    say "· Reef and its packages"
    if [ -z "$source" ]; then
        pip install --quiet "$REEF_PACKAGE" || die "cannot install $REEF_PACKAGE"
    else
        network="check the network, then run this again"
        pip install --quiet --no-deps --require-hashes -r "$source/requirements/core.txt" ||
            die "cannot install the packages that Reef needs" "$network"
        pip install --quiet --no-deps --require-hashes --target "$temporary/build" -r "$source/requirements/build.txt" ||
            die "cannot install what builds Reef" "$network"
        PYTHONPATH=$temporary/build pip wheel --quiet --no-deps --no-build-isolation -w "$temporary" "$source" ||
            die "cannot build Reef from $source"
        pip install --quiet --no-deps "$temporary"/*.whl || die "cannot install Reef"
    fi
    { "$new/bin/reef" --version && "$new/bin/python" -c 'import daemon.server.app'; } >&2 ||
        die "what was just put together does not run" "nothing was changed; an older Reef stays in place"
}

# calmly COMMAND...: without a terminal nobody watches progress, so only a failure is told.
calmly() {
    if [ -t 2 ]; then
        "$@" >&2
        return
    fi
    "$@" >"$temporary/told" 2>&1 && return
    cat "$temporary/told" >&2
    return 1
}

# From here on the new environment is the one; the one before stays until the next upgrade, for what still runs from it.
switch() {
    running=''
    if [ -x "$command" ] && "$command" status --json >/dev/null 2>&1; then
        running=yes
    fi
    old=$(recorded current)
    mkdir -p "$(dirname -- "$command")" "$place" || die "cannot make $(dirname -- "$command")"
    { ln -s "$new/bin/reef" "$command.$$" && mv -f "$command.$$" "$command"; } || die "cannot link $command"
    for folder in "$place"/env-*; do
        [ "$folder" = "$new" ] || [ "$folder" = "$old" ] || remove_environment "$folder"
    done
    {
        printf 'current %s\nprevious %s\ncommand %s\n' "$new" "$old" "$command"
        { recorded home; printf '%s\n' "$home"; } | sort -u | while IFS= read -r one; do printf 'home %s\n' "$one"; done
    } >"$temporary/receipt"
    mv -f "$temporary/receipt" "$receipt" || die "cannot write $receipt"
    new=''
    if [ "$running" ]; then
        say "· restarting the daemon that was running"
        "$command" restart >&2 || die "the daemon did not start again" "$command logs"
    fi
    if [ -f "$home/login.json" ]; then # it names the program that was there before
        "$command" start --at-login >&2 || say "the new version does not start at login: $command start --at-login says why"
    fi
}

# A model of the person's own choice stays the active one.
add_model() {
    active='import json, sys; sys.exit(not any(model["active"] for model in json.load(sys.stdin)["items"]))'
    listed=$("$command" models list --json) || die "the daemon does not start" "$command doctor"
    if printf '%s' "$listed" | "$(recorded current)/bin/python" -c "$active"; then
        return
    fi
    say "· the model"
    calmly "$command" models add default --use ||
        die "the program is in place, the model is not" "try again: $command models add default --use"
}

conclude() {
    say ""
    { "$command" start >/dev/null && "$command" status; } >&2 || die "the daemon does not answer" "$command doctor"
    say ""
    called=reef
    case ":$PATH:" in
        *":$(dirname -- "$command"):"*) ;;
        *) called=$command; [ -n "${REEF_NO_MODIFY_PATH:-}" ] || path_hint ;;
    esac
    if [ -z "$engine" ]; then
        say "Reef works with remote engines only: the embedded engine could not be built (see above)."
        say "Run this again when what is missing is there."
        exit 3
    fi
    if [ "$demo" ]; then
        say "Reef is installed. Now the demo:"
        clean_up
        trap - EXIT
        exec "$command" demo
    fi
    say "Reef is installed. Next: $called demo"
    say "Or see and rate what an agent does: $called harness install --adapter pi, and $called alone is the dashboard."
}

path_hint() {
    say "$(dirname -- "$command") is not on your PATH. To call reef by its name, add this line to your shell's start file:"
    case ${SHELL:-} in
        */fish) say '  fish_add_path "$HOME/.local/bin"' ;;
        *) say '  export PATH="$HOME/.local/bin:$PATH"' ;;
    esac
    say ""
}

clean_up() {
    [ -z "$temporary" ] || rm -rf "$temporary"
    [ -z "$new" ] || rm -rf "$new"
    [ -z "${turn:-}" ] || rm -rf "$turn"
    rmdir "$place" 2>/dev/null || true
}

# -- uninstall ----------------------------------------------------------------------------------------------------

remove() {
    if [ ! -f "$receipt" ]; then
        say "Nothing of Reef is installed in $place."
    else
        stop_daemons
        link=$(recorded command)
        if [ -L "$link" ] && ours "$link"; then
            rm -f "$link"
        fi
        for folder in "$place"/env-*; do
            remove_environment "$folder"
        done
        rm -f "$receipt"
        rmdir "$place" 2>/dev/null || say "$place keeps files that are not Reef's."
        say "Reef's program is removed."
    fi
    if [ -z "$purge" ]; then
        [ ! -d "$home" ] ||
            say "Your records, models, settings and agents stay in $home (--uninstall --purge removes them too)."
        return
    fi
    erase "$home"
    [ -d "$home" ] || for link in "$HOME"/.local/bin/reef-*; do # of `reef harness install --link`
        case $(readlink "$link" || true) in "$home"/bin/*) rm -f "$link" ;; esac
    done
    for kept in wheels environments bases; do
        erase "${XDG_CACHE_HOME:-$HOME/.cache}/reef/$kept"
    done
}

stop_daemons() {
    running=$(recorded current)/bin/reef
    [ -x "$running" ] || return 0
    { recorded home; printf '%s\n' "$home"; } | sort -u | while IFS= read -r one; do
        login=''
        [ ! -f "$one/login.json" ] || login=--at-login # what starts it at login goes, too
        [ ! -d "$one" ] || REEF_HOME=$one "$running" stop $login >&2 || say "the daemon of $one did not stop"
    done
}

# erase FOLDER: only one that looks like Reef's; asks where there is somebody to ask.
erase() {
    [ -d "$1" ] || return 0
    [ -d "$1/store" ] || [ -f "$1/lock" ] || die "$1 does not look like Reef's; not removed"
    if (: </dev/tty) 2>/dev/null; then
        printf 'Remove %s and all that is in it? [y/N] ' "$1" >/dev/tty
        read -r answer </dev/tty
        case $answer in y | Y | yes) ;; *) say "$1 stays."; return 0 ;; esac
    fi
    rm -rf "$1"
    say "$1 is removed."
}

# -- what was installed -------------------------------------------------------------------------------------------

# recorded KEY: its values in the receipt, one a line.
recorded() {
    [ -f "$receipt" ] || return 0
    sed -n "s/^$1 //p" "$receipt"
}

# ours LINK: whether it leads into this installation.
ours() {
    case $(readlink "$1" 2>/dev/null) in "$place"/env-*) return 0 ;; *) return 1 ;; esac
}

# remove_environment FOLDER: nothing but an environment goes.
remove_environment() {
    [ ! -f "$1/pyvenv.cfg" ] || rm -rf "$1"
}

main "$@"
