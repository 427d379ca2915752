"""What the page of speed says of trainings on a GPU follows from their records."""

from aiayn_site import gpu_runs


def a_run(row, seed, perplexity, seconds=20.0):
    return {
        "row": row,
        "seed": seed,
        "perplexity": perplexity,
        "wall_seconds": seconds,
    }


def a_translator(bleu, seconds, command_seconds=0.0, seed=1, width=7):
    return {
        "config": {"seed": seed, "steps": 8000, "model": {"d_ff": width}},
        "log": [
            {"machine": {"gpu": "NVIDIA T4"}},
            {"step": 8000, "seconds": seconds},
        ],
        "test": {"bleu": bleu},
        "command_seconds": command_seconds,
    }


def test_translators_stand_beside_those_of_a_processor():
    ours = [a_translator(39.5, 30.4, 99.6), a_translator(40.7, 31.2, 90.1, seed=2)]
    others = [a_translator(40.0, 600.0, width=5), a_translator(41.26, 1200.0)]
    said = gpu_runs.translator_words(ours, others)
    assert "but with 7 numbers inside of a feed-forward network instead of 5" in said
    assert "2 times on one NVIDIA T4, with seeds 1, 2: 8,000 steps" in said
    assert "took 30 to 31 seconds" in said
    assert "averaged weights, 90 to 100." in said
    assert "they have 39.5 to 40.7 BLEU, 40.1 in the mean" in said
    assert "with 2 seeds, have 40.0 to 41.3, 40.6 in the mean, after 10 to 20" in said


def test_widths_stand_with_the_scores_of_their_seeds():
    runs = [
        {"d_ff": width, "seed": seed, "bleu": bleu}
        for width, seed, bleu in ((5, 1, 40.04), (5, 2, 39.0), (7, 1, 40.26))
    ]
    tested = [{"d_ff": 5, "test_bleu": 38.0}, {"d_ff": 5, "test_bleu": 39.0}]
    now = [a_translator(40.0, 30.0)]
    said = gpu_runs.width_words(
        {"steps": 12000, "runs": runs, "tested_before": tested}, now
    )
    assert "after 12,000 steps with other seeds, the two widths have" in said
    assert "with 5, 40.0 and 39.0; with 7, 40.3." in said
    assert "means differ by 0.7, and seeds of one width by up to 1.0" in said
    assert "2 runs with 5 numbers inside had been scored on test2016" in said
    assert "38.0, 39.0 BLEU, beside 40.0 now" in said
    assert "mean of all 3 runs on test2016 is 39.0" in said


def test_a_table_stands_beside_the_same_rows_of_a_processor():
    """Of one row (8 + 10) / 2 is 0.9 times 10, of the other 12 twice 6."""
    on_a_gpu = {
        "machines": [{"gpu": "NVIDIA T4"}],
        "stopped_after_seconds": 50,
        "runs": [
            a_run("base", 1, 8.0, 20.4),
            a_run("base", 2, 10.0),
            a_run("big", 1, 12.0, 30.0),
        ],
    }
    on_a_processor = {
        "runs": [a_run("base", 1, 10.0), a_run("big", 1, 6.0), a_run("A h=1", 1, 1.0)]
    }
    said = gpu_runs.table_words(on_a_gpu, on_a_processor)
    assert "after 50 seconds, 3 of its 3 runs were done, 2 rows" in said
    assert "One took 20 to 30 seconds" in said
    assert "0.90 to 2.00 times" in said
