"""The canonical network, by a small graph of the same names: no weights are to be had without a network."""

import http.server
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from tests.wgangp.inception_graph import CLASSES, FEATURES, archive, graph
from wgangp import inception, networks
from wgangp.config import TrainConfig
from wgangp.errors import UserError
from wgangp.inception import GRAPH, Inception, graph_bytes
from wgangp.prepared import Prepared, freeze, prepare
from wgangp.randomness import Purpose
from wgangp.trainer import Trainer, score_winner

GRAPH_2015 = graph()
NOISE = np.random.default_rng(0).bytes(300_000)


def images(count: int, height: int = 13, width: int = 17, channels: int = 3) -> np.ndarray:
    random = np.random.default_rng(height)
    return random.integers(0, 256, size=(count, height, width, channels), dtype=np.uint8)


def one_by_one(pictures: np.ndarray, tensor: str) -> np.ndarray:
    """What the graph itself says of each image, fed as the published implementations feed it."""
    definition = tf.compat.v1.GraphDef.FromString(GRAPH_2015)
    with tf.Graph().as_default() as whole:
        tf.graph_util.import_graph_def(definition, name="")
        with tf.compat.v1.Session(graph=whole) as session:
            found = [session.run(tensor, {"ExpandDims:0": picture[None]}) for picture in pictures]
    return np.concatenate(found).reshape(len(pictures), -1)


@pytest.mark.parametrize(("count", "height", "width"), [(1, 8, 8), (3, 28, 28), (103, 13, 17), (2, 40, 25)])
def test_batches_of_any_size_give_the_features_of_the_graph(count: int, height: int, width: int) -> None:
    pictures = images(count, height, width)

    found = Inception(GRAPH_2015).describe(pictures)
    assert found.features.shape == (count, FEATURES) and found.probabilities.shape == (count, CLASSES)
    np.testing.assert_allclose(found.features, one_by_one(pictures, "pool_3:0"), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found.probabilities, one_by_one(pictures, "softmax:0"), rtol=1e-4, atol=1e-6)


def test_grey_images_go_in_with_their_channel_repeated() -> None:
    grey = images(5, channels=1)

    found, repeated = (Inception(GRAPH_2015).describe(each) for each in (grey, np.repeat(grey, 3, axis=3)))
    np.testing.assert_array_equal(found.features, repeated.features)
    assert found.features.std(axis=0).max() > 0


def test_the_file_may_be_the_graph_or_its_archive(tmp_path: Path) -> None:
    for name, content in (("a.pb", GRAPH_2015), ("a.tgz", archive(GRAPH_2015))):
        (tmp_path / name).write_bytes(content)
        assert graph_bytes(str(tmp_path / name), cache=tmp_path, say=print) == GRAPH_2015


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "cannot be read: .*No such file"),
        (b"", "has no ExpandDims, pool_3, softmax/logits/MatMul"),
        (b"\x08\xff\xff not a graph", "has no ExpandDims, pool_3, softmax/logits/MatMul"),
        (GRAPH_2015.replace(b"pool_3", b"pool_4"), "has no pool_3"),
        (archive(GRAPH_2015, name="other.pb"), f"must hold {GRAPH}, which .* does not"),
        (archive(GRAPH_2015)[: len(archive(GRAPH_2015)) // 2], "cannot be read: "),
        (archive(NOISE)[:150_000] + b"\xff" * 150_000, "cannot be read: "),  # damaged within
    ],
)
def test_a_file_that_is_no_such_graph_is_refused_in_a_line(
    tmp_path: Path, content: bytes | None, says: str
) -> None:
    path = tmp_path / "given"
    if content is not None:
        path.write_bytes(content)

    with pytest.raises(UserError, match=says) as caught:
        graph_bytes(str(path), cache=tmp_path / "cache", say=print)
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)


class Server:
    """A web server on loopback that answers with `content`, or less of it than it said."""

    def __init__(self) -> None:
        self.content, self.status, self.missing = archive(GRAPH_2015), 200, 0
        self.manner = "length"
        self.asked = 0
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                outer.asked += 1
                self.close_connection = True
                if outer.manner == "no http":
                    self.wfile.write(b"220 mail\r\n")
                    return
                self.send_response(outer.status)
                if outer.manner == "chunks":
                    self.send_header("Transfer-Encoding", "chunked")
                else:
                    self.send_header("Content-Length", str(len(outer.content)))
                self.end_headers()
                if outer.manner == "chunks":
                    self.wfile.write(f"{len(outer.content):x}\r\n".encode())
                self.wfile.write(outer.content[: len(outer.content) - outer.missing])

            def log_message(self, *arguments: Any) -> None: ...

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self._server.server_port}/inception.tgz"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    made = Server()
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr(inception, "ARCHIVE", made.address)
    yield made
    made.close()


def test_the_archive_is_downloaded_once(server: Server, tmp_path: Path) -> None:
    said: list[str] = []
    for _ in range(2):
        assert graph_bytes(None, cache=tmp_path / "cache", say=said.append) == GRAPH_2015

    assert server.asked == 1 and said[0] == "downloading Inception"
    assert [path.name for path in (tmp_path / "cache").iterdir()] == [GRAPH]


def test_a_long_download_says_how_far_it_is(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter(range(0, 10_000, 2))
    monkeypatch.setattr("wgangp.inception.time.monotonic", lambda: next(clock))
    said: list[str] = []
    graph_bytes(None, cache=tmp_path, say=said.append)

    assert said[1] == "downloading Inception: 0 of 0 MB"  # of a small one


def test_a_damaged_copy_in_the_cache_is_downloaded_again(server: Server, tmp_path: Path) -> None:
    (tmp_path / GRAPH).write_bytes(GRAPH_2015[:100])

    assert graph_bytes(None, cache=tmp_path, say=print) == GRAPH_2015
    assert (tmp_path / GRAPH).read_bytes() == GRAPH_2015


@pytest.mark.parametrize(
    "fault", ["half", "half a chunk", "no http", "missing", "no server", "not it", "a page"]
)
def test_a_download_that_fails_says_what_to_do_and_leaves_nothing(
    server: Server, tmp_path: Path, fault: str
) -> None:
    match fault:
        case "half":
            server.missing = 100
        case "half a chunk":
            server.missing, server.manner = 100, "chunks"
        case "no http":
            server.manner = "no http"
        case "a page":
            server.content = b"<html>Sign in</html>"
        case "missing":
            server.status = 404
        case "not it":
            server.content = archive(b"words")
        case _:
            server.close()

    with pytest.raises(UserError) as caught:
        graph_bytes(None, cache=tmp_path, say=lambda line: None)
    said = str(caught.value)
    assert "\n" not in said
    assert said.startswith("features: inception needs its graph, which cannot be downloaded (")
    assert (" bytes came). " in said) == (fault == "half")
    assert server.address in said and "WGANGP_INCEPTION" in said and "train.inception" in said
    assert not list(tmp_path.iterdir())


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "graph.pb"
    path.write_bytes(GRAPH_2015)
    return path


@pytest.fixture
def by_inception(
    settings: Callable[..., TrainConfig], cache: Path, file: Path
) -> tuple[TrainConfig, Prepared]:
    names = ["fid", "kid", "precision", "recall", "density", "coverage", "inception_score"]
    config = settings(features="inception", inception=str(file), scores=names, fid_samples=20)
    return config, prepare(config, cache=cache, say=lambda line: None)


def test_what_was_used_is_told_and_frozen(
    by_inception: tuple[TrainConfig, Prepared], prepared: Prepared, cache: Path, file: Path, tmp_path: Path
) -> None:
    config, made = by_inception
    facts = made.facts
    assert (facts["features"], facts["inception_bytes"]) == ("inception-2015", len(GRAPH_2015))
    assert facts["inception_sha256"] == inception.sha256(GRAPH_2015)
    assert str(facts["inception_sha256"])[:16] in str(facts["scored_in"])
    assert "features_accuracy" not in facts and facts["features_sha256"] != prepared.facts["features_sha256"]
    assert made.reference.gaussian.count == facts["reference_images"] == 1618

    freeze(made, tmp_path / "features")
    file.unlink()  # a resume needs it no more
    again = prepare(config, cache=cache, frozen=tmp_path / "features", say=lambda line: None)
    assert again.facts == facts


def test_a_part_is_scored_against_the_whole_from_the_first_time_on(
    by_inception: tuple[TrainConfig, Prepared], tmp_path: Path
) -> None:
    config, made = by_inception
    part = prepare(config.model_copy(update={"train_images": 200}), cache=tmp_path, say=lambda line: None)

    assert part.facts == made.facts | {"train_images": 200}


@pytest.mark.parametrize(
    ("kind", "named", "other", "got"),
    [
        ("inception", "inception-2015", "classifier", "classifier-digits"),
        ("classifier", "classifier-digits", "inception", "inception-2015"),
    ],
)
def test_frozen_features_of_another_kind_are_refused(
    by_inception: tuple[TrainConfig, Prepared],
    prepared: Prepared,
    settings: Callable[..., TrainConfig],
    cache: Path,
    tmp_path: Path,
    kind: str,
    named: str,
    other: str,
    got: str,
) -> None:
    freeze(by_inception[1] if kind == "inception" else prepared, tmp_path / "features")

    with pytest.raises(UserError) as caught:
        prepare(settings(features=other), cache=cache, frozen=tmp_path / "features", say=lambda line: None)
    assert caught.value.problems == (
        f"{tmp_path / 'features'}: the frozen features are others: features must be {named}, got {got}.",
    )


def test_another_graph_is_another_reference(
    by_inception: tuple[TrainConfig, Prepared], cache: Path, file: Path
) -> None:
    config, made = by_inception
    file.write_bytes(graph(seed=1))
    other = prepare(config, cache=cache, say=lambda line: None)

    assert other.facts["features_sha256"] != made.facts["features_sha256"]
    assert not np.allclose(other.reference.gaussian.mean, made.reference.gaussian.mean)


def test_a_trial_is_scored_by_inception_to_the_end(
    by_inception: tuple[TrainConfig, Prepared], tmp_path: Path
) -> None:
    config, made = by_inception
    trainer = Trainer(made)
    trainer.start(config)
    metrics = trainer.advance().metrics
    trainer.save(tmp_path / "checkpoint")
    fresh = score_winner(made, config, tmp_path / "checkpoint", folder=tmp_path / "best")

    assert {"kid_standard_error", "density", "inception_score"} <= metrics.keys() & fresh.keys()
    assert 1 <= metrics["inception_score"] <= CLASSES
    assert all(np.isfinite(value) for value in (*metrics.values(), *fresh.values()))
    assert "sure_samples" not in fresh  # these are not the classes of the data set
    fakes = np.concatenate(list(trainer._samples(20, Purpose.FID_NOISE)))
    expected = Inception(GRAPH_2015).describe(networks.to_data(fakes)).features
    assert metrics["diversity"] == pytest.approx(
        expected.var(axis=0, ddof=1).sum() / made.reference.gaussian.covariance.trace(), rel=1e-4
    )


def test_the_environment_names_the_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WGANGP_INCEPTION", "a/graph.pb")

    assert TrainConfig(features="inception").resolved().inception == str(tmp_path / "a" / "graph.pb")
    assert TrainConfig(features="inception", inception="/b.pb").resolved().inception == "/b.pb"
    assert TrainConfig().resolved().inception is None
