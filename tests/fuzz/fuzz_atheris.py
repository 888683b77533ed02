"""Coverage-guided fuzzing of one reader with atheris (pip install atheris), for as long as you like.

python tests/fuzz/fuzz_atheris.py "packed rows" -max_total_time=600
"""

import os
import sys
import tempfile
from pathlib import Path

import atheris

sys.path += [str(Path(__file__).parent), str(Path(__file__).parents[1])]

with atheris.instrument_imports(include=["ppgsl_bench", "tomllib"]):
    from readers import READERS
    from samples import samples


def main():
    name = sys.argv.pop(1)
    corpus = Path(tempfile.mkdtemp(prefix="fuzz-"))
    for i, content in enumerate(samples()[name]):
        (corpus / str(i)).write_bytes(content)
        READERS[name](content)  # imports what it needs, which would pass for a hang
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    # What it finds is written beside the corpus, not into the folder that it is started in.
    atheris.Setup([*sys.argv, f"-artifact_prefix={corpus}/", str(corpus)], READERS[name])
    atheris.Fuzz()


if __name__ == "__main__":
    main()
