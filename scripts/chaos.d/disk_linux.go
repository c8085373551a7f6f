package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// diskSize is the size of the team's file system in MiB: quick to fill, and enough for what that
// many rounds leave, such as unread mail, the ledger and the copies of damaged mailboxes.
func diskSize(rounds int) int { return 384 + rounds/4 }

// disk is a small file system of the team's own.
type disk struct{ dir string }

// newDisk mounts one. It needs the right to mount, which root usually has.
func newDisk(dir string, rounds int) (*disk, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	opt := fmt.Sprintf("size=%dm,mode=0700", diskSize(rounds))
	if err := unix.Mount("chaos", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, opt); err != nil {
		return nil, fmt.Errorf("mount tmpfs: %w", err)
	}
	return &disk{dir}, nil
}

// fill takes all space that is left; it returns what gives it back.
func (d *disk) fill() (free func() error, err error) {
	path := filepath.Join(d.dir, "filler")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	for chunk := make([]byte, 1<<20); ; {
		_, err := f.Write(chunk)
		if errors.Is(err, syscall.ENOSPC) {
			if len(chunk) == 4096 {
				return func() error { return os.Remove(path) }, nil
			}
			chunk = chunk[:4096]
			continue
		}
		if err != nil {
			return nil, errors.Join(err, os.Remove(path))
		}
	}
}

// envInside marks the process that has its own view of what is mounted.
const envInside = "CHAOS_INSIDE"

// inside runs this program again in a mount namespace of its own, so that no mount stays behind
// however it ends. It reports false if it is there already, or is not permitted.
func inside() (status int, ran bool) {
	if os.Getenv(envInside) != "" {
		_ = os.Unsetenv(envInside)
		return 0, false
	}
	cmd := exec.Command(os.Args[0], os.Args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), envInside+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	if err := cmd.Start(); err != nil {
		return 0, false
	}
	// Ctrl-C reaches both; what is sent to us alone is handed on.
	sigs := make(chan os.Signal, 4)
	signal.Notify(sigs, syscall.SIGINT, syscall.SIGTERM)
	done := make(chan struct{})
	go func() {
		for {
			select {
			case s := <-sigs:
				_ = cmd.Process.Signal(s)
			case <-done:
				return
			}
		}
	}()
	_ = cmd.Wait() // the status has it
	signal.Stop(sigs)
	close(done)
	if code := cmd.ProcessState.ExitCode(); code >= 0 {
		return code, true
	}
	return 1, true // a signal
}

func (d *disk) remove() error {
	if err := unix.Unmount(d.dir, 0); err != nil {
		return fmt.Errorf("unmount %s: %w", d.dir, err)
	}
	return nil
}
