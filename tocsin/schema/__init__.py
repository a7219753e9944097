"""What data look like: an application's definitions, the types of columns, and records and values checked by them."""
