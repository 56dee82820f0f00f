#!/usr/bin/env bash
# The checks of this repository, stage by stage. `.ci/run` runs them all; a person may run any.
#
# No stage sets RUSTFLAGS: a flag set for CI alone would build something that nobody else builds.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

# The version of cargo-deny that is installed where there is none.
cargo_deny_version=0.20.2

# In the order in which `all` runs them.
stages=(fmt clippy docs deny no_std test replay sim check sabotage)

usage() {
    cat <<'USAGE'
Usage: ./ci.sh STAGE

  fmt      formatting: cargo fmt --check
  clippy   lints, with warnings as errors
  docs     API documentation, with warnings as errors
  deny     bans, licences and sources of dependencies (installs cargo-deny where it is missing)
  no_std   a static library with its own panic handler links pinfold-core: std cannot sneak in
  test     installs what the tests need, then cargo test --workspace; further arguments go to cargo
  replay   replays the generated trace in a release build, once more under byte budgets with crashes
           again and again, and looks at what that leaves and at its log; and the 12,031 requests
           of the conversation trace where PINFOLD_TRACES names the folder that holds it
  sim      2,000 fixed seeds of the simulator in a release build, which must hold, leave no hole in
           what must happen, and mean what tests/testdata/seeds.txt says; and 500 fresh ones
  check    every state of the `ci` configurations in a release build, whose sizes are pinned; and one
           of them with another key, other threads, stateright, and without its reductions
  sabotage every deliberate bug of the core must be caught, by the promise that it names and by its
           script; and a canary, which is none, must not
  all      every stage in this order, with timing, up to the first failure
USAGE
}

say() { printf '%s\n' "$*" >&2; }

# Prints a command, then runs it.
run() {
    say "+ $*"
    "$@"
}

# Installs the packages behind the missing programs among "PROGRAM=PACKAGE ...".
# As root or with sudo; otherwise names the packages and fails.
need() {
    local pair missing=() packages=()
    for pair in "$@"; do
        if ! command -v "${pair%%=*}" >/dev/null; then
            missing+=("${pair%%=*}")
            packages+=("${pair#*=}")
        fi
    done
    if ((${#missing[@]} == 0)); then
        return 0
    fi
    local as_root=()
    if ((EUID != 0)); then
        as_root=(sudo -n)
    fi
    say "missing: ${missing[*]}"
    if command -v apt-get >/dev/null && "${as_root[@]}" true 2>/dev/null; then
        run "${as_root[@]}" apt-get update -q
        run "${as_root[@]}" apt-get install -q -y --no-install-recommends "${packages[@]}"
    else
        say "install these packages (names as in Debian) and run again: ${packages[*]}"
        return 1
    fi
}

stage_fmt() {
    run cargo fmt --all --check
    run cargo fmt --manifest-path .ci/no_std/Cargo.toml --check
    run cargo fmt --manifest-path tests/guided/Cargo.toml --check
}

stage_clippy() {
    run cargo clippy --workspace --all-targets --locked -- -D warnings
}

stage_docs() {
    run env RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked
}

stage_deny() {
    local found
    if ! found=$(cargo deny --version 2>/dev/null); then
        run cargo install cargo-deny --locked --version "$cargo_deny_version"
        found=$(cargo deny --version)
    fi
    if [[ $found != "cargo-deny $cargo_deny_version" ]]; then
        say "note: this is $found; the rules were written for $cargo_deny_version"
    fi
    say "note: advisories are not checked here: they need a database from the network"
    run cargo deny --locked check bans licenses sources
}

stage_no_std() {
    # The versions that the workspace itself uses; cargo drops the rows that core does not need.
    run cp Cargo.lock .ci/no_std/Cargo.lock
    run cargo build --manifest-path .ci/no_std/Cargo.toml
}

stage_test() {
    need cc=build-essential chromium=chromium
    say "note: beyond the Rust toolchain and its linker (cc), the tests need only chromium, for the" \
        "operator's page"
    run cargo test --workspace "$@"
}

# Replays and judges the report. The arguments: how many requests there must be (or "at least 1"),
# then those of `replay`.
replay() {
    local requests=$1 report
    shift
    report=$(run cargo run --release --locked -- replay --json "$@")
    python3 - "$requests" "$report" <<'PYTHON'
import json
import sys

expected, text = sys.argv[1:]
report = json.loads(text)
violations, requests = report["violations"], report["requests"]
print(f"replay: {requests} requests, {violations} violations", file=sys.stderr)
if type(violations) is not int or violations != 0:
    sys.exit("replay: violations must be 0")
if type(requests) is not int or requests <= 0 or expected not in ("at least 1", str(requests)):
    sys.exit(f"replay: requests must be {expected}")
PYTHON
}

stage_replay() {
    need cc=build-essential python3=python3
    replay "at least 1"
    local dir
    dir=$(mktemp -d)
    replay "at least 1" --data "$dir/job" --report "$dir/page.html" --log "$dir/job.log" \
        --crash-every 200 --job-bytes 16MiB --conversation-bytes 1MiB
    run test -s "$dir/page.html"
    run cargo run --release --locked -- journal verify "$dir/job"
    run cargo run --release --locked -- verify-log "$dir/job.log"
    run cargo run --release --locked -- inspect "$dir/job"
    rm -rf "$dir"
    if [[ -n ${PINFOLD_TRACES:-} ]]; then
        replay 12031 "$PINFOLD_TRACES/mooncake_conversation_trace.jsonl"
    else
        say "note: PINFOLD_TRACES is not set: the conversation trace is not replayed"
    fi
}

# Runs seeds of the simulator; further arguments go to it. Prints the digest over all of them.
sim() {
    local report
    report=$(run cargo run --release --locked -- sim --json "$@")
    python3 - "$report" <<'PYTHON'
import json
import sys

report = json.loads(sys.argv[1])
if report["verdict"] != "held" or report["seeds"] != report["seeds_asked"] or report["findings"]:
    sys.exit(f"sim: {report['verdict']}, {report['seeds']} seeds")
print(report["digest"])
PYTHON
}

stage_sim() {
    need cc=build-essential python3=python3
    local digest expected first
    digest=$(sim --seeds 0..2000 --require-coverage)
    expected=$(awk '$1 == "0..2000" { print $2 }' tests/testdata/seeds.txt)
    say "sim: seeds 0..2000 give $digest"
    if [[ $digest != "$expected" ]]; then
        say "sim: tests/testdata/seeds.txt has ${expected:-no row} for 0..2000: they mean another thing"
        return 1
    fi
    first=$(od -An -N6 -tu8 /dev/urandom | tr -d ' ')
    say "sim: fresh seeds $first..$((first + 500))"
    digest=$(sim --seeds "$first..$((first + 500))")
    say "sim: seeds $first..$((first + 500)) hold, and give $digest"
    run cargo run --release --locked -- sim --meta --seeds 0..50
}

# Judges the report of `check`: all was visited and held, and together the configurations came to
# every promise, every answer, every refusal that docs/model-checking.md does not name as left out,
# and as many kinds of choices as they have.
checked='
import json
import sys

report = json.load(sys.stdin)
answers = """AlreadyPublished Collected Configured Deleted Doubted Dropped Fenced Forgotten Lost
    Pinned Prepared Published Registered Released Retired Settled"""
refusals = """AttemptFailed Collecting Dropped EndpointQuarantined Fenced ForeignPin GenesisOperator
    InFlight LimitExceeded Lost Malformed ManifestMismatch NotCollecting NotComplete NotFinal
    NotHolder NotOperator OpConflict OwnerHasPins PinEnded ReceiptForgotten ShardNotClaimed
    ShardTaken StaleIncarnation TurnExpired UnknownCheckpoint UnknownIncarnation UnknownObject
    UnknownOwner UnknownPin WrongEpoch"""
if report["complete"] is not True or report["violations"] != 0:
    sys.exit("check: not all was visited and held")
for name, standing in report["properties"].items():
    if standing != "held":
        sys.exit(f"check: {name} is {standing}")
every = lambda key: {it for one in report["configurations"] for it in one[key]}
for key, expected in (("answers", answers), ("refusals", refusals)):
    missing = set(expected.split()) - every(key)
    if missing:
        sys.exit(f"check: no configuration comes to the {key} {sorted(missing)}")
kinds = len(every("kinds"))
if kinds < 65:
    sys.exit(f"check: only {kinds} kinds of choices were made")
states, transitions = report["states"], report["transitions"]
print(f"check: {states} states, {transitions} transitions, all held", file=sys.stderr)
'

stage_check() {
    need cc=build-essential python3=python3
    local report
    report=$(run cargo run --release --locked -- check --json --time 15m)
    python3 -c "$checked" <<<"$report"
    run cargo run --release --locked -- check --self-check basics --time 15m
}

stage_sabotage() {
    need cc=build-essential
    run cargo sabotage
    local code=0
    run cargo sabotage --canary || code=$?
    if ((code != 6)); then
        say "sabotage: the canary must survive and end with 6, not with $code: nothing is proven"
        return 1
    fi
    local shown
    shown=$(run cargo sabotaged)
    printf '%s\n' "$shown"
    if ! grep -q '^test result: ok\. [1-9]' <<<"$shown"; then
        say "sabotage: a build without deliberate bugs has no such tests: nothing is proven"
        return 1
    fi
}

stage_all() {
    local stage begin
    for stage in "${stages[@]}"; do
        say "== $stage"
        begin=$SECONDS
        if ! ./ci.sh "$stage"; then
            say "== $stage FAILED after $((SECONDS - begin)) s"
            exit 1
        fi
        say "== $stage passed in $((SECONDS - begin)) s"
    done
    say "== all of: ${stages[*]} ($SECONDS s)"
}

if (($# == 0)); then
    usage
    exit 0
fi
stage=$1
shift
if (($# > 0)) && [[ $stage != test ]]; then
    say "ci.sh: $stage takes no arguments"
    exit 2
fi
case $stage in
    fmt | clippy | docs | deny | no_std | test | replay | sim | check | sabotage | all) "stage_$stage" "$@" ;;
    -h | --help | help) usage ;;
    *)
        say "ci.sh: no stage '$stage'"
        usage >&2
        exit 2
        ;;
esac
