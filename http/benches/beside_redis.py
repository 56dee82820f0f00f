#!/usr/bin/env python3
"""Turns a second of `pinfold serve`, beside a catalog of Lua scripts in Redis, in the same job.

    python3 http/benches/beside_redis.py [ROUNDS]

A cycle is two requests, each durable when it is answered: pin and prepare; then settle, publish,
release and collect. pinfold's clients are those of `pinfold worker-bench`; Redis' are redis-benchmark
with two scripts that do the same for 64 conversations with 8 turns each, on sets and hashes. Redis
runs with its append-only file synced always, as durable as pinfold, and once a second, which is not.
Every figure stands beside the rate of fdatasync that was measured right before it. Needs
redis-server and redis-benchmark (in Debian: redis-server).
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 4
BEGIN = """
local conversation, number = ARGV[1], redis.call('INCR', 'next')
local last = redis.call('GET', 'last:' .. conversation)
if last then redis.call('HINCRBY', 'pins', last, 1) end
for key = 1, 4 do
    redis.call('HSET', 'checkpoint:' .. number, key, conversation .. '/' .. number .. '/' .. key)
end
redis.call('HINCRBY', 'pins', number, 1)
redis.call('LPUSH', 'open:' .. conversation, number)
return number
"""
END = """
local conversation = ARGV[1]
local number = redis.call('RPOP', 'open:' .. conversation)
if not number then return 0 end
local last = redis.call('GET', 'last:' .. conversation)
redis.call('HINCRBY', 'pins', number, -1)
if last then redis.call('HINCRBY', 'pins', last, -1) end
redis.call('SET', 'last:' .. conversation, number)
redis.call('RPUSH', 'turns:' .. conversation, number)
if redis.call('LLEN', 'turns:' .. conversation) > 8 then
    local old = redis.call('LPOP', 'turns:' .. conversation)
    redis.call('SADD', 'expired:' .. conversation, old)
    if tonumber(redis.call('HGET', 'pins', old) or 0) <= 0 then
        redis.call('HDEL', 'pins', old)
        redis.call('DEL', 'checkpoint:' .. old)
    end
end
return number
"""


def syncs_a_second(folder):
    """How often one thread writes 4 KiB and syncs them, in a second."""
    with open(folder / "raw", "wb") as file:
        file.write(bytes(1 << 20))
        os.fsync(file.fileno())
        began, count = time.monotonic(), 0
        while time.monotonic() < began + 1:
            os.pwrite(file.fileno(), bytes(4096), 4096 * (count % 256))
            os.fdatasync(file.fileno())
            count += 1
    return count


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


class Redis:
    """A Redis server in a folder of its own."""

    def __init__(self, folder, fsync):
        self.port = free_port()
        command = ["redis-server", "--port", str(self.port), "--dir", str(folder), "--save", ""]
        command += ["--appendonly", "yes", "--appendfsync", fsync, "--bind", "127.0.0.1"]
        self.child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        for _ in range(100):
            if self.cli("PING", check=False) == "PONG":
                break
            time.sleep(0.05)
        self.scripts = [self.cli("SCRIPT", "LOAD", script) for script in (BEGIN, END)]

    def cli(self, *words, check=True):
        command = ["redis-cli", "-p", str(self.port), *words]
        return subprocess.run(command, capture_output=True, text=True, check=check).stdout.strip()

    def requests_a_second(self, script, clients):
        """Of one script; as many requests as take about the time."""
        count = 2000
        while True:
            command = ["redis-benchmark", "-p", str(self.port), "-c", str(clients), "-n", str(count)]
            command += ["-r", "64", "--csv", "EVALSHA", script, "0", "__rand_int__"]
            began = time.monotonic()
            printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            took = time.monotonic() - began
            if took > SECONDS / 2:
                return float(printed.splitlines()[-1].split(",")[-7].strip('"'))
            count = int(count * max(2, SECONDS / 2 / took * 1.2))

    def cycles_a_second(self, clients):
        """A cycle is one request of each script, one after the other."""
        return 1 / sum(1 / self.requests_a_second(script, clients) for script in self.scripts)

    def stop(self):
        self.child.terminate()
        self.child.wait()


def redis(folder, fsync, clients):
    where = Path(tempfile.mkdtemp(dir=folder))
    server = Redis(where, fsync)
    try:
        return server.cycles_a_second(clients)
    finally:
        server.stop()
        shutil.rmtree(where)


def pinfold(program, folder, clients):
    command = [program, "worker-bench", "--clients", str(clients), "--seconds", str(SECONDS)]
    printed = subprocess.check_output([*command, "--json"], cwd=folder)
    return json.loads(printed)["cycles_per_second"]


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    subprocess.run(["cargo", "build", "--release", "--locked"], cwd=ROOT, check=True)
    metadata = subprocess.check_output(
        ["cargo", "metadata", "--format-version", "1", "--no-deps"], cwd=ROOT
    )
    program = Path(json.loads(metadata)["target_directory"]) / "release" / "pinfold"
    folder = Path(tempfile.mkdtemp(prefix="pinfold-beside-", dir="."))
    folder = folder.resolve()
    try:
        print("clients  syncs/s  pinfold  redis always  redis everysec   ÷ always   raw ÷ 2 ÷ pinfold")
        for clients in (1, 16):
            for _ in range(rounds):
                raw = syncs_a_second(folder)
                ours = pinfold(program, folder, clients)
                always = redis(folder, "always", clients)
                everysec = redis(folder, "everysec", clients)
                print(
                    f"{clients:7}  {raw:7,}  {ours:7,.0f}  {always:12,.0f}  {everysec:14,.0f}"
                    f"  {ours / always:9.2f}  {raw / 2 / ours:19.2f}"
                )
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
