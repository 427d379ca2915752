"""The bug clinic's task, its examinations and its pictures."""

import pytest
import torch

import aiayn
from aiayn_book import clinic
from aiayn_book.chapters import bug_clinic as chapter
from tests.book.chapters.drawings import check_words

BELOW = torch.ones(5, 5, dtype=torch.bool).tril(-1)


@pytest.mark.parametrize(
    "drawing",
    [
        chapter.three_computations(),
        chapter.changes_maps({"correct": BELOW, "patient 2": ~BELOW}),
    ],
)
def test_words_stay_inside(drawing):
    check_words(drawing)


def test_targets_are_the_letters_backwards():
    batch = chapter.draw(20, seed=5)
    for source, target in zip(
        batch.source.tolist(), batch.target.tolist(), strict=True
    ):
        length = source.index(chapter.END)
        assert 3 <= length <= 6
        assert target[:length] == source[:length][::-1]
        assert target[length:] == source[length:]


def test_a_row_is_spelled_with_dots_for_its_end():
    assert chapter.spell([3, 4, 12, chapter.END, chapter.PAD]) == "abj··"


def test_admission_tells_who_learns_alike():
    """Patient 4 learns something else; patient 5 only writes otherwise."""
    found = chapter.admission({n: clinic.admit(n) for n in (4, 5)}, (1,), steps=2)
    weights = {row["patient"]: row["weights"] for row in found.rows}
    assert weights == {
        "correct": chapter.ALIKE,
        "4": chapter.DIFFERENT,
        "5": chapter.ALIKE,
    }
    assert found.of("5", "held-out loss") == found.of("correct", "held-out loss")


def test_symptoms_are_read_from_the_numbers():
    def row(patient, loss, right):
        numbers = {"training loss": 0.1, "held-out loss": loss, "rows right": right}
        return {"patient": patient, "seed": 1, "weights": chapter.ALIKE} | numbers

    rows = [row("correct", 0.1, 0.8), row("1", 0.3, 0.8), row("2", 0.1, 0.8)]
    found = chapter.Admission(rows)
    assert found.with_a_bad_loss() == [1]
    assert found.without_a_symptom() == [2]


def test_patients_1_and_11_agree_where_the_root_does_not_matter():
    first, eleventh = clinic.admit(1), clinic.admit(11)
    assert chapter.largest_weight(first, 1) == chapter.largest_weight(aiayn, 1)
    assert chapter.largest_weight(first, 64) > 2 * chapter.largest_weight(aiayn, 64)
    flat = [chapter.largest_weight_of_heads(lib, 1) for lib in (eleventh, aiayn)]
    assert flat[0] == pytest.approx(flat[1])


def test_layer_norms_differ_by_half_a_part_in_the_width():
    gap = chapter.difference_of_logits(clinic.admit(7), 64)
    assert gap == pytest.approx(1 / 128, rel=0.15)


def test_a_schedule_per_batch_is_ahead_by_the_number_of_batches():
    right, patient = (chapter.rates(x, 4, 24) for x in (aiayn, clinic.admit(8)))
    assert patient[:6] == pytest.approx(right[3:24:4])


def test_only_copies_start_alike():
    born = {
        n: chapter.similarities(lib, steps=1)[0]
        for n, lib in ((0, aiayn), (9, clinic.admit(9)))
    }
    assert born[9] == pytest.approx(1)
    assert born[0] < 0.3


def test_padding_costs_patient_13_only():
    right, patient = (
        [chapter.loss_with_padding(lib, extra) for extra in (0, 10)]
        for lib in (aiayn, clinic.admit(13))
    )
    assert right[0] == pytest.approx(right[1])
    assert patient[1] > 1.5 * patient[0]
