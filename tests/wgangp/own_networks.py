"""Networks of a user's own, for the tests: of any image shape, or of vectors."""

import math

import keras


class Scale(keras.layers.Layer):
    """A layer of the user's own, with a weight."""

    def build(self, shape):
        self.factor = self.add_weight(shape=(), initializer="ones", name="factor")

    def call(self, x):
        return x * self.factor


def build(settings):
    """Two dense layers each; `options: {layers: n}` makes it n."""
    layers = (settings.options or {}).get("layers", 2)
    z = keras.Input((settings.latent_size,), dtype=settings.dtype)
    x = keras.Input(settings.image_shape, dtype=settings.dtype)
    h, k = z, keras.layers.Flatten()(x)
    for _ in range(layers):
        h = keras.layers.Dense(8 * settings.width, activation="silu")(h)
        k = keras.layers.Dense(8 * settings.width, activation="silu")(k)
    size = math.prod(settings.image_shape)
    images = keras.layers.Dense(size, activation="tanh", dtype=settings.dtype)(Scale()(h))
    images = keras.layers.Reshape(settings.image_shape)(images)
    values = keras.layers.Dense(1, dtype=settings.dtype)(k)
    return keras.Model(z, images), keras.Model(x, values)
