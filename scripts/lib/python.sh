# What the install scripts of engines share: messages, a Python that can make a venv, and room on the disk. To be sourced.

say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }

fail() {
  say "$1"
  shift
  for line in "$@"; do printf '  %s\n' "$line" >&2; done
  exit 1
}

# Prints a Python from 3.11 to 3.13 that can make a venv. TOKBENCH_PYTHON names one; else the newest on the PATH.
find_python() {
  local candidate
  for candidate in ${TOKBENCH_PYTHON:+"$TOKBENCH_PYTHON"} python3.13 python3.12 python3.11 python3 python; do
    if command -v "$candidate" >/dev/null 2>&1 &&
      "$candidate" -c 'import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null; then
      command -v "$candidate"
      return 0
    fi
  done
  fail 'no Python from 3.11 to 3.13 with the venv module was found' \
    "Install one (Debian, Ubuntu: apt-get install python3.11 python3.11-venv), or name one: TOKBENCH_PYTHON=/path/to/python3.12 $0"
}

# need_room FOLDER GIB: fails unless the disk of FOLDER has so much left.
need_room() {
  local free_kib
  free_kib=$(df -Pk "$1" | awk 'NR == 2 { print $4 }')
  [ "$free_kib" -ge $(($2 * 1024 * 1024)) ] || fail "only $((free_kib / 1024)) MiB are free under $1; $2 GiB are needed" \
    'Free some space, or clone the project onto a larger disk.'
}

# need_wheels ENGINE: fails on a machine that ENGINE has no prebuilt CPU wheel for.
need_wheels() {
  [ "$(uname -s)" = Linux ] || fail "this needs Linux; $(uname -s) has no prebuilt CPU wheel of $1 that was tried" \
    "On this machine 'make demo' shows everything in the simulated world."
  case $(uname -m) in
    x86_64 | aarch64) ;;
    *) fail "no prebuilt CPU wheel of $1 for $(uname -m)" 'x86_64 and aarch64 have one.' ;;
  esac
}
