"""docs/architecture.md is true: the rooms, what each may import, and that tools stay thin."""

import ast
import subprocess
import sys

import pytest
from conftest import ROOT

PACKAGE = ROOT / "srvit_backbone"
# Rooms of the house from the ground up. What stands on one line knows nothing of its neighbours.
FLOORS = (
    ("core",),
    ("own_data", "training", "mini_datasets"),
    ("analysis",),
    ("detectron2", "openmmlab", "pretrain"),
    ("any_model",),
    ("deployment",),
    ("studies",),
)
FLOOR = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}
# What a room needs installed to be imported; all of what it uses further is imported where it is
# used.
LIBRARIES = {
    "core": {"torch", "timm", "numpy", "safetensors"},
    "own_data": {"numpy", "PIL", "yaml", "tqdm"},
}
TOOLS = sorted((ROOT / "tools").glob("*.py"))


def room_of(module):
    """ "srvit_backbone.own_data.coco" -> "own_data"; the files at the top are the core."""
    parts = module.split(".")
    if len(parts) > 1 and parts[1] in FLOOR and (PACKAGE / parts[1]).is_dir():
        return parts[1]
    return "core"


def modules():
    for path in sorted(PACKAGE.rglob("*.py")):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        yield name, ast.parse(path.read_text(encoding="utf-8"))


def imported(nodes):
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module


def test_every_folder_is_a_room_of_the_plan():
    folders = {path.parent.name for path in PACKAGE.glob("*/*.py")} - {"checkpoint"}
    assert folders == FLOOR.keys() - {"core"}
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    for room in folders:
        assert f"`{room}/`" in page, room


def test_imports_go_down_only():
    wrong = []
    for name, tree in modules():
        own = room_of(name)
        for target in imported(ast.walk(tree)):
            if not target.startswith("srvit_backbone"):
                continue
            other = room_of(target)
            if other != own and FLOOR[other] >= FLOOR[own]:
                wrong.append(f"{name} imports {target}")
    assert wrong == []


@pytest.mark.parametrize("room", LIBRARIES)
def test_a_room_needs_no_more_than_it_says(room):
    allowed = LIBRARIES[room] | {"srvit_backbone"} | set(sys.stdlib_module_names)
    wrong = [
        f"{name} imports {target}"
        for name, tree in modules()
        if room_of(name) == room
        for target in imported(tree.body)
        if target.split(".")[0] not in allowed
    ]
    assert wrong == []


def test_files_are_small():
    longest = {str(p.relative_to(ROOT)): len(p.read_text().splitlines()) for p in TOOLS}
    # It has to work where the package cannot even be imported.
    del longest["tools/doctor.py"]
    assert {name: count for name, count in longest.items() if count > 110} == {}
    sizes = {str(p): len(p.read_text().splitlines()) for p in PACKAGE.rglob("*.py")}
    assert {name: count for name, count in sizes.items() if count > 300} == {}


@pytest.mark.parametrize("path", TOOLS, ids=lambda path: path.stem)
def test_help_imports_nothing_heavy(path):
    """Which is what makes it answer at once."""
    code = (
        "import runpy, sys\n"
        f"sys.argv = [{str(path)!r}, '--help']\n"
        "try:\n"
        f"    runpy.run_path({str(path)!r}, run_name='__main__')\n"
        "except SystemExit as end:\n"
        "    assert not end.code, end.code\n"
        "heavy = {'torch', 'timm', 'numpy', 'detectron2', 'mmengine'} & sys.modules.keys()\n"
        "assert not heavy, heavy\n"
    )
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, process.stderr
    assert "usage:" in process.stdout
