"""spack.parser and spack.lexer: Spack's spec syntax, and its errors."""

from typing import Any

import pytest

from spack_cache_db.spack.lexer import MAX_LENGTH, QuerySyntaxError
from spack_cache_db.spack.parser import parse_query
from spack_cache_db.spack.printing import spec_text
from spack_cache_db.spack.queries import Flag

COMMIT = "a1" * 20


def parsed(text: str) -> dict[str, Any]:
    """Return the conditions of a query that are not empty."""
    query = parse_query(text)
    names = ("name", "namespace", "hash", "os", "platform", "target")
    fields: dict[str, Any] = {name: getattr(query, name) for name in names}
    fields["versions"] = query.versions and query.versions.text
    fields["variants"] = [
        (
            constraint.name,
            constraint.values,
            constraint.kind,
            constraint.exact,
            constraint.propagate,
        )
        for constraint in query.variants
    ]
    fields["edges"] = [
        (edge.node.name, edge.direct, edge.virtuals, edge.deptypes)
        for edge in query.dependencies
    ]
    return {name: value for name, value in fields.items() if value}


@pytest.mark.parametrize(
    ("text", "conditions"),
    [
        # Names and namespaces; a star is any package.
        ("hdf5", {"name": "hdf5"}),
        ("py-torch", {"name": "py-torch"}),
        ("7zip", {"name": "7zip"}),
        ("builtin.hdf5", {"name": "hdf5", "namespace": "builtin"}),
        ("a.b.c", {"name": "c", "namespace": "a.b"}),
        ("namespace=builtin", {"namespace": "builtin"}),
        ("*", {}),
        # A version list is taken whole, and ends at the next option.
        ("hdf5@1.14", {"name": "hdf5", "versions": "1.14"}),
        ("hdf5@=1.14", {"name": "hdf5", "versions": "=1.14"}),
        ("hdf5@1.12:1.14", {"name": "hdf5", "versions": "1.12:1.14"}),
        ("@:1.14", {"versions": ":1.14"}),
        ("hdf5 @1, 2 ,3:", {"name": "hdf5", "versions": "1,2,3:"}),
        ("hdf5@git.feature/x=1.14", {"name": "hdf5", "versions": "git.feature/x=1.14"}),
        (f"hdf5@{COMMIT}=1.3", {"name": "hdf5", "versions": f"{COMMIT}=1.3"}),
        (
            "hdf5@1.12:target=zen3",
            {"name": "hdf5", "target": "zen3", "versions": "1.12:"},
        ),
        (
            "@1.12+x",
            {"versions": "1.12", "variants": [("x", ("true",), "bool", True, False)]},
        ),
        ("hdf5@1.12-mpi", {"name": "hdf5", "versions": "1.12-mpi"}),
        # Name, values, kind, whether these are all, whether dependencies have them too.
        ("+mpi", {"variants": [("mpi", ("true",), "bool", True, False)]}),
        (
            "hdf5~mpi",
            {"name": "hdf5", "variants": [("mpi", ("false",), "bool", True, False)]},
        ),
        (
            "hdf5 -mpi",
            {"name": "hdf5", "variants": [("mpi", ("false",), "bool", True, False)]},
        ),
        (
            "hdf5+ mpi",
            {"name": "hdf5", "variants": [("mpi", ("true",), "bool", True, False)]},
        ),
        ("++pic", {"variants": [("pic", ("true",), "bool", True, True)]}),
        ("~~pic", {"variants": [("pic", ("false",), "bool", True, True)]}),
        ("mpi=True", {"variants": [("mpi", ("true",), "bool", True, False)]}),
        ("libs=b,a", {"variants": [("libs", ("a", "b"), "multi", False, False)]}),
        ("libs:=b,a", {"variants": [("libs", ("a", "b"), "multi", True, False)]}),
        ("libs==static", {"variants": [("libs", ("static",), "multi", False, True)]}),
        ("api=*", {"variants": [("api", (), "multi", False, False)]}),
        ("api='*'", {"variants": [("api", (), "multi", False, False)]}),
        (
            "languages='c,c++'",
            {"variants": [("languages", ("c", "c++"), "multi", False, False)]},
        ),
        ("k='a b'", {"variants": [("k", ("a b",), "multi", False, False)]}),
        ("k='it\\'s'", {"variants": [("k", ("it's",), "multi", False, False)]}),
        ('k="a\'b"', {"variants": [("k", ("a'b",), "multi", False, False)]}),
        (
            "dev_path=/a,b",
            {"variants": [("dev_path", ("/a,b",), "multi", False, False)]},
        ),
        # None and nothing are no part of an architecture, and a star is any.
        ("target=zen3", {"target": "zen3"}),
        (
            "arch=linux-debian12-zen3",
            {"os": "debian12", "platform": "linux", "target": "zen3"},
        ),
        ("arch=linux-None-zen3", {"platform": "linux", "target": "zen3"}),
        ("arch=zen3", {"target": "zen3"}),
        ("os=rhel8 platform=linux", {"os": "rhel8", "platform": "linux"}),
        ("operating_system=rhel8", {"os": "rhel8"}),
        ("target=x86_64:zen3,m1", {"target": "x86_64:zen3,m1"}),
        ("os=* platform=* target=*", {}),
        ("arch=linux-*-zen4", {"platform": "linux", "target": "zen4"}),
        ("arch=*-*-*", {}),
        ("os='*' target=zen3", {"target": "zen3"}),
        ("arch=zen3 os=rhel8", {"os": "rhel8", "target": "zen3"}),
        # Name, whether it is direct, virtuals and types; old compilers become packages.
        ("x %gcc@13", {"name": "x", "edges": [("gcc", True, (), ())]}),
        ("%clang", {"edges": [("llvm", True, (), ())]}),
        ("%oneapi", {"edges": [("intel-oneapi-compilers", True, (), ())]}),
        ("^clang", {"edges": [("clang", False, (), ())]}),
        ("x %c,cxx=gcc", {"name": "x", "edges": [("gcc", True, ("c", "cxx"), ())]}),
        (
            "%[virtuals=c,d deptypes=run] x",
            {"edges": [("x", True, ("c", "d"), ("run",))]},
        ),
        (
            "x %[deptypes=build] c=gcc",
            {"name": "x", "edges": [("gcc", True, ("c",), ("build",))]},
        ),
        (
            "x ^mpi=openmpi@4",
            {"name": "x", "edges": [("openmpi", False, ("mpi",), ())]},
        ),
        (
            "x ^[virtuals=mpi] openmpi",
            {"name": "x", "edges": [("openmpi", False, ("mpi",), ())]},
        ),
        ("%gcc ^a", {"edges": [("gcc", True, (), ()), ("a", False, (), ())]}),
        ("x ^+mpi", {"name": "x", "edges": [(None, False, (), ())]}),
    ],
)
def test_each_form_is_read(text: str, conditions: dict[str, Any]) -> None:
    """Nothing but these conditions."""
    assert parsed(text) == conditions


def test_flags_and_hash() -> None:
    """Compiler flags keep their text, and a hash is a prefix without its slash."""
    query = parse_query("zlib cflags='-O2 -g' ldflags==-Wl,-z /abc123")

    assert query.flags == (
        Flag("cflags", "-O2 -g", False, 5),
        Flag("ldflags", "-Wl,-z", True, 21),
    )
    assert query.hash == "abc123"


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
    assert spec_text(edge.when) == "+x %y"
    assert edge.propagate is True
    assert spec_text(other.when) == "k=a,b cflags='-g -O2'"
    assert (
        parse_query(spec_text(parse_query("x %[when='+x'] z"))).dependencies[0].when
        is not None
    )
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
    """A text that is no spec is refused where it goes wrong, with what should stand
    there.
    """
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
