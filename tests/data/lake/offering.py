"""Files as processing nodes leave them in a table's folder."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from tocsin.data.lake.table import File, Table
from tocsin.data.lake.unclaimed import new_name


def offered(table: Table, rows: pa.Table) -> File:
    """A file with these rows, which bear no version."""
    name = new_name()
    with table.folder.open_output(name) as sink:
        pq.write_table(rows, sink)
    return File(table.folder.path(name), 0, 0, table.folder.files()[name].size, rows.num_rows)
