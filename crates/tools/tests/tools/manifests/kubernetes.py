"""Checks Kubernetes manifests against the API models of the Kubernetes client for Python.

    kubernetes.py FILE…

Every object must be of a known kind of its API version, without unknown fields, missing fields or values of a wrong
type, and every selector must match a pod. Prints the valid objects, one per line, and the first error of each file on
standard error; exits with 1 if there is an error.
"""

import re
import sys

# This file must not be taken for the package of the same name.
sys.path = [path for path in sys.path if path != sys.path[0]]

import yaml
from kubernetes import client

APIS = {"v1": client.CoreV1Api, "apps/v1": client.AppsV1Api, "policy/v1": client.PolicyV1Api}
PLAIN = {"str": str, "int": int, "bool": bool, "float": (int, float), "object": (str, int, bool, dict, list)}


def check(value, kind, place):
    """Asserts that a value has a type in the notation of the client: `str`, `list[V1Container]` or `V1Pod`."""
    if inner := re.fullmatch(r"list\[(.*)\]", kind):
        assert isinstance(value, list), f"{place} must be a list"
        for number, one in enumerate(value):
            check(one, inner[1], f"{place}[{number}]")
    elif inner := re.fullmatch(r"dict\(str, (.*)\)", kind):
        assert isinstance(value, dict), f"{place} must be a map"
        for key, one in value.items():
            check(one, inner[1], f"{place}.{key}")
    elif kind in PLAIN:
        # In Python, bool is a subclass of int.
        fits = isinstance(value, PLAIN[kind]) and not (kind in ("int", "float") and isinstance(value, bool))
        assert fits, f"{place} must be {kind}, and is {value!r}"
    else:
        model = getattr(client, kind)
        assert isinstance(value, dict), f"{place} must be an object"
        kinds = {model.attribute_map[name]: type for name, type in model.openapi_types.items()}
        for key, one in value.items():
            assert key in kinds, f"{place} has no field `{key}`"
            check(one, kinds[key], f"{place}.{key}")
        # The constructor raises ValueError if a required field is missing.
        known = {name: value[key] for name, key in model.attribute_map.items() if key in value}
        try:
            model(**known)
        except ValueError as error:
            raise AssertionError(f"{place}: {error}") from None


def manifest(path):
    """Checks one file."""
    objects = [one for one in yaml.safe_load_all(open(path)) if one is not None]
    for one in objects:
        version, kind = one["apiVersion"], one["kind"]
        create = "create_namespaced_" + re.sub(r"(?<!^)(?=[A-Z])", "_", kind).lower()
        assert version in APIS and hasattr(APIS[version], create), f"there is no {kind} in {version}"
        check(one, "V1" + kind, f"{kind}/{one['metadata']['name']}")

    pods = [one["spec"]["template"] for one in objects if one["kind"] == "Deployment"]
    for one in objects:
        place, spec = f"{one['kind']}/{one['metadata']['name']}", one["spec"]
        selector = spec["selector"].get("matchLabels", spec["selector"])
        found = [pod for pod in pods if selector.items() <= pod["metadata"]["labels"].items()]
        assert found, f"{place} selects no pod"
        if one["kind"] == "Deployment":
            assert spec["template"] in found, f"{place} does not select its own pods"
        if one["kind"] == "Service":
            names = {port["name"] for pod in found for box in pod["spec"]["containers"] for port in box["ports"]}
            assert all(port["targetPort"] in names for port in spec["ports"]), f"{place} leads to no port of {names}"
        print(f"{one['apiVersion']} {place}")


wrong = 0
for path in sys.argv[1:]:
    try:
        manifest(path)
    except (AssertionError, yaml.YAMLError) as error:
        wrong = 1
        print(f"{path}: {error}", file=sys.stderr)
sys.exit(wrong)
