#!/bin/sh
# Leaves the command at .venv/bin/lasthop, whatever the machine had before.
#
#   scripts/setup.sh           what the command needs
#   scripts/setup.sh lab       the same, without what sends real packets: in two thirds of the time
#   scripts/setup.sh gateway   and what lasthopd needs to be compiled
#   scripts/setup.sh dev       that, and the Python tools for tests, checks and the book
#   scripts/setup.sh dev lint  and Rust's formatter and linter
#
# Tools that are missing are installed, each after a line that says so. With NO_INSTALL=1 nothing
# is installed outside .venv: one sentence names what is missing. A step whose inputs have not
# changed since it was last done is skipped.
set -eu
cd "$(dirname "$0")/.."

venv=.venv
stamps=$venv/.stamps
rust_needed=$(sed -n 's/^rust-version *= *"\([0-9.]*\)".*/\1/p' Cargo.toml)
python_needed=$(sed -n 's/^requires-python *= *">=\([0-9.]*\)".*/\1/p' pyproject.toml)
cargo_home=${CARGO_HOME:-${HOME:-}/.cargo}
PATH=$cargo_home/bin:$PATH
export PATH

scratch=$(mktemp -d)
compiling= # the process that compiles beside this one
trap 'rm -rf "$scratch"; [ -z "$compiling" ] || kill "$compiling" || true' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

say() {
    printf 'setup: %s\n' "$*"
}

fail() {
    printf 'setup: %s\n' "$*" >&2
    exit 1
}

have() {
    command -v "$1" >/dev/null 2>&1
}

# at_least VERSION NEEDED: compares major and minor number
at_least() {
    awk -v a="$1" -v b="$2" 'BEGIN {
        split(a, x, "."); split(b, y, ".")
        exit !(x[1] + 0 > y[1] + 0 || (x[1] + 0 == y[1] + 0 && x[2] + 0 >= y[2] + 0))
    }'
}

# --- What there is ---------------------------------------------------------------------------

# A compiler without the C library's files is no use: link something.
cc_works() {
    echo 'int main(void) { return 0; }' | cc -x c -o "$scratch/a.out" - 2>/dev/null
}

rust_works() {
    at_least "$(cargo --version 2>/dev/null | cut -d' ' -f2)" "$rust_needed" &&
        at_least "$(rustc --version 2>/dev/null | cut -d' ' -f2)" "$rust_needed"
}

# clippy 0.1.95 belongs to Rust 1.95, and works with no other.
rust_lint_works() {
    cargo fmt --version >/dev/null 2>&1 &&
        rustc --version 2>/dev/null |
        grep -q "^rustc $(cargo clippy --version 2>/dev/null |
            sed -n 's/^clippy 0\.\([0-9]*\.[0-9]*\).*/\1/p')\."
}

# lasthopd has programs for the kernel, which clang compiles, and libbpf, which loads them.
bpf_works() {
    have make && have pkg-config &&
        echo 'int x;' | clang -target bpf -x c -c -o "$scratch/bpf.o" - 2>/dev/null &&
        printf '#include <libelf.h>\n#include <zlib.h>\nint main(void) { return 0; }\n' |
        cc -x c -o "$scratch/a.out" - -lelf -lz 2>/dev/null
}

# The page of the book runs the lab in a browser.
wasm_works() {
    [ -d "$(rustc --print sysroot 2>/dev/null)/lib/rustlib/wasm32-unknown-unknown/lib" ]
}

python_new_enough() {
    "$1" -c "import sys
sys.exit(sys.version_info < tuple(map(int, '$python_needed'.split('.'))))" 2>/dev/null
}

# Debian splits venv's working part, ensurepip, from Python.
find_python() {
    for python in python3 python3.14 python3.13 python3.12 python3.11 /usr/bin/python3; do
        if python_new_enough "$python" && "$python" -c 'import ensurepip, venv' 2>/dev/null; then
            return
        fi
    done
    return 1
}

# Scripts in a virtual environment know its path: one that was moved is made anew.
venv_works() {
    python_new_enough "$venv/bin/python" && [ "$(cat "$stamps/path" 2>/dev/null)" = "$PWD" ]
}

python_works() {
    venv_works || find_python
}

# --- What can be installed -------------------------------------------------------------------

as_root() {
    if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo "$@"; fi
}

# Once; where it fails, the lists that there are may still do.
apt_update() {
    have apt-get || return 1
    [ ! -e "$scratch/apt-updated" ] || return 0
    touch "$scratch/apt-updated"
    as_root apt-get -qq update </dev/null || say "apt-get update failed" >&2
}

# The version that apt would install, if any.
candidate() {
    apt_update && LC_ALL=C apt-cache policy "$1" 2>/dev/null |
        awk '$1 == "Candidate:" && $2 != "(none)" { print $2; found = 1 } END { exit !found }'
}

# Never takes another package away to make room.
apt_install() {
    say "installing $* with apt-get"
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-remove \
        --no-install-recommends install "$@" </dev/null >"$scratch/apt.log" 2>&1 || {
        cat "$scratch/apt.log" >&2
        return 1
    }
}

install_cc() {
    apt_update && apt_install gcc libc6-dev
}

install_bpf() {
    apt_update && apt_install clang libelf-dev zlib1g-dev make pkg-config
}

install_wasm() {
    have rustup || rustup_init || return 1
    say "installing Rust's libraries for WebAssembly with rustup"
    rustup --quiet target add wasm32-unknown-unknown
}

install_python() {
    for name in python3 python3.14 python3.13 python3.12 python3.11; do
        if version=$(candidate "$name") && at_least "$version" "$python_needed" &&
            candidate "$name-venv" >/dev/null; then
            apt_install "$name" "$name-venv"
            return
        fi
    done
    return 1
}

rustup_stable() {
    say "installing Rust's stable toolchain with rustup"
    rustup --quiet toolchain install stable --profile minimal || return 1
    rustup default >/dev/null 2>&1 || rustup default stable || return 1
    # An older default stays what it is elsewhere.
    rust_works || rustup override set stable
}

rustup_init() {
    have curl || { apt_update && apt_install curl ca-certificates; } || return 1
    say "installing Rust with rustup, from rustup.rs into $cargo_home"
    curl --proto '=https' --tlsv1.2 --silent --show-error --fail --retry 2 \
        --output "$scratch/rustup-init" https://sh.rustup.rs || return 1
    RUSTUP_INIT_SKIP_PATH_CHECK=yes sh "$scratch/rustup-init" -y --quiet --no-modify-path \
        --profile minimal --default-toolchain stable </dev/null
}

# Debian's own Rust where it is new enough (a stable release carries a second, newer one for
# its browsers, cargo-web), else rustup's.
install_rust() {
    if have rustup && rustup_stable && rust_works; then return; fi
    for name in cargo cargo-web; do
        if version=$(candidate "$name") && at_least "$version" "$rust_needed" &&
            apt_install "$name" && rust_works; then
            return
        fi
    done
    if candidate rustup >/dev/null && apt_install rustup && rustup_stable && rust_works; then
        return
    fi
    rustup_init
}

install_rust_lint() {
    if ! have rustup; then
        if version=$(candidate rust-clippy) && at_least "$version" "$rust_needed" &&
            apt_install rustfmt rust-clippy && rust_lint_works; then
            return
        fi
        rustup_init || return 1
    fi
    say "installing rustfmt and clippy with rustup"
    rustup --quiet component add rustfmt clippy
}

# --- Tools -----------------------------------------------------------------------------------

tools="cc rust python"
whole=yes
for word in "$@"; do
    case $word in
    lab) whole=no ;;
    dev | gateway) case $tools in *bpf*) ;; *) tools="$tools bpf" ;; esac ;;
    lint) tools="$tools rust_lint" ;;
    wasm) tools="$tools wasm" ;;
    *) fail "unknown argument: $word" ;;
    esac
done

describe() {
    case $1 in
    cc) echo "a C compiler (cc)" ;;
    bpf) echo "clang, libelf, zlib, make and pkg-config" ;;
    rust) echo "Rust $rust_needed or newer (cargo)" ;;
    rust_lint) echo "rustfmt and clippy" ;;
    wasm) echo "Rust's libraries for WebAssembly (wasm32-unknown-unknown)" ;;
    python) echo "Python $python_needed or newer with venv" ;;
    esac
}

missing=
for tool in $tools; do
    "${tool}_works" || missing="$missing $tool"
done

names=
for tool in $missing; do
    names="$names${names:+, }$(describe "$tool")"
done

if [ -n "$missing" ]; then
    [ "${NO_INSTALL:-0}" = 0 ] ||
        fail "NO_INSTALL is set, and this machine lacks $names."
    say "this machine lacks $names: installing"
    for tool in $missing; do
        "install_$tool" || true
        "${tool}_works" ||
            fail "could not install $(describe "$tool"); install it by hand and start again."
    done
fi

# --- The virtual environment -----------------------------------------------------------------

if ! venv_works; then
    find_python
    say "making $venv with $("$python" --version)"
    rm -rf "$venv"
    "$python" -m venv "$venv"
    mkdir -p "$stamps"
    pwd >"$stamps/path"
fi

# step NAME KEY DESCRIPTION COMMAND...: does COMMAND unless it was last done with the same KEY
step() {
    step_name=$1 step_key=$2 step_says=$3
    shift 3
    if [ "$(cat "$stamps/$step_name" 2>/dev/null)" != "$step_key" ]; then
        say "$step_says"
        "$@"
        printf '%s\n' "$step_key" >"$stamps/$step_name"
    fi
}

# To compile all modules takes as long as to install them, and few are used: Python compiles a module
# when it is first imported, unless it may not write what it compiled.
compile=--no-compile
[ -z "${PYTHONDONTWRITEBYTECODE:-}" ] || compile=--compile

install_locked() {
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "$compile" \
        --require-hashes --requirement "$1"
}

# The extension module is rebuilt when anything that goes into it has changed; Python sources are
# read in place.
package_key=$({
    find Cargo.toml Cargo.lock pyproject.toml crates -type f 2>/dev/null |
        LC_ALL=C sort | xargs cksum
    cksum requirements.lock
    rustc --version
} | cksum)
if [ ! -x "$venv/bin/lasthop" ] || ! ls python/lasthop/_lasthop*.so >/dev/null 2>&1; then
    rm -f "$stamps/package"
fi
built=$(cat "$stamps/package" 2>/dev/null || true)
features='' what="building lasthop"
case $whole$built in
no | no*lab) # where the whole was built before, it is the whole that is built anew
    features=--no-default-features what="building lasthop, without what sends real packets"
    package_key="$package_key lab"
    ;;
esac

# Where maturin builds it. No index: what the package depends on is in requirements.lock, or it is
# an error.
unset CONDA_PREFIX
export VIRTUAL_ENV="$PWD/$venv"
maturin="env PIP_NO_INDEX=1 PIP_QUIET=1 $venv/bin/maturin develop --release $features"

# At first it is compiled while pip installs all but maturin. An error shows when it is built below.
if [ -z "$built" ]; then
    say "compiling lasthop in the background"
    sed -n '/^maturin==/,/[^\\]$/p' requirements.lock >"$scratch/maturin.lock"
    install_locked "$scratch/maturin.lock"
    $maturin --skip-install </dev/null >/dev/null 2>&1 &
    compiling=$!
fi

step requirements "$(cksum requirements.lock)" \
    "installing Python packages from requirements.lock" install_locked requirements.lock

for word in "$@"; do
    [ "$word" != dev ] || step requirements-dev "$(cksum requirements-dev.lock)" \
        "installing Python packages from requirements-dev.lock" install_locked requirements-dev.lock
done

if [ -n "$compiling" ]; then
    # Meanwhile Python compiles what the command imports, when the compiler leaves a processor idle.
    [ -n "${PYTHONDONTWRITEBYTECODE:-}" ] || nice -n 19 "$venv/bin/python" -c \
        'import matplotlib.pyplot, polars, rich.table, scipy.special, typer' 2>/dev/null || true
    wait "$compiling" || true
    compiling=
fi
# shellcheck disable=SC2086 # several words
step package "$package_key" "$what" $maturin </dev/null
