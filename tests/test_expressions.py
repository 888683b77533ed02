import pytest
from hypothesis import given
from hypothesis import strategies as st

from ppgsl_bench.errors import UserError
from ppgsl_bench.expressions import Expression, parse, split_list
from ppgsl_bench.plan import choose
from ppgsl_bench.quantities import format_bytes, format_duration, parse_duration, parse_seeds, parse_size


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cn", Expression("cn")),
        ("er[n=100,degree=5]", Expression("er", {"n": "100", "degree": "5"})),
        ("random[sweep]", Expression("random", {}, sweep=True)),
        ("ppgsl[sweep, k=0]", Expression("ppgsl", {"k": "0"}, sweep=True)),
        ("all[]", Expression("all")),
    ],
)
def test_parse(text, expected):
    assert parse(text) == expected


@pytest.mark.parametrize(
    "text", ["", "a[", "a]", "a[b]", "a[b=]", "a[=1]", "a[b=1]c", "a[b=1,b=2]", "a[[b=1]]", "a b", "é"]
)
def test_what_cannot_be_read_is_refused_with_the_text(text):
    with pytest.raises(UserError) as error:
        parse(text)
    assert repr(text) in str(error.value)


@given(st.text(max_size=30))
def test_any_text_is_read_or_refused(text):
    for read in (parse, split_list, parse_duration, parse_size, parse_seeds):
        try:
            read(text)
        except UserError:
            continue


def test_lists_split_outside_brackets_only():
    assert split_list("a, b[x=1,y=2],c") == ["a", "b[x=1,y=2]", "c"]
    for bad in ("a,,b", "a[x=1", "a]"):
        with pytest.raises(UserError):
            split_list(bad)


def chosen(**axes):
    names = {"datasets": ["karate"], "defenses": ["none"], "attacks": ["cn"], "utilities": [], "seeds": [0]}
    return choose(**{**names, **axes})


def test_values_are_read_by_the_types_of_the_parameters():
    (defense,) = chosen(defenses=["edgerand[epsilon=6]"]).defenses
    assert defense.epsilon == 6.0
    assert defense.label == "edgerand" or "epsilon=6" in defense.label


@pytest.mark.parametrize(
    ("axis", "text", "message"),
    [
        ("defenses", "edgerand[eps=6]", "edgerand has no parameter 'eps'; its parameters: epsilon (float"),
        ("defenses", "edgerand[epsilon=-1]", "epsilon='-1'"),
        ("defenses", "edgerand[epsilon=nan]", "epsilon='nan'"),
        ("defenses", "edgerand[epsilon=lots]", "epsilon='lots'"),
        ("attacks", "cn[sweep]", "only a defense has a sweep"),
        ("datasets", "karate[sweep]", "only a defense has a sweep"),
        ("datasets", "coraa", "did you mean 'cora'"),
        ("datasets", "er[n=ten]", "n='ten'"),
    ],
)
def test_wrong_names_and_values_are_errors_before_anything_runs(axis, text, message):
    with pytest.raises(UserError) as error:
        chosen(**{axis: [text]})
    assert message in str(error.value)


def test_all_and_tags_and_sweeps_expand():
    assert {d.name for d in chosen(defenses=["all"]).defenses} >= {"none", "random", "edgerand"}
    assert {a.name for a in chosen(attacks=["paper"]).attacks} >= {"cn", "aa", "ra"}
    curve = chosen(defenses=["random[sweep]"]).defenses
    assert len(curve) >= 4
    assert len({d.canonical for d in curve}) == len(curve)


def test_the_same_plugin_named_twice_runs_once():
    assert len(chosen(attacks=["cn", "cn", "paper"]).attacks) == len(chosen(attacks=["paper"]).attacks)


def test_quantities():
    assert (parse_duration("90s"), parse_duration("1.5h"), parse_duration("10m")) == (90, 5400, 600)
    assert (parse_size("4G"), parse_size("512M"), parse_size("1.5 GiB")) == (4 * 2**30, 2**29, 3 * 2**29)
    assert (parse_seeds("3"), parse_seeds("4,"), parse_seeds("0,7")) == ([0, 1, 2], [4], [0, 7])
    shown = [format_duration(s) for s in (0.003, 0.42, 12, 200, 7500)]
    assert shown == ["3 ms", "0.4 s", "12 s", "3 min 20 s", "2 h 5 min"]
    assert [format_bytes(b) for b in (512, 3.5 * 2**20, 5 * 2**30)] == ["512 B", "3.5 MiB", "5.0 GiB"]
