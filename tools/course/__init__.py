"""A course, made from the solved notebooks: the one source of all that it holds.

``python -m tools.course.make`` (``make course``) writes it. `exercises` reads what the
notebooks hold, `needs` says which cells of a chapter an exercise depends on, and the
other modules each write one thing: chapters for students and teachers, assignments for
nbgrader and for Otter, and a package for a classroom without a network.
"""
