"""A fleet that watches itself (D16): N supervisors, each with one service and a watch on that service.

    cargo build --release
    python3 benches/fleet.py --sizes 100,300            all of it; about three minutes for each size
    python3 benches/fleet.py --binary OTHER --runs 3    another program, three times

All of them use one Consul agent, in development mode unless --server is given. For each run it prints the time until all
services are passing, the CPU of Consul and of the fleet at rest, and the time from the start of the agent until all are
passing again after an outage, in which the agent loses everything. The results are in docs/benchmarks.md.
"""
import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
INTERVAL, TTL = 5, 15


class Agent:
    """A Consul server, which has lost everything whenever it starts."""

    def __init__(self, program, folder, address, is_dev):
        self.program, self.folder, self.address, self.is_dev = program, folder, address, is_dev
        self.process = None

    def start(self):
        settings = os.path.join(self.folder, "agent.json")
        with open(settings, "w") as file:
            # By default an agent accepts 200 connections from one address.
            limits = {"http_max_conns_per_client": 10_000}
            json.dump({"limits": limits, "performance": {"raft_multiplier": 1}}, file)
        data = os.path.join(self.folder, "data")
        shutil.rmtree(data, ignore_errors=True)
        mode = ["-dev"] if self.is_dev else ["-server", "-bootstrap-expect=1", f"-data-dir={data}"]
        line = [self.program, "agent", *mode, "-node=fleet", f"-config-file={settings}"]
        line += [f"-{option}={self.address}" for option in ("bind", "client", "advertise")]
        with open(os.path.join(self.folder, "consul.log"), "ab") as log:
            self.process = subprocess.Popen(line, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def get(self, path):
        with urllib.request.urlopen(f"http://{self.address}:8500{path}", timeout=10) as response:
            return json.load(response)

    def await_leader(self):
        while True:
            try:
                if self.get("/v1/status/leader"):
                    return
            except OSError:
                pass
            time.sleep(0.05)

    def passing(self):
        """How many services are passing. The answer is smaller than that to a watch."""
        try:
            return sum(check["Status"] == "passing" for check in self.get("/v1/health/checks/app"))
        except (OSError, ValueError):
            return 0


def configuration(folder, address, number):
    return {
        "consul": f"{address}:8500",
        "control": {"socket": os.path.join(folder, f"{number}.socket")},
        "watches": [{"name": "app", "interval": INTERVAL}],
        "jobs": [{
            "name": "app",
            "exec": ["sleep", "100000"],
            "port": 8000 + number,
            "interfaces": "static:10.0.0.1",
            "service": {"id": f"app-{number}"},
            "health": {"exec": "true", "interval": INTERVAL, "ttl": TTL},
        }],
    }


def start_fleet(binary, folder, address, size):
    files = []
    for number in range(size):
        files.append(os.path.join(folder, f"{number}.json5"))
        with open(files[-1], "w") as file:
            json.dump(configuration(folder, address, number), file)
    with open(os.path.join(folder, "fleet.log"), "ab") as log:
        return [
            subprocess.Popen([binary, "-config", file], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
            for file in files
        ]


def stop_fleet(fleet):
    for process in fleet:
        process.send_signal(signal.SIGTERM)
    for process in fleet:
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def cpu_seconds(processes):
    """The CPU time that the processes have used, without their children."""
    total = 0
    for process in processes:
        total += time.clock_gettime_ns(~process.pid << 3 | 2)
    return total / 1e9


def await_all(agent, size, patience):
    """The seconds until all services are passing, and how many are at the end."""
    began = time.monotonic()
    while True:
        count, now = agent.passing(), time.monotonic() - began
        if count >= size or now > patience:
            return now, count
        time.sleep(0.2)


def shown(seconds, count, size):
    return f"{seconds:.1f} s" if count >= size else f"{count} of {size} after {seconds:.0f} s"


def measure(chosen, size):
    folder = tempfile.mkdtemp(prefix="fleet-")
    agent = Agent(chosen.consul, folder, chosen.address, not chosen.server)
    fleet = []
    try:
        agent.start()
        agent.await_leader()
        used = cpu_seconds([agent.process])
        fleet = start_fleet(chosen.binary, folder, chosen.address, size)
        started = shown(*await_all(agent, size, chosen.patience), size)
        used = cpu_seconds([agent.process]) - used

        # For a minute after a storm of changes, queries are for whole answers (D16).
        time.sleep(60 + 3 * INTERVAL)
        before, began = (cpu_seconds([agent.process]), cpu_seconds(fleet)), time.monotonic()
        time.sleep(chosen.rest)
        after, took = (cpu_seconds([agent.process]), cpu_seconds(fleet)), time.monotonic() - began
        consul, all_of_them = ((later - earlier) / took * 100 for earlier, later in zip(before, after))

        agent.kill()
        time.sleep(chosen.outage)
        agent.start()
        back = shown(*await_all(agent, size, chosen.patience), size)
        print(f"| {size} | {started} | {used:.1f} s | {consul:.1f} % | {all_of_them:.1f} % | {back} |", flush=True)
    finally:
        stop_fleet(fleet)
        if agent.process:
            agent.kill()
        if chosen.keep:
            print(f"the logs are in {folder}", file=sys.stderr)
        else:
            shutil.rmtree(folder, ignore_errors=True)


def main():
    target = os.environ.get("CARGO_TARGET_DIR", os.path.join(ROOT, "target"))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=os.path.join(target, "release", "containerpilot"))
    parser.add_argument("--consul", help="the Consul program; by default that of scripts/consul")
    parser.add_argument("--sizes", default="100,300", help="how many supervisors, comma-separated")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--outage", type=float, default=20, help="seconds without the agent")
    parser.add_argument("--rest", type=float, default=30, help="seconds for the measurement at rest")
    parser.add_argument("--patience", type=float, default=60, help="seconds to wait for all services")
    parser.add_argument("--address", default="127.77.16.1", help="the loopback address of the agent")
    parser.add_argument("--server", action="store_true", help="not in development mode, where Consul indents its answers")
    parser.add_argument("--keep", action="store_true", help="keep the logs")
    chosen = parser.parse_args()
    chosen.consul = chosen.consul or subprocess.check_output([os.path.join(ROOT, "scripts", "consul")], text=True).strip()
    print("| supervisors | all passing | CPU of Consul until then | Consul at rest | fleet at rest | back after the outage |")
    print("| --: | --: | --: | --: | --: | --: |", flush=True)
    for size in (int(size) for size in chosen.sizes.split(",")):
        for _ in range(chosen.runs):
            measure(chosen, size)


if __name__ == "__main__":
    main()
