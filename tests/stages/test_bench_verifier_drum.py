"""bin/bench verifier: DRUM against a Python set."""

import numpy as np
import pyarrow as pa
import pytest

from bench.verifier.peers.drum import CHECK, CHECK_UPDATE, UPDATE, Drum
from bench.verifier.stream import Stream
from tests.stages.test_bench_verifier import SMALL, play


class Model:
    """What DRUM must answer: a dictionary, asked in order."""

    def __init__(self):
        self.values, self.answers = {}, []

    def ask(self, operation, keys, value, texts):
        for key, text in zip(keys.tolist(), texts):
            if operation & CHECK:
                self.answers.append((key, key not in self.values, text))
            if operation & UPDATE:
                self.values[key] = value


@pytest.mark.parametrize("merge_bytes", [1, 2_000, 1 << 30])
def test_drum_checks_updates_and_answers_in_the_order_of_asking(merge_bytes, tmp_path):
    random = np.random.default_rng(5)
    answers = []
    drum = Drum(
        tmp_path,
        buckets=4,
        array_rows=16,
        merge_bytes=merge_bytes,
        on_answer=lambda keys, unique, texts: answers.extend(zip(keys.tolist(), unique.tolist(), texts)),
    )
    model = Model()
    for step in range(30):
        keys = random.integers(0, 60, 25).astype(np.uint64) * np.uint64(0x0421_0842_1084_2108)
        operation = (CHECK, UPDATE, CHECK_UPDATE)[step % 3]
        texts = [f"{step}-{place}" for place in range(len(keys))]
        drum.ask(operation, keys, step, pa.array(texts) if operation & CHECK else None)
        model.ask(operation, keys, step, [text.encode() for text in texts])
    drum.merge()

    def by_bucket(rows):
        return {bucket: [row for row in rows if row[0] >> 62 == bucket] for bucket in range(4)}

    assert by_bucket(answers) == by_bucket(model.answers)  # first in, first out, within a bucket
    stored = [bucket.read_z() for bucket in drum._buckets]
    assert {int(key): int(value) for z in stored for key, value in zip(z["key"], z["value"])} == model.values
    drum.close()


def test_drum_shares_the_passes_over_its_repository_among_batches(tmp_path):
    drum = Drum(tmp_path, buckets=2, array_rows=10, merge_bytes=1 << 20)
    batch = next(batch for _, batch in play(Stream(SMALL), 1))
    drum.take(batch)
    shared_s, alone_s = drum.share_merge(len(batch))
    assert 0 < shared_s < alone_s
    assert drum.unique == SMALL.extracted
    drum.close()
