"""The one exception that means "you can mend this": shown without a traceback, exit status 2."""


class UserError(Exception):
    """One or more mistakes of the user, each a complete line of text.

    A check collects everything it finds and raises once, so that a file is mended in one go.
    """

    def __init__(self, *problems: str) -> None:
        super().__init__(*problems)
        self.problems = problems

    def __str__(self) -> str:
        return "\n".join(self.problems)
