#!/usr/bin/env python3
"""/metrics, its page, the Grafana dashboard and the alert rules name the same metrics and the same labels.

    metrics_test.py SLUICE
"""
# SPDX-License-Identifier: Apache-2.0
import json
import re
import unittest
from pathlib import Path

import serving
from serving import Server, chat

ROOT = Path(__file__).resolve().parent.parent.parent
DASHBOARD = ROOT / "docs" / "grafana.json"
ALERTS = ROOT / "deploy" / "alerts.yml"
GRIDS = 24  # columns of a dashboard
# Labels that Prometheus adds, beside those of the server.
ADDED = {"instance", "job", "le"}


def printed(server):
    """Each metric that the server prints, with its labels; of a histogram also what its lines are called."""
    text = server.get("/metrics").decode()
    names = {name: set() for name in re.findall(r"^# TYPE (\w+) ", text, re.MULTILINE)}
    for name, labels in re.findall(r"^(\w+)(?:\{(.*?)\})? ", text, re.MULTILINE):
        names.setdefault(name, set()).update(re.findall(r'(\w+)="', labels))
    return names


def described():
    """Each metric of docs/metrics.md, with its labels."""
    table = [line for line in (ROOT / "docs/metrics.md").read_text().split("\n") if line.startswith("| `")]
    cells = [line.split("|")[1] for line in table]
    return {name: set(filter(None, labels.split(",")))
            for cell in cells for name, labels in re.findall(r"`(\w+)(?:\{([\w,]*)\})?`", cell)}


def expressions():
    """Every expression in Prometheus' language that is shipped, and where it stands."""
    for panel in panels():
        for target in panel.get("targets", []):
            yield f"grafana.json, {panel['title']}", target["expr"]
    for expression in re.findall(r"^\s+expr: (.*)$", ALERTS.read_text(), re.MULTILINE):
        yield "alerts.yml", expression
    for page in sorted((ROOT / "docs").glob("*.md")):
        if page.name == "c-api.md":  # names like sluice_model_load(..) are functions there
            continue
        for expression in re.findall(r"`([^`]*\bsluice_\w+[^`]*[(\[][^`]*)`", page.read_text()):
            yield page.name, expression


def panels():
    return json.loads(DASHBOARD.read_text())["panels"]


def base_of(name):
    return re.sub(r"_(bucket|sum|count)$", "", name)


class MetricsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # With a device, so that experts are counted by layer.
        with Server("--device", "sim", "--profile", "none", "--machine", "none") as server:
            server.post("/v1/chat/completions", chat("What is 17 + 25?", max_tokens=4))
            cls.printed = printed(server)

    def test_the_page_describes_what_is_printed(self):
        names = {name for name in self.printed if base_of(name) == name or base_of(name) not in self.printed}
        self.assertEqual(set(described()), names)
        for name, labels in described().items():
            self.assertEqual(labels, self.printed[name], f"labels of {name}")

    def test_dashboard_and_alerts_ask_for_what_exists(self):
        n_seen = 0
        for place, expression in expressions():
            for name in re.findall(r"\bsluice_\w+", expression):
                n_seen += 1
                self.assertIn(name, self.printed, f"{place}: /metrics has no {name}")
                self.assertIn(base_of(name), described(), f"{place}: docs/metrics.md has no {name}")
            names = re.findall(r"\bsluice_\w+", expression)
            known = ADDED.union(*(self.printed[name] for name in names))
            for label in labels_in(expression):
                self.assertIn(label, known, f"{place}: none of {names} has a label {label}")
        self.assertGreater(n_seen, 30)

    def test_the_dashboard_shows_every_metric(self):
        shown = {base_of(name) for place, expression in expressions() if place.startswith("grafana.json")
                 for name in re.findall(r"\bsluice_\w+", expression)}
        self.assertEqual(shown, set(described()))

    def test_the_dashboard_is_well_made(self):
        ids = [panel["id"] for panel in panels()]
        self.assertEqual(len(ids), len(set(ids)), "two panels have one id")
        taken = set()
        for panel in panels():
            place = panel["gridPos"]
            cells = {(x, y) for x in range(place["x"], place["x"] + place["w"])
                     for y in range(place["y"], place["y"] + place["h"])}
            self.assertTrue(all(x < GRIDS for x, _ in cells), f"{panel['title']} is too wide")
            self.assertFalse(cells & taken, f"{panel['title']} lies over another panel")
            taken |= cells
            if panel["type"] != "row":
                self.assertEqual(panel["datasource"], {"type": "prometheus", "uid": "${source}"}, panel["title"])


def labels_in(expression):
    """Names between braces before an operator, and names of `by (...)`."""
    for selector in re.findall(r"\{([^}]*)\}", expression):
        yield from re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", selector)
    for names in re.findall(r"\b(?:by|on|without)\s*\(([^)]*)\)", expression):
        yield from filter(None, re.split(r"[,\s]+", names))


if __name__ == "__main__":
    serving.main()
