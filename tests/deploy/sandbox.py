"""Run a command as a systemd unit would:
`python -m tests.deploy.sandbox UNIT COMMAND...`.

System calls, address families, capabilities, privileges, environment, folder, files and
umask are limited by the kernel, without systemd; users, namespaces and control groups
are not.
"""

import ctypes
import errno
import os
import resource
import shlex
import socket
import sys
from pathlib import Path

from tests.processes import completed

Unit = dict[str, list[str]]

CAPABILITIES = {"CAP_DAC_OVERRIDE": 1}
_LAST_CAPABILITY = 63
_PR_CAPBSET_DROP = 24
_PR_SET_NO_NEW_PRIVS = 38
_ALLOW = 0x7FFF0000
_KILL = 0x80000000
_ERRNO = 0x00050000
_EQUAL = 4
_FAMILIES = range(1, 46)


class _Comparison(ctypes.Structure):
    """libseccomp's `struct scmp_arg_cmp`."""

    _fields_ = (
        ("arg", ctypes.c_uint),
        ("op", ctypes.c_int),
        ("a", ctypes.c_uint64),
        ("b", ctypes.c_uint64),
    )


def read_unit(path: Path) -> Unit:
    """Return the values of each setting of a unit file; `%i` is what follows `@` in its
    name.
    """
    instance = path.stem.partition("@")[2]
    unit: Unit = {}
    for line in template_of(path).read_text(encoding="utf-8").splitlines():
        if "=" in line and not line.startswith("#"):
            name, _, value = line.partition("=")
            unit.setdefault(name, []).append(value.replace("%i", instance))
    return unit


def template_of(path: Path) -> Path:
    """Return the file of an instance: `a@1.service` is made from `a@.service`."""
    name, at, _ = path.stem.partition("@")
    return path.with_name(f"{name}{at}{path.suffix}")


def allowed_calls(unit: Unit) -> set[str]:
    """Return the system calls that a unit may use (systemd.exec(5),
    `SystemCallFilter=`).
    """
    groups = _groups()
    found = _calls(groups, "@default")
    for line in unit["SystemCallFilter"]:
        names = line.removeprefix("~").split()
        calls = {call for name in names for call in _calls(groups, name)}
        found = found - calls if line.startswith("~") else found | calls
    return found


def _groups() -> dict[str, list[str]]:
    """Return what stands in each group of system calls: calls, and other groups."""
    said = completed(["systemd-analyze", "syscall-filter"], check=True)
    groups: dict[str, list[str]] = {}
    for line in said.stdout.splitlines():
        if line.startswith("@"):
            members = groups.setdefault(line, [])
        elif line.startswith(" ") and not line.strip().startswith("#"):
            members.append(line.strip())
    return groups


def _calls(groups: dict[str, list[str]], name: str) -> set[str]:
    if not name.startswith("@"):
        return {name}
    return {call for each in groups[name] for call in _calls(groups, each)}


def apply(unit: Unit) -> None:
    """Put this process under the unit's settings."""
    calls = allowed_calls(unit)
    for text in unit.get("Environment", ()):
        os.environ.update(each.partition("=")[::2] for each in shlex.split(text))
    for name in unit.get("EnvironmentFile", ()):
        text = Path(name).read_text(encoding="utf-8")
        os.environ.update(line.partition("=")[::2] for line in text.splitlines())
    for folder in unit.get("WorkingDirectory", ()):
        os.chdir(folder)
    for text in unit.get("LimitNOFILE", ()):
        resource.setrlimit(resource.RLIMIT_NOFILE, (int(text), int(text)))
    for text in unit.get("UMask", ()):
        os.umask(int(text, 8))
    if os.geteuid() == 0:
        _drop_capabilities(unit)
    _checked(ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    _restrict_families(
        {name for line in unit["RestrictAddressFamilies"] for name in line.split()}
    )
    refused = [
        _ERRNO | getattr(errno, name) for name in unit.get("SystemCallErrorNumber", ())
    ]
    action = refused[0] if refused else _KILL
    _restrict_calls(calls, action)


def call_number(name: str) -> int:
    """Return the number of a system call on this machine; below zero if it has none."""
    return int(_library().seccomp_syscall_resolve_name(name.encode()))


def _drop_capabilities(unit: Unit) -> None:
    kept = {
        CAPABILITIES[name]
        for line in unit["CapabilityBoundingSet"]
        for name in line.split()
    }
    for number in set(range(_LAST_CAPABILITY + 1)) - kept:
        # Numbers that this kernel does not know are refused.
        ctypes.CDLL(None).prctl(_PR_CAPBSET_DROP, number, 0, 0, 0)


def _restrict_families(names: set[str]) -> None:
    seccomp = _library()
    context = ctypes.c_void_p(seccomp.seccomp_init(_ALLOW))
    for family in set(_FAMILIES) - {int(getattr(socket, name)) for name in names}:
        rule = _Comparison(0, _EQUAL, family, 0)
        refused = _ERRNO | errno.EAFNOSUPPORT
        _checked(
            seccomp.seccomp_rule_add_array(
                context, refused, call_number("socket"), 1, ctypes.byref(rule)
            )
        )
    _checked(seccomp.seccomp_load(context))


def _restrict_calls(calls: set[str], refused: int) -> None:
    seccomp = _library()
    context = ctypes.c_void_p(seccomp.seccomp_init(refused))
    for name in sorted(calls):
        number = call_number(name)
        if number >= 0:
            _checked(seccomp.seccomp_rule_add_array(context, _ALLOW, number, 0, None))
    _checked(seccomp.seccomp_load(context))


def _library() -> ctypes.CDLL:
    library = ctypes.CDLL("libseccomp.so.2")
    library.seccomp_init.restype = ctypes.c_void_p
    library.seccomp_init.argtypes = [ctypes.c_uint32]
    library.seccomp_rule_add_array.argtypes = [
        ctypes.c_void_p,
        ctypes.c_uint32,
        ctypes.c_int,
        ctypes.c_uint,
        ctypes.c_void_p,
    ]
    return library


def _checked(result: int) -> None:
    if result != 0:
        raise OSError(
            -result, f"the kernel refuses the sandbox: {os.strerror(abs(result))}"
        )


def main() -> None:
    """Run the command in the sandbox of the unit."""
    unit, *command = sys.argv[1:]
    apply(read_unit(Path(unit)))
    words = [word for each in command for word in _expanded(each)]
    os.execvp(words[0], words)


def _expanded(word: str) -> list[str]:
    """Return the words that one stands for: `$NAME` is split at blanks
    (systemd.service(5)).
    """
    return os.environ[word[1:]].split() if word.startswith("$") else [word]


if __name__ == "__main__":
    main()
