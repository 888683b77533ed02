"""What can be named on the command line, listed without importing a single plugin."""

import json
import sys
from importlib import import_module
from typing import Any

from ppgsl_bench.errors import UserError
from ppgsl_bench.registry import Registry

_PACKAGES = {
    "defenses": "ppgsl_bench.defenses",
    "attacks": "ppgsl_bench.attacks",
    "utilities": "ppgsl_bench.utilities",
    "datasets": "ppgsl_bench.datasets",
}


def entries(kind: str) -> list[list[Any]]:
    """Name and one line each."""
    if kind == "suites":
        from ppgsl_bench.suite import load_suite, suite_names

        return [[name, load_suite(name).summary] for name in suite_names()]
    package = _package(kind)
    # Even the package that holds the registry takes NumPy to import. Unless somebody did that already (a plugin file
    # has), an empty registry over the same folder reads the same names.
    loaded = sys.modules.get(package)
    registry: Registry[Any] = Registry(kind, package) if loaded is None else loaded.registry
    return [[name, _line(registry, name)] for name in registry.names()]


def describe(kind: str, name: str, *, as_json: bool) -> str:
    """Everything that is declared about one plugin or suite."""
    if kind == "suites":
        from ppgsl_bench.suite import load_suite

        document = load_suite(name).model_dump()
    else:
        document = _plugin_document(import_module(_package(kind)).registry.get(name))
    if as_json:
        return json.dumps(document, indent=2, default=str)
    return "\n".join(_described(document))


def _package(kind: str) -> str:
    if kind not in _PACKAGES:
        raise UserError(f"cannot list {kind!r}; choose from {', '.join([*_PACKAGES, 'suites'])}")
    return _PACKAGES[kind]


def _line(registry: Registry[Any], name: str) -> str:
    entry = registry.entry(name)
    tags = f" ({', '.join(sorted(entry.tags))})" if entry.tags else ""
    return f"{entry.summary}{tags}"


def _plugin_document(cls: Any) -> dict[str, Any]:
    import inspect

    document: dict[str, Any] = {
        "name": cls.name,
        "version": cls.version,
        "about": inspect.cleandoc(cls.__doc__ or ""),
        "parameters": [vars(parameter) for parameter in cls.parameters()],
    }
    for attribute in ("uses_sensitive", "knowledge", "sweep"):
        if hasattr(cls, attribute):
            value = getattr(cls, attribute)
            document[attribute] = list(map(dict, value)) if attribute == "sweep" else value
    return document


def _described(document: dict[str, Any]) -> list[str]:
    lines = []
    for key, value in document.items():
        if key == "parameters":
            lines.append("parameters:" if value else "parameters: none")
            lines += [f"  {p['name']} ({p['type']}, default {p['default']}): {p['help']}" for p in value]
        elif key == "sweep":
            lines.append("sweep, weakest to strongest:")
            lines += ["  " + (", ".join(f"{k}={v}" for k, v in setting.items()) or "defaults") for setting in value]
        elif key == "about":
            lines += ["", value, ""]
        else:
            lines.append(f"{key}: {value}")
    return lines
