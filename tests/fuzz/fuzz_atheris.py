"""Coverage-guided fuzzing of one reader with atheris (pip install atheris), for as long as you like.

python tests/fuzz/fuzz_atheris.py "packed rows" -max_total_time=600

With RECORD=FILE in the environment, the number of inputs and the time are put into that file, which is JSON.
"""

import json
import os
import sys
import tempfile
import time
from pathlib import Path

import atheris

sys.path += [str(Path(__file__).parent), str(Path(__file__).parents[1])]

with atheris.instrument_imports(include=["ppgsl_bench", "tomllib"]):
    from readers import READERS
    from samples import samples


# In memory, where there is such a folder: syncing and removing files takes longer than reading them.
MEMORY = Path("/dev/shm")


def recorded(name, file):
    """The reader; what it has been through is noted every second, and at once when it fails."""
    if not file:
        return READERS[name]
    begun = noted = time.monotonic()
    inputs = 0

    def note(**more):
        document = json.loads(Path(file).read_text()) if Path(file).exists() else {}
        seconds = round(time.monotonic() - begun)
        known = document.get(name, {"found": "nothing"})
        document[name] = {**known, "inputs": inputs, "seconds": seconds, **more}
        Path(file).write_text(json.dumps(document, indent=2) + "\n")

    def read(data):
        nonlocal inputs, noted
        inputs += 1
        try:
            READERS[name](data)
        except BaseException as error:
            note(found=f"{type(error).__name__}: {error}")
            raise
        if time.monotonic() - noted > 1:
            noted = time.monotonic()
            note()

    return read


def main():
    name = sys.argv.pop(1)
    if MEMORY.is_dir():
        tempfile.tempdir = str(MEMORY)
    corpus = Path(tempfile.mkdtemp(prefix="fuzz-"))
    for i, content in enumerate(samples()[name]):
        (corpus / str(i)).write_bytes(content)
        READERS[name](content)  # imports what it needs, which would pass for a hang
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    # What it finds is written beside the corpus, not into the folder that it is started in.
    atheris.Setup([*sys.argv, f"-artifact_prefix={corpus}/", str(corpus)], recorded(name, os.environ.get("RECORD")))
    atheris.Fuzz()


if __name__ == "__main__":
    main()
