"""The comparison with ns-2: what is kept of it is what this code gives."""

import json

import compare


def test_the_kept_agreement_with_ns2_is_of_this_code() -> None:
    """`python bench/compare.py agreement` measures it anew."""
    kept = json.loads(compare.AGREEMENT.read_text())["rows"]
    assert compare.measure_agreement(30)["rows"] == kept
    assert all(row["agrees"] for row in kept)
