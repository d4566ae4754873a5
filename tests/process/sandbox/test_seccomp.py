"""The filter as the kernel would run it: an interpreter of classic BPF judges single calls."""

import struct

import pytest

from codewhale.process.sandbox.landlock import (
    EAFNOSUPPORT,
    ENOSYS,
    EPERM,
    ISOLATION,
    SeccompFilter,
    asked_calls,
    build_filter,
    machine_known,
)

ASKED = -1
ARCHES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
NUMBERS = {
    "x86_64": {"read": 0, "open": 2, "ioctl": 16, "shmget": 29, "socket": 41, "clone": 56, "chmod": 90, "mount": 165,
               "keyctl": 250, "openat": 257, "unshare": 272, "utimensat": 280, "prlimit64": 302, "clone3": 435},
    "aarch64": {"read": 63, "ioctl": 29, "shmget": 194, "socket": 198, "clone": 220, "fchmodat": 53, "mount": 40,
                "keyctl": 219, "openat": 56, "unshare": 97, "utimensat": 88, "prlimit64": 261, "clone3": 435},
}  # fmt: skip

# Calls by which a process makes, becomes or reaches into another one.
ALONE = {
    "x86_64": {"fork": 57, "vfork": 58, "execve": 59, "ptrace": 101, "process_vm_readv": 310, "process_vm_writev": 311,
               "memfd_create": 319, "execveat": 322, "socketpair": 53},
    "aarch64": {"execve": 221, "ptrace": 117, "process_vm_readv": 270, "process_vm_writev": 271, "memfd_create": 279,
                "execveat": 281, "socketpair": 199},
}  # fmt: skip


def judged(code: bytes, arch: int, number: int, *arguments: int) -> int:
    """0 when a call is let through, ASKED when a broker answers, else the error it gets."""
    data = struct.pack("<IIQ6Q", number, arch, 0, *arguments, *(0,) * (6 - len(arguments)))
    program = list(struct.iter_unpack("<HBBI", code))
    place, held = 0, 0
    while True:
        operation, yes, no, value = program[place]
        place += 1
        if operation == 0x20:
            (held,) = struct.unpack_from("<I", data, value)
        elif operation == 0x06:
            return {0x7FFF0000: 0, 0x7FC00000: ASKED}.get(value, value & 0xFFFF)
        else:
            met = {0x15: held == value, 0x35: held >= value, 0x45: bool(held & value)}[operation]
            place += yes if met else no


@pytest.mark.parametrize("machine", ARCHES)
def test_the_same_calls_are_refused_on_each_kind_of_machine(machine: str) -> None:
    arch, numbers = ARCHES[machine], NUMBERS[machine]
    for bare in (False, True):
        code = build_filter(SeccompFilter(bare=bare), machine)
        assert judged(code, arch, numbers["read"], 3) == 0
        assert judged(code, arch, numbers["mount"]) == judged(code, arch, numbers["keyctl"]) == EPERM
        assert judged(code, arch, numbers["clone3"]) == ENOSYS
        assert judged(code, arch, numbers["clone"], 0x11) == 0
        assert judged(code, arch, numbers["clone"], 0x10000011) == judged(code, arch, numbers["unshare"], 1 << 28) == 1
        assert judged(code, arch, numbers["unshare"], 0x400) == 0
        assert judged(code, arch, numbers["ioctl"], 0, 0x5412) == judged(code, arch, numbers["ioctl"], 0, 0x541C) == 1
        assert judged(code, arch, numbers["ioctl"], 0, 0x5401) == 0
        assert judged(code, arch, numbers["openat"], 0, 0, 0o101, 0o644) == 0
        assert judged(code, arch, numbers["openat"], 0, 0, 0o101, 0o4755) == EPERM
        assert judged(code, 0x40000003, numbers["read"]) == EPERM
        assert len(code) // 8 <= 4096


@pytest.mark.parametrize("machine", ARCHES)
def test_without_namespaces_more_is_refused(machine: str) -> None:
    arch, numbers = ARCHES[machine], NUMBERS[machine]
    inside, bare = build_filter(SeccompFilter(), machine), build_filter(SeccompFilter(bare=True), machine)
    assert judged(inside, arch, numbers["utimensat"]) == 0 and judged(bare, arch, numbers["utimensat"]) == EPERM
    assert judged(inside, arch, numbers["shmget"]) == 0 and judged(bare, arch, numbers["shmget"]) == EPERM
    assert judged(bare, arch, numbers["prlimit64"], 0) == 0 and judged(bare, arch, numbers["prlimit64"], 7) == EPERM


@pytest.mark.parametrize("machine", ARCHES)
def test_what_is_isolated_has_threads_and_no_processes_and_what_is_sealed_stays_what_it_is(machine: str) -> None:
    arch, numbers = ARCHES[machine], {**NUMBERS[machine], **ALONE[machine]}
    isolated = build_filter(ISOLATION, machine)
    sealed = build_filter(SeccompFilter(bare=True, isolated=True, sealed=True), machine)
    for code in (isolated, sealed):
        refused = [name for name in ALONE[machine] if judged(code, arch, numbers[name]) == EPERM]
        assert {"ptrace", "socketpair", "process_vm_readv"} <= set(refused)
        assert set(ALONE[machine]) - set(refused) == (
            set() if code is sealed else {"execve", "execveat", "memfd_create"}
        )
        assert judged(code, arch, numbers["clone"], 0x11) == judged(code, arch, numbers["clone"], 0x4111) == EPERM
        assert judged(code, arch, numbers["clone"], 0x3D0F00) == 0 and judged(code, arch, numbers["clone3"]) == ENOSYS
        assert all(judged(code, arch, numbers["socket"], family) == EPERM for family in (1, 2, 10, 16, 38))
        assert judged(code, arch, numbers["read"]) == judged(code, arch, numbers["openat"]) == 0
    bare = build_filter(SeccompFilter(bare=True), machine)
    assert all(judged(bare, arch, number) == 0 for number in ALONE[machine].values())


@pytest.mark.parametrize("machine", ARCHES)
def test_a_broker_is_asked_about_what_changes_names_alone(machine: str) -> None:
    arch, numbers = ARCHES[machine], NUMBERS[machine]
    code = build_filter(SeccompFilter(bare=True, asks=True), machine)
    calls = {name: number for name, number in asked_calls(machine).items() if name != "seccomp"}
    assert {"mkdirat", "unlinkat", "renameat2", "linkat", "symlinkat", "openat", "fchmodat"} < set(calls)
    for name in set(calls) - {"open", "openat"}:
        assert judged(code, arch, calls[name]) == ASKED, name
        assert judged(build_filter(SeccompFilter(bare=True), machine), arch, calls[name]) != ASKED
    for flags, answer in ((0, 0), (0o2000000, 0), (1, ASKED), (2, ASKED), (0o100, ASKED), (0o1000, ASKED)):
        assert judged(code, arch, numbers["openat"], 0, 0, flags, 0o644) == answer
    assert judged(code, arch, numbers["openat"], 0, 0, 0o101, 0o4755) == EPERM
    assert judged(code, arch, calls["fchmodat"], 0, 0, 0o4755) == EPERM == judged(code, arch, numbers["mount"])
    assert len(code) // 8 <= 4096


@pytest.mark.parametrize("machine", ARCHES)
def test_families_of_sockets(machine: str) -> None:
    arch, socket = ARCHES[machine], NUMBERS[machine]["socket"]
    table = {
        SeccompFilter(): {1, 2, 10, 16},
        SeccompFilter(network=True): {1, 2, 10, 16},
        SeccompFilter(bare=True): set(),
        SeccompFilter(bare=True, network=True): {2, 10, 16},
    }
    for wanted, families in table.items():
        code = build_filter(wanted, machine)
        assert {family for family in range(46) if judged(code, arch, socket, family) == 0} == families
    assert judged(build_filter(SeccompFilter(), machine), arch, socket, 40) == EAFNOSUPPORT


def test_x32_calls_and_unknown_machines_are_refused() -> None:
    assert judged(build_filter(SeccompFilter(), "x86_64"), ARCHES["x86_64"], 0x40000000) == EPERM
    assert not machine_known("vax")
    with pytest.raises(KeyError):
        build_filter(SeccompFilter(), "vax")
