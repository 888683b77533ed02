"""The harness's own leak detector.

Sensitive and test links are both uniform random tenths of the links. A defense that never sees the sensitive ones must
treat the two alike, so an attack finds both equally well. If it does not, something leaked.
"""

import numpy as np
import pytest
from scipy import stats

from ppgsl_bench import attacks, defenses
from ppgsl_bench.datasets import Sources, registry
from ppgsl_bench.defenses import Defense
from ppgsl_bench.metrics import roc_auc
from ppgsl_bench.split import make_split

SPLITS = 12
# Paired t-test over splits, two-sided; with the seeds fixed a false alarm would show once and for all.
FALSE_ALARM = 1e-3
OBLIVIOUS = [name for name in defenses.registry.names() if not defenses.registry.get(name).uses_sensitive]


class Leaky(Defense):
    """Publishes half of the sensitive links, as a harness that masks badly would."""

    uses_sensitive = True

    def publish(self, graph, sensitive, rng):
        leaked = rng.random(len(sensitive)) < 0.5
        return graph.with_edges(graph.edges, sensitive[leaked])


@pytest.fixture(scope="module")
def splits():
    graph = registry.get("synthetic")(n=600).load(Sources(offline=True))
    return [make_split(graph, seed) for seed in range(SPLITS)]


def difference_p_value(defense, attack, splits):
    """How likely the observed difference between sensitive and test links is if the defense treats both alike."""
    differences = []
    for i, split in enumerate(splits):
        sensitive = split.sensitive if defense.uses_sensitive else split.sensitive[:0]
        published = defense.publish(split.visible, sensitive, np.random.default_rng(i)).without_labels()
        hidden = (split.sensitive, split.negatives["uniform"])
        tested = (split.test_links, split.test_non_links)
        aucs = []
        for links, others in (hidden, tested):
            scores = attack.score(published, np.concatenate([links, others]), np.random.default_rng(i))
            aucs.append(roc_auc(np.arange(len(scores)) < len(links), scores))
        differences.append(aucs[0] - aucs[1])
    return stats.ttest_1samp(differences, 0.0).pvalue


@pytest.mark.parametrize("attack", ["ra", "edge-presence", "katz", "degree", "feature-cos"])
@pytest.mark.parametrize("defense", OBLIVIOUS)
def test_oblivious_defenses_treat_sensitive_and_test_links_alike(splits, defense, attack):
    plugin = defenses.registry.get(defense)()
    assert difference_p_value(plugin, attacks.registry.get(attack)(), splits) > FALSE_ALARM


def test_a_leak_is_noticed(splits):
    assert difference_p_value(Leaky(), attacks.registry.get("edge-presence")(), splits) < FALSE_ALARM
