#!/usr/bin/env python3
"""Writes docs/api.md, the reference of the three kinds, from the descriptions in crds/.

With --check nothing is written: ends with 1 when docs/api.md is not what would be written.
"""

import pathlib
import sys

import yaml

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGET = ROOT / "docs" / "api.md"
KINDS = ["trainingjobs", "placementpolicies", "gpupools"]

HEAD = """# API reference

Group `loadline.dev`, version `v1alpha1`. Made from the CRDs in `crds/` by `docs/generate-api.py`; the same text is
printed by `kubectl explain`. Fields with a star must be given. Commented examples are in `examples/`.
"""


def type_text(schema: dict) -> str:
    """The type as a person would say it: "list of string", "map to integer"."""
    kind = schema["type"]
    if kind == "array":
        return "list of " + type_text(schema["items"])
    if "additionalProperties" in schema:
        return "map to " + type_text(schema["additionalProperties"])
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        return "object, free form"
    return kind


def bounds_text(schema: dict) -> str:
    """What a value must keep to, without what the type says already."""
    parts = []
    if "enum" in schema:
        parts.append("one of " + ", ".join(f"`{word}`" for word in schema["enum"]))
    if "minimum" in schema and "maximum" in schema:
        least = "more than " if schema.get("exclusiveMinimum") else ""
        parts.append(f"{least}{number_text(schema['minimum'])} to {number_text(schema['maximum'])}")
    if "pattern" in schema:
        parts.append(f"`{schema['pattern']}`".replace("|", "\\|"))
    if "maxItems" in schema:
        parts.append(f"at most {schema['maxItems']}")
    if "default" in schema:
        parts.append(f"default `{schema['default']}`")
    return "; ".join(parts)


def number_text(number: float) -> str:
    return f"{number:g}" if number >= 1e9 else str(number)


def rows(schema: dict, path: str) -> list[str]:
    """A table row for each field below `schema`, in the order of the file."""
    out = []
    required = schema.get("required", [])
    for name, field in schema.get("properties", {}).items():
        where = f"{path}.{name}" if path else name
        star = "*" if name in required else ""
        what = field["description"].strip().replace("|", "\\|").replace("<", "\\<")
        out.append(f"| `{where}`{star} | {type_text(field)} | {what} | {bounds_text(field)} |")
        inner = field["items"] if field["type"] == "array" else field
        out += rows(inner, where + ("[]" if field["type"] == "array" else ""))
    return out


def rules(schema: dict, path: str, found: dict[str, list[str]]) -> dict[str, list[str]]:
    """The message of each CEL rule below `schema`, with the fields that it is about."""
    for rule in schema.get("x-kubernetes-validations", []):
        field = path + rule.get("fieldPath", "") or "metadata.name"
        found.setdefault(rule["message"].strip(), []).append(field)
    for name, field in schema.get("properties", {}).items():
        inner = field["items"] if field["type"] == "array" else field
        rules(inner, f"{path}.{name}" if path else name, found)
    return found


def section(plural: str) -> str:
    definition = yaml.safe_load((ROOT / "crds" / f"loadline.dev_{plural}.yaml").read_text())["spec"]
    names = definition["names"]
    schema = definition["versions"][0]["schema"]["openAPIV3Schema"]
    scope = "in a namespace" if definition["scope"] == "Namespaced" else "for the whole cluster"
    lines = [f"## {names['kind']}", "", f"`kubectl get {names['shortNames'][0]}`; {scope}."]
    lines += ["", schema["description"].strip()]
    for part in ("spec", "status"):
        body = schema["properties"][part]
        lines += ["", f"### {names['kind']}.{part}", "", body["description"].strip(), ""]
        lines += ["| field | type | what it is | bounds |", "|---|---|---|---|"] + rows(body, "")
    checks = rules({**schema, "properties": {"spec": schema["properties"]["spec"]}}, "", {})
    if checks:
        lines += ["", f"### Rules of a {names['kind']}", "", "Checked by the API server at once, with these words:", ""]
        lines += [f"- {', '.join(f'`{field}`' for field in fields)}: {text}" for text, fields in checks.items()]
    return "\n".join(lines) + "\n"


def main() -> int:
    text = HEAD + "".join("\n" + section(plural) for plural in KINDS)
    if "--check" not in sys.argv[1:]:
        TARGET.write_text(text)
        return 0
    if TARGET.exists() and TARGET.read_text() == text:
        return 0
    print("docs/api.md is not what docs/generate-api.py makes of crds/: run docs/generate-api.py", file=sys.stderr)
    return 1


sys.exit(main())
