"""The one exception that means: what you gave us cannot be used, and here is why."""


class InputError(ValueError):
    """A file, line or argument that cannot be used.

    The message is a sentence for a student: what was expected, what came, in which
    file, line or argument, and what to do. The command line prints it without a stack
    trace and exits with status 2.

    Not in the paper.

    >>> try:
    ...     load_corpus("multi31k")
    ... except InputError as error:
    ...     print(str(error).split(";")[0])
    There is no corpus 'multi31k'
    """
