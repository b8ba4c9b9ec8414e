import json

import pytest

from sweeps.folder import SweepFolder
from sweeps.outbox import Outbox


@pytest.fixture
def outbox(folder: SweepFolder) -> Outbox:
    return Outbox(folder.outbox)


def reopened(outbox: Outbox) -> Outbox:
    return Outbox(outbox.folder)


def lines(outbox: Outbox, **which: int) -> list[dict]:
    return [line for line, _ in outbox.waiting(**which)]


def test_lines_survive_and_keep_their_order(outbox: Outbox) -> None:
    outbox.append(tags={"git": "abc"}, status="RUNNING")
    outbox.append(trial="t001", tick=1, time=1700, step=64, metrics={"fid": 1.5}, samples=b"PNG")
    outbox.append(trial="t001", params={"width": 4})

    sweep, tick, params = lines(reopened(outbox))
    assert (sweep["trial"], sweep["tick"], sweep["tags"]) == (None, 0, {"git": "abc"})
    assert tick == {
        "trial": "t001",
        "tick": 1,
        "time": 1700,
        "step": 64,
        "metrics": {"fid": 1.5},
        "samples": "t001-00001.png",
    }
    assert (outbox.folder / "t001-00001.png").read_bytes() == b"PNG"
    assert params["params"] == {"width": 4} and params["time"] > 1.7e12
    assert reopened(outbox).unsent == 3


@pytest.mark.parametrize("torn", [b'{"trial": "t0', b"\0", b'{"trial": null, "tick": 0}'])
def test_a_torn_last_line_is_cut(outbox: Outbox, torn: bytes) -> None:
    outbox.append(trial="t001", tick=1)
    with (outbox.folder / "lines.jsonl").open("ab") as file:
        file.write(torn)

    again = reopened(outbox)
    again.append(trial="t001", tick=2)
    assert [line["tick"] for line in lines(again)] == [1, 2]


def test_a_line_that_is_being_written_is_not_read(outbox: Outbox) -> None:
    outbox.append(trial="t001", tick=1)
    with (outbox.folder / "lines.jsonl").open("ab") as file:
        file.write(b'{"trial"')

    assert [line["tick"] for line in lines(outbox)] == [1]


def test_a_tick_seen_twice_is_dropped_with_its_picture(outbox: Outbox) -> None:
    outbox.append(trial="t001", tick=1, samples=b"first")
    outbox.append(trial="t001", tick=2)
    outbox.append(trial="t001", tick=2, samples=b"again")
    again = reopened(outbox)
    again.append(trial="t001", tick=1, samples=b"again")
    again.append(trial="t002", tick=1)
    again.append(trial="t001", tags={"reason": "no tick"})

    written = [(line["trial"], line["tick"]) for line in lines(again)]
    assert written == [("t001", 1), ("t001", 2), ("t002", 1), ("t001", 0)]
    assert not (outbox.folder / "t001-00002.png").exists()
    assert (outbox.folder / "t001-00001.png").read_bytes() == b"first"


def test_the_mark_moves_past_what_was_sent_and_survives(outbox: Outbox) -> None:
    for tick in range(1, 6):
        outbox.append(trial="t001", tick=tick)
    assert (outbox.sent, outbox.unsent) == (0, 5)
    (_, _), (_, mark) = outbox.waiting(most=2)
    outbox.mark_sent(mark)

    again = reopened(outbox)
    assert (again.sent, again.unsent) == (mark, 3)
    assert [line["tick"] for line in lines(again)] == [3, 4, 5]
    assert [line["tick"] for line in lines(again, most=1)] == [3]
    assert (outbox.folder / "sent").read_text() == str(mark)


@pytest.mark.parametrize("mark", [b"", b"\0\0\0", b"12x", b"\xff", b"sent"])
def test_a_damaged_mark_sends_everything_anew(outbox: Outbox, mark: bytes) -> None:
    for tick in (1, 2):
        outbox.append(trial="t001", tick=tick)
    for _, sent in outbox.waiting():
        outbox.mark_sent(sent)
    (outbox.folder / "sent").write_bytes(mark)

    again = reopened(outbox)
    assert (again.sent, again.unsent) == (0, 2)
    (_, sent), *_ = again.waiting()
    again.mark_sent(sent)
    assert (again.sent, again.unsent) == (sent, 1)


def test_ticks_of_the_sweep_are_counted_apart_from_those_of_trials(outbox: Outbox) -> None:
    outbox.append(trial="t001", tick=5)
    outbox.append(tick=1, step=1, metrics={"best_fid": 9.0})
    outbox.append(tick=1, step=1, metrics={"best_fid": 8.0})
    outbox.append(tags={"best_trial": "t001"})
    again = reopened(outbox)
    again.append(tick=1, step=1, metrics={"best_fid": 7.0})
    again.append(tick=2, step=2, metrics={"best_fid": 6.0})

    assert [line["metrics"] for line in lines(again) if "metrics" in line] == [
        {"best_fid": 9},
        {"best_fid": 6},
    ]


def test_outcomes_are_those_of_the_last_lines(outbox: Outbox) -> None:
    outbox.append(trial="t001", status="FINISHED", tags={"outcome": "pruned"})
    outbox.append(trial="t002", status="FAILED", tags={"outcome": "failed"})
    outbox.append(trial="t002", status="RUNNING")
    outbox.append(trial="t003", status="KILLED", tags={"outcome": "interrupted"})
    outbox.append(trial="t001", tags={"note": 1})

    assert outbox.outcomes == {"t001": "pruned", "t003": "interrupted"} == reopened(outbox).outcomes


def test_a_number_that_is_not_finite_is_never_written(outbox: Outbox) -> None:
    with pytest.raises(ValueError, match="JSON"):
        outbox.append(trial="t001", tick=1, metrics={"fid": float("nan")})

    assert (outbox.folder / "lines.jsonl").read_text() == ""
    outbox.append(trial="t001", tick=1, metrics={"fid": 1.0})
    assert json.loads((outbox.folder / "lines.jsonl").read_text())["metrics"] == {"fid": 1.0}


def test_what_was_refused_is_written_down_and_sent_again_from_there_by_the_next_start(outbox: Outbox) -> None:
    for tick in (1, 2, 3, 4):
        outbox.append(trial="t001", tick=tick)
    for line, mark in outbox.waiting():
        if line["tick"] in (2, 3):
            entry = outbox.note_refused(line, [f"metrics fid: {line['tick']}"])
        outbox.mark_sent(mark)
    assert entry == {"line": 3, "begins": entry["begins"], "trial": "t001", "refused": ["metrics fid: 3"]}
    written = [json.loads(line) for line in outbox.refused.read_text().splitlines()]
    assert [line["line"] for line in written] == [2, 3] and written[1] == entry
    assert outbox.unsent == 0

    again = reopened(outbox)
    again.send_refused_again()
    assert [line["tick"] for line in lines(again)] == [2, 3, 4]
    assert not again.refused.exists()
    again.send_refused_again()
    assert again.unsent == 3


def test_what_was_refused_never_moves_the_mark_forward(outbox: Outbox) -> None:
    for tick in (1, 2):
        outbox.append(trial="t001", tick=tick)
    (_, mark), _ = outbox.waiting()
    outbox.mark_sent(mark)
    for line, _ in outbox.waiting():
        outbox.note_refused(line, ["picture: why"])
    outbox.mark_sent(0)
    outbox.send_refused_again()
    assert outbox.unsent == 2
