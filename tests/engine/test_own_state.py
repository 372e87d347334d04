"""The engine's own values stay in memory between changes, and still are what the file holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from hookturn.engine.state import OWN_AREA, Stores


def two(tmp_path):
    """Return the same store as two processes have it."""
    return [Stores(tmp_path).values(OWN_AREA, "session", "s") for _ in range(2)]


def test_each_sees_what_the_other_wrote_even_at_once_and_of_the_same_size(tmp_path):
    one, other = two(tmp_path)
    for number in range(100, 400):
        with one if number % 2 else other as data:
            assert data.get("n", 99) == number - 1
            data["n"] = number
        assert one.get("n") == other.get("n") == number


def test_a_change_that_fails_changes_nothing(tmp_path):
    one, other = two(tmp_path)
    one.set("n", {"a": 1})
    with pytest.raises(KeyError), one as data:
        data["n"]["a"] = 2
        raise KeyError("no")
    assert one.get("n") == other.get("n") == {"a": 1}


def test_a_folder_that_went_away_meanwhile(tmp_path):
    one, _ = two(tmp_path)
    one.set("n", 1)
    for path in Path(one.path).parent.iterdir():
        path.unlink()
    Path(one.path).parent.rmdir()
    assert one.get("n") is None
    one.set("m", 2)
    assert (one.get("n"), one.get("m")) == (None, 2)


@pytest.mark.parametrize("area", [OWN_AREA, "sessions"])
def test_a_folder_that_can_never_be_made_is_an_error_and_no_wait_for_ever(tmp_path, area):
    (tmp_path / "state").symlink_to(tmp_path / "volume" / "state")  # of a disk that is not there
    with pytest.raises(FileNotFoundError):
        Stores(tmp_path / "state").values(area, "session", "s").set("n", 1)
