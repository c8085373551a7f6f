package readwatch

import (
	"bytes"
	"encoding/binary"
	"os"

	"golang.org/x/sys/unix"
)

func watch(dir string, tell func(name string)) (*Watcher, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, os.NewSyscallError("inotify_init1", err)
	}
	f := os.NewFile(uintptr(fd), "inotify") // waits in the poller, and Close ends a wait
	if _, err := unix.InotifyAddWatch(fd, dir, unix.IN_CLOSE_NOWRITE|unix.IN_ONLYDIR); err != nil {
		_ = f.Close()
		return nil, &os.PathError{Op: "watch", Path: dir, Err: err}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 64<<10)
		for {
			n, err := f.Read(buf)
			if err != nil {
				return
			}
			for _, name := range names(buf[:n]) {
				tell(name)
			}
		}
	}()
	return &Watcher{end: func() {
		_ = f.Close()
		<-done
	}}, nil
}

// names returns the files of a number of events, each once; "" if the kernel has dropped some.
func names(events []byte) (out []string) {
	seen := map[string]bool{}
	for len(events) >= unix.SizeofInotifyEvent {
		mask := binary.NativeEndian.Uint32(events[4:])
		end := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(events[12:]))
		name := string(bytes.TrimRight(events[unix.SizeofInotifyEvent:end], "\x00"))
		events = events[end:]
		switch {
		case mask&unix.IN_Q_OVERFLOW != 0:
			name = ""
		case name == "" || mask&unix.IN_ISDIR != 0: // the directory itself
			continue
		}
		if !seen[name] {
			seen[name] = true
			out = append(out, name)
		}
	}
	return out
}
