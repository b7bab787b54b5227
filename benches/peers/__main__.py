"""Speed beside the peers: measures, and writes docs/peers.md with its pictures.

    make bench-peers                              everything; about eight minutes
    make bench-peers BENCH=--rt                   on a machine that others keep busy (as root)
    make bench-peers BENCH=--quick                a look, in a minute
    make bench-peers BENCH="--scenes log,start --peers containerpilot,s6"
    python3 benches/peers --render                the page and the pictures anew, from docs/peers.json

What is not complete goes to target/peers-some, unless --merge says that it shall replace its part of the page.
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
from turns import Turns, Weather  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(stage.HERE))


def options():
    target = os.environ.get("CARGO_TARGET_DIR", os.path.join(ROOT, "target"))
    parser = argparse.ArgumentParser(prog="benches/peers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=os.path.join(target, "dist", "containerpilot"), help="ours")
    parser.add_argument("--scenes", help="only these, with commas: " + ", ".join(scenes.SCENES))
    parser.add_argument("--peers", help="only these, with commas (floor and containerpilot among them)")
    parser.add_argument("--quick", action="store_true", help="few turns and small numbers")
    parser.add_argument("--rt", action="store_true", help="everything measured is in the real-time class, and others give way")
    parser.add_argument("--patience", type=float, default=45, help="seconds to lose, in all, to waiting for calm (45)")
    parser.add_argument("--merge", action="store_true", help="replace the measured scenes in docs/peers.json")
    parser.add_argument("--out", help="a folder for the page, in place of docs")
    parser.add_argument("--render", action="store_true", help="measure nothing: write the page from its JSON")
    parser.add_argument("--check", action="store_true", help="measure nothing: is the page what its JSON says?")
    chosen = parser.parse_args()
    some = chosen.quick or chosen.scenes or chosen.peers
    keep = not some or chosen.merge or chosen.render or chosen.check
    chosen.out = os.path.abspath(chosen.out or os.path.join(ROOT, "docs") if keep or chosen.out else os.path.join(target, "peers-some"))
    return chosen


def pick(words, known, what):
    """Those of `known` that a list with commas names, in the order of `known`; all, if there is no list."""
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
        sys.exit(f"there is no program {chosen.binary}: build it with `make static`, or name another with --binary")
    known = {peer.name: peer for peer in peers.everyone(chosen.binary)}
    there = [known[name] for name in pick(chosen.peers, known, "peer")]
    for peer in list(there):
        if peer.missing():
            say(f"{peer.name} is left out: {peer.missing()} is not installed (scripts/peers installs it)")
            there.remove(peer)
    if chosen.rt:
        try:
            os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
        except PermissionError:
            sys.exit("--rt needs to be root")
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    stage.adopt_orphans()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("asked to stop"))  # through every `with`, so that nothing is left behind
    tools, sizes = stage.Tools(), scenes.QUICK if chosen.quick else scenes.FULL
    weather = Weather(chosen.patience, chosen.rt)
    result = {"machine": page.machine(chosen.quick), "peers": {peer.name: page.facts(peer) for peer in there}, "scenes": {}}
    try:
        for name in pick(chosen.scenes, scenes.SCENES, "scene"):
            began, turns = time.monotonic(), Turns(weather, sizes["repeats"], say)
            scenes.SCENES[name](scenes.Play(tools, there, turns, sizes))
            took = time.monotonic() - began
            say(f"{name}: {took:.0f} s, {turns.redone} samples taken again")
            result["scenes"][name] = {"samples": turns.samples, "failed": turns.failed, "doubtful": turns.doubtful,
                                      "conditions": turns.conditions() | {"took": round(took, 1)}}
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
    files = page.render(json.loads(text))  # of what is kept, not of what is known now
    if chosen.check:
        wrong = [name for name, text in files.items() if page.read(os.path.join(chosen.out, name)) != text]
        if wrong:
            sys.exit(f"{', '.join(wrong)}: not what peers.json says; write them with `python3 benches/peers --render`")
        return
    if not chosen.render:
        files["peers.json"] = text
    for name, text in files.items():
        path = os.path.join(chosen.out, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(text)
    say(f"written: {os.path.join(chosen.out, 'peers.md')}")


if __name__ == "__main__":
    main()
