import pytest

from ppgsl_bench.errors import UserError
from ppgsl_bench.plan import choose
from ppgsl_bench.quantities import parse_duration
from ppgsl_bench.suite import load_suite, suite_names


def test_the_promised_suites_are_there_and_every_name_in_them_resolves():
    assert set(suite_names()) >= {"quick", "smoke", "paper", "scale"}
    for name in suite_names():
        suite = load_suite(name)
        choice = choose(
            datasets=suite.datasets,
            defenses=suite.defenses,
            attacks=suite.attacks,
            utilities=suite.utilities,
            seeds=range(1),
        )
        assert choice.datasets
        assert choice.defenses
        assert parse_duration(suite.timeout) > 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("summary = ", "not valid TOML"),
        ('summary = "x"', "datasets: Field required"),
        ('summary = "x"\ndatasets = []\ndefenses = []\nattacks = []\nutilities = []\nseed = 1', "seed: Extra inputs"),
    ],
)
def test_a_bad_suite_file_is_refused_with_the_reason(tmp_path, text, message):
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(UserError, match=message):
        load_suite(str(path))


def test_unknown_suites_get_a_suggestion(tmp_path):
    with pytest.raises(UserError, match="did you mean 'quick'"):
        load_suite("quik")
    with pytest.raises(UserError, match="no such file"):
        load_suite(str(tmp_path / "absent.toml"))
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UserError, match="not a text file"):
        load_suite(str(tmp_path / "binary.toml"))
