"""The paper's tables, against presets and arithmetic that stand elsewhere."""

from regard.paper.cost import count_weights
from regard.paper.figures import TABLE_2, TABLE_3
from regard.presets import PRESETS
from regard.settings import preset


def test_every_row_of_table_3_is_a_preset_and_every_preset_of_it_a_row() -> None:
    assert {one.preset for one in TABLE_3} - {"paper-base"} == {name for name in PRESETS if name.startswith("table3-")}
    assert len({one.preset for one in TABLE_3}) == len(TABLE_3)


def test_printed_weights_fit_a_vocabulary_of_41000_and_36000_for_big() -> None:
    for row in TABLE_3:
        if row.millions is not None:
            vocabulary = 36_000 if row.row == "big" else 41_000
            found = count_weights(preset(row.preset).model, vocabulary) / 1e6
            assert abs(found - row.millions) < 1.0, row.preset


def test_the_transformer_is_best_and_cheapest_in_table_2() -> None:
    *others, base, big = TABLE_2
    assert big.bleu_de == max(one.bleu_de or 0 for one in TABLE_2)
    assert big.bleu_fr == max(one.bleu_fr or 0 for one in TABLE_2)
    assert base.flops_de is not None
    assert all(base.flops_de < one.flops_de for one in others if one.flops_de)
