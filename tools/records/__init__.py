"""The book's records: each module makes one kind, from what takes too long to build."""
