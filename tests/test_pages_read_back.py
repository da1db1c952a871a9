"""Nothing in a page is lost: every page can be read back from the database, in normal
form.
"""

import sqlite3
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spack_cache_db.assembly.builds import build
from spack_cache_db.errors import LineFault
from spack_cache_db.model import FORMULA, is_name
from spack_cache_db.sources.pages.json_values import SpecDetail
from tests.conftest import Build
from tests.pagetexts import (
    MORE_SAMPLES,
    SAMPLE_PAGES,
    SAMPLES,
    meta_of,
    page,
    spec,
    spec_hash,
    write,
)
from tests.readback import pages_of, values_of

ALL_PAGES = [*SAMPLE_PAGES, *sorted(MORE_SAMPLES.glob("*/*/specs.md"))]

WORDS = st.text("ab1.-_ \"'\\é", min_size=1, max_size=4)
NAMES = WORDS.filter(is_name)
CELLS = WORDS.filter(lambda text: not text.startswith(FORMULA))
VARIANTS = st.one_of(
    st.sampled_from(
        ["+cuda", "~cuda", "build_type=Release", "libs:=static,shared", "libs=a,b"]
    ),
    st.builds("cflags='{}'".format, st.text("-O2 g", max_size=5)),
    CELLS,
)
COMPILERS = st.sampled_from(
    ["gcc@13.2.0", "gcc@=13.2.0", "gcc@13.2.0/abc", "none", "oneapi@=1"]
)
TARBALLS = st.one_of(
    st.none(),
    st.just("https://example.org/elsewhere.spack"),
    st.just(
        "https://example.org/v1/build_cache/linux-ubuntu24.04-zen3/gcc-13.2.0/zlib-1.0/"
        "linux-ubuntu24.04-zen3-gcc-13.2.0-zlib-1.0-{}.spack"
    ),
)
TWO_WORDS = st.lists(WORDS, unique=True, max_size=2)
META_COMPILERS = st.sampled_from(["gcc@=1", "none", "", "@1"])
METAS = st.fixed_dictionaries(
    {},
    optional={
        "num_specs": st.integers(0, 9),
        "stacks": TWO_WORDS,
        "versions": TWO_WORDS,
        "compilers": st.lists(META_COMPILERS, unique=True),
        "num_specs_by_stack": st.dictionaries(WORDS, st.integers(0, 9), max_size=2),
    },
)


@st.composite
def spec_lists(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Draw a page's specs; the same few hashes meet in several releases."""
    numbers = draw(st.lists(st.integers(1, 4), unique=True, max_size=3))
    return [draw(specs(number)) for number in numbers]


@st.composite
def specs(draw: st.DrawFn, number: int) -> dict[str, Any]:
    """Draw one spec."""
    tarball = draw(TARBALLS)
    version = draw(st.just("1.0") | NAMES)
    # No two variants have the same name.
    variants = st.lists(VARIANTS, max_size=3, unique_by=lambda text: text[:4])
    detail = spec(
        number,
        compiler=draw(COMPILERS),
        versions=[version],
        target=draw(st.sampled_from(["zen3", "x86_64_v3"])),
        stacks=draw(st.lists(NAMES, unique=True, max_size=3)),
        variants=draw(variants),
        size=draw(st.just("-") | CELLS),
    )
    if tarball is None:
        return detail
    return detail | {"tarball": tarball.format(detail["hash"])}


@pytest.mark.parametrize(
    "path", ALL_PAGES, ids=lambda path: f"{path.parent.name}-{path.name}"
)
def test_each_sample_page_is_read_back_as_its_source_says_it(
    path: Path, all_samples: sqlite3.Connection
) -> None:
    """A page of any era, rebuilt from the database, equals its source as values."""
    base = MORE_SAMPLES if MORE_SAMPLES in path.parents else SAMPLES
    name = path.relative_to(base).as_posix()
    assert pages_of(all_samples)[name] == values_of(name, path.read_bytes())


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(
    pages=st.dictionaries(
        st.sampled_from(["develop", "v0.18", "v0.19.1", "develop-2025-07-13", "pr-1"]),
        st.tuples(spec_lists(), METAS),
        min_size=1,
        max_size=3,
    )
)
def test_any_page_is_read_back(
    pages: dict[str, tuple[list[dict[str, Any]], Any]],
) -> None:
    """No page loses anything: odd texts, wrong `meta`, one hash with two
    configurations.
    """
    texts = {
        release.replace(".", "_").replace("-", "_"): page(
            release=release, specs=listed, meta=meta_of(listed) | meta
        )
        for release, (listed, meta) in pages.items()
    }
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder, "out.db")
        build([str(write(Path(folder, "pages"), **texts))], output)
        connection = sqlite3.connect(output)
        found = pages_of(connection)
        connection.close()

    assert found == {
        f"{name}.md": values_of(name, data) for name, data in texts.items()
    }


@pytest.mark.parametrize(
    "field",
    [name for name, value in spec(1, tarball="u").items() if isinstance(value, str)],
)
def test_an_empty_text_is_no_missing_text(field: str, built: Build) -> None:
    """A key with an empty text is read back with it; where a text is needed, it is a
    fault.
    """
    data = page(specs=[spec(1, **{field: ""}), spec(2)])

    try:
        said = values_of("a.md", data)
    except (LineFault, ValueError):
        assert field in ("hash", "compiler")
    else:
        assert pages_of(built(a=data)) == {"a.md": said}


@pytest.mark.parametrize("field", SpecDetail.__struct_fields__)
def test_every_field_of_a_detail_is_read_back(field: str, built: Build) -> None:
    """Whatever a page says of a spec in this field, beside another spec that says
    otherwise.
    """
    two = spec(2, tarball="x", size="7")
    texts = {
        "hash": spec_hash(3),
        "versions": ["2.0"],
        "stacks": ["s"],
        "variants": ["+x"],
    }
    data = page(
        specs=[two, two | {"hash": spec_hash(1), field: texts.get(field, "other")}]
    )

    assert pages_of(built(a=data)) == {"a.md": values_of("a.md", data)}
