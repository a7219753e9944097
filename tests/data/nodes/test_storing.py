"""What nodes offer is judged before it counts, and one commit has all of it, with the dead letters before."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.data.nodes.conftest import directory_only
from tests.data.nodes.sharing import PlainProcessing, Sharing, offer
from tocsin.data.channels.matches import NodeMatch
from tocsin.data.lake.folder import Folder
from tocsin.data.lake.table import File, Table
from tocsin.data.lake.unclaimed import OutdatedError
from tocsin.data.nodes import files
from tocsin.data.nodes.files import ChannelMatch, FileKind, NodeFile
from tocsin.data.nodes.storing import CommitStore
from tocsin.errors import InvalidError, StorageError
from tocsin.slices.actions import StoreCommits
from tocsin.slices.messages import Commit, SlicePart


@pytest.fixture
def sharing(tmp_path: Path, lake: Folder) -> Iterator[Sharing]:
    sharing = Sharing(tmp_path, lake=lake)
    yield sharing
    sharing.log.close()


def node(sharing: Sharing, name: str = "a") -> PlainProcessing:
    return PlainProcessing(sharing.shared, sharing.directory / f"ids-{name}")


@pytest.fixture
def offered(sharing: Sharing) -> Commit:
    """Two records of two slices, and a line that is none."""
    sharing.publish({"id": "a", "value": 1}, {"id": "b", "value": 2})
    sharing.publish_lines(("a", b"no json"))
    return offer(node(sharing).process(sharing.starts()))


def stored(sharing: Sharing, *commits: Commit) -> None:
    markers = {part.slice: part.end for commit in commits for part in commit.parts}
    sharing.store.store(StoreCommits(1, 1, list(commits), markers))


def test_files_of_several_nodes_are_one_commit(sharing: Sharing) -> None:
    sharing.publish(*({"id": f"r{n}", "value": n} for n in range(20)))
    one = node(sharing, "a").process(sharing.starts(0, 1))
    other = node(sharing, "b").process(sharing.starts(2, 3))
    sharing.commit(one, other)
    assert sharing.table.version == 1
    assert sharing.rows() == {f"r{n}": n for n in range(20)}
    assert sharing.store.markers() == sharing.log.ends()
    sharing.open()
    assert sharing.store.markers() == sharing.log.ends()


def with_part(commit: Commit, **changes: Any) -> Commit:
    first, *rest = commit.parts
    return msgspec.structs.replace(commit, parts=[msgspec.structs.replace(first, **changes), *rest])


PARTS: dict[str, tuple[Callable[[SlicePart], dict[str, Any]], str]] = {
    "a slice that is none": (lambda part: {"slice": 4}, "has no slice 4"),
    "a slice below none": (lambda part: {"slice": -1}, "has no slice -1"),
    "an end beyond the log's": (lambda part: {"end": part.end + 1}, "and its log goes up to"),
    "an end before its beginning": (lambda part: {"end": part.begin}, "is offered from"),
    "a beginning below 0": (lambda part: {"begin": -1}, "is offered from -1"),
    "fewer than no records": (lambda part: {"records": -1}, "with -1 records"),
}


@pytest.mark.parametrize(("change", "reason"), PARTS.values(), ids=PARTS)
def test_parts_that_cannot_be_are_refused(
    sharing: Sharing, offered: Commit, change: Callable[[SlicePart], dict[str, Any]], reason: str
) -> None:
    bad = with_part(offered, **change(offered.parts[0]))
    with pytest.raises(InvalidError, match=reason):
        sharing.store.check(bad)
    with pytest.raises(StorageError):
        stored(sharing, bad)
    assert (sharing.table.version, sharing.letters.version) == (0, 0)
    sharing.store.check(offered)


def replaced(sharing: Sharing, file: NodeFile, rows: pa.Table) -> NodeFile:
    content = pa.BufferOutputStream()
    pq.write_table(rows, content)
    sharing.lake.write(file.path, content.getvalue().to_pybytes())
    return msgspec.structs.replace(file, size=content.getvalue().size)


def linked(sharing: Sharing, file: NodeFile) -> NodeFile:
    path = Path(sharing.lake.path(file.path))
    path.rename(path.with_name("elsewhere.parquet"))
    path.symlink_to(path.with_name("elsewhere.parquet"))
    return file


def emptied(sharing: Sharing, file: NodeFile) -> NodeFile:
    sharing.lake.write(file.path, bytes(file.size))
    return file


def removed(sharing: Sharing, file: NodeFile) -> NodeFile:
    sharing.lake.delete(file.path)
    return file


FILES: dict[str, Callable[[Sharing, NodeFile], NodeFile | str]] = {
    "outside of the lake": lambda _, file: msgspec.structs.replace(file, path=f"../{file.path}"),
    "by a way around": lambda _, file: msgspec.structs.replace(file, path=f"datasets/../{file.path}"),
    "by its absolute path": lambda it, file: msgspec.structs.replace(file, path=it.lake.path(file.path)),
    "by its URL": lambda it, file: msgspec.structs.replace(file, path=f"{it.lake.url}/{file.path}"),
    "spelled otherwise": lambda _, file: msgspec.structs.replace(file, path=file.path.replace("/", "//")),
    "in another table": lambda _, file: msgspec.structs.replace(file, path=file.path.replace("Reports", "Others")),
    "under another name": lambda _, file: msgspec.structs.replace(file, path="datasets/Reports/part-1.parquet"),
    "of another kind": lambda _, file: msgspec.structs.replace(file, kind=files.FileKind.DEAD_LETTERS),
    "of another size": lambda _, file: msgspec.structs.replace(file, size=file.size + 1),
    "of more rows": lambda _, file: msgspec.structs.replace(file, rows=file.rows + 1),
    "gone": removed,
    "zeroes": emptied,
    "of other columns": lambda sharing, file: replaced(sharing, file, pa.table({"id": ["a", "b"]})),
    "with versions": lambda sharing, file: replaced(
        sharing, file, pa.table({"id": ["a", "b"], "value": [1, 2], "_v": [9, 9]})
    ),
    "nonsense": lambda _, __: "{}",
    "more nonsense": lambda _, __: "\ud800[",
    "with a NUL": lambda _, file: msgspec.structs.replace(file, path="datasets/Reports/\0"),
}


@pytest.mark.parametrize("spoil", FILES.values(), ids=FILES)
def test_files_that_are_not_what_they_should_be_are_refused(
    sharing: Sharing, offered: Commit, spoil: Callable[[Sharing, NodeFile], NodeFile | str]
) -> None:
    text = next(text for text in offered.files if '"records"' in text)
    bad = spoil(sharing, files.decode(text))
    others = [each for each in offered.files if each != text]
    with pytest.raises(InvalidError):
        sharing.store.check(
            msgspec.structs.replace(
                offered, files=[*others, bad if isinstance(bad, str) else msgspec.json.encode(bad).decode()]
            )
        )


@directory_only
def test_a_link_to_a_file_is_refused(sharing: Sharing, offered: Commit) -> None:
    for text in offered.files:
        linked(sharing, files.decode(text))
    with pytest.raises(OutdatedError, match="is not there as it was written"):
        sharing.store.check(offered)


def test_a_file_that_is_offered_twice_is_refused(sharing: Sharing, offered: Commit) -> None:
    with pytest.raises(InvalidError, match="is offered twice"):
        sharing.store.check(msgspec.structs.replace(offered, files=[*offered.files, offered.files[0]]))


RESULT_NAME = f"node-{'0' * 32}.parquet"
MATCH = ChannelMatch("OfType", "1.1", 0.5)


def results(path: str, match: ChannelMatch | None = MATCH, kind: FileKind = FileKind.RESULTS) -> NodeFile:
    return NodeFile(kind, path, 10, 1, match)


RESULTS: dict[str, list[NodeFile]] = {
    "outside of the lake": [results(f"../{RESULT_NAME}")],
    "in the folder of another channel": [results(f"results/Other/{RESULT_NAME}")],
    "in the dataset's folder": [results(f"datasets/Reports/{RESULT_NAME}")],
    "by a way around": [results(f"results/Other/../OfType/{RESULT_NAME}")],
    "under a name that no node gives": [results("results/OfType/part-1.parquet")],
    "nowhere, though there are rows": [results("")],
    "of no channel": [results(f"results/OfType/{RESULT_NAME}", None)],
    "of a channel that is a path": [results(f"results/../OfType/{RESULT_NAME}", ChannelMatch("../OfType", "1.1", 0.5))],
    "of a channel without a name": [results(f"results/{RESULT_NAME}", ChannelMatch("", "1.1", 0.5))],
    "begun in the future": [results(f"results/OfType/{RESULT_NAME}", ChannelMatch("OfType", "1.1", -1.0))],
    "records as results": [results(f"results/OfType/{RESULT_NAME}", kind=FileKind.RECORDS)],
    "dead letters as results": [results(f"results/OfType/{RESULT_NAME}", kind=FileKind.DEAD_LETTERS)],
    "twice": [results(f"results/OfType/{RESULT_NAME}")] * 2,
    "matched with two things": [
        results(f"results/OfType/{RESULT_NAME}"),
        NodeFile(FileKind.RESULTS, "", 0, 0, ChannelMatch("OfType", "1.2", 0.5)),
    ],
}


@pytest.mark.parametrize("nonsense", RESULTS.values(), ids=RESULTS)
def test_results_that_cannot_be_are_refused(sharing: Sharing, offered: Commit, nonsense: list[NodeFile]) -> None:
    told = [*offered.files, *map(files.encode, nonsense)]
    with pytest.raises(InvalidError):
        sharing.store.check(msgspec.structs.replace(offered, files=told))


def test_what_channels_have_found_is_told_with_the_version_that_has_the_records(
    sharing: Sharing, offered: Commit
) -> None:
    matched: list[tuple[Table, int, Sequence[Mapping[str, NodeMatch]]]] = []
    store = CommitStore(sharing.shared, sharing.table, sharing.letters, sharing.log, lambda *told: matched.append(told))
    other = RESULT_NAME.replace("0", "1")
    found = [results(f"results/OfType/{name}") for name in (RESULT_NAME, other)]
    nothing = NodeFile(FileKind.RESULTS, "", 0, 0, ChannelMatch("Other", "1.2", 0.0))
    commit = msgspec.structs.replace(offered, files=[*offered.files, *map(files.encode, [*found, nothing])])
    store.check(commit)
    before = time.monotonic()
    store.store(StoreCommits(1, 1, [commit], {part.slice: part.end for part in commit.parts}))
    [(table, version, [batch])] = matched
    assert (table, version) == (sharing.table, 1)
    assert (batch["OfType"].tag, batch["OfType"].files) == ("1.1", (RESULT_NAME, other))
    assert (batch["Other"].tag, batch["Other"].files) == ("1.2", ())
    # Reckoned back from when the commit was at hand.
    assert before - 0.5 <= batch["OfType"].began <= time.monotonic() - 0.5
    assert sharing.rows() == {"a": 1, "b": 2}


def test_a_batch_without_records_needs_no_results(sharing: Sharing) -> None:
    matched: list[Sequence[Mapping[str, NodeMatch]]] = []
    store = CommitStore(
        sharing.shared, sharing.table, sharing.letters, sharing.log, lambda _, __, batches: matched.append(batches)
    )
    sharing.publish_lines(("a", b"no json"))
    commit = offer(node(sharing).process(sharing.starts()))
    store.store(StoreCommits(1, 1, [commit], {part.slice: part.end for part in commit.parts}))
    assert matched == [[]]


def test_parts_that_do_not_begin_at_the_markers_are_not_stored(sharing: Sharing, offered: Commit) -> None:
    stored(sharing, offered)
    with pytest.raises(StorageError, match="is offered from 0, and the dataset has it up to"):
        stored(sharing, offered)
    with pytest.raises(StorageError, match="markers are offered that the parts do not reach"):
        sharing.store.store(StoreCommits(2, 1, [], {0: 10**6}))
    assert (sharing.table.version, sharing.letters.version) == (1, 1)


def committed_before(sharing: Sharing, file: NodeFile) -> None:
    sharing.table.adopt_unstamped([File(sharing.lake.path(file.path), 0, 0, file.size, file.rows)], {})


def written_long_ago(sharing: Sharing, file: NodeFile) -> None:
    os.utime(sharing.lake.path(file.path), times=(time.time() - 1900,) * 2)


STALE: dict[str, tuple[Callable[[Sharing, NodeFile], object], str]] = {
    "is part of the dataset": (committed_before, "is part of it already"),
    "is too old": (written_long_ago, "was written too long ago"),
    "is gone": (removed, "is not there as it was written"),
}


@directory_only
@pytest.mark.parametrize(("spoil", "reason"), STALE.values(), ids=STALE)
def test_what_cannot_be_stored_any_more_is_told_before_it_is_stored_with_others(
    sharing: Sharing, offered: Commit, spoil: Callable[[Sharing, NodeFile], object], reason: str
) -> None:
    sharing.store.check(offered)
    spoil(sharing, files.decode(next(text for text in offered.files if '"records"' in text)))
    with pytest.raises(OutdatedError, match=reason):
        sharing.store.check(offered)


def test_dead_letters_that_are_there_already_do_not_keep_their_batch_from_being_stored(
    sharing: Sharing, offered: Commit, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(CommitStore, "_check_markers", lambda *_: None)
        patched.setattr(sharing.table, "adopt_unstamped", refuse)
        with pytest.raises(StorageError, match="the disk is full"):
            stored(sharing, offered)
    # The head's process is another; the node offers what it has in hand.
    sharing.open()
    sharing.store.check(offered)
    stored(sharing, offered)
    assert sharing.rows() == {"a": 1, "b": 2}
    assert sharing.letters.read().num_rows == 1


def refuse(*_: object) -> None:
    raise StorageError("the disk is full")


def test_a_part_that_ends_in_the_middle_of_a_record_is_refused(sharing: Sharing) -> None:
    sharing.publish({"id": "a", "value": 1})
    middle = sharing.log.ends()[sharing.slice_of("a")] - 1
    boundary = sharing.log.ends()
    sharing.publish(*({"id": "a", "value": value} for value in range(9)))
    batch = node(sharing).process(sharing.starts())
    commit = offer(batch)
    assert len(commit.parts) == 1
    end = commit.parts[0].end
    for wrong in {middle, middle + 2, middle + 5, end - 1}:
        with pytest.raises(InvalidError, match="where no record of its log ends"):
            sharing.store.check(with_part(commit, end=wrong))
    for right in (end, boundary[sharing.slice_of("a")]):
        sharing.store.check(with_part(commit, end=right))


def test_a_part_may_end_where_the_log_is_damaged_behind_a_whole_record(sharing: Sharing) -> None:
    sharing.publish({"id": "a", "value": 1})
    index = sharing.slice_of("a")
    boundary = sharing.log.ends()[index]
    batch = offer(node(sharing).process({index: 0}))
    sharing.publish({"id": "a", "value": 2})
    (segment,) = (sharing.directory / "feeds" / "reports" / f"slice-{index:04d}").iterdir()
    content = bytearray(segment.read_bytes())
    content[boundary] ^= 1
    segment.write_bytes(content)
    sharing.store.check(batch)
    with pytest.raises(InvalidError, match="where no record of its log ends"):
        sharing.store.check(with_part(batch, end=boundary + 7))


def test_a_file_that_is_gone_since_it_was_checked_fails_its_store_which_leaves_no_trace(
    sharing: Sharing, offered: Commit
) -> None:
    sharing.store.check(offered)
    removed(sharing, files.decode(next(text for text in offered.files if '"records"' in text)))
    with pytest.raises(StorageError, match="is not there as it was written"):
        stored(sharing, offered)
    assert sharing.store.markers() == [0] * 4
    sharing.commit(node(sharing).process(sharing.starts()))
    assert sharing.rows() == {"a": 1, "b": 2}
    assert sharing.letters.read().num_rows == 1


def test_dead_letters_are_there_once_however_often_the_dataset_refuses(
    sharing: Sharing, offered: Commit, monkeypatch: pytest.MonkeyPatch
) -> None:
    adopt = Table.adopt_unstamped

    def refusing(table: Table, *arguments: Any) -> object:
        if table is sharing.table:
            raise StorageError("the disk is full")
        return adopt(table, *arguments)

    with monkeypatch.context() as patched:
        patched.setattr(Table, "adopt_unstamped", refusing)
        with pytest.raises(StorageError):
            stored(sharing, offered)
    assert sharing.letters.read().num_rows == 1
    sharing.publish_lines(("a", b"no json either"))
    sharing.commit(node(sharing).process(sharing.starts()))
    lines = sharing.letters.read(columns=["line"])["line"].to_pylist()
    assert sorted(lines) == ["no json", "no json either"]
    assert sharing.rows() == {"a": 1, "b": 2}


@directory_only
def test_what_the_disk_does_not_keep_is_not_taken_for_seen(
    sharing: Sharing, offered: Commit, monkeypatch: pytest.MonkeyPatch
) -> None:
    processing = node(sharing)
    real = Path.hardlink_to

    def seen_and_refused(entry: Path, draft: Path) -> None:
        real(entry, draft)
        if entry.parent.parent == sharing.table.path:
            # A node sees the commit while the disk has yet to keep it; then it is taken back.
            processing.prepare([0])
            os.unlink(entry)
            raise OSError(5, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "hardlink_to", seen_and_refused)
        with pytest.raises(StorageError):
            stored(sharing, offered)
    sharing.commit(processing.process(sharing.starts()))
    assert sharing.rows() == {"a": 1, "b": 2}


def test_a_place_for_ids_that_cannot_be_used_is_told(sharing: Sharing) -> None:
    (sharing.directory / "ids-a").write_text("no directory", encoding="utf-8")
    with pytest.raises(StorageError, match="make the directory writable"):
        node(sharing)


@directory_only
def test_a_file_is_synced_before_it_is_offered(sharing: Sharing, monkeypatch: pytest.MonkeyPatch) -> None:
    sharing.publish({"id": "a", "value": 1})
    sharing.publish_lines(("a", b"no json"))
    synced: dict[int, int] = {}
    fsync = os.fsync

    def noting(descriptor: int) -> None:
        fsync(descriptor)
        synced[os.fstat(descriptor).st_ino] = os.fstat(descriptor).st_size

    monkeypatch.setattr(os, "fsync", noting)
    batch = node(sharing).process(sharing.starts())
    assert len(batch.files) == 2
    for file in map(files.decode, batch.files):
        assert synced[Path(sharing.lake.path(file.path)).stat().st_ino] == file.size
