#!/usr/bin/env python3
"""States a second of `pinfold check`, beside stateright's own examples in the same job.

    python3 model-check/benches/beside_stateright.py [CONFIGURATION] [ROUNDS]

Builds the examples 2pc and paxos from the published crate that the workspace uses, as they are, and
runs each in turn with `pinfold check CONFIGURATION` (default: ci), ROUNDS times (default: 1).
Memory is the peak of the whole process. stateright's paxos is checked breadth first, its 2pc depth
first, as the examples do it; all use every core.
"""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = [("paxos", ["check", "3"]), ("2pc", ["check", "8"])]
UNIQUE = re.compile(r"Done\. .*unique=(\d+)")


def run(command):
    """Runs a command; gives what it printed, its seconds, and its peak of memory in bytes."""
    print("+", *command, file=sys.stderr)
    began = time.monotonic()
    child = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT, text=True)
    printed = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    if os.waitstatus_to_exitcode(status) != 0:
        sys.exit(f"{command[0]} ended with {os.waitstatus_to_exitcode(status)}")
    return printed, time.monotonic() - began, usage.ru_maxrss * 1024


def build():
    """Builds everything; gives where the programs are."""
    subprocess.run(["cargo", "build", "--release", "--locked"], cwd=ROOT, check=True)
    metadata = json.loads(
        subprocess.check_output(["cargo", "metadata", "--format-version", "1"], cwd=ROOT)
    )
    target = Path(metadata["target_directory"])
    manifest = next(it["manifest_path"] for it in metadata["packages"] if it["name"] == "stateright")
    # A copy: the registry's own folder is not to be written to.
    copy = target / "stateright"
    subprocess.run(["rm", "-rf", copy], check=True)
    subprocess.run(["cp", "-r", Path(manifest).parent, copy], check=True)
    with open(copy / "Cargo.toml", "a", encoding="utf-8") as file:
        file.write("\n[workspace]\n")
    for name, _ in EXAMPLES:
        command = ["cargo", "build", "--release", "--example", name]
        subprocess.run([*command, "--target-dir", target / "beside"], cwd=copy, check=True)
    return target / "release" / "pinfold", target / "beside" / "release" / "examples"


def main():
    configuration = sys.argv[1] if len(sys.argv) > 1 else "ci"
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    pinfold, examples = build()
    rows = []
    for _ in range(rounds):
        rates = {}
        for name, arguments in EXAMPLES:
            printed, seconds, memory = run([str(examples / name), *arguments])
            states = int(UNIQUE.search(printed).group(1))
            rates[name] = states / seconds
            rows.append((f"stateright {name} {' '.join(arguments)}", states, seconds, memory, ""))
        printed, seconds, memory = run([str(pinfold), "check", configuration, "--json"])
        report = json.loads(printed)
        if not report["complete"] or report["violations"]:
            sys.exit("not all was visited and held")
        states = report["states"]
        share = f"{rates['paxos'] * seconds / states:.2f} times slower than paxos"
        rows.append((f"pinfold check {configuration}", states, seconds, memory, share))
    print(f"{'':26}{'states':>12}{'seconds':>10}{'states/s':>10}{'MiB':>8}{'B/state':>9}")
    for name, states, seconds, memory, share in rows:
        print(
            f"{name:26}{states:12,}{seconds:10.1f}{states / seconds:10,.0f}"
            f"{memory / 2**20:8,.0f}{memory / states:9.0f}  {share}"
        )


main()
