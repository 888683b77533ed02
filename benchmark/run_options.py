"""Options and settings that several commands have in common, each defined once.

Everything heavy is imported when it is needed, so that help and listings answer at once.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ppgsl_bench.errors import UserError

if TYPE_CHECKING:
    from ppgsl_bench.datasets import Sources

RUNNING = "How it is run"
WHERE = "Where things are"

DEFAULT_RESULTS = Path("results")
DEFAULT_TIMEOUT = "2h"
# Cells may together use this share of the machine's memory unless --memory says otherwise.
_MEMORY_SHARE = 0.9

ResultsOption = Annotated[
    Path, typer.Option("--results", help="Folder of rows and stored arrays.", rich_help_panel=WHERE)
]
DataDirOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--data-dir",
        help="Folder of raw dataset files, before $PPGSL_BENCH_DATA and the cache.",
        rich_help_panel=WHERE,
    ),
]
OfflineOption = Annotated[bool, typer.Option("--offline", help="Never touch the network.", rich_help_panel=WHERE)]
PluginOption = Annotated[
    list[Path] | None,
    typer.Option("--plugin", help="Python file that registers plugins; may be repeated.", rich_help_panel=WHERE),
]
JobsOption = Annotated[
    int | None,
    typer.Option("--jobs", min=1, help="Cells side by side; by default one a core.", rich_help_panel=RUNNING),
]
ThreadsOption = Annotated[int, typer.Option("--threads", min=1, help="Threads a cell.", rich_help_panel=RUNNING)]
DeviceOption = Annotated[str, typer.Option("--device", help="cpu, cuda or auto.", rich_help_panel=RUNNING)]
TimeoutOption = Annotated[
    str, typer.Option("--timeout", help="Time limit a cell: 90s, 10m, 2h.", rich_help_panel=RUNNING)
]
MemoryOption = Annotated[
    str | None,
    typer.Option("--memory", help="Memory limit a cell: 512M, 4G; by default a fair share.", rich_help_panel=RUNNING),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]


def cells_at_once(jobs: int | None, threads: int = 1) -> int:
    """As many as asked for, or as the cores have room for."""
    return jobs or max(1, (os.cpu_count() or 1) // threads)


def fair_share(jobs: int) -> int:
    """Bytes of memory for each of `jobs` cells side by side."""
    import psutil

    return int(_MEMORY_SHARE * psutil.virtual_memory().total / jobs)


def named_sources(data_dir: list[Path] | None, offline: bool) -> "Sources":
    """Where datasets come from, as the options say."""
    from ppgsl_bench.datasets import Sources

    for folder in data_dir or ():
        if not folder.is_dir():
            raise UserError(f"--data-dir {folder}: no such folder")
    return Sources.from_environment([folder.resolve() for folder in data_dir or ()], offline=offline)


def load_plugins(paths: Sequence[str | Path] | None) -> tuple[Path, ...]:
    """Load the files that register plugins; returns where they are, for the cells to do the same."""
    if not paths:
        return ()
    from ppgsl_bench.registry import load_plugin_file

    files = tuple(Path(path).resolve() for path in paths)
    for path in files:
        load_plugin_file(path)
    return files
