import pytest

from sweeps.failures import in_one_line
from sweeps.records import TrialFailed
from wgangp.wording import error_words

GRAPH_ERROR = """Graph execution error:

Detected at node while/adam_1/CollectiveReduceV2 defined at (most recent call last):
File "train.py", line 8, in <module>

  File "update.py", line 87, in step

Collective ops is aborted by: no heartbeat
The error could be from a previous operation. Restart your program to reset.
\t [[{{node while/adam_1/CollectiveReduceV2}}]] [Op:__inference_steps_2863]"""


@pytest.mark.parametrize(
    ("said", "line"),
    [
        ("no\n  room", "ValueError: no room"),
        ("", "ValueError:"),
        ('File "x"', 'ValueError: File "x"'),
        (
            GRAPH_ERROR,
            "ValueError: Collective ops is aborted by: no heartbeat"
            " The error could be from a previous operation. Restart your program to reset.",
        ),
    ],
)
def test_an_error_is_told_in_one_line_without_where_in_a_graph_it_arose(said: str, line: str) -> None:
    assert error_words(ValueError(said)) == line
    with pytest.raises(TrialFailed) as caught, in_one_line():
        raise ValueError(said)
    assert str(caught.value) == line
