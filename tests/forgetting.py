"""Plugin files leave no trace beyond the test that loaded them."""

import sys
from contextlib import contextmanager

from ppgsl_bench import attacks, defenses

# How `load_plugin_file` names the modules that it makes.
PREFIX = "ppgsl_bench_plugin_"


@contextmanager
def forgetting_plugin_files():
    """Forget, before and after, what plugin files have registered; what belongs to the package itself is kept."""
    _forget()
    try:
        yield
    finally:
        _forget()


def _forget():
    for registry in (defenses.registry, attacks.registry):
        for name, cls in list(registry._classes.items()):
            if cls.__module__.startswith(PREFIX):
                del registry._classes[name]
                del registry._entries[name]
    for name in [name for name in sys.modules if name.startswith(PREFIX)]:
        del sys.modules[name]
