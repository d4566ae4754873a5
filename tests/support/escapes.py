"""Ways out of the sandbox: small programs that each try one, and print ESCAPED where only they can tell.

They are given what is around them as `at` (see support.escapeworld) and run by the system's Python in a workspace.
`reads`: Landlock cannot hide what may be read, so there it is not promised. `writes`: only where the workspace is open.
"""

from msgspec import Struct

from support.plantings import PLANTINGS


class Probe(Struct, frozen=True):
    """One way out; `network` where the command is one that may have it, `planting` where its code is a shell line of
    support.plantings."""

    name: str
    code: str
    reads: bool = False
    writes: bool = False
    network: bool = False
    planting: bool = False


PRELUDE = """
import ctypes, errno, fcntl, json, os, signal, socket, stat, sys, termios, time
at = json.loads(sys.argv[1]); out = at['out']; ws = at['workspace']; victim = at['victim']
libc = ctypes.CDLL(None, use_errno=True)
packages = ws + '/tools/env/site-packages'; own_code = packages + '/mod.py'
MOUNT, UMOUNT, UNSHARE = (165, 166, 272) if os.uname().machine == 'x86_64' else (40, 39, 97)
def escaped(why=''): print('ESCAPED', why, flush=True)
def syscall(*args):
    ctypes.set_errno(0); got = libc.syscall(*[ctypes.c_long(a) if isinstance(a, int) else a for a in args])
    return got, ctypes.get_errno()
def refused(*args):
    got, error = syscall(*args)
    if error not in (errno.EPERM, errno.ENOSYS, errno.EACCES): escaped(f'{args} {got} {error}')
KEYS = (248, 249, 250) if UNSHARE == 272 else (217, 218, 219)
def put(path, text='PWNED'): open(path, 'w').write(text)
try:
"""
EPILOGUE = """
except (OSError, AttributeError) as error: print('refused', error)
"""


def program(probe: Probe) -> str:
    """The text that tries one."""
    return PRELUDE + "".join(f"    {line}\n" for line in probe.code.strip().splitlines()) + EPILOGUE


_OUTSIDE = {
    "make a file outside": "put(out + '/new')",
    "make a file at the root of the machine": "put('/PWNED-new'); escaped()",
    "append to a file outside": "open(out + '/file', 'a').write('PWNED')",
    "truncate a file outside": "os.truncate(out + '/file', 0)",
    "truncate by opening for reading": "os.open(out + '/file', os.O_RDONLY | os.O_TRUNC)",
    "remove a file outside": "os.unlink(out + '/file')",
    "rename a file outside": "os.rename(out + '/file', out + '/renamed')",
    "make a folder outside": "os.mkdir(out + '/folder2')",
    "remove a folder outside": "os.rmdir(out + '/empty')",
    "make a pipe outside": "os.mkfifo(out + '/pipe')",
    "make a link outside": "os.symlink('/etc', out + '/link')",
    "write through a link": "os.symlink(out + '/file', '{own}/l'); put('{own}/l')",
    "write through a linked folder": "os.symlink(out, '{own}/d'); put('{own}/d/new')",
    "write through a second name": "os.link(out + '/file', '{own}/h'); put('{own}/h')",
    "take a file in from outside": "os.rename(out + '/file', '{own}/taken')",
    "change a mode outside": "os.chmod(out + '/file', 0o777)",
    "change a mode by descriptor": "os.fchmod(os.open(out + '/file', os.O_RDONLY), 0o777)",
    "change a mode relative to a folder": "os.chmod('file', 0o777, dir_fd=os.open(out, os.O_RDONLY))",
    "change times outside": "os.utime(out + '/file', (1, 1))",
    "change times by descriptor": "os.utime(os.open(out + '/file', os.O_RDONLY), (1, 1))",
    "touch by descriptor": "os.utime(os.open(out + '/file', os.O_RDONLY))",
    "change an owner outside": "os.chown(out + '/file', 12345 if os.getuid() == 0 else -1, 12345)",
    "set an attribute outside": "os.setxattr(out + '/file', 'user.pwned', b'1')",
    "write by the root of process 1": "put('/proc/1/root' + out + '/new')",
    "write by the folder of the harness": "put(f'/proc/{victim}/cwd/new')",
    "leave by the parent folder": "put(ws + '/../out/new')",
    "write to the machine's /tmp": "put('/tmp/' + at['mark'])",
    "write to the machine's /var/tmp": "put('/var/tmp/' + at['mark'])",
    "change shared memory files": "put('/dev/shm/' + at['mark'])",
    "mark the workspace in place of its parent": "os.rename(ws, ws + '2')",
    "keep a writable descriptor": (
        "for fd in map(int, os.listdir('/proc/self/fd')):\n"
        "    if fd > 2 and os.path.exists(f'/proc/self/fd/{fd}') and not os.readlink(f'/proc/self/fd/{fd}').startswith"
        "('/proc'): escaped(os.readlink(f'/proc/self/fd/{fd}'))"
    ),
}
_KERNEL = {
    "mount over what is read-only": "refused(MOUNT, b'/', b'/', None, 4096 | 32, None); put(out + '/new')",
    "mount a file system": "refused(MOUNT, b'x', b'/mnt', b'tmpfs', 0, None)",
    "unmount": "refused(UMOUNT, b'/proc', 2); refused(UMOUNT, out.encode(), 2)",
    "new namespaces": "[refused(UNSHARE, flag) for flag in (0x10000000, 0x10020000, 0x20000, 0x40000000)]",
    "new namespaces by clone3": "refused(435, ctypes.create_string_buffer(88), 88)",
    "change the root": "os.chroot(out); escaped()",
    "enter the namespaces of process 1": "fd = os.open('/proc/1/ns/mnt', os.O_RDONLY); refused(308, fd, 0)",
    "new ways to mount": "[refused(number, 0, 0, 0, 0, 0) for number in (428, 429, 430, 431, 432, 433, 442)]",
    "keyrings": "[refused(number, 0, 0, 0, 0, 0) for number in KEYS]",
    "io_uring": "[refused(number, 1, 0, 0, 0, 0) for number in (425, 426, 427)]",
    "programs in the kernel": "refused(321 if UNSHARE == 272 else 280, 0, 0, 0)",
    "faults in the hands of a user": "refused(323 if UNSHARE == 272 else 282, 1)",
    "counting events": "refused(298 if UNSHARE == 272 else 241, 0, 0, -1, -1, 0)",
    "files by handle": "refused(304 if UNSHARE == 272 else 265, -100, 0, 0)",
    "a kernel to boot": "refused(246 if UNSHARE == 272 else 104, 0, 0, 0, 0)",
    "typing into a terminal": (
        "try: fcntl.ioctl(0, 0x5412, b'x'); escaped()\n"
        "except OSError as error: error.errno in (errno.EPERM, errno.EACCES) or escaped(error)"
    ),
    "the kernel's settings": "open('/proc/sys/kernel/core_pattern', 'a'); escaped()",
    "the kernel's trigger": "open('/proc/sysrq-trigger', 'w'); escaped()",
    "devices' settings": "open('/sys/kernel/mm/ksm/run', 'w'); escaped()",
    "control groups": (
        "for top, folders, _ in list(os.walk('/sys/fs/cgroup'))[:20]:\n"
        "    try: os.mkdir(top + '/pwned'); os.rmdir(top + '/pwned'); escaped(top)\n"
        "    except OSError: pass"
    ),
    "the disk itself": (
        "for name in ('/dev/vda', '/dev/sda', '/dev/nvme0n1', '/dev/mem', '/dev/kmsg', '/dev/fuse'):\n"
        "    try: os.open(name, os.O_RDWR); escaped(name)\n"
        "    except OSError: pass"
    ),
    "a device of one's own": "os.mknod('{own}/disk', stat.S_IFBLK | 0o600, os.makedev(254, 0)); escaped()",
    "a set-id program": (
        "put('{own}/s'); os.chmod('{own}/s', 0o4755); os.stat('{own}/s').st_mode & 0o6000 and escaped()"
    ),
    "a set-id program by opening": (
        "os.umask(0); os.close(os.open('{own}/s', os.O_CREAT | os.O_WRONLY, 0o4755))\n"
        "if os.stat('{own}/s').st_mode & 0o6000: escaped()"
    ),
    "rights kept": (
        "status = dict(line.split(':', 1) for line in open('/proc/self/status'))\n"
        "if status['NoNewPrivs'].strip() != '1' or int(status['CapEff'], 16) or int(status['CapBnd'], 16) and "
        "os.getuid() == 0: escaped(status['CapEff'])"
    ),
    "core files": "import resource\nif resource.getrlimit(resource.RLIMIT_CORE)[1]: escaped()",
}
_OTHERS = {
    "end the harness": "os.kill(victim, signal.SIGKILL)",
    "end it by descriptor": "signal.pidfd_send_signal(os.pidfd_open(victim), signal.SIGKILL)",
    "end its group": "os.killpg(victim, signal.SIGKILL)",
    "end the launcher": "os.kill(os.getppid(), 0) if os.getppid() > 2 else 0\nos.kill(at['parent'], 0); escaped()",
    "trace it": "refused(101 if UNSHARE == 272 else 117, 16, victim, 0, 0) if os.path.exists(f'/proc/{victim}') else 0",
    "read its memory": "open(f'/proc/{victim}/mem', 'rb').read(1); escaped()",
    "read its environment": "print(open(f'/proc/{victim}/environ').read())",
    "read its environment by the parent": "print(open(f'/proc/{os.getppid()}/environ').read())",
    "take its descriptors": "fd = os.pidfd_open(victim); refused(438, fd, 0, 0)",
    "bound its resources": "import resource\nresource.prlimit(victim, resource.RLIMIT_NOFILE, (4, 4)); escaped()",
    "slow it down": "os.setpriority(os.PRIO_PROCESS, victim, 19); escaped()",
    "shared memory": (
        "got = libc.shmget(at['key'], 16, 0)\n"
        "if got >= 0:\n"
        "    libc.shmat.restype = ctypes.c_void_p; place = libc.shmat(got, None, 0)\n"
        "    if place and place != ctypes.c_void_p(-1).value: escaped(ctypes.string_at(place, 8))"
    ),
    "its key in one's own environment": "print(dict(os.environ))",
    "outlive the command": (
        "for _ in range(2):\n"
        "    if os.fork(): os._exit(0)\n"
        "    os.setsid()\n"
        "for number in (signal.SIGTERM, signal.SIGHUP): signal.signal(number, signal.SIG_IGN)\n"
        "for _ in range(600):\n"
        "    put('{own}/beat', str(time.time())); time.sleep(0.02)"
    ),
}
_NETWORK = {
    "connect to this machine": "socket.create_connection(('127.0.0.1', at['tcp']), 2); escaped()",
    "connect by version 6": "socket.create_connection(('::1', at['tcp']), 2); escaped()",
    "send a packet": "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'PWNED', ('127.0.0.1', at['udp']))",
    "send a packet outside": (
        "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'PWNED', ('192.0.2.1', 53)); escaped()"
    ),
    "look up a name": "print(socket.getaddrinfo('example.com', 80)); escaped()",
    "raw packets": "socket.socket(socket.AF_INET, socket.SOCK_RAW, 1); escaped()",
    "frames": "socket.socket(17, socket.SOCK_RAW, 3); escaped()",
    "the host of a virtual machine": "socket.socket(40, socket.SOCK_STREAM); escaped()",
    "the kernel's ciphers": "socket.socket(38, socket.SOCK_SEQPACKET); escaped()",
    "a service by name": "socket.socket(socket.AF_UNIX).connect(at['socket']); escaped()",
    "a service by abstract name": "socket.socket(socket.AF_UNIX).connect('\\0' + at['abstract']); escaped()",
    "a service by packets": "socket.socket(1, socket.SOCK_DGRAM).sendto(b'PWNED', at['socket']); escaped()",
    "services of the machine": (
        "for path in ('/run/docker.sock', '/var/run/docker.sock', '/run/dbus/system_bus_socket'):\n"
        "    try: socket.socket(socket.AF_UNIX).connect(path); escaped(path)\n"
        "    except OSError: pass"
    ),
}
_PROTECTED = {
    "add a git hook": "put(ws + '/.git/hooks/pre-commit')",
    "change git's settings": "open(ws + '/.git/config', 'a').write('[core] fsmonitor = PWNED')",
    "replace git's settings": "put(ws + '/src/c'); os.rename(ws + '/src/c', ws + '/.git/config')",
    "remove git's settings": "os.unlink(ws + '/.git/config')",
    "put another repository in place": (
        "os.rename(ws + '/.git', ws + '/old'); os.makedirs(ws + '/.git/hooks'); put(ws + '/.git/hooks/x')"
    ),
    "lead git elsewhere": "put(ws + '/.git/commondir', '../PWNED')",
    "lead git elsewhere anew": "os.unlink(ws + '/.git/commondir'); put(ws + '/.git/commondir', '../PWNED')",
    "settings of a submodule": "put(ws + '/.git/modules/sub/config')",
    "another folder of submodules": "os.rename(ws + '/.git/modules', ws + '/.git/m'); os.mkdir(ws + '/.git/modules')",
    "tasks of an editor": "os.makedirs(ws + '/.vscode', exist_ok=True); put(ws + '/.vscode/tasks.json')",
    "tasks of an editor anew": "os.rmdir(ws + '/.vscode'); os.mkdir(ws + '/.vscode'); put(ws + '/.vscode/x')",
    "move a folder into place": "os.mkdir(ws + '/v'); put(ws + '/v/x'); os.rename(ws + '/v', ws + '/.vscode')",
    "move a file into place": "put(ws + '/m'); os.rename(ws + '/m', ws + '/.mcp.json')",
    "link into place": "os.symlink(ws + '/src', ws + '/.idea')",
    "servers to start": "put(ws + '/.mcp.json')",
    "settings of the harness": "os.makedirs(ws + '/.codewhale', exist_ok=True); put(ws + '/.codewhale/config.toml')",
    "settings of searches": "put(ws + '/.ripgreprc')",
    "a shell's start, there before": "open(ws + '/.bashrc', 'a').write('PWNED')",
    "a shell's start, absent before": "put(ws + '/.zshrc')",
    "rules, there before": "put(ws + '/AGENTS.md')",
    "a protected name in other letters": "put(ws + '/.Envrc')",
    "submodules": "put(ws + '/.gitmodules')",
    "a shell's start by way of a new folder": "os.mkdir(ws + '/k'); put(ws + '/k/../.zshrc')",
    "a shell's start by a descriptor": (
        "os.write(os.open('.zshrc', os.O_CREAT | os.O_WRONLY, dir_fd=os.open(ws, os.O_RDONLY)), b'PWNED')"
    ),
    "a shell's start through a new link": "os.symlink('.zshrc', ws + '/k'); put(ws + '/k')",
    "hooks made elsewhere": "os.mkdir(ws + '/h'); put(ws + '/h/pre-commit'); os.rename(ws + '/h', ws + '/.git/hooks')",
    "a file outside through a new link": "os.symlink(out + '/file', ws + '/k'); put(ws + '/k')",
    "the mode of a file outside through a new link": "os.symlink(out + '/file', ws + '/k'); os.chmod(ws + '/k', 0)",
    "a new file outside through a new link": "os.symlink(out, ws + '/k'); put(ws + '/k/PWNED')",
    "a new folder outside through a new link": "os.symlink(out, ws + '/k'); os.mkdir(ws + '/k/new')",
    "a file outside, moved in": "os.rename(out + '/file', ws + '/k')",
    "a second name of a file outside": "os.link(out + '/file', ws + '/k')",
}
_TERMINAL = "fd = os.open(at['terminal'], os.{how} | os.O_NONBLOCK | os.O_NOCTTY)\n"
_TERMINALS = {
    "read what a person types": _TERMINAL.format(how="O_RDONLY") + "print(os.read(fd, 99))",
    "write on a person's screen": _TERMINAL.format(how="O_WRONLY") + "os.write(fd, b'PWNED'); escaped()",
    "change a person's terminal": (
        _TERMINAL.format(how="O_RDONLY") + "it = termios.tcgetattr(fd); it[3] &= ~termios.ECHO\n"
        "termios.tcsetattr(fd, termios.TCSANOW, it); escaped()"
    ),
    "a person's terminal by a process": "print(os.read(os.open(f'/proc/{victim}/fd/0', os.O_RDONLY | 2048), 99))",
    "a person's terminal by number": (
        "for name in os.listdir('/dev/pts'):\n"
        "    try: os.open('/dev/pts/' + name, os.O_RDWR | os.O_NOCTTY) and name != 'ptmx' and escaped(name)\n"
        "    except OSError: pass"
    ),
    "the consoles of the machine": (
        "for number in range(64):\n"
        "    for kind in ('tty', 'vcs', 'vcsa', 'ttyS'):\n"
        "        try: os.open(f'/dev/{kind}{number}', os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY); escaped(kind)\n"
        "        except OSError: pass"
    ),
    "keyboards and disks, read": (
        "for top, _, names in os.walk('/dev'):\n"
        "    for path in (os.path.join(top, name) for name in names):\n"
        "        about = os.stat(path)\n"
        "        if not stat.S_ISBLK(about.st_mode) and os.major(about.st_rdev) not in (4, 10, 13, 116): continue\n"
        "        try: os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY); escaped(path)\n"
        "        except OSError: pass"
    ),
    "the parent's terminal": "fcntl.ioctl(os.open('/dev/tty', os.O_RDWR), 0x5412, b'x'); escaped()",
    "a line discipline": _TERMINAL.format(how="O_RDONLY")
    + "fcntl.ioctl(fd, 0x5423, (2).to_bytes(4, 'little')); escaped()",
}
_CONNECTED = {
    "a service by abstract name, with a network": _NETWORK["a service by abstract name"],
    "packets to an abstract name, with a network": (
        "socket.socket(1, socket.SOCK_DGRAM).sendto(b'PWNED', '\\0' + at['abstract'] + '.d'); escaped()"
    ),
    "a service by name, with a network": _NETWORK["a service by name"],
}
_ITSELF = {
    "code of the harness": "put(own_code)",
    "code of the harness, appended to": "open(own_code, 'a').write('PWNED')",
    "code of the harness, cut": "os.truncate(own_code, 0)",
    "code of the harness, mapped": (
        "import mmap\nwith open(own_code, 'r+b') as file: mmap.mmap(file.fileno(), 0)[:5] = b'PWNED'"
    ),
    "code of the harness by a second name": "os.link(own_code, '{own}/l'); put('{own}/l')",
    "code of the harness by a link": "os.symlink(own_code, '{own}/l'); put('{own}/l')",
    "code of the harness by its descriptor": (
        "fd = os.open(own_code, os.O_PATH | os.O_RDONLY)\nput(f'/proc/self/fd/{fd}')"
    ),
    "code of the harness by the root of a process": "put('/proc/self/root' + own_code)",
    "code of the harness, replaced": "put('{own}/x'); os.replace('{own}/x', own_code)",
    "code of the harness, exchanged": ("put('{own}/x')\nlibc.renameat2(-100, b'{own}/x', -100, own_code.encode(), 2)"),
    "code of the harness, its mode": "os.chmod(own_code, 0o777); escaped()",
    "a start file of Python": "put(packages + '/sitecustomize.py')",
    "a list of paths": "put(packages + '/PWNED.pth', 'import PWNED')",
    "compiled code": "os.makedirs(packages + '/__pycache__', exist_ok=True); put(packages + '/__pycache__/mod.pyc')",
    "a file without a name, named": (
        "fd = os.open(packages, os.O_TMPFILE | os.O_WRONLY, 0o644); os.write(fd, b'PWNED')\n"
        "libc.linkat(-100, f'/proc/self/fd/{fd}'.encode(), -100, (packages + '/PWNED.pth').encode(), 0x400)"
    ),
    "a program beside the interpreter": "put(ws + '/.venv/bin/git')",
    "the interpreter": "os.unlink(ws + '/.venv/bin/python'); put(ws + '/.venv/bin/python')",
    "the interpreter, made a link": "put('{own}/p'); os.unlink(ws + '/.venv/bin/python'); "
    "os.symlink('{own}/p', ws + '/.venv/bin/python')",
    "the settings of the environment": "put(ws + '/.venv/pyvenv.cfg', 'home = PWNED')",
    "another environment in place": "os.rename(ws + '/.venv', ws + '/v'); os.makedirs(ws + '/.venv/bin'); "
    "put(ws + '/.venv/bin/python')",
    "another folder on the way": (
        "os.rename(ws + '/tools', ws + '/t'); os.makedirs(packages); put(packages + '/mod.py')"
    ),
    "another folder further on": (
        "os.rename(ws + '/tools/env', ws + '/tools/e'); os.makedirs(packages); put(packages + '/mod.py')"
    ),
    "a link in place of a folder on the way": "os.makedirs('{own}/env/site-packages'); "
    "put('{own}/env/site-packages/mod.py'); os.rename(ws + '/tools', ws + '/t'); os.symlink('{own}', ws + '/tools')",
}
_SECRETS = {
    "the harness's keys": "print(open(at['state'] + '/secrets/keys.json').read())",
    "keys of the home folder": "print(open(at['home'] + '/.ssh/id_rsa').read())",
    "the machine's /tmp": "print(open(at['tmp']).read())",
}

# What would do harm, or send something away, where nothing holds it.
NEVER_LOOSE = frozenset({
    *_KERNEL, "send a packet outside", "look up a name", "services of the machine", "the consoles of the machine",
    "a person's terminal by number", "keyboards and disks, read", "the parent's terminal",
})  # fmt: skip
PROBES: tuple[Probe, ...] = (
    *(
        Probe(name, code)
        for table in (_OUTSIDE, _KERNEL, _OTHERS, _NETWORK, _TERMINALS)
        for name, code in table.items()
    ),
    *(Probe(f"leave {name}", name, writes=True, planting=True) for name in PLANTINGS),
    *(Probe(name, code, network=True) for name, code in _CONNECTED.items()),
    *(Probe(name, code, writes=True) for table in (_PROTECTED, _ITSELF) for name, code in table.items()),
    *(Probe(name, code, reads=True) for name, code in _SECRETS.items()),
)
