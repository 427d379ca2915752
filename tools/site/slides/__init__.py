"""Slides of a chapter, made from its notebook: what is shown, and what is said.

`make` (``make slides``) writes them. `deck` chooses what goes on slides, `page` makes a
page of them that needs no network.
"""
