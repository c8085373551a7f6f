package tool

import (
	"strings"
	"syscall"
	"testing"
)

// Without a free inotify instance the doctor reports what that costs and what to do.
func TestDoctorWithoutInotify(t *testing.T) {
	t.Parallel()
	c := watchNow(syscall.EMFILE)
	if c.Status != CheckWarn || !strings.Contains(c.Detail, "once a second") || !strings.Contains(c.Hint, "max_user_instances") {
		t.Errorf("%+v", c)
	}
	if c := watchNow(nil); c.Status != CheckOK || c.Detail == "" {
		t.Errorf("%+v", c)
	}
}
