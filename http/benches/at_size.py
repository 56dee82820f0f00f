#!/usr/bin/env python3
"""What a coordinator costs when it holds much: its rate, its memory, its start and its end.

    python3 http/benches/at_size.py [RETAINED]

First the rate of `pinfold worker-bench` beside RETAINED checkpoints (ten million unless told
otherwise: some minutes and some gigabytes of memory and of disk) over that beside none; then the
rate of a run's last seconds, with every turn expired since, over that of its first ones; at least
0.8 each. Then a `pinfold serve` takes a million records, is told to end, and starts on them again.
"""

import json
import signal
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LEAST = 0.8
RECORDS = 1_000_000


def build():
    subprocess.run(["cargo", "build", "--release", "--locked"], cwd=ROOT, check=True)
    metadata = subprocess.check_output(
        ["cargo", "metadata", "--format-version", "1", "--no-deps"], cwd=ROOT
    )
    return Path(json.loads(metadata)["target_directory"]) / "release" / "pinfold"


def load(program, folder, *words):
    command = [program, "worker-bench", "--json", *map(str, words)]
    return json.loads(subprocess.check_output(command, cwd=folder))


def mean(numbers):
    return sum(numbers) / len(numbers)


def judged(what, ratio):
    print(f"{what}: {ratio:.2f}, at least {LEAST}: {'held' if ratio >= LEAST else 'MISSED'}")
    return ratio >= LEAST


def beside(program, folder, retained):
    """The rate beside much over that beside nothing, which is measured before it and after it."""
    rate = lambda *words: load(program, folder, "--seconds", 5, *words)["cycles_per_second"]
    before, much, after = rate(), rate("--retained", retained), rate()
    print(f"cycles a second beside {retained:,} checkpoints: {much:,.0f}")
    print(f"  beside none, before and after: {before:,.0f} {after:,.0f}")
    return judged("  the ratio", much / mean([before, after]))


def expired(program, folder):
    """Of one run: each cycle expires a turn, but for the 8 that each of 64 conversations keeps."""
    report = load(program, folder, "--seconds", 25)
    first, last = mean(report["by_second"][:4]), mean(report["by_second"][-4:])
    print(f"cycles a second, {report['cycles'] - 64 * 8:,} turns expired in 25 s")
    print(f"  in the first 4 s and the last: {first:,.0f} {last:,.0f}")
    return judged("  the ratio", last / first)


class Serve:
    """A coordinator that listens, until it is stopped or left."""

    def __init__(self, program, folder):
        command = [program, "serve", "--data", folder / "job", "--listen", "127.0.0.1:0", "--json"]
        began = time.monotonic()
        self.child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        said = json.loads(self.child.stdout.readline())
        self.started = time.monotonic() - began
        self.url, self.records = said["url"], said["recovered_records"] or 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.child.kill()
        self.child.wait()

    def mebibytes(self, name):
        status = Path(f"/proc/{self.child.pid}/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith(name))
        return int(line.split()[1]) / 1024

    def stop(self):
        began = time.monotonic()
        self.child.send_signal(signal.SIGTERM)
        self.child.wait()
        return time.monotonic() - began


def life(program, folder):
    records = 0
    while records < RECORDS:
        with Serve(program, folder) as serve:
            records = serve.records
            size = serve.mebibytes("VmRSS")
            print(f"{records:,} records: listens after {serve.started:.2f} s, {size:.0f} MiB")
            if records < RECORDS:
                # What a load has kept goes with it, so the next one finds a job that holds nothing.
                load(program, folder, "--server", serve.url, "--seconds", 10)
                used, most = serve.mebibytes("VmRSS"), serve.mebibytes("VmHWM")
                print(f"  after a load: {used:.0f} MiB, {most:.0f} at most")
            print(f"  ends in {serve.stop():.2f} s")


def main():
    retained = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000
    program = build()
    folder = Path(tempfile.mkdtemp(prefix="pinfold-at-size-", dir=".")).resolve()
    try:
        held = beside(program, folder, retained)
        held &= expired(program, folder)
        life(program, folder)
    finally:
        shutil.rmtree(folder)
    sys.exit(0 if held else 1)


if __name__ == "__main__":
    main()
