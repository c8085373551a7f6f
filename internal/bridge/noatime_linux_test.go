package bridge

import "syscall"

// noAccessTime opens a file so that reads leave no access time, as on a file system without them.
const noAccessTime = syscall.O_NOATIME
