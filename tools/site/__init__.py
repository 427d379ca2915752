"""The site and what it is made from: notebooks, slides, PDF; checks, measurements."""
