#!/usr/bin/env bash
# Runs all tests: ./test.sh [arguments for cargo test]
#
# First installs missing programs (redis-server, PostgreSQL, pgbouncer, curl, a browser and its driver) with apt, brew or dnf. After
# that, only this machine's loopback is used. A test that cannot run because a program is missing does
# not pass. The last line then says NOT RUN, and the exit status is 3.
#
#   NO_INSTALL=1     install nothing
#   ALLOW_MISSING=1  do not fail for tests that could not run
#   LOCK_SIM_HISTORIES, SIM_SECONDS  histories of the simulation, and seconds in which its server is compared with real ones
#   REDIS_SERVER, POSTGRES, PGBOUNCER, CURL, CHROMIUM, CHROMEDRIVER  the programs to use, if not those on the search path
#
# The script is written for bash 3.2, the version of macOS.
#
# `start` and `trap` call functions by their names, which shellcheck does not see.
# shellcheck disable=SC2317
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

main() {
    if ! have cargo; then
        say "cargo is missing; install Rust from https://rustup.rs and run this script again"
        exit 1
    fi
    ask_for_password
    may_install install_compiler

    not_run=$(mktemp)
    log=$(mktemp)
    histories=$(mktemp)
    served=$(mktemp)
    parts=
    trap 'end_parts; rm -f "$not_run" "$log" "$histories" "$served"' EXIT
    export LOCK_TESTS_NOT_RUN=$not_run
    local status=0
    if [ $# -eq 0 ]; then
        everything || status=$?
    else
        may_install install_missing
        "${suite[@]}" "$@" || status=$?
    fi
    report "$status"
}

suite=(cargo test --workspace --all-features --locked --no-fail-fast)
# Seconds. The parts took 12 to 19 minutes on two slow processors.
patience=2400

# Installs programs while cargo compiles, because one waits for the network and the other for the processors.
#
# Most tests of `it` wait for servers, and most others compute. So all run at the same time, and the others get the
# processors when `it` does not need them. Their output comes at the end. The simulation is built beside both, because `it`
# takes the longest.
everything() {
    local status=0 job last
    may_install install_missing &
    job=$!
    # Incremental compilation adds an eighth to the processor time of a first build. A folder that was built incrementally is
    # built so again.
    [ -d "${CARGO_TARGET_DIR:-target}/debug/incremental" ] || export CARGO_INCREMENTAL=${CARGO_INCREMENTAL:-0}
    start simulation_after "$job" >"$histories" 2>&1
    "${suite[@]}" --no-run || return
    wait "$job" || true
    start "${suite[@]}" --test it > >(tee "$served")
    start others >"$log" 2>&1
    last=$((SECONDS + patience))
    for job in $parts; do
        await "$job" "$last" || status=$?
    done
    cat "$log" "$histories"
    return "$status"
}

# Starts a part in a process group of its own, so that its processes can be ended with it.
start() {
    set -m
    "$@" </dev/null &
    set +m
    parts="$parts $!"
}

# await <part> <the second when a run is too long>
#
# Ends a part that hangs, so that its output can be shown. There cargo names each test that runs for more than 60 seconds.
await() {
    while kill -0 "$1" 2>/dev/null; do
        if [ "$SECONDS" -gt "$2" ]; then
            say "the tests do not end in $patience s; the output names those that run for more than 60 s"
            kill -- "-$1" 2>/dev/null || true
            return 1
        fi
        sleep 1
    done
    wait "$1"
}

end_parts() {
    local part
    for part in $parts; do
        kill -- "-$part" 2>/dev/null || true
    done
}

# Runs all tests but `it`.
#
# Cargo starts `it` too, with a command that ends at once. If the targets were named instead, cargo would also build each one
# that has no tests, such as the library of the harness. The examples of the documentation have a call of their own: with such a
# command they would all run in one process.
others() {
    # The shell that gets the command expands it.
    # shellcheck disable=SC2016
    local status=0 unless_it='case ${0##*/} in it-*) ;; *) exec "$0" "$@" ;; esac'
    nice -n 10 "${suite[@]}" --tests --config "target.'cfg(all())'.runner = ['bash', '-c', '''$unless_it''']" || status=$?
    nice -n 10 "${suite[@]}" --doc || status=$?
    return "$status"
}

# simulation_after <process that installs what it needs>
simulation_after() {
    simulation --no-run || return
    while kill -0 "$1" 2>/dev/null; do
        sleep 1
    done
    simulation
}

# Runs the simulation, which computes all the time, so it gets only what `it` leaves. The others get as much, because some of
# their tests wait. Cargo reads the flags of its lock-core from the folder that it runs in, unless RUSTFLAGS is set. With these
# flags no build can be shared, so it has a folder of its own, and waits for no other build.
simulation() {
    (
        export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}/sim
        unset RUSTFLAGS
        cd tests/sim || exit
        export RUST_TEST_THREADS=2
        # A quarter of what `cargo test` does there. `.ci/run` asks for all of it.
        export LOCK_SIM_HISTORIES=${LOCK_SIM_HISTORIES:-2500} SIM_SECONDS=${SIM_SECONDS:-8}
        nice -n 10 cargo test --locked --no-fail-fast "$@"
    )
}

# Prints the result and exits. The last line lists the tests that could not run.
report() {
    local count
    count=$(sort -u "$not_run" | wc -l | tr -d ' ')
    if [ "$1" -ne 0 ]; then
        # The output of thousands of tests is between a failure and the end.
        grep -h -A 2 'panicked at' "$served" "$log" "$histories" | head -n 60 || true
        say "FAILED; see above"
    fi
    if [ "$count" -gt 0 ]; then
        echo "NOT RUN: $count ($(reasons))"
        if [ "$1" -eq 0 ] && [ "${ALLOW_MISSING:-0}" != 1 ]; then
            exit 3
        fi
    elif [ "$1" -eq 0 ]; then
        say "all tests passed"
    fi
    exit "$1"
}

# Reads lines `test: reason` and prints each reason once, with the number of its tests.
reasons() {
    sort -u "$not_run" | sed 's/^[^ ]*: //' | sort | uniq -c |
        awk '{ n = $1; $1 = ""; printf "%s%s: %d", separator, substr($0, 2), n; separator = "; " }'
}

# may_install <command>
may_install() {
    [ "${NO_INSTALL:-0}" = 1 ] || "$1"
}

# Lets sudo ask for a password now, if a program is missing, so that it does not ask while cargo writes.
ask_for_password() {
    have_compiler && have_redis && have_postgres && have_pgbouncer && have_curl && have_browser && return
    if [ "${NO_INSTALL:-0}" != 1 ] && [ "$(id -u)" -ne 0 ] && [ -t 2 ] && ! have brew; then
        sudo -v || true
    fi
}

install_compiler() {
    if ! have_compiler; then install "a C compiler" compiler have_compiler; fi
}

install_missing() {
    if ! have_redis; then install "redis-server" redis have_redis; fi
    if ! have_postgres; then install "PostgreSQL" postgres have_postgres; fi
    if ! have_pgbouncer; then install "pgbouncer" pgbouncer have_pgbouncer; fi
    if ! have_curl; then install "curl" curl have_curl; fi
    if ! have_browser; then install "Chromium and its driver" browser have_browser; fi
}

# install <name of the part> <its packages> <command that checks for it>
install() {
    local log
    log=$(mktemp)
    say "installing $1"
    packages "$2" >"$log" 2>&1 </dev/null || true
    if ! "$3"; then
        tail -n 5 "$log" >&2
        say "could not install $1; the tests run without it"
    fi
    rm -f "$log"
}

# Installs the packages of a part by the names of each system. The alternatives after `||` are their
# names in newer or older versions of the system.
packages() {
    if have apt-get; then
        case $1 in
            compiler) apt gcc libc6-dev ;;
            redis) apt redis-server ;;
            postgres) apt postgresql ;;
            pgbouncer) apt pgbouncer ;;
            curl) apt curl ;;
            browser) apt chromium chromium-driver || apt chromium-browser chromium-chromedriver ;;
        esac
    elif have brew; then
        case $1 in
            compiler) echo "run: xcode-select --install" && return 1 ;;
            redis) brew install redis ;;
            postgres) brew install postgresql@17 ;;
            pgbouncer) brew install pgbouncer ;;
            curl) brew install curl ;;
            browser) brew install --cask google-chrome chromedriver ;;
        esac
    elif have dnf; then
        case $1 in
            compiler) dnf_ gcc ;;
            curl) dnf_ curl ;;
            redis) dnf_ redis || dnf_ valkey-compat-redis ;;
            postgres) dnf_ postgresql-server ;;
            pgbouncer) dnf_ pgbouncer ;;
            browser) dnf_ chromium chromedriver ;;
        esac
    else
        echo "this machine has neither apt-get nor brew nor dnf"
        return 1
    fi
}

apt() {
    if [ -z "${apt_updated:-}" ]; then
        as_root apt-get update
        apt_updated=1
    fi
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@"
}

dnf_() {
    as_root dnf install -y "$@"
}

as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif [ -t 2 ]; then
        # sudo asks on the terminal itself, even if its input and output are redirected.
        sudo "$@"
    else
        sudo -n "$@"
    fi
}

have_compiler() {
    have cc
}

have_redis() {
    [ -n "${REDIS_SERVER:-}" ] || have redis-server
}

# Looks in the same places as the tests.
have_postgres() {
    local path
    [ -n "${POSTGRES:-}" ] || have postgres && return
    for path in {/usr/lib/postgresql,/opt/homebrew/opt,/usr/local/opt}/*/bin/postgres; do
        [ -x "$path" ] && return
    done
    return 1
}

# Looks in the same places as the tests.
have_pgbouncer() {
    [ -n "${PGBOUNCER:-}" ] || have pgbouncer || [ -x /usr/sbin/pgbouncer ]
}

have_curl() {
    [ -n "${CURL:-}" ] || have curl
}

have_browser() {
    { [ -n "${CHROMEDRIVER:-}" ] || have chromedriver; } && have_chromium
}

# Looks in the same places as the tests.
have_chromium() {
    local name
    [ -n "${CHROMIUM:-}" ] && return
    for name in chromium chromium-browser google-chrome google-chrome-stable chrome; do
        have "$name" && return
    done
    [ -x "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome" ] ||
        [ -x /Applications/Chromium.app/Contents/MacOS/Chromium ]
}

have() {
    command -v "$1" >/dev/null 2>&1
}

say() {
    echo "test.sh: $*"
}

main "$@"
