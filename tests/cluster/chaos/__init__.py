"""The operator under fault, on a real control plane.

Modules, from the bottom up: `api` (the administrator in Python), `http1`, `rules`, `watches`, `proxy` (where things go
wrong), `history` (everything that happened, in its true order), `invariants` and `endstate` (what must hold of it),
`arena` (control plane, operators, nodes), `scenarios` (stories of jobs), `reference` (how runs compare), `suites`,
`soak`, `report`, `cli`. `checks` tests the means themselves.
"""
