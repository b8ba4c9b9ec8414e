"""The Inception network of December 2015, whose features the published FIDs are made of.

A frozen TensorFlow graph in one file, `classify_image_graph_def.pb`. It resizes images of any size itself,
which no other resize reproduces; keras.applications has another network of that name, whose distances are not
FID.
`prepared` has it read and freezes it, `evaluation` runs it on generated images.
"""

import hashlib
import http.client
import os
import tarfile
import time
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import tensorflow as tf

from wgangp import files
from wgangp.errors import UserError
from wgangp.features import Description

GRAPH = "classify_image_graph_def.pb"
ARCHIVE = "http://download.tensorflow.org/models/image/imagenet/inception-2015-12-05.tgz"
"""About 90 MB, of which the graph is most."""

_IMAGES, _FEATURES = "ExpandDims:0", "pool_3:0"
_LOGITS = "softmax/logits/MatMul"
_BATCH = 50  # 300x300 pixels each inside
_TIMEOUT_SECONDS = 30
_BLOCK = 1 << 16


def graph_bytes(path: str | None, *, cache: Path, say: Callable[[str], None]) -> bytes:
    """The frozen graph, from a file, else from the cache, else downloaded into it.

    Args:
        path: the graph or the archive it comes in; None: the cache or the network.
        cache: a folder, made if missing.
        say: gets a line as the download goes on.

    Raises:
        UserError: the file is no such graph, or there is none and it cannot be had.
    """
    if path is not None:
        return _read(Path(path))
    kept = cache / GRAPH
    try:
        return _read(kept)
    except UserError:  # there is none, or it is damaged
        graph = _downloaded(ARCHIVE, cache=cache, say=say)
    files.write(kept, graph)
    return graph


def sha256(graph: bytes) -> str:
    """Hex sha256 of the graph's file, by which copies of it can be told from others."""
    return hashlib.sha256(graph).hexdigest()


class Inception:
    """The network, ready to run."""

    def __init__(self, graph: bytes) -> None:
        """From the bytes of the frozen graph."""
        definition = _parsed(graph, name=GRAPH)

        def imported(images: tf.Tensor) -> None:
            tf.graph_util.import_graph_def(definition, name="", input_map={_IMAGES: images})

        # An input of its own in place of the graph's, whose batch is one image.
        images = tf.TensorSpec([None, None, None, 3], tf.float32)
        whole = tf.compat.v1.wrap_function(imported, [images])
        weights = whole.graph.get_operation_by_name(_LOGITS).inputs[1]
        self._run = whole.prune(whole.inputs[0], [whole.graph.as_graph_element(_FEATURES), weights])

    def describe(self, images: np.ndarray) -> Description:
        """Features float32 [n, 2048] and class probabilities [n, 1008] of uint8 images [n, H, W, 1 or 3].

        The probabilities are the softmax of the features times the graph's weights, as those who made the
        Inception score compute them: the graph's own end is for one image.
        """
        features, probabilities = [], []
        for first in range(0, len(images), _BATCH):
            batch = tf.cast(images[first : first + _BATCH], tf.float32)
            pooled, weights = self._run(tf.repeat(batch, 3, axis=3) if batch.shape[3] == 1 else batch)
            pooled = tf.reshape(pooled, [len(batch), -1])
            features.append(pooled.numpy())
            probabilities.append(tf.nn.softmax(pooled @ weights).numpy())
        return Description(np.concatenate(features), np.concatenate(probabilities))


def _read(path: Path) -> bytes:
    """The graph in `path`, itself or within the archive."""
    try:
        if tarfile.is_tarfile(path):
            with tarfile.open(path) as archive:
                member = next((each for each in archive if Path(each.name).name == GRAPH), None)
                file = member and archive.extractfile(member)
                if not file:
                    raise UserError(f"inception: must hold {GRAPH}, which {path} does not.")
                graph = file.read()
        else:
            graph = path.read_bytes()
    except (OSError, EOFError, tarfile.TarError, zlib.error) as error:
        raise UserError(f"inception: {path} cannot be read: {error}. Check the path.") from error
    _parsed(graph, name=str(path))
    return graph


def _parsed(graph: bytes, *, name: str) -> tf.compat.v1.GraphDef:
    definition = tf.compat.v1.GraphDef()
    try:
        definition.ParseFromString(graph)
    except Exception:  # of protobuf's own kinds, which differ by its version
        definition = tf.compat.v1.GraphDef()
    operations = {node.name for node in definition.node}
    lacks = [each for each in (_IMAGES[:-2], _FEATURES[:-2], _LOGITS) if each not in operations]
    if lacks:
        raise UserError(
            f"inception: must be the frozen graph of 2015, {GRAPH}, or its archive; {name} has no"
            f" {', '.join(lacks)}."
        )
    return definition


def _downloaded(address: str, *, cache: Path, say: Callable[[str], None]) -> bytes:
    """The graph in the archive at `address`, which lies in the cache only as long as it takes."""
    cache.mkdir(parents=True, exist_ok=True)
    archive = cache / f".{Path(address).name}.{os.getpid()}"
    say("downloading Inception")
    try:
        _fetch(address, archive, say=say)
        return _read(archive)
    except (OSError, ValueError, http.client.HTTPException, UserError) as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        if isinstance(error, UserError):
            reason = "what came is not the archive"
        reason = " ".join(str(reason).split())  # it may quote what a server said
        raise UserError(
            f"features: inception needs its graph, which cannot be downloaded ({reason}). Get {address} where"
            " there is a network, and name the file in WGANGP_INCEPTION or as train.inception."
        ) from error
    finally:
        archive.unlink(missing_ok=True)


def _fetch(address: str, path: Path, *, say: Callable[[str], None]) -> None:
    with urllib.request.urlopen(address, timeout=_TIMEOUT_SECONDS) as source, path.open("wb") as file:
        size, come, said = int(source.headers["Content-Length"] or 0), 0, time.monotonic()
        while block := source.read(_BLOCK):
            file.write(block)
            come += len(block)
            if time.monotonic() > said + 1:
                said = time.monotonic()
                of = f" of {size / 1e6:.0f}" if size else ""
                say(f"downloading Inception: {come / 1e6:.0f}{of} MB")
    if size and come != size:
        raise OSError(f"{come} of {size} bytes came")
