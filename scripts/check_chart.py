#!/usr/bin/env python3
"""Lints the chart and checks what a wrong chart breaks a cluster with: rules that are too wide, rights that are too
wide, and pods that run as root. The rendered text itself is compared with a golden file.

check_chart.py --update writes the golden file anew.
"""

import pathlib
import subprocess
import sys
from typing import Any

import yaml

ROOT = pathlib.Path(__file__).resolve().parent.parent
CHART = ROOT / "charts" / "loadline"
GOLDEN = ROOT / "tests" / "data" / "chart.golden.yaml"
OUR_KINDS = {"trainingjobs", "gpupools", "placementpolicies"}

sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tests" / "cluster"))

from clusterlib import binaries  # noqa: E402  (the path above comes first)


def helm(*arguments: str) -> str:
    program = binaries.locate(binaries.DEFAULT_CONTROL_PLANE)["helm"]
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"helm {' '.join(arguments)}:\n{done.stdout}{done.stderr}")
    return done.stdout


def render(*arguments: str) -> str:
    return helm("template", "loadline", str(CHART), "--namespace=loadline-system", "--kube-version=1.36", *arguments)


def objects(text: str) -> list[dict[str, Any]]:
    return [document for document in yaml.safe_load_all(text) if document]


def of_kind(documents: list[dict[str, Any]], *kinds: str) -> list[dict[str, Any]]:
    return [document for document in documents if document["kind"] in kinds]


class Findings(list[str]):
    def require(self, holds: bool, complaint: str) -> None:
        if not holds:
            self.append(complaint)


def check_registrations(documents: list[dict[str, Any]], findings: Findings) -> None:
    """A webhook that catches more than our kinds can keep a cluster from coming up."""
    for registration in of_kind(documents, "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"):
        for hook in registration["webhooks"]:
            name = f"{registration['kind']} {hook['name']}"
            for rule in hook["rules"]:
                findings.require(rule["apiGroups"] == ["loadline.dev"], f"{name} matches groups {rule['apiGroups']}")
                findings.require(set(rule["resources"]) <= OUR_KINDS, f"{name} matches {rule['resources']}")
            selector = hook["namespaceSelector"]["matchExpressions"]
            spared = next(term["values"] for term in selector if term["key"] == "kubernetes.io/metadata.name")
            findings.require({"kube-system", "loadline-system"} <= set(spared), f"{name} spares only {spared}")
            findings.require(
                {"key": "loadline.dev/ignore", "operator": "DoesNotExist"} in selector, f"{name} has no opt-out"
            )
            findings.require("caBundle" not in hook["clientConfig"], f"{name} would overwrite the CA at an upgrade")
            findings.require(hook["sideEffects"] == "None" and hook["timeoutSeconds"] <= 10, f"{name} is not quick")


def check_rights(documents: list[dict[str, Any]], findings: Findings) -> None:
    """No wildcard, and Secrets only by name in our own namespace (creating cannot be limited to a name)."""
    for role in of_kind(documents, "ClusterRole", "Role"):
        for rule in role["rules"]:
            name = f"{role['kind']} {role['metadata']['name']}: {rule}"
            findings.require("*" not in rule["verbs"] + rule["resources"] + rule["apiGroups"], f"{name} has a wildcard")
            findings.require("rbac.authorization.k8s.io" not in rule["apiGroups"], f"{name} touches RBAC")
            if "secrets" in rule["resources"]:
                findings.require(role["kind"] == "Role", f"{name} reaches Secrets of every namespace")
                findings.require("resourceNames" in rule or rule["verbs"] == ["create"], f"{name} reads any Secret")


def check_pods(documents: list[dict[str, Any]], findings: Findings) -> None:
    for deployment in of_kind(documents, "Deployment"):
        pod = deployment["spec"]["template"]["spec"]
        name = deployment["metadata"]["name"]
        findings.require(pod["securityContext"].get("runAsNonRoot") is True, f"{name} may run as root")
        for container in pod["containers"]:
            context = container["securityContext"]
            findings.require(context["readOnlyRootFilesystem"] is True, f"{name} can write its image")
            findings.require(context["allowPrivilegeEscalation"] is False, f"{name} can gain privileges")
            findings.require(context["capabilities"] == {"drop": ["ALL"]}, f"{name} keeps capabilities")
            findings.require("livenessProbe" in container and "readinessProbe" in container, f"{name} lacks probes")
            findings.require("memory" in container["resources"]["limits"], f"{name} has no memory limit")


def check_variants(findings: Findings) -> None:
    """By URL the registrations name it, and no Service; the schema refuses a value it does not know."""
    documents = objects(render("--set=webhook.url=https://127.0.0.1:9443"))
    for registration in of_kind(documents, "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"):
        path = "/mutate" if registration["kind"].startswith("Mutating") else "/validate"
        for hook in registration["webhooks"]:
            findings.require(hook["clientConfig"] == {"url": f"https://127.0.0.1:9443{path}"}, f"{hook} not by URL")
    program = binaries.locate(binaries.DEFAULT_CONTROL_PLANE)["helm"]
    wrong = subprocess.run(
        [program, "template", str(CHART), "--set=webhook.replica=3"], capture_output=True, text=True, check=False
    )
    findings.require(wrong.returncode != 0, "a misspelt value is accepted")


def main() -> int:
    findings = Findings()
    crds = {path.name: path.read_bytes() for path in (ROOT / "crds").glob("*.yaml")}
    packed = {path.name: path.read_bytes() for path in (CHART / "crds").glob("*.yaml")}
    findings.require(crds == packed, "charts/loadline/crds differs from crds/")

    helm("lint", "--strict", str(CHART))
    text = render()
    documents = objects(text)
    check_registrations(documents, findings)
    check_rights(documents, findings)
    check_pods(documents, findings)
    check_variants(findings)

    if "--update" in sys.argv:
        GOLDEN.write_text(text)
    findings.require(
        GOLDEN.is_file() and GOLDEN.read_text() == text,
        f"the rendered chart differs from {GOLDEN.relative_to(ROOT)}: see `git diff` after check_chart.py --update",
    )
    for finding in findings:
        print(f"chart: {finding}", file=sys.stderr)
    if not findings:
        print(f"the chart renders {len(documents)} objects and {len(crds)} CRDs, as they should be")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
