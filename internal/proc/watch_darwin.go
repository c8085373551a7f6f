package proc

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/teamctl/teamctl/backends"
)

// watch waits on a kqueue of its own. The filter is registered before the
// identity is compared, so that an exit in between is reported, not missed.
func watch(id backends.ProcID) (wait func() bool, stop func(), err error) {
	kq, err := unix.Kqueue()
	if err != nil {
		return nil, nil, fmt.Errorf("watch process %d: %w", id.PID, err)
	}
	unix.CloseOnExec(kq)
	ev := unix.Kevent_t{Ident: uint64(id.PID), Filter: unix.EVFILT_PROC, Flags: unix.EV_ADD, Fflags: unix.NOTE_EXIT}
	if _, err := unix.Kevent(kq, []unix.Kevent_t{ev}, nil, nil); err != nil {
		_ = unix.Close(kq)
		if errors.Is(err, unix.ESRCH) { // also for a zombie
			return nil, nil, nil
		}
		return nil, nil, fmt.Errorf("watch process %d: %w", id.PID, err)
	}
	if !Alive(id) {
		_ = unix.Close(kq)
		return nil, nil, nil
	}
	// A kqueue is readable when it has an event, but the runtime's poller is
	// itself a kqueue and does not accept another one on every release: a
	// second, user event ends the blocking wait instead.
	const wake = 1
	ue := unix.Kevent_t{Ident: wake, Filter: unix.EVFILT_USER, Flags: unix.EV_ADD | unix.EV_CLEAR}
	if _, err := unix.Kevent(kq, []unix.Kevent_t{ue}, nil, nil); err != nil {
		_ = unix.Close(kq)
		return nil, nil, fmt.Errorf("watch process %d: %w", id.PID, os.NewSyscallError("kevent", err))
	}
	wait = func() bool {
		defer func() { _ = unix.Close(kq) }()
		out := make([]unix.Kevent_t, 1)
		for {
			n, err := unix.Kevent(kq, nil, out, nil)
			if errors.Is(err, unix.EINTR) {
				continue
			}
			return err == nil && n == 1 && out[0].Filter == unix.EVFILT_PROC
		}
	}
	stop = func() {
		t := unix.Kevent_t{Ident: wake, Filter: unix.EVFILT_USER, Fflags: unix.NOTE_TRIGGER}
		_, _ = unix.Kevent(kq, []unix.Kevent_t{t}, nil, nil)
	}
	return wait, stop, nil
}
