"""What a child process may touch: profiles, and the kernel's means to hold it to one."""
