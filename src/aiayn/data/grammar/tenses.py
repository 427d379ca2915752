"""Tenses and modals, as both languages have them.

The tenses are "present", "past" and the modals' names. The English simple past is the
German Perfekt, as one says it (*ate*: hat gegessen), but *was* is *war*.
"""

# English and German auxiliary.
MODALS = {
    "future": ("will", "werden"),
    "can": ("can", "können"),
    "must": ("must", "müssen"),
    "should": ("should", "sollen"),
    "want": ("want", "wollen"),
}
