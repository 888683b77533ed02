"""A runner of cells that starts no process: for what should cost nothing but the supervisor's own work."""

from ppgsl_bench.processes import Outcome


class InProcess:
    """Takes the place of `CellProcesses` in `execute`."""

    def __init__(self, work, limits=None, capacity=1, preload=()):
        self.capacity = capacity
        self._work = work
        self._ended = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._ended.clear()

    def __len__(self):
        return len(self._ended)

    def start(self, token, request):
        message = self._work(request)
        self._ended.append((token, Outcome(message.pop("status"), message.pop("reason", ""), message)))

    def wait(self):
        ended, self._ended = self._ended, []
        return ended
