"""`my_networks.py:build` in a setting: a function of the user's own, read once, known by its hash.

The text is what is handed round and kept, not the path: every process and every resume runs the same code,
whatever becomes of the file. It is one file; what it imports must be installed. Nothing is run before `call`.
"""

import ast
import hashlib
import os
import re
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wgangp.errors import UserError
from wgangp.wording import error_words


def is_code(value: object) -> bool:
    """Whether a setting names a function in a Python file."""
    return isinstance(value, str) and re.search(r"\.py:[^/]*$", value) is not None


def path_of(value: str) -> str:
    """The file that `value` names."""
    return value.rpartition(":")[0]


@dataclass(frozen=True)
class UserCode:
    """One function and the whole text of its file.

    Attributes:
        value: the setting, absolute path and function: `/home/me/my_networks.py:build`.
        text: of the file.
    """

    value: str
    text: str

    @property
    def path(self) -> Path:
        return Path(path_of(self.value))

    @property
    def function(self) -> str:
        return self.value.rpartition(":")[2]

    @property
    def name(self) -> str:
        """Without the folder: `my_networks.py:build`."""
        return f"{self.path.name}:{self.function}"

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()

    def load(self) -> Callable[..., Any]:
        """The function; the file is run for it, in a module of its own.

        Raises:
            UserError: it cannot be run.
        """
        name = f"wgangp_user_code_{self.sha256[:16]}"
        # A module that can be looked up, as dataclasses and Keras's registry do with the classes in it.
        module = type(ast)(name)
        module.__file__ = str(self.path)
        sys.modules[name] = module
        self.call(lambda: exec(compile(self.text, str(self.path), "exec"), vars(module)))
        function = getattr(module, self.function, None)
        if not callable(function):
            raise UserError(
                f"{self.path}: {self.function} must be a function, got {type(function).__name__}."
            )
        return function

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """What `function` returns.

        Raises:
            UserError: it raised something; with the last line of the user's file that led there.
        """
        try:
            return function(*arguments)
        except UserError:
            raise
        except (Exception, SystemExit) as error:
            frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == str(self.path)]
            line = f":{frames[-1].lineno}" if frames else ""
            what = error_words(error)
            raise UserError(f"{self.path}{line}: {self.function} failed: {what}.") from error


def read(value: str) -> UserCode:
    """The code that a setting names, with what can be known of it unrun.

    Raises:
        UserError: there is no such file, it is no Python, or it has no such function.
    """
    path, function = os.path.abspath(path_of(value)), value.rpartition(":")[2]
    if not function.isidentifier():
        raise UserError(f"must be file.py:function, got {value}.")
    try:
        text = Path(path).read_text(encoding="utf-8")
        tree = ast.parse(text)
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}. Check the path.") from error
    except SyntaxError as error:
        line = f":{error.lineno}" if error.lineno else ""
        raise UserError(f"{path}{line} is not Python: {error.msg}.") from error
    except ValueError as error:  # not UTF-8, or null bytes
        raise UserError(f"{path} is not Python: {error_words(error)}.") from error
    known = sorted({name for node in tree.body for name in _defined(node)})
    if function not in known:
        has = f"it has {', '.join(known)}" if known else "it has no function"
        raise UserError(f"{path} must have a function {function}; {has}.")
    return UserCode(f"{path}:{function}", text)


def _defined(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.Import | ast.ImportFrom):
        return [alias.asname or alias.name for alias in node.names]
    if isinstance(node, ast.Assign):
        return [target.id for target in node.targets if isinstance(target, ast.Name)]
    return []
