package worktree

import "syscall"

// mountTiny puts a file system of 64 KiB at dir, in the caller's own mount namespace.
func mountTiny(dir string) error { return syscall.Mount("none", dir, "tmpfs", 0, "size=64k") }
