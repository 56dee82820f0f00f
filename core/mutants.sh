#!/usr/bin/env bash
# Changes the catalog and the engine in one place after the other, and asks the tests of this
# package to notice. A shard is a file; docs/results/mutants.md has the results.
#
#   core/mutants.sh                            # the files, and how many mutants each has
#   core/mutants.sh core/src/catalog/pin.rs    # runs it, an hour at most
#
# What was noticed is kept below target/mutants as long as the file stays the same: run again to go
# on where the hour ended, or to see whether a survivor is noticed now. It exits with 0 when every
# survivor is explained in the results, with 1 when one is not, and with 2 when the run did not
# come to its end.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

version=27.1.0
results=docs/results/mutants.md
kept=$(realpath -m "${CARGO_TARGET_DIR:-target}")/mutants
tree=$kept/tree
export CARGO_TARGET_DIR=$kept/build
# The tests of a mutant take several times as long as its build when nothing is optimised.
export CARGO_PROFILE_DEV_OPT_LEVEL=1 CARGO_PROFILE_DEV_DEBUG=0

files() {
    git ls-files core/src/engine.rs 'core/src/engine/*.rs' 'core/src/catalog/*.rs' |
        grep -v -e /mutated.rs -e /tests.rs
}

# A pattern for the lines of a file that only the build with the deliberate bugs has.
not_compiled() {
    awk -v file="$1" '
        inside {
            lines = lines "|" FNR
            line = $0
            depth += gsub(/[({[]/, "", line) - gsub(/[])}]/, "", line)
            if (depth <= 0 && /[;},]$/) inside = depth = 0
        }
        /#\[cfg\(pinfold_mutants\)\]/ { inside = 1; depth = 0 }
        END { print "^" file ":(0" lines "):" }
    ' "$1"
}

# The tree in which mutants are built: a copy that stays, so that a run does not begin from nothing.
# What an ended run left mutated in it is made good.
copy() {
    local file
    git ls-files --cached --others --exclude-standard | while read -r file; do
        if ! cmp -s "$file" "$tree/$file"; then
            mkdir -p "$(dirname "$tree/$file")"
            cp "$file" "$tree/$file"
        fi
    done
}

mutants() {
    local file=$1
    shift
    cargo mutants --package pinfold-core --file "$file" --exclude-re "$(not_compiled "$file")" "$@"
}

# Tests what was not noticed so far, with the tests that are named, within what is left of the hour.
attempt() {
    local file=$1 out=$2 status=0 kind
    shift 2
    timeout --signal INT $((SECONDS < 3600 ? 3600 - SECONDS : 1)) nice -n 19 \
        cargo mutants --package pinfold-core --file "$file" \
        --exclude-re "$(not_compiled "$file")" --output "$out" --iterate \
        --dir "$tree" --in-place --test-tool cargo "$@" || status=$?
    for kind in caught unviable timeout; do
        touch "$out/$kind"
        cat "$out/$kind" "$out/mutants.out/$kind.txt" | sort -u -o "$out/$kind"
    done
    # 2: some survive. 3: some ran for too long.
    ((status == 0 || status == 2 || status == 3))
}

# What is left of a list of mutants when its places are taken away, which every edit moves.
names() { sed -E 's/^([^:]+):[0-9]+:[0-9]+/\1/' | sort; }

explained() { sed -nE 's/^- `(core\/src\/[^`]+)`.*/\1/p' "$results" | sort; }

run() {
    local file=$1 out all kind unexplained
    out=$kept/$file/$(git hash-object "$file" | cut -c 1-12)
    mkdir -p "$out/mutants.out"
    # Most are noticed by the judges, and a build of their test alone takes half as long.
    if ! attempt "$file" "$out" --minimum-test-timeout 60 --cargo-arg=--test=judged ||
        ! attempt "$file" "$out" --baseline skip --timeout 60; then
        echo "$file: not at its end" >&2
        return 2
    fi
    all=$(mutants "$file" --list | wc -l)
    printf '| `%s` | %d |' "${file#core/src/}" "$all"
    for kind in caught timeout unviable mutants.out/missed.txt; do
        printf ' %d |' "$(wc -l <"$out/$kind")"
    done
    echo
    unexplained=$(names <"$out/mutants.out/missed.txt" | comm -23 - <(explained))
    if [[ -n $unexplained ]]; then
        printf 'survives, and is not explained:\n%s\n' "$unexplained" >&2
        return 1
    fi
}

if [[ $(cargo mutants --version) != "cargo-mutants $version" ]]; then
    echo "first: cargo install cargo-mutants --locked --version $version" >&2
    exit 2
fi
if (($# == 0)); then
    for file in $(files); do
        printf '%5d  %s\n' "$(mutants "$file" --list | wc -l)" "$file"
    done
    exit 0
fi
copy
run "$1"
