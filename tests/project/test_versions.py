"""Versions compare as PEP 440 says."""

from __future__ import annotations

import pytest

from hookturn.project.versions import check_spec, parse, satisfies

# In ascending order; the reference is the ordering example of PEP 440 and the rules around it.
ASCENDING = [
    "0.9",
    "1.0.dev1",
    "1.0a1.dev2",
    "1.0a1",
    "1.0a2",
    "1.0b1",
    "1.0rc1",
    "1.0",
    "1.0.post1.dev1",
    "1.0.post1",
    "1.0.1",
    "1.9.9",
    "1.10",
    "2",
    "2.0.1",
    "10",
    "1!0.1",
]


def test_order():
    parsed = [parse(text) for text in ASCENDING]
    assert None not in parsed
    assert parsed == sorted(parsed)
    assert len(set(parsed)) == len(parsed)


@pytest.mark.parametrize(
    "same",
    [("1", "1.0"), ("1.0", "v1.0.0"), ("1.0a1", "1.0-alpha.1"), ("1.0-1", "1.0.post1"), ("1.0+x", "1.0")],
)
def test_spellings(same):
    assert parse(same[0]) == parse(same[1])


@pytest.mark.parametrize(
    ("spec", "yes", "no"),
    [
        (">=2", "2 2.0 2.1 3.0rc1", "1.9 2.0rc1 2.0.dev1"),
        (">=1.2, <2", "1.2 1.99", "1.1 2 2.0rc1 2.0.1"),
        (">1", "1.0.1 2", "1 1.0 1.0.post1"),
        ("==1.2", "1.2 1.2.0 1.2+local", "1.2.1 1.2rc1"),
        ("==1.2.*", "1.2 1.2.9 1.2rc1", "1.20 1.3 2"),
        ("!=1.2.*", "1.1 1.3", "1.2 1.2.3"),
        ("!=1.2", "1.3", "1.2.0"),
        ("~=1.4.2", "1.4.2 1.4.9", "1.4.1 1.5 2"),
        ("~=1.4", "1.4 1.9", "1.3 2.0"),
        ("<=2.0.post1", "2.0 2.0.post1", "2.0.post2 2.1"),
    ],
)
def test_comparisons(spec, yes, no):
    assert check_spec(spec) == ""
    assert [version for version in yes.split() if not satisfies(version, spec)] == []
    assert [version for version in no.split() if satisfies(version, spec)] == []


@pytest.mark.parametrize("version", ["", "unknown", "1.x", "1." * 100, "one"])
def test_what_is_no_version_fulfils_nothing(version):
    assert parse(version) is None
    assert not satisfies(version, ">=0")


@pytest.mark.parametrize("spec", ["", "2", "=2", ">=", ">=x", "~=2", ">=1,", 2, None, [">=1"]])
def test_what_is_no_specification(spec):
    assert check_spec(spec) != ""
