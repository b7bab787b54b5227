"""Measures containerpilot and its peers, and writes docs/peers.md with its charts.

    make bench-peers                              everything; about eight minutes
    make bench-peers BENCH=--rt                   on a busy machine (as root)
    make bench-peers BENCH=--quick                a quick run in a minute
    make bench-peers BENCH="--scenes log,start --peers containerpilot,s6"
    python3 benches/peers --render                render the page and the charts from docs/peers.json

A partial run goes to target/peers-some, unless --merge replaces its part of the page.
"""
import argparse
import json
import os
import resource
import signal
import sys
import time

sys.dont_write_bytecode = True
import page  # noqa: E402
import peers  # noqa: E402
import scenes  # noqa: E402
import stage  # noqa: E402
from rounds import Rounds, MachineLoad  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(stage.HERE))


def options():
    target = os.environ.get("CARGO_TARGET_DIR", os.path.join(ROOT, "target"))
    parser = argparse.ArgumentParser(prog="benches/peers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=os.path.join(target, "artifacts", "containerpilot"), help="the containerpilot binary")
    parser.add_argument("--scenes", help="only these, comma-separated: " + ", ".join(scenes.SCENES))
    parser.add_argument("--peers", help="only these, comma-separated (should include floor and containerpilot)")
    parser.add_argument("--quick", action="store_true", help="few rounds and small numbers")
    parser.add_argument("--rt", action="store_true", help="measure in the real-time class, which preempts other programs")
    parser.add_argument("--patience", type=float, default=45, help="total seconds to wait for an idle machine (45)")
    parser.add_argument("--merge", action="store_true", help="replace the measured scenes in docs/peers.json")
    parser.add_argument("--out", help="output folder instead of docs")
    parser.add_argument("--render", action="store_true", help="only render the page from its JSON")
    parser.add_argument("--check", action="store_true", help="only check that the page matches its JSON")
    chosen = parser.parse_args()
    some = chosen.quick or chosen.scenes or chosen.peers
    keep = not some or chosen.merge or chosen.render or chosen.check
    chosen.out = os.path.abspath(chosen.out or os.path.join(ROOT, "docs") if keep or chosen.out else os.path.join(target, "peers-some"))
    return chosen


def pick(words, known, what):
    """The items of `known` that a comma-separated list names, in the order of `known`; all without a list."""
    if not words:
        return list(known)
    named = [word.strip() for word in words.split(",")]
    for word in named:
        if word not in known:
            sys.exit(f"there is no {what} {word!r}: it is one of {', '.join(known)}")
    return [one for one in known if one in named]


def say(text):
    print(text, file=sys.stderr, flush=True)


def measure(chosen):
    if not os.access(chosen.binary, os.X_OK):
        sys.exit(f"{chosen.binary} is missing: build it with `make static`, or use --binary")
    known = {peer.name: peer for peer in peers.all_peers(chosen.binary)}
    there = [known[name] for name in pick(chosen.peers, known, "peer")]
    for peer in list(there):
        if peer.missing():
            say(f"skipping {peer.name}: {peer.missing()} is not installed (scripts/peers installs it)")
            there.remove(peer)
    if chosen.rt:
        try:
            os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
        except PermissionError:
            sys.exit("--rt needs root")
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    stage.adopt_orphans()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))  # runs every `with` exit, so that nothing is left behind
    tools, sizes = stage.Tools(), scenes.QUICK if chosen.quick else scenes.FULL
    load = MachineLoad(chosen.patience, chosen.rt)
    result = {"machine": page.machine(chosen.quick), "peers": {peer.name: page.facts(peer) for peer in there}, "scenes": {}}
    try:
        for name in pick(chosen.scenes, scenes.SCENES, "scene"):
            begin, rounds = time.monotonic(), Rounds(load, sizes["repeats"], say)
            scenes.SCENES[name](scenes.Play(tools, there, rounds, sizes))
            took = time.monotonic() - begin
            say(f"{name}: {took:.0f}s, {rounds.redone} samples repeated")
            result["scenes"][name] = {"samples": rounds.samples, "failed": rounds.failed, "doubtful": rounds.doubtful,
                                      "conditions": rounds.conditions() | {"took": round(took, 1)}}
    finally:
        tools.remove()
    return result


def main():
    chosen = options()
    kept = os.path.join(chosen.out, "peers.json")
    if chosen.render or chosen.check:
        with open(kept) as file:
            result = json.load(file)
    else:
        result = measure(chosen)
        if chosen.merge:
            with open(kept) as file:
                before = json.load(file)
            result["scenes"] = before["scenes"] | result["scenes"]
            result["peers"] = before["peers"] | result["peers"]
    text = page.rounded(result)
    files = page.render(json.loads(text))  # from the stored figures, as --render would
    if chosen.check:
        wrong = [name for name, text in files.items() if page.read(os.path.join(chosen.out, name)) != text]
        if wrong:
            sys.exit(f"{', '.join(wrong)}: does not match peers.json; run `python3 benches/peers --render`")
        return
    if not chosen.render:
        files["peers.json"] = text
    for name, text in files.items():
        path = os.path.join(chosen.out, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(text)
    say(f"wrote {os.path.join(chosen.out, 'peers.md')}")


if __name__ == "__main__":
    main()
