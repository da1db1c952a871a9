"""The keys that Spack knows in a `spack.yaml`, as one table.

`key_check` compares configurations with it, so that a misspelt key is reported. The
table has the keys of Spack 1.2 (its folder `schema`), and those that only Spack 0.16 to
1.1 accepted. `deprecation` and `backwards_compat` are of newer versions.

Each paragraph of the table is about a section, and each line about a mapping: its path
below `spack:`, then its keys. In a path, `*` is any key, and `[]` any item of a list:

    packages/*/require/[] any_of message one_of spec when
    concretizer/reuse? exclude from include roots

So the requirements of a package, such as `{one_of: ['@1', '@2'], when: +pic}`, have the
five keys of the first line. A `?` at the end of a path is not part of it: there, Spack
ignores unknown keys instead of refusing them. Mappings without a line have any keys.
"""

from __future__ import annotations

from dataclasses import dataclass, field

_TABLE = """
/ bootstrap cdash ci compilers concretizer config container definitions develop env_vars include
  include_concrete mirrors modules packages repos specs toolchains upstreams view
  concretization gitlab-ci projections

packages/all buildable compiler conflict package_attributes permissions prefer providers require
  target variants modules paths version deprecation
packages/* buildable conflict externals package_attributes permissions prefer require variants
  version compiler modules paths providers target deprecation
packages/*/require/[] any_of message one_of spec when
packages/*/prefer/[] message spec when
packages/*/conflict/[] message spec when
packages/*/permissions group read write
packages/*/externals/[] dependencies extra_attributes id modules prefix spec
packages/*/externals/[]/dependencies/[]? deptypes id spec virtuals
packages/*/externals/[]/extra_attributes/environment append_path prepend_path remove_path set unset
packages/*/externals/[]/extra_attributes/flags cflags cppflags cxxflags fflags ldflags ldlibs

concretizer compiler_mixing concretization_cache duplicates error_on_timeout externals force
  os_compatible reuse splice static_analysis targets timeout unify enable_node_namespace
concretizer/reuse? exclude from include roots
concretizer/reuse/from/[]? exclude include path type
concretizer/splice automatic explicit
concretizer/splice/explicit/[] replacement target transitive

mirrors/* access_pair access_token_variable autopush binary endpoint_url exclude_binary fetch
  include_binary profile push signed source url view access_token
mirrors/*/fetch access_pair access_token_variable endpoint_url exclude_binary include_binary
  profile url view access_token
mirrors/*/push access_pair access_token_variable endpoint_url exclude_binary include_binary
  profile url view access_token

toolchains/*/[]? spec when
develop/* path spec
view/* exclude group link link_dirs link_type projections root select
repos/* branch commit destination git paths tag
upstreams/* install_tree modules
env_vars append_path prepend_path remove_path set unset
config/sandbox allow_network allow_read allow_write enable
cdash build-group project site url
bootstrap/sources/[] metadata name description info type

ci/pipeline-gen/[] any-job any-job-remove build-job build-job-remove cleanup-job cleanup-job-remove
  copy-job copy-job-remove dynamic-mapping match_behavior noop-job noop-job-remove reindex-job
  reindex-job-remove signing-job signing-job-remove submapping
ci/pipeline-gen/[]/submapping/[] build-job build-job-remove match

compilers/[] compiler
compilers/[]/compiler alias environment extra_rpaths flags implicit_rpaths modules operating_system
  paths spec target
compilers/[]/compiler/environment append_path prepend_path remove_path set unset
compilers/[]/compiler/flags cflags cppflags cxxflags fflags ldflags ldlibs
compilers/[]/compiler/paths cc cxx f77 fc

container depfile docker format images labels os_packages singularity strip template
  extra_instructions
container/images build final os spack
container/images/spack ref resolve_sha url verify
container/docker
container/os_packages build command final update
container/singularity help runscript startscript test

modules/* arch_folder enable lmod prefix_inspections roots tcl use_view dotkit
modules/*/*/* autoload conflict environment filter load prerequisites suffixes template
modules/*/*/*/environment append_path prepend_path remove_path set unset
modules/*/*/*/filter exclude_env_vars environment_blacklist
"""
"""The keys of each mapping, old ones last; `/` is the path of `spack:` itself. An
indented line continues the line before it.
"""

_ANY_KEYS = (
    "modules/prefix_inspections",
    # Before Spack 0.18, the kinds of modules were not in a named set.
    "modules/dotkit",
    "modules/lmod",
    "modules/tcl",
    "modules/*/*/filter_hierarchy_specs",
    "modules/*/*/projections",
)
"""Mappings of any keys. Without a path of its own, `modules/prefix_inspections` would
have the keys of `modules/*`.
"""

KEYS_OF_A_GROUP = frozenset(
    ("exclude", "explicit", "group", "matrix", "needs", "override", "specs")
)
"""The keys of a group, which is a mapping in `specs:` with specs of its own."""
KEYS_OF_A_MATRIX = frozenset(("exclude", "matrix"))
"""The keys of a matrix, which is a mapping in a list of specs."""
_INCLUDE = """
branch commit git name optional path path_override_env_var paths prefer_modify sha256 tag when
backwards_compat
"""
KEYS_OF_AN_INCLUDE = frozenset(_INCLUDE.split())
"""The keys of a mapping in `include:`."""


@dataclass(slots=True)
class KnownValue:
    """A value in a configuration, as Spack's schema describes it.

    Attributes:
        keys: the keys that it has as a mapping; None for any keys.
        ignores_unknown: whether Spack ignores other keys instead of refusing them.
        below: the values of its keys, with `*` for any other key, and `[]` for the
            items of a list.
    """

    keys: frozenset[str] | None = None
    ignores_unknown: bool = False
    below: dict[str, KnownValue] = field(default_factory=dict)

    def at(self, path: str) -> KnownValue:
        """Return the value at a path below this one; a missing one is added.

        For example `packages/*/require/[]`; `/` is the value itself.
        """
        value = self
        for part in path.split("/"):
            # `/` has no parts but empty ones.
            if part:
                value = value.below.setdefault(part, KnownValue())
        return value


def _read_table() -> KnownValue:
    """Return the value of `spack:`, with all values below it."""
    root = KnownValue()
    one_line_each = _TABLE.replace("\n  ", " ")
    for line in one_line_each.splitlines():
        # Blank lines separate the sections.
        if not line:
            continue
        path, *keys = line.split()
        value = root.at(path.rstrip("?"))
        value.keys = frozenset(keys)
        value.ignores_unknown = path.endswith("?")

    # A path of its own has precedence over one with `*`.
    for path in _ANY_KEYS:
        root.at(path)

    # `all` has other keys than a package, but the same values below them.
    packages = root.at("packages")
    packages.below["all"].below = packages.below["*"].below
    return root


ROOT = _read_table()
"""The value of `spack:`."""
SECTIONS_OF_SPACK = ROOT.keys or frozenset()
"""The keys below `spack:`; never empty."""
