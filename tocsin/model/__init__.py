"""The vocabulary every other room speaks: schemas, definitions, messages. Imports nothing else of ours but errors."""
