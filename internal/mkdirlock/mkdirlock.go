// Package mkdirlock is the lock that many programs outside of this one use: a
// directory beside what it locks. mkdir takes it and rmdir frees it; whoever holds it
// refreshes its time, and one that was not refreshed for ten seconds is abandoned.
// Nothing frees it when its holder is killed, which is why files of our own are
// locked by package filelock.
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

// ErrStolen says that another program has taken the lock for abandoned.
var ErrStolen = errors.New("another program took the lock")

// Hold runs do while dir is locked, as a directory of mode perm: who is alone in using
// a mode can tell what it has left behind when it was killed (see Sweep). do calls held right before it changes what is
// locked: it fails with ErrStolen when this process slept for so long that another
// one has it now. The error wraps ctx.Err() when ctx ends before the lock is free.
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
	info fs.FileInfo // as we made or refreshed it last
}

func (l *lock) take(ctx context.Context) error {
	for {
		err := os.Mkdir(l.dir, l.perm)
		if err == nil { // the umask may have taken bits away: then nobody knows it for ours
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

// Sweep frees the locks in a directory that have this mode. It is for whoever knows that
// all of them were left by processes that were killed: others would wait for Stale.
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

// steal takes our lock's abandoned directory out of the way.
func (l *lock) steal(seen fs.FileInfo) (err error) {
	in, err := os.OpenRoot(filepath.Dir(l.dir))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	return Steal(in, filepath.Base(l.dir), seen)
}

// Steal takes an abandoned lock out of the way; seen is what was judged. It is renamed
// first: between the look and the hand another may have stolen it and made a fresh one,
// and then what was renamed is not what was seen and goes back.
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

// Same reports that a lock is the one that was seen. It compares the time too: a file
// system gives a freed inode number to the next directory at once.
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

// touch refreshes the lock if it is ours still.
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

// free frees the lock if it is ours still; a stolen one is the thief's to free.
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
