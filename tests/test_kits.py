"""The files for hosts and schedulers, and their guides: they parse, and name only what there is."""

from __future__ import annotations

import ast
import json
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from app import cli
from app.server import GRACEFUL_SECONDS

ROOT = Path(__file__).parent.parent
DEPLOY = ROOT / "deploy"
GUIDES = ROOT / "docs" / "guides"
PAGES = [GUIDES / "deploying.md", GUIDES / "schedulers.md", *sorted((GUIDES / "hosts").glob("*.md"))]
UNITS = sorted([*DEPLOY.glob("*.service"), *DEPLOY.glob("*.timer")])

LONGEST_TICK = 305
"""Seconds: the longest budget, and what an answer takes after it."""

OF_THE_DATABASE = {"POSTGRES_PASSWORD"}
"""What compose.yaml tells its own database."""

OF_OTHERS = {
    "QSTASH_TOKEN",
    "FLY_API_TOKEN",
    "PASSWORD",
    "SECRETS",
    "REGION",
    "PROJECT",
    "IMAGE",
    "URL",
    "NAME",
    "TOKEN",
    "ID",
}
"""What the commands of the guides keep in a shell for themselves."""

by_name = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)


def a_yaml(name: str) -> Any:
    return yaml.safe_load((ROOT / name).read_text("utf-8"))


def a_json(name: str) -> Any:
    return json.loads((ROOT / name).read_text("utf-8"))


def a_unit(name: str) -> dict[str, list[str]]:
    """The settings of a unit, whatever their section."""
    found: dict[str, list[str]] = {}
    for line in (DEPLOY / name).read_text("utf-8").splitlines():
        key, given, value = line.partition("=")
        if given and not line.startswith("#"):
            found.setdefault(key, []).append(value)
    return found


def blocks(page: Path, language: str) -> list[str]:
    """Those of a guide, without the indent of a list around them."""
    found = re.findall(rf"^( *)```{language}\n(.*?)^ *```", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    return [re.sub(f"^{indent}", "", block, flags=re.MULTILINE) for indent, block in found]


def commands() -> Iterator[list[str]]:
    """What the kits have run: the words behind `wakebell`."""
    compose = a_yaml("deploy/compose.yaml")["services"]
    told = [tomllib.loads((ROOT / "fly.toml").read_text("utf-8"))["deploy"]["release_command"]]
    for name in ("railway.json", "deploy/railway-cron.json"):
        deploy = a_json(name)["deploy"]
        told += [*deploy["preDeployCommand"], deploy.get("startCommand", "wakebell serve")]
    told += re.findall(r"preDeployCommand: (.*?)(?:  +#|$)", (ROOT / "render.yaml").read_text("utf-8"), re.MULTILINE)
    told += [shlex.join(service["command"]) for service in compose.values() if "command" in service]
    for unit in UNITS:
        told += [one for key in ("ExecStartPre", "ExecStart") for one in a_unit(unit.name).get(key, [])]
    for page in PAGES:
        told += re.findall(
            r"(?:`|bin/|\")(wakebell [a-z][a-z -]*?)(?=[`\"]| &&|$)", page.read_text("utf-8"), re.MULTILINE
        )
    for line in told:
        program, *words = shlex.split(line)
        assert program.rpartition("/")[2] == "wakebell", line
        yield words


def known_names() -> set[str]:
    """The variables that the service reads, by its own source; and those that the sample configuration names."""
    source = "\n".join(path.read_text("utf-8") for path in (ROOT / "app" / "settings").glob("*.py"))
    in_file = re.findall(r'"env:([A-Z0-9_]+)"', (ROOT / "wakebell.toml").read_text("utf-8"))
    return {*re.findall(r'"([A-Z][A-Z0-9_]*)"', source), *in_file}


def test_every_command_of_a_kit_is_one(capsys: pytest.CaptureFixture[str]):
    seen = set()
    for words in commands():
        seen.add(words[0])
        with pytest.raises(SystemExit) as ended:
            cli.main([*words, "--help"])
        assert ended.value.code == 0, words

    capsys.readouterr()
    assert {"serve", "tick", "work", "migrate", "check"} <= seen


def test_the_kits_set_only_variables_that_the_service_reads():
    render, compose = a_yaml("render.yaml"), a_yaml("deploy/compose.yaml")["services"]
    commented = re.findall(r"# - key: (\w+)", (ROOT / "render.yaml").read_text("utf-8"))
    given = {variable["key"] for service in render["services"] for variable in service["envVars"]} | set(commented)
    given |= {name for service in compose.values() for name in service.get("environment", {})} - OF_THE_DATABASE
    given |= set(tomllib.loads((ROOT / "fly.toml").read_text("utf-8"))["env"])
    for unit in UNITS:
        given |= {pair.partition("=")[0] for line in a_unit(unit.name).get("Environment", []) for pair in line.split()}

    assert given - known_names() == set()
    assert {"DATABASE_URL", "CRON_SECRET", "AUTO_MIGRATE", "PORT", "HOST"} <= given


@by_name
def test_the_guides_name_only_variables_that_the_service_reads(page: Path):
    shell = "\n".join(blocks(page, "sh"))
    given = {*re.findall(r"\b([A-Z][A-Z0-9_]+)=", shell), *re.findall(r"secret set (\w+)", shell)}
    given |= set(re.findall(r"`([A-Z][A-Z0-9_]{3,})(?:=[^`]*)?`", page.read_text("utf-8")))

    assert given - known_names() - OF_OTHERS - OF_THE_DATABASE - {"WAKEBELL_URL"} == set()


def test_every_host_asks_the_process_alone_whether_it_lives():
    fly = tomllib.loads((ROOT / "fly.toml").read_text("utf-8"))
    guides = "".join(page.read_text("utf-8") for page in PAGES)
    asked = [service["healthCheckPath"] for service in a_yaml("render.yaml")["services"]]
    asked += [a_json("railway.json")["deploy"]["healthcheckPath"], fly["http_service"]["checks"][0]["path"]]
    asked += re.findall(r"--checks \d+:http:(\S+)", guides) + re.findall(r"probe=httpGet.path=([^,]+)", guides)

    assert asked == ["/healthz"] * 5


def test_every_host_waits_longer_than_requests_get_to_end():
    compose, cloud_run = (
        a_yaml("deploy/compose.yaml")["services"],
        (GUIDES / "hosts" / "cloud-run.md").read_text("utf-8"),
    )
    ends = [
        int(a_json("railway.json")["deploy"]["drainingSeconds"]),
        int(a_unit("wakebell.service")["TimeoutStopSec"][0]),
    ]
    ends += [int(service["stop_grace_period"].rstrip("s")) for name, service in compose.items() if name in RUNNING]
    [request] = re.findall(r"--timeout=(\d+)", cloud_run)

    assert min(ends) > GRACEFUL_SECONDS
    assert min(int(request), int(a_unit("wakebell-tick.service")["TimeoutStartSec"][0])) > LONGEST_TICK


RUNNING = ("wakebell", "scheduler")


def test_everybody_rings_at_the_minutes_of_the_workflow():
    [cron] = re.findall(r'- cron: "(.*?)"', (ROOT / ".github" / "workflows" / "tick.yml").read_text("utf-8"))
    [sql] = re.findall(r"'wakebell-tick',\s+'(.*?)'", (DEPLOY / "supabase.sql").read_text("utf-8"))
    timer = a_unit("wakebell-tick.timer")
    shell = "\n".join(block for page in PAGES for language in ("sh", "crontab") for block in blocks(page, language))
    told = re.findall(r"(?:schedule=|Cron: |^)'?((?:[\d,]+|\*) \* \* \* \*)", shell, re.MULTILINE)

    assert cron == sql == a_json("deploy/railway-cron.json")["deploy"]["cronSchedule"]
    assert set(told) == {cron}
    assert len(told) == 3
    assert (cron.partition(" ")[0], timer["OnCalendar"]) == ("7,22,37,52", ["*:7/15"])


def test_the_replicas_and_who_rings_wait_for_the_migration():
    services = a_yaml("deploy/compose.yaml")["services"]

    for name in RUNNING:
        assert services[name]["depends_on"] == {"migrate": {"condition": "service_completed_successfully"}}
        assert services[name]["env_file"] == services["migrate"]["env_file"]
    assert services["migrate"]["depends_on"] == {"database": {"condition": "service_healthy"}}
    for service in services.values():
        for volume in service.get("volumes", []):
            source = volume.partition(":")[0]
            assert source == "database" or (DEPLOY / source).is_file()


def test_the_secrets_of_render_are_never_in_its_file():
    [service] = a_yaml("render.yaml")["services"]
    given = {variable.pop("key"): variable for variable in service["envVars"]}

    assert given.pop("AUTO_MIGRATE") == {"value": "1"}
    assert given == {
        "DATABASE_URL": {"sync": False},
        **{key: {"generateValue": True} for key in ("CRON_SECRET", "API_TOKEN")},
    }
    assert (service["runtime"], service["plan"]) == ("docker", "free")


def test_railway_sleeps_and_its_cron_does_not_stay():
    served, rung = (a_json(name) for name in ("railway.json", "deploy/railway-cron.json"))

    assert served["build"] == rung["build"] == {"builder": "DOCKERFILE", "dockerfilePath": "Dockerfile"}
    assert served["deploy"]["sleepApplication"] is True
    assert (rung["deploy"]["startCommand"], rung["deploy"]["restartPolicyType"]) == ("wakebell tick", "NEVER")


def test_systemd_takes_the_units(tmp_path: Path):
    for unit in UNITS:  # no program is where they say, but this one is there
        text = unit.read_text("utf-8").replace("/srv/wakebell/venv/bin/wakebell", sys.executable)
        (tmp_path / unit.name).write_text(text)
    ours = [a_unit(name) for name in ("wakebell.service", "wakebell-tick.service")]
    sandbox = [[(key, unit[key]) for key in unit if key.startswith(CONFINING)] for unit in ours]

    assert sandbox[0] == sandbox[1]
    assert ours[0]["DynamicUser"] == ["yes"]
    assert {unit["EnvironmentFile"][0] for unit in ours} == {"/etc/wakebell.env"}
    if shutil.which("systemd-analyze"):
        done = subprocess.run(
            ["systemd-analyze", "verify", *(str(tmp_path / unit.name) for unit in UNITS)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stdout + done.stderr) == (0, "")


CONFINING = (
    "Protect",
    "Private",
    "Restrict",
    "SystemCall",
    "Cap",
    "Ambient",
    "Dynamic",
    "Lock",
    "Proc",
    "UMask",
    "Memory",
)


@by_name
def test_the_shell_of_the_guides_can_be_read_by_one(page: Path):
    for block in blocks(page, "sh"):
        read = subprocess.run(["bash", "-n"], input=block, capture_output=True, text=True, check=False)
        assert (read.returncode, read.stderr) == (0, ""), block


@by_name
def test_no_secret_of_the_guides_is_on_a_command_line(page: Path):
    shell = re.sub(r"<<SQL\n.*?^SQL$", "", "\n".join(blocks(page, "sh")), flags=re.MULTILINE | re.DOTALL)
    lines = shell.replace("\\\n", " ").replace("|\n", "| ").splitlines()
    secret = re.compile(r"\$\{?(CRON_SECRET|API_TOKEN|DATABASE_URL|QSTASH_TOKEN|TOKEN|PASSWORD|HEARTBEAT_URL)\b")
    shown = [line for line in lines if secret.search(line) and not re.match(r"\(?(umask 077; )?printf ", line.strip())]

    assert [line for line in shown if not re.match(r"read -rs \w+ && printf ", line.strip())] == []


@by_name
def test_the_links_of_the_guides_lead_somewhere(page: Path):
    for target in re.findall(r"\]\((?!https?://)([^)\s]+)\)", page.read_text("utf-8")):
        path, _, anchor = target.partition("#")
        to = (page.parent / path).resolve() if path else page
        assert to.is_file(), target
        if anchor:
            assert anchor in anchors(to), target


def anchors(page: Path) -> set[str]:
    """As GitHub makes them of headings."""
    text = re.sub(r"^ *```.*?^ *```", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def costs() -> Iterator[tuple[str, list[str], str]]:
    """The rows of the table that have their arithmetic with them."""
    _, _, below = (GUIDES / "deploying.md").read_text("utf-8").partition("## What it costs\n")
    for line in below.partition("\n## ")[0].splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 5 and cells[-1].startswith("`"):
            yield cells[0], cells[1:4], cells[4].strip("`")


def worked_out(formula: str, **names: float) -> float:
    """Numbers, names, and the four operations."""
    allowed = (ast.Expression, ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Constant, ast.Name, ast.Load)
    tree = ast.parse(formula, mode="eval")
    assert all(isinstance(node, allowed) for node in ast.walk(tree)), formula
    return float(eval(compile(tree, "formula", "eval"), {"__builtins__": {}}, names))


def test_what_it_costs_is_what_its_arithmetic_says():
    rows = list(costs())
    hours: list[float] = [0, 0, 0]
    for name, cells, formula in rows:
        for column, (interval, cell) in enumerate(zip((15, 30, 60), cells, strict=True)):
            rings = 30 * 24 * 60 / interval
            value = worked_out(formula, interval=interval, rings=rings, hours=hours[column])
            [shown] = re.findall(r"^[\d,.]*\d", cell)
            digits = len(shown.partition(".")[2])
            assert f"{value:,.{digits}f}" == shown, (name, interval)
            for most in re.findall(r"of ([\d,]+)", name):
                assert (value > float(most.replace(",", ""))) == ("too many" in cell), (name, interval)
            if "hours" in name and "CU" not in name:
                hours[column] = value

    assert len(rows) == 11
