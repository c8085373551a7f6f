// Package mkdirlock implements the lock of many other programs: a directory
// next to what it locks. mkdir takes it and rmdir releases it; its holder
// refreshes its time, and a lock not refreshed for ten seconds is abandoned. It
// is not released when its holder is killed, so teamctl's own files are locked
// by package filelock instead.
package mkdirlock

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	mrand "math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Stale is the age at which a lock counts as abandoned.
const Stale = 10 * time.Second

// ErrStolen means that another program has considered the lock abandoned and
// taken it.
var ErrStolen = errors.New("another program took the lock")

// Hold runs do while dir is locked, as a directory of mode perm: if no other
// program uses that mode, it identifies locks left by killed processes (see
// Sweep). do must call held right before it changes what is locked: it fails
// with ErrStolen if this process slept for so long that another one has the
// lock now. The error wraps ctx.Err() if ctx ends before the lock is free.
func Hold(ctx context.Context, dir string, perm fs.FileMode, do func(held func() error) error) (err error) {
	l := &lock{dir: dir, perm: perm}
	if err := l.take(ctx); err != nil {
		return fmt.Errorf("lock %s: %w", dir, err)
	}
	quit := make(chan struct{})
	var refreshing sync.WaitGroup
	refreshing.Go(func() { l.refresh(quit) })
	defer func() {
		close(quit)
		refreshing.Wait()
		err = errors.Join(err, l.free())
	}()
	return do(l.held)
}

type lock struct {
	dir  string
	perm fs.FileMode

	mu   sync.Mutex
	info fs.FileInfo // as last made or refreshed
}

func (l *lock) take(ctx context.Context) error {
	for {
		err := os.Mkdir(l.dir, l.perm)
		if err == nil { // the umask may have removed bits: then the mode does not identify the lock
			l.info, err = os.Lstat(l.dir)
			return err
		}
		if !errors.Is(err, fs.ErrExist) {
			return err
		}
		info, err := os.Lstat(l.dir)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return err
		case !info.IsDir():
			return fmt.Errorf("it is %v, not a directory", info.Mode())
		case time.Since(info.ModTime()) > Stale:
			if err := l.steal(info); err != nil {
				return err
			}
			continue
		}
		t := time.NewTimer(2*time.Millisecond + mrand.N(8*time.Millisecond))
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return ctx.Err()
		}
	}
}

// Sweep releases the locks in a directory that have this mode. The caller knows
// that all of them were left by killed processes; others would have to wait for
// Stale.
func Sweep(in string, perm fs.FileMode) error {
	entries, err := os.ReadDir(in)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.IsDir() || filepath.Ext(e.Name()) != ".lock" {
			continue
		}
		info, err := e.Info()
		if err != nil || info.Mode().Perm() != perm {
			continue
		}
		if err := os.Remove(filepath.Join(in, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// steal moves the lock's abandoned directory away.
func (l *lock) steal(seen fs.FileInfo) (err error) {
	in, err := os.OpenRoot(filepath.Dir(l.dir))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	return Steal(in, filepath.Base(l.dir), seen)
}

// Steal moves an abandoned lock away; seen is the lock that was found
// abandoned. It renames the lock first: between the check and the rename
// another process may have stolen it and made a new one; then the renamed lock
// differs from seen and is moved back.
func Steal(in *os.Root, name string, seen fs.FileInfo) error {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	aside := "." + name + ".stale-" + hex.EncodeToString(b[:])
	err := in.Rename(name, aside)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if got, err := in.Lstat(aside); err == nil && !Same(got, seen) {
		return in.Rename(aside, name)
	}
	return in.Remove(aside)
}

// Same reports whether two infos are of the same lock. It also compares the
// time: a file system may reuse a freed inode number at once.
func Same(a, b fs.FileInfo) bool { return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) }

func (l *lock) held() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mine()
}

func (l *lock) mine() error {
	now, err := os.Lstat(l.dir)
	if err != nil || !Same(now, l.info) {
		return fmt.Errorf("%s: %w", l.dir, ErrStolen)
	}
	return nil
}

func (l *lock) refresh(quit <-chan struct{}) {
	t := time.NewTicker(Stale / 3)
	defer t.Stop()
	for {
		select {
		case <-quit:
			return
		case <-t.C:
			l.touch()
		}
	}
}

// touch refreshes the lock if this process still has it.
func (l *lock) touch() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mine() != nil {
		return
	}
	now := time.Now()
	if os.Chtimes(l.dir, now, now) != nil {
		return
	}
	if info, err := os.Lstat(l.dir); err == nil && os.SameFile(info, l.info) {
		l.info = info
	}
}

// free releases the lock if this process still has it; a stolen one belongs to
// its new holder.
func (l *lock) free() error {
	if l.held() != nil {
		return nil
	}
	err := os.Remove(l.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
