"""TensorFlow imported without its greeting."""

import os


def import_tensorflow() -> None:
    """It greets on standard error from C++, whatever its log level; nobody can use that."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    kept = os.dup(2)
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    try:
        import tensorflow

        tensorflow.config.list_physical_devices()  # where there is no GPU, it says so at the first look
        tensorflow.get_logger().setLevel("ERROR")  # its warnings are for who writes such programs
    finally:
        os.dup2(kept, 2)
        os.close(kept)
