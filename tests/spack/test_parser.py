"""spack.parser and spack.lexer: Spack's spec syntax, and its errors."""

import pytest

from spack_cache_db.spack.constraints import Flag, spec_text
from spack_cache_db.spack.lexer import MAX_LENGTH, QuerySyntaxError
from spack_cache_db.spack.parser import parse_query


def variant(text: str) -> tuple[str, tuple[str, ...], str, bool, bool]:
    """Return what a query of one variant asks, without its place."""
    (found,) = parse_query(text).variants
    return found.name, found.values, found.kind, found.exact, found.propagate


@pytest.mark.parametrize(
    ("text", "name", "namespace"),
    [
        ("hdf5", "hdf5", None),
        ("py-torch", "py-torch", None),
        ("7zip", "7zip", None),
        ("builtin.hdf5", "hdf5", "builtin"),
        ("a.b.c", "c", "a.b"),
        ("namespace=builtin", None, "builtin"),
        ("*", None, None),
        ("* +mpi", None, None),
    ],
)
def test_names(text: str, name: str | None, namespace: str | None) -> None:
    """Names, namespaces and the anonymous star are told apart."""
    query = parse_query(text)
    assert (query.name, query.namespace) == (name, namespace)


@pytest.mark.parametrize(
    ("text", "versions"),
    [
        ("hdf5@1.14", "1.14"),
        ("hdf5@=1.14", "=1.14"),
        ("hdf5@1.12:1.14", "1.12:1.14"),
        ("@:1.14", ":1.14"),
        ("hdf5 @1, 2 ,3:", "1,2,3:"),
        ("hdf5@git.feature/x=1.14", "git.feature/x=1.14"),
        ("hdf5@" + "a1" * 20 + "=1.3", "a1" * 20 + "=1.3"),
        ("hdf5@1.12:target=zen3", "1.12:"),
        ("hdf5@1.12+mpi", "1.12"),
        ("hdf5@1.12-mpi", "1.12-mpi"),
    ],
)
def test_versions(text: str, versions: str) -> None:
    """Each form of a version list is taken whole, and ends where the next option begins."""
    found = parse_query(text).versions
    assert found is not None
    assert found.text == versions


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("+mpi", ("mpi", ("true",), "bool", True, False)),
        ("hdf5~mpi", ("mpi", ("false",), "bool", True, False)),
        ("hdf5 -mpi", ("mpi", ("false",), "bool", True, False)),
        ("hdf5+ mpi", ("mpi", ("true",), "bool", True, False)),
        ("++pic", ("pic", ("true",), "bool", True, True)),
        ("~~pic", ("pic", ("false",), "bool", True, True)),
        ("mpi=True", ("mpi", ("true",), "bool", True, False)),
        ("libs=static,shared", ("libs", ("shared", "static"), "multi", False, False)),
        ("libs:=static,shared", ("libs", ("shared", "static"), "multi", True, False)),
        ("libs==static", ("libs", ("static",), "multi", False, True)),
        ("api=*", ("api", (), "multi", False, False)),
        ("api='*'", ("api", (), "multi", False, False)),
        ("languages='c,c++'", ("languages", ("c", "c++"), "multi", False, False)),
        ("k='a b'", ("k", ("a b",), "multi", False, False)),
        (r"k='it\'s'", ("k", ("it's",), "multi", False, False)),
        ('k="a\'b"', ("k", ("a'b",), "multi", False, False)),
        ("dev_path=/a,b", ("dev_path", ("/a,b",), "multi", False, False)),
    ],
)
def test_variants(text: str, expected: tuple[str, tuple[str, ...], str, bool, bool]) -> None:
    """Each form of a variant gives its values, and whether they are exact or propagated."""
    assert variant(text) == expected


@pytest.mark.parametrize(
    ("text", "platform", "os", "target"),
    [
        ("target=zen3", None, None, "zen3"),
        ("arch=linux-debian12-zen3", "linux", "debian12", "zen3"),
        ("arch=linux-None-zen3", "linux", None, "zen3"),
        ("arch=zen3", None, None, "zen3"),
        ("os=rhel8 platform=linux", "linux", "rhel8", None),
        ("operating_system=rhel8", None, "rhel8", None),
        ("target=x86_64:zen3,m1", None, None, "x86_64:zen3,m1"),
        ("os=* platform=* target=*", None, None, None),
        ("arch=linux-*-zen4", "linux", None, "zen4"),
        ("arch=*-*-*", None, None, None),
        ("os='*' target=zen3", None, None, "zen3"),
        ("arch=zen3 os=rhel8", None, "rhel8", "zen3"),
    ],
)
def test_architecture(text: str, platform: str | None, os: str | None, target: str | None) -> None:
    """Given whole or in parts; None and nothing are no part, and a star is any."""
    query = parse_query(text)
    assert (query.platform, query.os, query.target) == (platform, os, target)


def test_flags_and_hash() -> None:
    """Compiler flags keep their text, and a hash is a prefix without its slash."""
    query = parse_query("zlib cflags='-O2 -g' ldflags==-Wl,-z /abc123")
    assert query.flags == (Flag("cflags", "-O2 -g", False, 5), Flag("ldflags", "-Wl,-z", True, 21))
    assert query.hash == "abc123"


Edge = tuple[str | None, bool, tuple[str, ...], tuple[str, ...]]


def edges(text: str) -> list[Edge]:
    """Return name, direct, virtuals and deptypes of a query's dependencies."""
    found = parse_query(text).dependencies
    return [(edge.node.name, edge.direct, edge.virtuals, edge.deptypes) for edge in found]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x %gcc@13", [("gcc", True, (), ())]),
        ("%clang", [("llvm", True, (), ())]),
        ("%oneapi", [("intel-oneapi-compilers", True, (), ())]),
        ("^clang", [("clang", False, (), ())]),
        ("x %c,cxx=gcc", [("gcc", True, ("c", "cxx"), ())]),
        ("x %[virtuals=c,cxx deptypes=build] gcc", [("gcc", True, ("c", "cxx"), ("build",))]),
        ("x %[deptypes=build] c=gcc", [("gcc", True, ("c",), ("build",))]),
        ("x ^mpi=openmpi@4", [("openmpi", False, ("mpi",), ())]),
        ("x ^[virtuals=mpi] openmpi", [("openmpi", False, ("mpi",), ())]),
        ("x %gcc ^a ^b", [("gcc", True, (), ()), ("a", False, (), ()), ("b", False, (), ())]),
        ("x ^+mpi", [(None, False, (), ())]),
    ],
)
def test_dependencies(text: str, expected: list[Edge]) -> None:
    """Edges of both kinds carry their attributes, and old compiler names become packages."""
    assert edges(text) == expected


def test_options_after_a_compiler_belong_to_it() -> None:
    """Every option after `%gcc` is asked of gcc, as in Spack."""
    query = parse_query("zlib %gcc target=zen3 +x")
    assert query.target is None
    assert query.dependencies[0].node.target == "zen3"
    assert query.dependencies[0].node.variants[0].name == "x"


def test_a_compiler_after_a_dependency_belongs_to_it() -> None:
    """In `a ^b %gcc` the compiler is b's, and a second one stays with b."""
    (edge,) = parse_query("a ^b %gcc %cmake").dependencies
    assert [inner.node.name for inner in edge.node.dependencies] == ["gcc", "cmake"]


def test_conditions_of_edges_are_specs() -> None:
    """The condition of a dependency is read as a spec, commas and quotes included."""
    (edge,) = parse_query("x %%[when='+x %y'] z").dependencies
    (other,) = parse_query("""x ^[when="k=a,b cflags='-g -O2'"] z""").dependencies
    assert edge.when is not None and other.when is not None
    assert (spec_text(edge.when), edge.propagate) == ("+x %y", True)
    assert spec_text(other.when) == "k=a,b cflags='-g -O2'"
    assert parse_query(spec_text(parse_query("x %[when='+x'] z"))).dependencies[0].when is not None
    with pytest.raises(QuerySyntaxError):
        parse_query("x %[when='@@'] z")


@pytest.mark.parametrize(
    ("text", "column", "expected"),
    [
        ("", 0, "package name"),
        ("hdf5@", 4, "a version after '@'"),
        ("hdf5+", 4, "name of a variant"),
        ("hdf5 k=", 7, "a value"),
        ("hdf5 k='abc", 7, "a closing '"),
        ("namespace=builtin zlib", 18, "one spec"),
        ("zlib hdf5", 5, "one spec"),
        ("zlib,hdf5", 4, "','"),
        ("hdf5 @1 @2", 8, "one version list"),
        ("hdf5 +mpi ~mpi", 10, "each variant once"),
        ("hdf5 k=a,*", 5, "'*' alone"),
        ("hdf5@5:2", 4, "a version list"),
        ("target=zen3 target=zen4", 12, "one target"),
        ("os=* os=rhel8", 5, "one os"),
        ("arch=zen3 target=zen3", 10, "one target"),
        ("os=rhel8 architecture=zen3", 9, "arch= alone, or before the parts"),
        ("x ^libc=build_system=autotools", 8, "the name of a package after '^libc='"),
        ("x ^y@1 ^y@2", 0, "each dependency once"),
        ("arch=zen3 arch=linux-rhel8-None", 10, "arch= alone, or before the parts"),
        ("os==rhel8", 0, "one '='"),
        ("hdf5 namespace==builtin", 5, "one '='"),
        ("hdf5 +os", 5, "os= and a value"),
        ("target=,", 0, "a value for target"),
        ("/abc/def", 4, "one spec"),
        ("hdf5 %", 6, "the name of a package"),
        ("hdf5 % %gcc", 7, "the name of a package"),
        ("x ^y@1 ^y@2", 0, "each dependency once"),
        ("x %[deptypes=build] y %[deptypes=build,link] y", 0, "each dependency once"),
        ("%[foo=1] gcc", 2, "deptypes, virtuals, when"),
        ("%[virtuals=c gcc", 13, "closing ']'"),
        ("hdf5 ]", 5, "one spec"),
        ("./spec.json", 0, "not the name of a file"),
        ("hdf5 é", 5, "a variant"),
        ("x" * (MAX_LENGTH + 1), MAX_LENGTH, "at most 4096"),
    ],
)
def test_errors(text: str, column: int, expected: str) -> None:
    """A text that is no spec is refused where it goes wrong, with what should stand there."""
    with pytest.raises(QuerySyntaxError) as caught:
        parse_query(text)
    assert caught.value.column == column
    assert expected in caught.value.expected


def test_the_caret_stands_under_the_fault() -> None:
    """The message shows the query and a caret under the column that is named."""
    with pytest.raises(QuerySyntaxError) as caught:
        parse_query("hdf5\t+mpi ~mpi")
    first, query, caret, last = str(caught.value).splitlines()
    assert first.endswith("column 11")
    assert query[caret.index("^") :] == "~mpi"
    assert last == "a second 'mpi': expected each variant once"
