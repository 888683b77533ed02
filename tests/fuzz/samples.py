"""Valid input for each reader, to be damaged."""

import gzip
import io
import json
import sqlite3
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
from leaderboard_rows import board
from readers import sample_archive

from ppgsl_bench.leaderboard.packed import pack
from ppgsl_bench.store import Results

# What tends to upset readers, to be put in at random places.
NASTY = [
    *(
        b"\x00",
        b"\xff\xfe",
        b"\r",
        b"\n",
        b'"',
        b"'",
        b"[",
        b"]",
        b"[[",
        b"{",
        b"}",
        b",",
        b"=",
        b"-1",
        b"NaN",
        b"1e999",
    ),
    *(
        b"../../../etc/passwd",
        b"/etc/passwd",
        b"null",
        b"true",
        b"9" * 400,
        b"[" * 3000,
        b"\xed\xa0\x80",
        b"__import__",
    ),
    *(b"seed", b"metrics", b"source", b"status", b"ok", b"0" * 64, b"<!ENTITY a 'b'>", b"sweep", b"ogb:", b".csv"),
]

SUITE = b"""summary = "x"
datasets = ["karate"]
defenses = ["none"]
attacks = ["cn"]
utilities = []
seeds = [0, 1]
"""
GRAPHML = b"""<?xml version="1.0"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><graph edgedefault="undirected">
<node id="a"/><node id="b"/><edge source="a" target="b"/></graph></graphml>
"""


@cache
def samples():
    # Few rows: what is read at each try is small, so that many tries fit into a minute.
    rows = board(datasets=("one",), defenses=("soft",), seeds=1, settings=1)
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        pack(rows, place / "rows.jsonl.gz", "somebody")
        packed = (place / "rows.jsonl.gz").read_bytes()
        with Results(place).writing() as results:
            for row in rows[:6]:
                results.put(row)
        with sqlite3.connect(place / "rows.sqlite") as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.close()
        database = (place / "rows.sqlite").read_bytes()
    arrays = io.BytesIO()
    np.savez(arrays, edges=np.array([[0, 1], [1, 2]]), num_nodes=np.array(3), x=np.eye(3), y=np.arange(3))
    attack = next(row for row in rows if row.kind == "attack")
    return {
        "expressions": [b"random[rate=0.5],cn", b"edgerand[sweep,epsilon=6]", b"1.5h", b"512M", b"0,3,"],
        "plugin names": [
            b"random[rate=0.5]",
            b"edgerand[sweep]",
            b"er[n=100,degree=5]",
            b"paper",
            b"all",
            b"cn",
            b"ogb:",
        ],
        "suite": [SUITE],
        "suite name": [b"quick", b"paper", b"mine.toml", b"../mine.toml"],
        "packed rows": [gzip.decompress(packed)],
        "packed file": [packed],
        "archive": [sample_archive(rows)],
        "stored row": [attack.to_json().encode(), json.dumps({"key": "k"}).encode()],
        "database": [database],
        "stored arrays": [arrays.getvalue()],
        "graph.csv": [b"source,target,weight\na,b,1\nb,c,2.5\n", b"1,2\n2,3\n"],
        "graph.txt": [b"# links\n1 2\n2 3\n3 1\n"],
        "graph.graphml": [GRAPHML],
        "graph.gml": [b"graph [ node [ id 0 label 0 ] node [ id 1 label 1 ] edge [ source 0 target 1 weight 2 ] ]"],
        "graph.npz": [arrays.getvalue()],
    }
