"""What is too long to stand in a chapter: its experiments, its drawings and its charts.

One module a chapter, named after its notebook: `attention` belongs to 03-attention. A
notebook says ``from aiayn_book.chapters import attention as chapter``. A function here
returns what it measures or draws; the text around it stays in the notebook, captions
and guesses too.

Not in the paper.
"""
