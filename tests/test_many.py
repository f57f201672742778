"""One function over many items: order, errors as results, and workers that die."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from graphcost.errors import ModelFileError, UsageError, WorkerLostError
from graphcost.many import each


def halved(number: int) -> int:
    if number % 2:
        raise ModelFileError(f"{number} is odd")
    return number // 2


def dies(job: tuple[int, Path, int]) -> int:
    """Kills its process ``times`` times on item 3; a file counts."""
    number, folder, times = job
    if number == 3:
        so_far = len(list(folder.glob("died-*")))
        if so_far < times:
            (folder / f"died-{so_far}").touch()
            os._exit(9)
    return number * number


class UnpicklableError(Exception):
    def __init__(self, one: object, two: object) -> None:
        super().__init__("needs two arguments")


def fails_badly(number: int) -> int:
    raise UnpicklableError(number, lambda: number)


def process_of(number: int) -> int:
    return os.getpid()


@pytest.mark.parametrize("workers", [1, 2])
def test_order_is_kept_and_errors_are_results(workers: int) -> None:
    done: list[int] = []
    found = list(each(halved, range(5), workers=workers, done=done.append))
    assert [one if isinstance(one, int) else str(one) for one in found] == [0, "1 is odd", 1, "3 is odd", 2]
    assert isinstance(found[1], ModelFileError) and sorted(done) == [0, 1, 2, 3, 4]


def test_a_worker_that_dies_once_loses_nothing(tmp_path: Path) -> None:
    jobs = [(number, tmp_path, 1) for number in range(8)]
    assert list(each(dies, jobs, workers=2)) == [0, 1, 4, 9, 16, 25, 36, 49]
    assert len(list(tmp_path.iterdir())) == 1


def test_an_item_that_always_kills_its_worker_is_reported_and_the_others_are_there(tmp_path: Path) -> None:
    jobs = [(number, tmp_path, 99) for number in range(8)]
    found = list(each(dies, jobs, workers=2))
    assert found[:3] + found[4:] == [0, 1, 4, 16, 25, 36, 49]
    assert isinstance(found[3], WorkerLostError) and "killed again" in str(found[3]) and found[3].exit_code == 70
    assert len(list(tmp_path.iterdir())) == 2


def test_what_does_not_pickle_is_said_in_words() -> None:
    (first, _) = each(fails_badly, range(2), workers=2)
    assert isinstance(first, RuntimeError) and "UnpicklableError: needs two arguments" in str(first)
    assert "fails_badly" in "".join(first.__notes__)  # where, for --debug


def test_apart_is_another_process_each_time() -> None:
    (first,) = each(process_of, [0], apart=True)
    (second,) = each(process_of, [0], apart=True)
    assert len({first, second, os.getpid()}) == 3


def test_an_unknown_backend_is_refused() -> None:
    with pytest.raises(UsageError, match="no backend named 'locla'; did you mean 'local'"):
        list(each(halved, [2], backend="locla"))
    assert list(each(halved, [])) == []
