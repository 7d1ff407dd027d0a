#!/usr/bin/env bash
# A client that knows nothing of the kit: client.sh <path> <operations> <clients> <port>...
#
# It takes the payments 1 to <operations>. It repeats each request, to any of the ports and after any failure, until the
# answer is 201. It repeats one in three of them after that too. The later answer must be the first one, marked as
# replayed. The last line of the output is "done: <requests>".
#
#   CURL  the curl to use, if not the one on the search path
set -euo pipefail
path=$1 operations=$2 clients=$3
shift 3
ports=("$@")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

main() {
    local number running=()
    for ((number = 1; number <= clients; number++)); do
        client "$number" &
        running+=($!)
    done
    for number in "${running[@]}"; do
        wait "$number" || exit 1
    done
    echo "done: $(cat "$folder"/requests.* | wc -l)"
}

# client <number>: takes every payment whose number is this one, or a multiple of the clients above it.
client() {
    local operation
    RANDOM=$1
    for ((operation = $1; operation <= operations; operation += clients)); do
        pay "$operation" first "$1"
        if ((RANDOM % 3 == 0)); then
            pay "$operation" again "$1"
            cmp -s "$folder/$operation.first" "$folder/$operation.again" ||
                fail "$operation: another answer: $(cat "$folder/$operation".*)"
            grep -qi '^idempotency-replayed: true' "$folder/$operation.again.head" ||
                fail "$operation: the second answer is not marked as replayed"
        fi
    done
}

# pay <operation> <name of its files> <client>: repeats the request until it is answered with 201.
pay() {
    local status
    while :; do
        echo >>"$folder/requests.$3"
        status=$(request "$1" "$2") || status=none
        case $status in
            201) return ;;
            # No complete answer; under way; the service ends.
            none | 409 | 503) sleep "0.0$((RANDOM % 90 + 10))" ;;
            *) fail "$1: $status $(cat "$folder/$1.$2")" ;;
        esac
    done
}

request() {
    "${CURL:-curl}" --silent --max-time 10 --output "$folder/$1.$2" --dump-header "$folder/$1.$2.head" \
        --write-out '%{http_code}' --header 'x-customer: ada' --header "idempotency-key: op-$1" \
        --json "{\"amount\":$1}" "http://127.0.0.1:${ports[RANDOM % ${#ports[@]}]}$path"
}

fail() {
    echo "payment $1" >&2
    exit 1
}

main
