"""A small frozen graph with the tensor names and the fixed batch of Inception's of 2015."""

import io
import tarfile

import numpy as np
import tensorflow as tf

from wgangp.inception import GRAPH

FEATURES, CLASSES, SIDE = 12, 7, 20


def graph(*, seed: int = 0) -> bytes:
    """JPEG -> one image of SIDE x SIDE -> FEATURES -> CLASSES, as the real one with other numbers."""
    random = np.random.default_rng(seed)
    v1 = tf.compat.v1
    with tf.Graph().as_default() as made:
        contents = v1.placeholder(tf.string, [], "DecodeJpeg/contents")
        decoded = tf.io.decode_jpeg(contents, channels=3, name="DecodeJpeg")
        one = tf.expand_dims(tf.cast(decoded, tf.float32, name="Cast"), 0, name="ExpandDims")
        resized = v1.image.resize_bilinear(one, [SIDE, SIDE], name="ResizeBilinear")
        scaled = tf.multiply(tf.subtract(resized, 128.0, name="Sub"), 1 / 128, name="Mul")
        kernel = tf.constant(random.normal(size=(5, 5, 3, FEATURES)), tf.float32, name="conv/conv2d_params")
        mapped = tf.nn.relu(tf.nn.conv2d(scaled, kernel, 2, "SAME", name="conv/Conv2D"), name="conv")
        side = SIDE // 2
        pooled = tf.nn.avg_pool2d(mapped, side, 1, "VALID", name="pool_3")
        flat = tf.reshape(pooled, [1, FEATURES], name="pool_3/_reshape")
        weights = tf.constant(random.normal(size=(FEATURES, CLASSES)), tf.float32, name="softmax/weights")
        tf.nn.softmax(tf.matmul(flat, weights, name="softmax/logits/MatMul"), name="softmax")
    return made.as_graph_def().SerializeToString()


def archive(content: bytes, *, name: str = GRAPH) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as tar:
        for member, data in (("LICENSE", b"words"), (name, content)):
            info = tarfile.TarInfo(member)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return file.getvalue()
