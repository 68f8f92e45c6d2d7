"""Tables whose footer is damaged: an error that names the file, whatever pyarrow raises."""

import pyarrow as pa

from examine.readers import read_parquet
from storage.errors import Damaged, UnknownFormat
from storage.tables import open_table, read_table, write_table

SCHEMA = pa.schema([("reason", pa.string())])


def test_a_name_of_a_column_that_is_not_utf_8(tmp_path):
    path = tmp_path / "table.parquet"
    write_table(path, pa.table({"reason": ["timeout"]}, SCHEMA))
    content = path.read_bytes()
    starts = [start for start in range(len(content)) if content.startswith(b"reason", start)]
    failed = 0
    for start in starts:
        path.write_bytes(content[: start + 2] + b"\xf3" + content[start + 3 :])
        for read in (read_parquet, lambda path: open_table(path, SCHEMA), lambda path: read_table(path, SCHEMA)):
            try:
                read(path)
            except (Damaged, UnknownFormat) as error:
                assert str(path) in str(error)
                failed += 1
    assert failed >= len(starts) > 1
