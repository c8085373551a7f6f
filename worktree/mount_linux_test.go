package worktree

import "syscall"

// mountTiny mounts a 64 KiB file system at dir, in the caller's own mount
// namespace.
func mountTiny(dir string) error { return syscall.Mount("none", dir, "tmpfs", 0, "size=64k") }
