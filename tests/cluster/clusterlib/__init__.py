"""A real control plane with nodes that only pretend, for tests and demonstrations.

Modules, from the bottom up: `errors`, `progress`, `paths`; `toolchain` and `binaries` (what is built), `ports`,
`certs`, `kubeconfig`, `processes`, `state` (what a running cluster is made of), `kubectl`, `controlplane` (up and
down); `volumes`, `fleet` and `stories` (nodes and what befalls them), `install` (Loadline itself on such a cluster),
`cli`.
"""
