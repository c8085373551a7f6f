package confine

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// minABI is the first version of Landlock that restricts truncate(2): Linux 6.2.
const minABI = 3

// onFiles are the rights on files, onDirs those on directories. No directory gets the rights to
// create devices: a device in the worktree would give access to a whole disk.
const (
	onFiles = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE
	onDirs  = onFiles | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_SYM | unix.LANDLOCK_ACCESS_FS_REFER
	bounded = onDirs | unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK
)

// devices have no content that could be changed.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}

// Supported returns an error that wraps ErrUnsupported if commands cannot be confined.
func Supported() error {
	abi, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	switch {
	case errno != 0:
		return fmt.Errorf("%w: it has no Landlock: %w", ErrUnsupported, errno)
	case abi < minABI:
		return fmt.Errorf("%w: it has version %d of Landlock, want %d", ErrUnsupported, abi, minABI)
	}
	return nil
}

// Enter confines the calling thread permanently, with everything that it starts from then on. The
// caller has locked its goroutine to the thread, and never unlocks it.
func (c Confinement) Enter() error {
	if err := Supported(); err != nil {
		return err
	}
	attr := unix.LandlockRulesetAttr{Handled_access_fs: bounded}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr.Handled_access_fs), 0)
	if errno != 0 {
		return fmt.Errorf("confine: %w", errno)
	}
	rules := int(fd)
	defer func() { _ = unix.Close(rules) }()
	for _, path := range c.write {
		if err := allow(rules, path); err != nil {
			return fmt.Errorf("confine to %s: %w", path, err)
		}
	}
	for _, path := range devices {
		if err := allow(rules, path); err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("confine to %s: %w", path, err)
		}
	}
	// Without this a setuid program could leave the confinement.
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("confine: %w", err)
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(rules), 0, 0); errno != 0 {
		return fmt.Errorf("confine: %w", errno)
	}
	return nil
}

// allow permits all changes below a directory, or to a file.
func allow(rules int, path string) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	attr := unix.LandlockPathBeneathAttr{Allowed_access: onFiles, Parent_fd: int32(fd)}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		attr.Allowed_access = onDirs
	}
	if _, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(rules), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&attr)), 0, 0, 0); errno != 0 {
		return errno
	}
	return nil
}
